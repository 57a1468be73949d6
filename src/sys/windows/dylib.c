/* Opening vendors' libraries and binding their symbols; see dylib.h.
 *
 * A library is looked for by name in the system's directory and in the program's own, never in the
 * current directory nor on %PATH%, where any user may have left one; by an absolute path, what it
 * needs is looked for next to it as well. */
#include "sys/dylib.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/windows/loaded.h"
#include "sys/windows/wide.h"

#define PATH_ROOM 4096

static bool is_missing(DWORD error)
{
    return error == ERROR_MOD_NOT_FOUND || kn_means_missing(error);
}

/* The last error is the loader's own when there is NULL. */
static HMODULE load_module(const char *name)
{
    bool absolute = kn_path_is_absolute(name);
    wchar_t *wide = absolute ? kn_wide_path(name) : kn_wide(name);
    HMODULE handle = NULL;
    DWORD mode = 0;
    if (wide == NULL) {
        return NULL;
    }
    /* Without a box that asks the user about a drive, or shows what is wrong with the file. */
    bool quiet = SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &mode) != 0;
    handle = LoadLibraryExW(wide, NULL,
                            absolute ? LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR |
                                           LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
                                     : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    DWORD error = GetLastError();
    if (quiet) {
        (void)SetThreadErrorMode(mode, NULL);
    }
    free(wide);
    SetLastError(error);
    return handle;
}

/* What was found of the libraries that would not load; one that is there says more than one that is
 * not. */
typedef struct failure {
    kiln_probe_outcome outcome;
    char file[512];
    DWORD error;
} failure;

static void diagnose_failure(const char *name, DWORD error, failure *out)
{
    kn_file_facts facts;
    /* "Not found" is said of what it needs, too. */
    bool there = kn_path_is_absolute(name) && kn_file_stat(name, true, &facts, NULL) == KILN_OK;
    if (out->outcome != KILN_PROBE_LIBRARY_UNUSABLE && (there || !is_missing(error))) {
        out->outcome = KILN_PROBE_LIBRARY_UNUSABLE;
        kn_text_put(out->file, sizeof out->file, name);
        out->error = error;
    }
}

static kiln_status report_failure(const char *const *names, const failure *what, kiln_diag *diag)
{
    char line[256];
    char fix[512];
    kn_text_putf(line, sizeof line, "cannot open %s", names[0] != NULL ? names[0] : "a library");
    if (what->outcome == KILN_PROBE_LIBRARY_UNUSABLE) {
        kiln_diag said = KILN_DIAG_INIT;
        (void)kn_fail(&said, KILN_E_UNAVAILABLE, (int)what->error, "loading", what->file);
        const char *why =
            what->error == ERROR_BAD_EXE_FORMAT  ? "it was not made for programs of this kind"
            : what->error == ERROR_MOD_NOT_FOUND ? "a library that it needs is missing"
                                                 : said.why;
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "reinstall it together with what it needs, all of one version", line,
                             "found %s, but %s", what->file, why);
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

/* Of the file that was mapped; malloc'ed, or NULL. */
static char *path_of(HMODULE handle)
{
    wchar_t *wide = malloc(PATH_ROOM * sizeof *wide);
    DWORD length = wide != NULL ? GetModuleFileNameW(handle, wide, PATH_ROOM) : 0;
    char *path = length > 0 && length < PATH_ROOM ? kn_narrow_path(wide) : NULL;
    free(wide);
    return path;
}

static kiln_status wrap_handle(HMODULE handle, const char *name, kn_dylib **out_lib,
                               kiln_diag *diag)
{
    kn_dylib *lib = malloc(sizeof *lib);
    char *path = path_of(handle);
    path = path != NULL ? path : kn_text_copy(name);
    if (lib == NULL || path == NULL) {
        free(lib);
        free(path);
        (void)FreeLibrary(handle);
        return kn_fail_nomem(diag, "cannot open", name);
    }
    *lib = (kn_dylib){.handle = handle, .path = path};
    *out_lib = lib;
    return KILN_OK;
}

kiln_status kn_dylib_open(const char *const *names, kn_dylib **out_lib,
                          kiln_probe_outcome *out_outcome, kiln_diag *diag)
{
    failure what = {.outcome = KILN_PROBE_LIBRARY_MISSING};
    *out_lib = NULL;
    *out_outcome = KILN_PROBE_LIBRARY_MISSING;

    for (size_t i = 0; names[i] != NULL; i++) {
        const char *name = names[i];
        if (name[0] == '\0' || (!kn_path_is_absolute(name) && strpbrk(name, "/\\:") != NULL)) {
            *out_outcome = KILN_PROBE_LIBRARY_UNUSABLE;
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "name it by an absolute path or by its file name",
                                 "cannot open a library", "\"%s\" is a relative path", name);
        }
        HMODULE handle = load_module(name);
        if (handle != NULL) {
            kiln_status status = wrap_handle(handle, name, out_lib, diag);
            *out_outcome = status == KILN_OK ? KILN_PROBE_READY : KILN_PROBE_FAILED;
            return status;
        }
        diagnose_failure(name, GetLastError(), &what);
    }
    *out_outcome = what.outcome;
    return report_failure(names, &what, diag);
}

/* Windows binds each import to a named library. */
kiln_status kn_dylib_open_apart(const char *path, kn_dylib **out_lib,
                                kiln_probe_outcome *out_outcome, kiln_diag *diag)
{
    return kn_dylib_open((const char *const[]){path, NULL}, out_lib, out_outcome, diag);
}

void kn_dylib_close(kn_dylib *lib)
{
    if (lib != NULL) {
        (void)FreeLibrary(lib->handle);
        if (lib->temporary) {
            (void)kn_file_remove(lib->path, NULL); /* else the next one that is made sweeps it */
        }
        free(lib->path);
        free(lib);
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

/* Object and function pointers have one representation on Windows. */
static void *symbol_of(HMODULE handle, const char *name)
{
    FARPROC found = GetProcAddress(handle, name);
    void *address = NULL;
    memcpy(&address, &found, sizeof address);
    return address;
}

void *kn_dylib_symbol(kn_dylib *lib, const char *name)
{
    return symbol_of(lib->handle, name);
}
