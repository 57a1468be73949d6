/* See find.h. The order is that of ld.so(8), then that of NVIDIA's own Python packages
 * (cuda.pathfinder), then the places where toolkits are installed. */
#include "find.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mark.h"

typedef struct search {
    const kn_library *library;
    char name[32];   /* libnvrtc.so.13 */
    char chosen[32]; /* the variable that kiln exec sets: KILN_NVRTC_13 */
    int major;
    struct stat self;
    char *out_path;
    size_t size;
} search;

/* --- one place -------------------------------------------------------------------------------- */

/* Cuts off the last name of a path. */
static bool cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    return slash != NULL;
}

/* Whether kiln's core lies in the directory `levels` above that of the file. */
static bool has_core_above(const char *path, int levels)
{
    char resolved[PATH_MAX];
    char core[PATH_MAX + sizeof(KN_CORE)];
    bool cut = realpath(path, resolved) != NULL;
    for (int i = 0; cut && i <= levels; i++) {
        cut = cut_name(resolved);
    }
    const int length = snprintf(core, sizeof(core), "%s/" KN_CORE, resolved);
    return cut && length > 0 && (size_t)length < sizeof(core) && access(core, F_OK) == 0;
}

bool kn_find_is_shim(const char *path)
{
    return has_core_above(path, 0) || has_core_above(path, 1);
}

/* False for this library itself, under whichever name and link, and for another installation of
 * kiln's: its build id says nothing of the compiler that it would call. */
static bool try_file(const search *s, const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) &&
           (facts.st_dev != s->self.st_dev || facts.st_ino != s->self.st_ino) &&
           !has_core_above(path, 2);
}

static bool try_directory(search *s, const char *directory, size_t length, const char *below)
{
    int written =
        snprintf(s->out_path, s->size, "%.*s%s/%s", (int)length, directory, below, s->name);
    return length > 0 && directory[0] == '/' && written > 0 && (size_t)written < s->size &&
           try_file(s, s->out_path);
}

static bool try_environment(search *s, const char *variable, const char *below)
{
    const char *value = getenv(variable);
    return value != NULL && try_directory(s, value, strlen(value), below);
}

/* --- lists of directories, and what their tokens mean ----------------------------------------- */

/* $ORIGIN is the directory of the object; what has another token is passed over. */
static bool try_token(search *s, const char *entry, size_t length, const char *origin)
{
    static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
    char directory[PATH_MAX];
    for (size_t i = 0; i < 2; i++) {
        const size_t token = strlen(tokens[i]);
        if (length >= token && memcmp(entry, tokens[i], token) == 0) {
            int written = snprintf(directory, sizeof(directory), "%s%.*s", origin,
                                   (int)(length - token), entry + token);
            return written > 0 && (size_t)written < sizeof(directory) &&
                   try_directory(s, directory, (size_t)written, "");
        }
    }
    return memchr(entry, '$', length) == NULL && try_directory(s, entry, length, "");
}

static bool try_list(search *s, const char *list, const char *origin)
{
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":;");
        if (try_token(s, list, length, origin)) {
            return true;
        }
        list += length + (list[length] != '\0');
    }
    return false;
}

/* --- where a mapped object lies --------------------------------------------------------------- */

/* Without the name that AddressSanitizer's runtime looks for (mark.h), so that nothing has to be
 * asked of the directory there. */
static bool drop_mark(const char *path, char *out, size_t size)
{
    static const char mark[] = "/" KN_PRELOAD_MARK;
    const char *at = strstr(path, mark);
    const size_t before = at != NULL ? (size_t)(at - path) : strlen(path);
    const char *rest = at != NULL ? at + sizeof(mark) - 1 : "";
    const int written = snprintf(out, size, "%.*s%s", (int)before, path, rest);
    return written > 0 && (size_t)written < size;
}

/* The path without links; as it is where the system refuses to read links, as a sandbox may. */
static bool resolve_object(const char *path, char *out, size_t size)
{
    char plain[PATH_MAX];
    char resolved[PATH_MAX];
    if (!drop_mark(path, plain, sizeof(plain))) {
        return false;
    }
    const char *found = realpath(plain, resolved) != NULL ? resolved : plain;
    return found[0] == '/' && (size_t)snprintf(out, size, "%s", found) < size;
}

/* The program's file, whose links are read once: `kiln exec` asks for it with each library. */
static bool resolve_program(char *out, size_t size)
{
    enum { UNKNOWN, BEING_NOTED, KNOWN };
    static char known[PATH_MAX];
    static atomic_int state;
    int unknown = UNKNOWN;
    if (atomic_load_explicit(&state, memory_order_acquire) == KNOWN) {
        return (size_t)snprintf(out, size, "%s", known) < size;
    }
    if (!resolve_object("/proc/self/exe", out, size)) {
        return false;
    }
    if (atomic_compare_exchange_strong(&state, &unknown, BEING_NOTED)) {
        snprintf(known, sizeof(known), "%s", out);
        atomic_store_explicit(&state, KNOWN, memory_order_release);
    }
    return true;
}

/* --- RPATH and RUNPATH of a mapped object ----------------------------------------------------- */

typedef struct object {
    char directory[PATH_MAX];
    const char *rpath, *runpath;
} object;

static void read_dynamic(const struct link_map *map, object *out)
{
    const char *strings = NULL;
    size_t rpath = 0;
    size_t runpath = 0;
    for (const ElfW(Dyn) *row = map->l_ld; row->d_tag != DT_NULL; row++) {
        if (row->d_tag == DT_STRTAB) {
            strings = (const char *)row->d_un.d_ptr;
        } else if (row->d_tag == DT_RPATH) {
            rpath = row->d_un.d_val;
        } else if (row->d_tag == DT_RUNPATH) {
            runpath = row->d_un.d_val;
        }
    }
    out->runpath = strings != NULL && runpath != 0 ? strings + runpath : NULL;
    /* RPATH counts only without a RUNPATH. */
    out->rpath = strings != NULL && rpath != 0 && runpath == 0 ? strings + rpath : NULL;
}

static bool directory_of(const char *path, char *out, size_t size)
{
    return resolve_object(path, out, size) && cut_name(out);
}

/* Which loaded object an address belongs to; NULL of none. */
static const struct link_map *find_map(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
#ifdef __GLIBC__
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map : NULL;
#else /* musl has no dladdr1(); its list of objects begins with the program */
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program == NULL || dladdr(address, &info) == 0 ||
        dlinfo(program, RTLD_DI_LINKMAP, &map) != 0) {
        return NULL;
    }
    while (map != NULL && (const void *)map->l_addr != info.dli_fbase) {
        map = map->l_next;
    }
    return map;
#endif
}

static bool find_object(const void *address, object *out)
{
    memset(out, 0, sizeof(*out));
    const struct link_map *map = find_map(address);
    if (map == NULL) {
        return false;
    }
    const char *path = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    if (!directory_of(path, out->directory, sizeof(out->directory))) {
        return false;
    }
    read_dynamic(map, out);
    return true;
}

/* --- a library that is mapped already --------------------------------------------------------- */

static int try_mapped(struct dl_phdr_info *info, size_t size, void *user)
{
    search *s = user;
    const char *slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    const size_t length = strlen(s->name);
    (void)size;
    /* libnvrtc.so.13, or the file that it is a link to */
    if (slash == NULL || strncmp(slash + 1, s->name, length) != 0 ||
        (slash[1 + length] != '\0' && slash[1 + length] != '.') ||
        strlen(info->dlpi_name) >= s->size || !try_file(s, info->dlpi_name)) {
        return 0;
    }
    memcpy(s->out_path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

/* --- NVIDIA's wheels -------------------------------------------------------------------------- */

/* The site directory that an object lies below, and the wheels' directories there. */
static bool try_wheels(search *s, const char *directory)
{
    static const char *const sites[] = {"/site-packages", "/dist-packages"};
    char below[64];
    for (size_t i = 0; i < 2; i++) {
        const char *at = s->library->wheel[0] != '\0' ? strstr(directory, sites[i]) : NULL;
        if (at == NULL) {
            continue;
        }
        const size_t length = (size_t)(at - directory) + strlen(sites[i]);
        snprintf(below, sizeof(below), "/nvidia/cu%d/lib", s->major);
        if (try_directory(s, directory, length, below)) {
            return true;
        }
        snprintf(below, sizeof(below), "/nvidia/%s/lib", s->library->wheel);
        if (try_directory(s, directory, length, below)) {
            return true;
        }
    }
    return false;
}

/* --- the loader's cache ----------------------------------------------------------------------- */

/* /etc/ld.so.cache in the format of glibc 2.2 and later (sysdeps/generic/dl-cache.h): a header of
 * 48 bytes, then rows of 24; names are offsets from the header. */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
enum { CACHE_HEADER = 48, CACHE_ROW = 24, FLAG_ELF = 1, FLAG_LIBC6 = 3, FLAG_KIND = 0xff };

static uint32_t read_u32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static const char *cache_text(const unsigned char *bytes, size_t size, uint32_t offset)
{
    return offset < size && memchr(bytes + offset, '\0', size - offset) != NULL
               ? (const char *)bytes + offset
               : "";
}

static bool search_cache(search *s, const unsigned char *bytes, size_t size)
{
    if (size < CACHE_HEADER || memcmp(bytes, CACHE_MAGIC, sizeof(CACHE_MAGIC) - 1) != 0) {
        return false;
    }
    const size_t count = read_u32(bytes + sizeof(CACHE_MAGIC) - 1);
    for (size_t i = 0; i < count && CACHE_HEADER + (i + 1) * CACHE_ROW <= size; i++) {
        const unsigned char *row = bytes + CACHE_HEADER + i * CACHE_ROW;
        const uint32_t flags = read_u32(row);
        if ((flags & FLAG_KIND) != FLAG_ELF && (flags & FLAG_KIND) != FLAG_LIBC6) {
            continue;
        }
        const char *path = cache_text(bytes, size, read_u32(row + 8));
        if (strcmp(cache_text(bytes, size, read_u32(row + 4)), s->name) == 0 && path[0] == '/' &&
            strlen(path) < s->size && try_file(s, path)) {
            memcpy(s->out_path, path, strlen(path) + 1);
            return true;
        }
    }
    return false;
}

static bool try_cache(search *s)
{
    const int file = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    struct stat facts;
    bool found = false;
    if (file < 0) {
        return false;
    }
    if (fstat(file, &facts) == 0 && facts.st_size > CACHE_HEADER) {
        const size_t size = (size_t)facts.st_size;
        void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes != MAP_FAILED) {
            found = search_cache(s, bytes, size);
            munmap(bytes, size);
        }
    }
    close(file);
    return found;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool try_defaults(search *s)
{
    static const char *const directories[] = {"/lib/x86_64-linux-gnu",
                                              "/usr/lib/x86_64-linux-gnu",
                                              "/lib/aarch64-linux-gnu",
                                              "/usr/lib/aarch64-linux-gnu",
                                              "/lib64",
                                              "/usr/lib64",
                                              "/lib",
                                              "/usr/lib"};
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        if (try_directory(s, directories[i], strlen(directories[i]), "")) {
            return true;
        }
    }
    return false;
}

static bool try_rocm(search *s)
{
    return try_environment(s, "ROCM_PATH", "/lib") || try_environment(s, "HIP_PATH", "/lib") ||
           try_directory(s, "/opt/rocm", strlen("/opt/rocm"), "/lib");
}

static bool try_toolkits(search *s)
{
    static const char *const below[] = {"/lib64", "/lib", "/targets/x86_64-linux/lib"};
    char numbered[64];
    snprintf(numbered, sizeof(numbered), "/usr/local/cuda-%d", s->major);
    if (try_environment(s, "CONDA_PREFIX", "/lib")) {
        return true;
    }
    if (s->library->wheel[0] == '\0') {
        return try_rocm(s);
    }
    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
        if (try_environment(s, "CUDA_PATH", below[i]) ||
            try_environment(s, "CUDA_HOME", below[i]) ||
            try_directory(s, "/usr/local/cuda", strlen("/usr/local/cuda"), below[i]) ||
            try_directory(s, numbered, strlen(numbered), below[i])) {
            return true;
        }
    }
    return false;
}

/* False for a library of another major version, by its name. */
static bool has_major(const search *s, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    const char *dot = strrchr(s->name, '.'); /* libnvrtc.so.13 */
    const size_t stem = (size_t)(dot - s->name) + 1;
    const size_t length = strlen(s->name);
    return strncmp(name, s->name, stem) != 0 || name[stem] < '0' || name[stem] > '9' ||
           (strncmp(name, s->name, length) == 0 && (name[length] == '.' || name[length] == '\0'));
}

static bool try_named(search *s, const char *variable)
{
    const char *path = getenv(variable);
    if (path == NULL || path[0] != '/' || strlen(path) >= s->size || !has_major(s, path) ||
        !try_file(s, path)) {
        return false;
    }
    memcpy(s->out_path, path, strlen(path) + 1);
    return true;
}

static bool search_all(search *s, const char *named, const object *caller, const object *program)
{
    return try_named(s, named) || dl_iterate_phdr(try_mapped, s) != 0 ||
           try_list(s, caller->rpath, caller->directory) ||
           try_list(s, program->rpath, program->directory) || try_wheels(s, caller->directory) ||
           try_list(s, getenv("LD_LIBRARY_PATH"), program->directory) ||
           try_list(s, caller->runpath, caller->directory) || try_named(s, s->chosen) ||
           try_cache(s) || try_defaults(s) || try_toolkits(s);
}

static bool find_self(char *out_path, size_t size, struct stat *out_facts)
{
    union {
        bool (*function)(const char *);
        const void *address;
    } here = {kn_find_is_shim};
    const struct link_map *map = find_map(here.address);
    if (map == NULL) {
        return false;
    }
    /* The command's own name is what it was started by: "kiln", where PATH has it. */
    const bool found = map->l_name[0] != '\0' ? resolve_object(map->l_name, out_path, size)
                                              : resolve_program(out_path, size);
    return found && stat(out_path, out_facts) == 0;
}

/* `named`: the variable of the user's. */
static bool find_library(search *s, const char *named, const void *caller)
{
    object called_from;
    object program = {.directory = ""};
    void *handle = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    struct link_map *map = NULL;
    if (!find_self(s->out_path, s->size, &s->self)) {
        return false;
    }
    (void)find_object(caller, &called_from);
    if (handle != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL &&
        resolve_program(program.directory, sizeof(program.directory)) &&
        cut_name(program.directory)) {
        read_dynamic(map, &program);
    }
    if (handle != NULL) {
        dlclose(handle);
    }
    return search_all(s, named, &called_from, &program);
}

bool kn_find_library(const kn_library *library, int major, const void *caller, char *out_path,
                     size_t size)
{
    search s = {.library = library, .major = major, .out_path = out_path, .size = size};
    char named[32];
    snprintf(s.name, sizeof(s.name), "%s.so.%d", library->stem, major);
    snprintf(s.chosen, sizeof(s.chosen), "KILN_%s_%d", library->variable, major);
    snprintf(named, sizeof(named), "KILN_%s_LIBRARY", library->variable);
    return find_library(&s, named, caller);
}

bool kn_find_core(char *out_path, size_t size)
{
    struct stat facts;
    char path[KN_FIND_PATH];
    if (!find_self(path, sizeof(path), &facts)) {
        return false;
    }
    for (int levels = 0; levels <= 2 && cut_name(path); levels++) {
        const int length = snprintf(out_path, size, "%s/" KN_CORE, path);
        if (length > 0 && (size_t)length < size && access(out_path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}
