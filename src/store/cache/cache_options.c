/* What the environment and the caller say about a cache. This file must not open anything. */
#include "store/cache/cache.h"

#include <string.h>

#include "base/text.h"
#include "sized/sized.h"
#include "sys/env.h"
#include "sys/file.h"

#define DEFAULT_DISK_BYTES (UINT64_C(2) << 30)
#define DEFAULT_DISK_FILES UINT64_C(100000)
#define DEFAULT_MEMORY_BYTES (UINT64_C(256) << 20)
#define DEFAULT_MEMORY_COUNT 4096u
#define DEFAULT_RECORD_BYTES (UINT64_C(1) << 30)
#define DEFAULT_WAIT_MS (10u * 60u * 1000u)

void kn_cache_defaults(kiln_cache_options *options)
{
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->disk_max_bytes = DEFAULT_DISK_BYTES;
    options->disk_max_files = DEFAULT_DISK_FILES;
    options->memory_max_bytes = DEFAULT_MEMORY_BYTES;
    options->memory_max_count = DEFAULT_MEMORY_COUNT;
    options->wait_ms = DEFAULT_WAIT_MS;
    options->record_max_bytes = DEFAULT_RECORD_BYTES;
}

static kiln_status read_flag(const char *name, uint32_t flag, uint32_t *flags, kiln_diag *diag)
{
    bool on = false;
    kiln_status status = kn_env_bool(name, &on, diag);
    *flags |= status == KILN_OK && on ? flag : 0;
    return status;
}

/* A variable that names a directory; an empty one counts as unset. */
static kiln_status read_directory(const char *name, const char **out_path, kiln_diag *diag)
{
    const char *path = kn_env_get(name);
    if (path == NULL || path[0] == '\0') {
        return KILN_OK;
    }
    if (!kn_path_is_absolute(path)) {
        char fix[64], what[128];
        kn_text_putf(fix, sizeof fix, "set %s to an absolute path", name);
        kn_env_describe(name, what, sizeof what);
        return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "\"%s\" is a relative path", path);
    }
    *out_path = path;
    return KILN_OK;
}

static kiln_status read_namespace(const char **out_name, kiln_diag *diag)
{
    const char *name = kn_env_get("KILN_NAMESPACE");
    char what[128];
    if (kn_cache_namespace_valid(name)) {
        *out_name = name;
        return KILN_OK;
    }
    kn_env_describe("KILN_NAMESPACE", what, sizeof what);
    return kiln_diag_set(diag, KILN_E_INVALID, KN_NAMESPACE_RULE, what,
                         "\"%.80s\" cannot name a namespace", name);
}

static kiln_status read_recording(kiln_cache_options *options, kiln_diag *diag)
{
    kiln_status status = read_directory("KILN_RECORD", &options->record, diag);
    if (status == KILN_OK) {
        status = kn_env_size("KILN_RECORD_MAX_SIZE", &options->record_max_bytes, diag);
    }
    if (status == KILN_OK && options->record_max_bytes == 0) {
        status =
            kiln_diag_set(diag, KILN_E_INVALID, "unset KILN_RECORD to record nothing",
                          "environment variable KILN_RECORD_MAX_SIZE", "a recording of size 0");
    }
    return status == KILN_OK
               ? read_flag("KILN_KEEP_SOURCES", KILN_CACHE_KEEP_SOURCES, &options->flags, diag)
               : status;
}

/* `options` holds usable defaults in any case. */
static kiln_status read_environment(kiln_cache_options *options, kiln_diag *diag)
{
    kiln_cache_options read;
    bool fsync = true;
    kn_cache_defaults(options);
    kn_cache_defaults(&read);
    kiln_status status = read_directory("KILN_CACHE_DIR", &read.root, diag);
    if (status == KILN_OK) {
        status = read_namespace(&read.name_space, diag);
    }
    if (status == KILN_OK) {
        status = kn_env_size("KILN_CACHE_MAX_SIZE", &read.disk_max_bytes, diag);
    }
    if (status == KILN_OK && read.disk_max_bytes == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "KILN_NO_CACHE=1 turns the cache off",
                             "environment variable KILN_CACHE_MAX_SIZE", "a cache of size 0");
    }
    if (status == KILN_OK) {
        status = kn_env_duration("KILN_CACHE_MAX_AGE", &read.disk_max_age_s, diag);
    }
    if (status == KILN_OK) {
        const uint64_t unset = UINT64_MAX; /* more than any file system has */
        uint64_t floor = unset;
        status = kn_env_size("KILN_CACHE_MIN_FREE", &floor, diag);
        read.disk_min_free = floor == unset ? 0 : floor == 0 ? UINT64_MAX : floor;
    }
    if (status == KILN_OK) {
        status = read_flag("KILN_NO_CACHE", KILN_CACHE_DISABLED, &read.flags, diag);
    }
    if (status == KILN_OK) {
        status = read_flag("KILN_RECACHE", KILN_CACHE_RECACHE, &read.flags, diag);
    }
    if (status == KILN_OK) {
        status = read_flag("KILN_READONLY", KILN_CACHE_READONLY, &read.flags, diag);
    }
    if (status == KILN_OK) {
        status = kn_env_bool("KILN_FSYNC", &fsync, diag);
    }
    if (status == KILN_OK) {
        status = read_recording(&read, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    read.no_fsync = !fsync;
    read.packs = kn_env_get("KILN_PACKS");
    read.remote = kn_env_get("KILN_REMOTE");
    *options = read;
    return KILN_OK;
}

kiln_status kiln_cache_options_init_sized(kiln_cache_options *options, size_t size, kiln_diag *diag)
{
    kiln_cache_options filled;
    kiln_status status = read_environment(&filled, diag);
    options->struct_size = size;
    kiln_status given = kn_sized_give(KN_SIZED(kiln_cache_options), &filled, options,
                                      status == KILN_OK ? diag : NULL);
    return status == KILN_OK ? given : status;
}

const char *kiln_origin_name(kiln_origin origin)
{
    switch (origin) {
    case KILN_ORIGIN_COMPILED:
        return "compiled";
    case KILN_ORIGIN_MEMORY:
        return "memory";
    case KILN_ORIGIN_DISK:
        return "disk";
    case KILN_ORIGIN_PACK:
        return "pack";
    case KILN_ORIGIN_REMOTE:
        return "remote";
    case KILN_ORIGIN_SHARED:
        return "shared";
    case KILN_ORIGIN_NONE:
        return "none";
    }
    return "unknown";
}
