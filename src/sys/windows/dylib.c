/* The system's half of opening a library; see dylib.h and dylib_system.h.
 *
 * A library is looked for by name in the system's directory and in the program's own, never in the
 * current directory nor on %PATH%, where any user may have left one; by an absolute path, what it
 * needs is looked for next to it as well. */
#include "sys/dylib_system.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/fail.h"
#include "sys/file.h"
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

static void diagnose_failure(const char *name, DWORD error, kn_dylib_failure *out)
{
    kn_file_facts facts;
    /* "Not found" is said of what it needs, too. */
    bool there = kn_path_is_absolute(name) && kn_file_stat(name, true, &facts, NULL) == KILN_OK;
    if (out->outcome == KILN_PROBE_LIBRARY_UNUSABLE || (!there && is_missing(error))) {
        return;
    }
    kiln_diag said = KILN_DIAG_INIT;
    (void)kn_fail(&said, KILN_E_UNAVAILABLE, (int)error, "loading", name);
    const char *why = said.why;
    if (error == ERROR_BAD_EXE_FORMAT) {
        why = "it was not made for programs of this kind";
    } else if (error == ERROR_MOD_NOT_FOUND) {
        why = "a library that it needs is missing";
    }
    kn_dylib_set_unusable(out, name, why,
                          "reinstall it together with what it needs, all of one version");
    kiln_diag_clear(&said);
}

/* Windows binds each import to a named library: there is nothing to keep apart. */
void *kn_dylib_load(const char *name, bool apart, kn_dylib_failure *failure)
{
    (void)apart;
    HMODULE handle = load_module(name);
    if (handle == NULL) {
        diagnose_failure(name, GetLastError(), failure);
    }
    return handle;
}

void kn_dylib_unload(void *handle)
{
    (void)FreeLibrary(handle);
}

char *kn_dylib_mapped_path(void *handle, const char *name)
{
    wchar_t *wide = malloc(PATH_ROOM * sizeof *wide);
    DWORD length = wide != NULL ? GetModuleFileNameW(handle, wide, PATH_ROOM) : 0;
    char *path = length > 0 && length < PATH_ROOM ? kn_narrow_path(wide) : NULL;
    free(wide);
    return path != NULL ? path : kn_text_copy(name);
}

/* Object and function pointers have one representation on Windows. */
void *kn_dylib_symbol(kn_dylib *lib, const char *name)
{
    FARPROC found = GetProcAddress(lib->handle, name);
    void *address = NULL;
    memcpy(&address, &found, sizeof address);
    return address;
}
