/* One row a cache: where it is by default, which variables move it or turn it off. From the
 * drivers' own documentation: PoCL "Environment variables", Mesa "Environment Variables", NVIDIA's
 * CUDA Programming Guide and driver README, Intel compute-runtime's FAQ, ROCm's comgr. */
#include "cmd/driver_caches.h"

#include <string.h>

#include "cli/host.h"

/* Where a default path begins. */
typedef enum base_dir { BASE_CACHE, BASE_HOME } base_dir;

typedef struct cache_row {
    const char *name;
    const char *dir_variable; /* holds the directory itself */
    base_dir base;
    const char *below;           /* the base */
    const char *switch_variable; /* turns it off when it equals `off` */
    const char *off;
    const char *windows_base; /* a variable; NULL: its place there is not documented */
    const char *windows_below;
} cache_row;

static const cache_row rows[] = {
    {"PoCL kernels", "POCL_CACHE_DIR", BASE_CACHE, "pocl/kcache", "POCL_KERNEL_CACHE", "0", NULL,
     NULL},
    {"Mesa shaders", "MESA_SHADER_CACHE_DIR", BASE_CACHE, "mesa_shader_cache",
     "MESA_SHADER_CACHE_DISABLE", "true", NULL, NULL},
    {"NVIDIA CUDA", "CUDA_CACHE_PATH", BASE_HOME, ".nv/ComputeCache", "CUDA_CACHE_DISABLE", "1",
     "APPDATA", "NVIDIA/ComputeCache"},
    {"NVIDIA OpenGL", "__GL_SHADER_DISK_CACHE_PATH", BASE_CACHE, "nvidia/GLCache",
     "__GL_SHADER_DISK_CACHE", "0", "LOCALAPPDATA", "NVIDIA/GLCache"},
    {"Intel compute", "NEO_CACHE_DIR", BASE_CACHE, "neo_compiler_cache", "NEO_CACHE_PERSISTENT",
     "0", "LOCALAPPDATA", "NEO/neo_compiler_cache"},
    {"AMD comgr", "AMD_COMGR_CACHE_DIR", BASE_CACHE, "comgr", "AMD_COMGR_CACHE", "0", NULL, NULL},
};

static const char *set_variable(cli_pool *pool, const char *name)
{
    const char *value = host_variable(pool, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static const char *find_path(cli_pool *pool, const cache_row *row)
{
    const char *own = set_variable(pool, row->dir_variable);
    if (own != NULL) {
        return own;
    }
    if (host_is_windows) {
        const char *base = row->windows_base != NULL ? set_variable(pool, row->windows_base) : NULL;
        return base != NULL ? host_join(pool, base, row->windows_below) : NULL;
    }
    const char *home = set_variable(pool, "HOME");
    const char *cache = set_variable(pool, "XDG_CACHE_HOME");
    if (row->base == BASE_CACHE && cache != NULL) {
        return host_join(pool, cache, row->below);
    }
    if (home == NULL) {
        return NULL;
    }
    return pool_format(pool, row->base == BASE_CACHE ? "%s/.cache/%s" : "%s/%s", home, row->below);
}

bool driver_cache_get(cli_pool *pool, unsigned index, driver_cache *out_cache)
{
    if (index >= sizeof(rows) / sizeof(rows[0])) {
        return false;
    }
    const cache_row *row = &rows[index];
    driver_cache cache = {row->name, find_path(pool, row), "on", false, 0, 0};
    const char *off = set_variable(pool, row->switch_variable);
    if (cache.path != NULL) {
        cache.present = host_dir_size(cache.path, &cache.bytes, &cache.files);
    }
    if (off != NULL && strcmp(off, row->off) == 0) {
        cache.state = pool_format(pool, "off (%s=%s)", row->switch_variable, row->off);
    } else if (cache.path == NULL) {
        cache.state = host_is_windows ? "at an unknown place" : "no home directory";
    } else if (!cache.present) {
        cache.state = "not there";
    } else if (!host_is_writable(cache.path)) {
        cache.state = "read-only";
    }
    *out_cache = cache;
    return true;
}
