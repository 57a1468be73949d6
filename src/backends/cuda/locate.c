/* Where the CUDA libraries lie. The toolkit is found by its files and named in keys by their build
 * ids, so that a warm start does not open NVRTC at all; nothing in the current directory is ever
 * used.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/instance.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"

/* The soname first; then where WSL, NixOS and containers keep the driver; the toolkit's stub, which
 * the bare name may find, is recognised by what cuInit says. */
static const char *const driver_names[] = KN_LIBRARY_NAMES(
    "nvcuda.dll", "libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1", "/usr/lib64/libcuda.so.1");

const char *const *kn_cuda_driver_names(void)
{
    return driver_names;
}

/* The best file of a directory so far: the highest version after `prefix`. */
typedef struct pick {
    const char *prefix;
    char name[128];
    int major, minor;
} pick;

static void consider_name(pick *best, const char *name)
{
    size_t prefix = strlen(best->prefix);
    int major = 0;
    int minor = 0;
    char rest = 0;
    if (strncmp(name, best->prefix, prefix) != 0 ||
        sscanf(name + prefix, "%d.%d%c", &major, &minor, &rest) == 3 || // NOLINT(cert-err34-c)
        sscanf(name + prefix, "%d", &major) != 1) {                     // NOLINT(cert-err34-c)
        return; /* another library, or a full file name such as .so.12.4.127 */
    }
    if (major > best->major || (major == best->major && minor > best->minor)) {
        best->major = major;
        best->minor = minor;
        kn_text_put(best->name, sizeof(best->name), name);
    }
}

static kiln_status consider_one(void *user, const char *name)
{
    consider_name((pick *)user, name);
    return KILN_OK;
}

/* What a toolkit consists of: one listing of its directory finds all three. */
enum { NVRTC, BUILTINS, NVJITLINK, LIBRARIES };

static kiln_status consider_each(void *user, const char *name)
{
    pick *best = (pick *)user;
    for (int i = 0; i < LIBRARIES; i++) {
        consider_name(&best[i], name);
    }
    return KILN_OK;
}

static bool take_best(const char *folder, const pick *best, kn_cuda_file *file)
{
    kn_elf_facts facts;
    if (best->name[0] == '\0') {
        return false;
    }
    kn_text_putf(file->path, sizeof(file->path), "%s/%s", folder, best->name);
    if (kn_elf_inspect(file->path, &facts, NULL) != KILN_OK || facts.bits != 8 * sizeof(void *)) {
        file->path[0] = '\0';
        return false;
    }
    kn_elf_identify(&facts, file->build_id, sizeof(file->build_id));
    return true;
}

/* The toolkit's headers, relative to the directory of its libraries. */
static void find_headers(const char *folder, kn_cuda_toolkit *toolkit)
{
    static const char *const relative[] = {"../include", "../../../include", "../../include"};
    kn_file_facts facts;
    for (size_t i = 0; i < sizeof(relative) / sizeof(relative[0]); i++) {
        char path[KN_CUDA_PATH + 32];
        kn_text_putf(path, sizeof(path), "%s/%s/cuda_fp16.h", folder, relative[i]);
        if (kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
            kn_text_putf(path, sizeof(path), "%s/%s", folder, relative[i]);
            /* Hundreds of headers are looked up below it: without links and dots that is faster. */
            char *real = kn_path_resolve(path);
            kn_text_put(toolkit->include[0], KN_CUDA_PATH, real != NULL ? real : path);
            free(real);
            kn_text_putf(path, sizeof(path), "%s/cccl", toolkit->include[0]);
            if (kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
                kn_text_put(toolkit->include[1], KN_CUDA_PATH, path);
            }
            return;
        }
    }
}

static bool toolkit_in(const char *folder, kn_cuda_toolkit *toolkit)
{
    pick best[LIBRARIES] = {{"libnvrtc.so.", {0}, 0, -1},
                            {"libnvrtc-builtins.so.", {0}, 0, -1},
                            {"libnvJitLink.so.", {0}, 0, -1}};
    if (!kn_path_is_absolute(folder) ||
        kn_file_list(folder, consider_each, best, NULL) != KILN_OK ||
        !take_best(folder, &best[NVRTC], &toolkit->nvrtc)) {
        return false;
    }
    /* libnvrtc.so.13 says the major version; its builtins' name says all of it. */
    const bool whole = take_best(folder, &best[BUILTINS], &toolkit->builtins);
    const pick *named = &best[whole ? BUILTINS : NVRTC];
    toolkit->major = named->major;
    toolkit->minor = named->minor > 0 ? named->minor : 0;
    (void)take_best(folder, &best[NVJITLINK], &toolkit->nvjitlink);
    find_headers(folder, toolkit);
    return true;
}

static bool toolkit_under(const char *base, kn_cuda_toolkit *toolkit)
{
    static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                          "targets/sbsa-linux/lib"};
    for (size_t i = 0; base != NULL && base[0] != '\0' && i < sizeof(folders) / sizeof(folders[0]);
         i++) {
        char path[KN_CUDA_PATH];
        kn_text_putf(path, sizeof(path), "%s/%s", base, folders[i]);
        if (toolkit_in(path, toolkit)) {
            return true;
        }
    }
    return false;
}

static bool toolkit_on_library_path(kn_cuda_toolkit *toolkit)
{
    const char *list = kn_env_get("LD_LIBRARY_PATH");
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":");
        char path[KN_CUDA_PATH];
        if (length > 0 && length < sizeof(path)) {
            memcpy(path, list, length);
            path[length] = '\0';
            if (toolkit_in(path, toolkit)) {
                return true;
            }
        }
        list += length + (list[length] == ':');
    }
    return false;
}

/* In the directory of a file; takes the path over, which may be NULL. */
static bool toolkit_beside(char *file, kn_cuda_toolkit *toolkit)
{
    char *folder = file != NULL ? kn_path_folder(file) : NULL;
    bool found = folder != NULL && toolkit_in(folder, toolkit);
    free(folder);
    free(file);
    return found;
}

/* Numbered installations, newest first. */
static bool toolkit_numbered(kn_cuda_toolkit *toolkit)
{
    pick best = {"cuda-", {0}, 0, -1};
    char path[KN_CUDA_PATH];
    if (kn_file_list("/usr/local", consider_one, &best, NULL) != KILN_OK || best.name[0] == '\0') {
        return false;
    }
    kn_text_putf(path, sizeof(path), "/usr/local/%s", best.name);
    return toolkit_under(path, toolkit);
}

void kn_cuda_toolkit_find(kn_cuda_toolkit *out_toolkit)
{
    static const char *const system_folders[] = {"/usr/lib/x86_64-linux-gnu",
                                                 "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                                 "/usr/lib/wsl/lib"};
    memset(out_toolkit, 0, sizeof(*out_toolkit));
    if (toolkit_under(kn_env_get("CUDA_PATH"), out_toolkit) ||
        toolkit_under(kn_env_get("CUDA_HOME"), out_toolkit) ||
        toolkit_on_library_path(out_toolkit) ||
        toolkit_beside(kn_paths_own_module(), out_toolkit) ||
        toolkit_under("/usr/local/cuda", out_toolkit) || toolkit_numbered(out_toolkit)) {
        return;
    }
    for (size_t i = 0; i < sizeof(system_folders) / sizeof(system_folders[0]); i++) {
        if (toolkit_in(system_folders[i], out_toolkit)) {
            return;
        }
    }
    /* A program that brings its own, where kiln is a library of the system's. Last: it may lie
     * among thousands of others. */
    (void)toolkit_beside(kn_path_resolve("/proc/self/exe"), out_toolkit);
}
