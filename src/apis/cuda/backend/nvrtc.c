/* NVRTC and nvJitLink, opened at the first compile. What was mapped is compared with the file that
 * the keys named: if the toolkit was replaced in between, nothing may be stored under the old
 * identity. */
#include <string.h>

#include "apis/cuda/backend/locate.h"
#include "apis/cuda/options/nvrtc_process.h"
#include "base/diag.h"

static bool is_other_image(const kn_cuda_file *file, const char *build_id)
{
    return strcmp(build_id, file->build_id) != 0 && strncmp(build_id, "noid:", 5) != 0;
}

static kiln_status say_replaced(const kn_cuda_file *file, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again", file->path,
                         "the library was replaced while this process was running");
}

static kiln_status check_image(const kn_cuda_file *file, const void *address, kiln_diag *diag)
{
    char path[KN_CUDA_PATH];
    char build_id[KN_CUDA_ID];
    if (kn_module_of_address(address, path, sizeof(path), build_id, sizeof(build_id)) &&
        is_other_image(file, build_id)) {
        return say_replaced(file, diag);
    }
    return KILN_OK;
}

/* The image of a library that has no function to ask for. */
typedef struct mapped_file {
    const kn_cuda_file *file;
    bool other;
} mapped_file;

static kn_module_choice choose_file(void *user, const char *path)
{
    const mapped_file *mapped = (const mapped_file *)user;
    return strcmp(path, mapped->file->path) == 0 ? KN_MODULE_ITSELF : KN_MODULE_NO;
}

static void compare_image(void *user, const char *path, const char *build_id)
{
    mapped_file *mapped = (mapped_file *)user;
    (void)path;
    mapped->other = is_other_image(mapped->file, build_id);
}

static kiln_status open_builtins(kn_cuda *cuda, kiln_diag *diag)
{
    /* NVRTC opens its builtins by bare name; once mapped from its own directory that name finds
     * them. */
    const kn_cuda_file *file = &cuda->toolkit.builtins;
    const char *const names[] = {file->path, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    mapped_file mapped = {file, false};
    kiln_status status = kn_dylib_open(names, &cuda->builtins_lib, &outcome, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!kn_module_select(choose_file, compare_image, &mapped)) {
        status = kn_no_memory(diag, file->path);
    } else if (mapped.other) {
        status = say_replaced(file, diag);
    }
    if (status != KILN_OK) {
        kn_dylib_close(cuda->builtins_lib);
        cuda->builtins_lib = NULL;
    }
    return status;
}

static kiln_status open_bound(const kn_cuda_file *file, const kn_symbol *symbols, size_t count,
                              uint32_t version, void *table, kn_dylib **out_lib, kiln_diag *diag)
{
    const char *const names[] = {file->path, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    kn_dylib *lib = NULL;
    kiln_status status = kn_dylib_open(names, &lib, &outcome, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_dylib_bind(lib, symbols, count, version, table, diag);
    if (status == KILN_OK) {
        /* The first row is a required function of the library itself. */
        const void *address = NULL;
        memcpy(&address, table, sizeof(address));
        status = check_image(file, address, diag);
    }
    if (status != KILN_OK) {
        kn_dylib_close(lib);
        return status;
    }
    *out_lib = lib;
    return KILN_OK;
}

static kiln_status open_nvrtc(kn_cuda *cuda, kiln_diag *diag)
{
    kn_nvrtc_process_loading();
    const kn_cuda_toolkit *toolkit = &cuda->toolkit;
    if (toolkit->nvrtc.path[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install the CUDA toolkit's NVRTC (cuda-nvrtc), or set CUDA_PATH",
                             "NVRTC", "no %s was found", kn_cuda_names.shown[KN_CUDA_NVRTC]);
    }
    if (toolkit->builtins.path[0] == '\0') {
        return kiln_diag_set(
            diag, KILN_E_UNAVAILABLE, "install the builtins of the same version next to it",
            toolkit->nvrtc.path, "its %s was not found", kn_cuda_names.shown[KN_CUDA_BUILTINS]);
    }
    kiln_status status = cuda->builtins_lib != NULL ? KILN_OK : open_builtins(cuda, diag);
    if (status != KILN_OK) {
        return status;
    }
    return open_bound(&toolkit->nvrtc, kn_cuda_nvrtc_symbols, kn_cuda_nvrtc_symbol_count,
                      (uint32_t)(toolkit->major * 1000 + toolkit->minor * 10), &cuda->nvrtc,
                      &cuda->nvrtc_lib, diag);
}

kiln_status kn_cuda_nvrtc_get(kn_cuda *cuda, const kn_cuda_nvrtc **out_nvrtc, kiln_diag *diag)
{
    kn_mutex_lock(&cuda->lock);
    kiln_status status = cuda->nvrtc_lib != NULL ? KILN_OK : open_nvrtc(cuda, diag);
    kn_mutex_unlock(&cuda->lock);
    *out_nvrtc = status == KILN_OK ? &cuda->nvrtc : NULL;
    return status;
}

const kn_cuda_nvrtc *kn_cuda_nvrtc_bound(kn_cuda *cuda)
{
    kn_mutex_lock(&cuda->lock);
    const bool bound = cuda->nvrtc_lib != NULL;
    kn_mutex_unlock(&cuda->lock);
    return bound ? &cuda->nvrtc : NULL; /* never changed once it is bound */
}

kiln_status kn_cuda_nvjitlink_get(kn_cuda *cuda, const kn_cuda_nvjitlink **out_link,
                                  kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_link = NULL;
    if (cuda->toolkit.nvjitlink.path[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install the CUDA toolkit's nvJitLink, or compile without -dlto",
                             "link-time optimisation", "no %s next to NVRTC",
                             kn_cuda_names.shown[KN_CUDA_NVJITLINK]);
    }
    kn_mutex_lock(&cuda->lock);
    if (cuda->nvjitlink_lib == NULL) {
        status = open_bound(&cuda->toolkit.nvjitlink, kn_cuda_nvjitlink_symbols,
                            kn_cuda_nvjitlink_symbol_count, 0, &cuda->nvjitlink,
                            &cuda->nvjitlink_lib, diag);
    }
    kn_mutex_unlock(&cuda->lock);
    if (status == KILN_OK) {
        *out_link = &cuda->nvjitlink;
    }
    return status;
}
