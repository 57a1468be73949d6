/* A toolkit in a directory: found by its files and named in keys by their build ids, so that a warm
 * start does not open NVRTC at all. This file must not know the places of any system. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/locate.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/file.h"

bool kn_cuda_read_dotted(const char *text, int *major, int *minor)
{
    char rest = 0;
    return sscanf(text, "%d.%d%c", major, minor, &rest) != 3 && // NOLINT(cert-err34-c)
           sscanf(text, "%d", major) == 1;                      // NOLINT(cert-err34-c)
}

static void consider_name(kn_cuda_pick *best, const char *name)
{
    size_t prefix = strlen(best->prefix);
    int major = 0;
    int minor = 0;
    if (strncmp(name, best->prefix, prefix) != 0 || !best->read(name + prefix, &major, &minor)) {
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
    consider_name((kn_cuda_pick *)user, name);
    return KILN_OK;
}

/* What a toolkit consists of: one listing of its directory finds all three. */
static kiln_status consider_each(void *user, const char *name)
{
    kn_cuda_pick *best = (kn_cuda_pick *)user;
    for (int i = 0; i < KN_CUDA_LIBRARIES; i++) {
        consider_name(&best[i], name);
    }
    return KILN_OK;
}

static bool take_best(const char *dir, const kn_cuda_pick *best, kn_cuda_file *file)
{
    kn_elf_facts facts;
    if (best->name[0] == '\0') {
        return false;
    }
    kn_text_putf(file->path, sizeof(file->path), "%s/%s", dir, best->name);
    if (kn_elf_inspect(file->path, &facts, NULL) != KILN_OK || facts.bits != 8 * sizeof(void *)) {
        file->path[0] = '\0';
        return false;
    }
    kn_elf_identify(&facts, file->build_id, sizeof(file->build_id));
    return true;
}

/* The toolkit's headers, relative to the directory of its libraries. */
static void find_headers(const char *dir, kn_cuda_toolkit *toolkit)
{
    static const char *const relative[] = {"../include", "../../../include", "../../include"};
    kn_file_facts facts;
    for (size_t i = 0; i < sizeof(relative) / sizeof(relative[0]); i++) {
        char path[KN_CUDA_PATH + 32];
        kn_text_putf(path, sizeof(path), "%s/%s/cuda_fp16.h", dir, relative[i]);
        if (kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
            kn_text_putf(path, sizeof(path), "%s/%s", dir, relative[i]);
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

bool kn_cuda_toolkit_in(const char *dir, kn_cuda_toolkit *toolkit)
{
    kn_cuda_pick best[KN_CUDA_LIBRARIES];
    for (int i = 0; i < KN_CUDA_LIBRARIES; i++) {
        best[i] = (kn_cuda_pick){
            .prefix = kn_cuda_names.prefixes[i], .read = kn_cuda_names.read, .minor = -1};
    }
    if (!kn_path_is_absolute(dir) || kn_file_list(dir, consider_each, best, NULL) != KILN_OK ||
        !take_best(dir, &best[KN_CUDA_NVRTC], &toolkit->nvrtc)) {
        return false;
    }
    /* libnvrtc.so.13 says the major version; its builtins' name says all of it. */
    const bool whole = take_best(dir, &best[KN_CUDA_BUILTINS], &toolkit->builtins);
    const kn_cuda_pick *named = &best[whole ? KN_CUDA_BUILTINS : KN_CUDA_NVRTC];
    toolkit->major = named->major;
    toolkit->minor = named->minor > 0 ? named->minor : 0;
    (void)take_best(dir, &best[KN_CUDA_NVJITLINK], &toolkit->nvjitlink);
    find_headers(dir, toolkit);
    return true;
}

bool kn_cuda_toolkit_under(const char *base, kn_cuda_toolkit *toolkit)
{
    for (size_t i = 0; base != NULL && base[0] != '\0' && kn_cuda_names.dirs[i] != NULL; i++) {
        char path[KN_CUDA_PATH];
        kn_text_putf(path, sizeof(path), "%s/%s", base, kn_cuda_names.dirs[i]);
        if (kn_cuda_toolkit_in(path, toolkit)) {
            return true;
        }
    }
    return false;
}

bool kn_cuda_toolkit_next_to(char *file, kn_cuda_toolkit *toolkit)
{
    char *dir = file != NULL ? kn_path_dir(file) : NULL;
    bool found = dir != NULL && kn_cuda_toolkit_in(dir, toolkit);
    free(dir);
    free(file);
    return found;
}

bool kn_cuda_toolkit_numbered(const char *dir, const char *prefix, kn_cuda_toolkit *toolkit)
{
    kn_cuda_pick best = {.prefix = prefix, .read = kn_cuda_read_dotted, .minor = -1};
    char path[KN_CUDA_PATH];
    if (kn_file_list(dir, consider_one, &best, NULL) != KILN_OK || best.name[0] == '\0') {
        return false;
    }
    kn_text_putf(path, sizeof(path), "%s/%s", dir, best.name);
    return kn_cuda_toolkit_under(path, toolkit);
}
