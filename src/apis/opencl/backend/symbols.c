/* Opening libOpenCL and binding its symbols. Knows the library's names; nothing of what it does. */
#include "apis/opencl/backend/symbols.h"

#include <string.h>

#include "kiln/unstable/probe.h"

#include "base/text.h"

/* The soname first: the name without a number belongs to development packages. */
static const char *const library_names[] =
    KN_LIBRARY_NAMES("OpenCL.dll", "libOpenCL.so.1", "/usr/lib/wsl/lib/libOpenCL.so.1",
                     "/run/opengl-driver/lib/libOpenCL.so.1");

static const kn_symbol symbols[] = {
#define X(since, need, result, name, args) {#name, offsetof(kn_opencl_api, name), since, need},
#include "apis/opencl/backend/opencl.def"
#undef X
};

#define SYMBOL_COUNT (sizeof(symbols) / sizeof(symbols[0]))

/* A library that has all of OpenCL 1.0 and lacks later symbols is old; one that lacks a symbol of
 * 1.0 is not an OpenCL library, or is broken. */
static const kn_symbol *first_missing(kn_dylib *lib)
{
    const kn_symbol *later = NULL;
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        if (symbols[i].need != KN_REQUIRED || kn_dylib_symbol(lib, symbols[i].name) != NULL) {
            continue;
        }
        if (symbols[i].since == 100) {
            return &symbols[i];
        }
        later = later != NULL ? later : &symbols[i];
    }
    return later;
}

static kiln_status bind_symbols(kn_dylib *lib, kn_opencl_api *api, kiln_probe_outcome *out_outcome,
                                kiln_diag *diag)
{
    const char *path = kn_dylib_path(lib);
    const kn_symbol *missing = first_missing(lib);
    if (missing == NULL) {
        return kn_dylib_bind(lib, symbols, SYMBOL_COUNT, 0, api, diag);
    }
    if (missing->since > 100) {
        *out_outcome = KILN_PROBE_DRIVER_TOO_OLD;
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install a newer OpenCL loader (Debian: ocl-icd-libopencl1)",
                             "opening libOpenCL",
                             "%s is too old: %s, new in OpenCL %u.%u, is not in it; kiln needs 1.2",
                             path, missing->name, missing->since / 100, missing->since / 10 % 10);
    }
    *out_outcome = KILN_PROBE_SYMBOL_MISSING;
    return kiln_diag_set(
        diag, KILN_E_UNAVAILABLE, "reinstall the OpenCL loader (Debian: ocl-icd-libopencl1)",
        "opening libOpenCL", "%s lacks %s, which every OpenCL library has", path, missing->name);
}

kiln_status kn_opencl_library_open(kn_dylib **out_lib, kn_opencl_api *api, char *path,
                                   size_t path_size, kiln_probe_outcome *out_outcome,
                                   kiln_diag *diag)
{
    *out_lib = NULL;
    *out_outcome = KILN_PROBE_LIBRARY_MISSING;
    kn_text_put(path, path_size, library_names[0]);
    kn_dylib *lib = NULL;
    kiln_status status = kn_dylib_open(library_names, &lib, out_outcome, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_text_put(path, path_size, kn_dylib_path(lib));
    *out_outcome = KILN_PROBE_SYMBOL_MISSING;
    status = bind_symbols(lib, api, out_outcome, diag);
    if (status != KILN_OK) {
        kn_dylib_close(lib);
        return status;
    }
    *out_outcome = KILN_PROBE_READY;
    *out_lib = lib;
    return KILN_OK;
}
