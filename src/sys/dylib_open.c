/* Opening the first library of a list that loads; see dylib.h. The same on every system. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/dylib_system.h"
#include "sys/fail.h"
#include "sys/file.h"

#ifdef _WIN32
#define SEPARATORS "/\\:"
#else
#define SEPARATORS "/"
#endif

void kn_dylib_set_unusable(kn_dylib_failure *failure, const char *file, const char *why,
                           const char *fix)
{
    failure->outcome = KILN_PROBE_LIBRARY_UNUSABLE;
    kn_text_put(failure->file, sizeof failure->file, file);
    kn_text_putf(failure->why, sizeof failure->why, "found %s, but %s", file, why);
    kn_text_put(failure->fix, sizeof failure->fix, fix);
}

static kiln_status report_failure(const char *const *names, const kn_dylib_failure *what,
                                  kiln_diag *diag)
{
    char line[256];
    char fix[512];
    kn_text_putf(line, sizeof line, "cannot open %s", names[0] != NULL ? names[0] : "a library");
    if (what->why[0] != '\0') {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, what->fix, line, "%s", what->why);
    }
    char list[512] = "";
    for (size_t i = 0; names[i] != NULL; i++) {
        size_t used = strlen(list);
        kn_text_putf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    kn_text_putf(fix, sizeof fix, "install the package or driver that provides %s",
                 names[0] != NULL ? names[0] : "it");
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, line, "not found (looked for %s)", list);
}

static kiln_status wrap_handle(void *handle, const char *name, kn_dylib **out_lib, kiln_diag *diag)
{
    kn_dylib *lib = calloc(1, sizeof *lib);
    char *path = kn_dylib_mapped_path(handle, name);
    if (lib == NULL || path == NULL) {
        free(lib);
        free(path);
        kn_dylib_unload(handle);
        return kn_fail_nomem(diag, "cannot open", name);
    }
    *lib = (kn_dylib){.handle = handle, .path = path};
    *out_lib = lib;
    return KILN_OK;
}

static kiln_status open_any(const char *const *names, bool apart, kn_dylib **out_lib,
                            kiln_probe_outcome *out_outcome, kiln_diag *diag)
{
    kn_dylib_failure what = {.outcome = KILN_PROBE_LIBRARY_MISSING};
    *out_lib = NULL;
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *name = names[i];
        if (name[0] == '\0' || (!kn_path_is_absolute(name) && strpbrk(name, SEPARATORS) != NULL)) {
            *out_outcome = KILN_PROBE_LIBRARY_UNUSABLE;
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "name it by an absolute path or by its file name",
                                 "cannot open a library", "\"%s\" is a relative path", name);
        }
        void *handle = kn_dylib_load(name, apart, &what);
        if (handle != NULL) {
            kiln_status status = wrap_handle(handle, name, out_lib, diag);
            *out_outcome = status == KILN_OK ? KILN_PROBE_READY : KILN_PROBE_FAILED;
            return status;
        }
    }
    *out_outcome = what.outcome;
    return report_failure(names, &what, diag);
}

kiln_status kn_dylib_open(const char *const *names, kn_dylib **out_lib,
                          kiln_probe_outcome *out_outcome, kiln_diag *diag)
{
    return open_any(names, false, out_lib, out_outcome, diag);
}

kiln_status kn_dylib_open_apart(const char *path, kn_dylib **out_lib,
                                kiln_probe_outcome *out_outcome, kiln_diag *diag)
{
    return open_any((const char *const[]){path, NULL}, true, out_lib, out_outcome, diag);
}

void kn_dylib_close(kn_dylib *lib)
{
    if (lib != NULL) {
        kn_dylib_unload(lib->handle);
        if (lib->temporary) {
            (void)kn_file_remove(lib->path, NULL); /* else the next one that is made sweeps it */
        }
        kn_dylib_retire(lib);
    }
}

void kn_dylib_retire(kn_dylib *lib)
{
    if (lib != NULL) {
        free(lib->path);
        free(lib);
    }
}

const char *kn_dylib_path(const kn_dylib *lib)
{
    return lib->path;
}
