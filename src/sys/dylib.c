/* The system's half of opening a library; see dylib.h and dylib_system.h.
 *
 * "Missing" and "there, but unusable" call for different help, and the loader's one sentence does
 * not always distinguish them: after a failure the usual directories are looked through for the
 * file. */
#include "sys/dylib_system.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "kiln/unstable/probe.h"

#include "base/text.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/file.h"

#define MAX_PATH 1024

/* Where libraries lie that the loader may or may not look at. */
static const char *const usual_dirs[] = {
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/usr/lib/aarch64-linux-gnu",
    "/lib/aarch64-linux-gnu",
#endif
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/lib/wsl/lib",
    "/usr/local/cuda/lib64",
    "/opt/rocm/lib",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
    "/usr/lib/i386-linux-gnu",
    "/usr/lib32", /* of the other class, to say so */
};

static bool exists_in(const char *dir, size_t dir_length, const char *name, char *path)
{
    if (dir_length == 0 || dir[0] != '/' || dir_length + strlen(name) + 2 > MAX_PATH) {
        return false;
    }
    kn_text_putf(path, MAX_PATH, "%.*s/%s", (int)dir_length, dir, name);
    return access(path, F_OK) == 0;
}

/* Looks for a file of this name where libraries lie. */
static bool find_file(const char *name, char *path)
{
    if (kn_path_is_absolute(name)) {
        kn_text_put(path, MAX_PATH, name);
        return access(path, F_OK) == 0;
    }
    const char *list = kn_env_get("LD_LIBRARY_PATH");
    while (list != NULL && list[0] != '\0') {
        size_t length = strcspn(list, ":;");
        if (exists_in(list, length, name, path)) {
            return true;
        }
        list += length + (list[length] != '\0' ? 1 : 0);
    }
    for (size_t i = 0; i < sizeof usual_dirs / sizeof *usual_dirs; i++) {
        if (exists_in(usual_dirs[i], strlen(usual_dirs[i]), name, path)) {
            return true;
        }
    }
    return false;
}

/* True if the loader's words are about the library itself not being found, rather than about one
 * that it needs, or about what is in it. */
static bool says_missing(const char *words, const char *name)
{
    static const char musl[] = "Error loading shared library ";
    if (kn_text_starts(words, musl)) {
        words += sizeof musl - 1;
        return kn_text_starts(words, name) && words[strlen(name)] == ':' &&
               strstr(words, "No such file") != NULL && strstr(words, "(needed by") == NULL;
    }
    return kn_text_starts(words, name) && words[strlen(name)] == ':' &&
           strstr(words, "cannot open shared object file") != NULL &&
           strstr(words, "No such file") != NULL;
}

/* Notes what is wrong with `name`, unless something more specific is known already. */
static void diagnose_failure(const char *name, const char *words, kn_dylib_failure *out)
{
    char file[MAX_PATH];
    char why[512];
    bool found = find_file(name, file);

    if (out->outcome == KILN_PROBE_LIBRARY_UNUSABLE) {
        return;
    }
    if (found && kn_elf_is_foreign(file, why, sizeof why)) {
        kn_dylib_set_unusable(out, file, why,
                              "install the library for this program's architecture");
    } else if (!says_missing(words, name)) {
        kn_text_putf(why, sizeof why, "the loader reports: %s", words);
        kn_dylib_set_unusable(out, found ? file : name, why,
                              "reinstall it together with what it needs, all of one version");
    } else if (found && out->file[0] == '\0') {
        kn_text_put(out->file, sizeof out->file, file);
        kn_text_putf(out->why, sizeof out->why, "found %s, but the loader does not look there",
                     file);
        kn_text_put(out->fix, sizeof out->fix,
                    "add its directory to LD_LIBRARY_PATH or to the loader's configuration");
    }
}

char *kn_dylib_mapped_path(void *handle, const char *name)
{
    struct link_map *map = NULL;
    const bool known =
        dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL && map->l_name[0] != '\0';
    return kn_text_copy(known ? map->l_name : name);
}

/* Whether malloc(3) is the C library's own. Else a library that is bound to itself first would mix
 * two: what strdup(3) takes from one would be given back to the other. The C library is found by a
 * function that neither allocators nor sanitizers, which replace strdup(3) too, have a reason to
 * define. */
static bool has_plain_malloc(void)
{
    Dl_info allocator;
    Dl_info own;
    const void *taken = dlsym(RTLD_DEFAULT, "malloc");
    const void *library = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    return taken != NULL && library != NULL && dladdr(taken, &allocator) != 0 &&
           dladdr(library, &own) != 0 && allocator.dli_fbase == own.dli_fbase;
}

static int choose_binding(bool apart)
{
#ifdef RTLD_DEEPBIND
    if (apart && has_plain_malloc()) {
        return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
    }
#else
    (void)apart;
    (void)has_plain_malloc;
#endif
    return RTLD_NOW | RTLD_LOCAL;
}

void *kn_dylib_load(const char *name, bool apart, kn_dylib_failure *failure)
{
    void *handle = dlopen(name, choose_binding(apart));
    if (handle == NULL) {
        const char *words = dlerror();
        diagnose_failure(name, words != NULL ? words : "no reason given", failure);
    }
    return handle;
}

void kn_dylib_unload(void *handle)
{
    (void)dlclose(handle);
}

void *kn_dylib_symbol(kn_dylib *lib, const char *name)
{
    return dlsym(lib->handle, name);
}
