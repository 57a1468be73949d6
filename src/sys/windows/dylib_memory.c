/* Loading a library that exists only as bytes. Windows loads files alone: the bytes go to a file
 * with a random name in the user's temporary directory. It cannot be removed while it is loaded,
 * but goes with the library; what a killed process leaves is swept by the next one. */
#include "sys/dylib_system.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"
#include "sys/windows/wide.h"

#define OBJECT_PREFIX "kiln-object-"

static const char loading[] = "loading an object";

/* What is loaded, or held by who is about to load it, cannot be removed: the system refuses. */
static kiln_status sweep_object(void *user, const char *name)
{
    const char *dir = user;
    char *path = kn_text_starts(name, OBJECT_PREFIX) && kn_text_ends(name, ".dll")
                     ? kn_path_join(dir, name)
                     : NULL;
    wchar_t *wide = path != NULL ? kn_wide_path(path) : NULL;
    if (wide != NULL) {
        (void)DeleteFileW(wide);
    }
    free(wide);
    free(path);
    return KILN_OK;
}

static void sweep_once(const char *dir)
{
    static volatile LONG swept;
    char *copy = InterlockedExchange(&swept, 1) == 0 ? kn_text_copy(dir) : NULL;
    if (copy != NULL) {
        (void)kn_file_list(copy, sweep_object, copy, NULL); /* the next process does it again */
    }
    free(copy);
}

static bool write_bytes(HANDLE file, const char *from, size_t left)
{
    while (left > 0) {
        DWORD n = 0;
        if (WriteFile(file, from, left < (1u << 30) ? (DWORD)left : 1u << 30, &n, NULL) == 0) {
            return false;
        }
        from += n;
        left -= n;
    }
    return true;
}

static bool holds_bytes(HANDLE file, const char *bytes, size_t left)
{
    char block[16384];
    DWORD n = 0;
    while (left > 0) {
        const DWORD wanted = left < sizeof block ? (DWORD)left : (DWORD)sizeof block;
        if (ReadFile(file, block, wanted, &n, NULL) == 0 || n != wanted ||
            memcmp(block, bytes, n) != 0) {
            return false;
        }
        bytes += n;
        left -= n;
    }
    return ReadFile(file, block, 1, &n, NULL) != 0 && n == 0;
}

/* The handle lets others read and nothing else: what is loaded while it is open is what was
 * written.
 */
static HANDLE place_bytes(const wchar_t *path, const void *data, size_t size)
{
    HANDLE file = CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW,
                              FILE_ATTRIBUTE_TEMPORARY | FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) {
        return file;
    }
    const bool written = write_bytes(file, data, size);
    (void)CloseHandle(file); /* what is in it is looked at below */
    file = written ? CreateFileW(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL)
                   : INVALID_HANDLE_VALUE;
    if (file != INVALID_HANDLE_VALUE && !holds_bytes(file, data, size)) {
        (void)CloseHandle(file);
        file = INVALID_HANDLE_VALUE;
        SetLastError(ERROR_WRITE_FAULT);
    }
    return file;
}

/* What it needs is looked for among the system's libraries only: any program may write to its
 * directory. */
static HMODULE load_placed(const wchar_t *path, const void *data, size_t size, bool *out_placed)
{
    HANDLE file = place_bytes(path, data, size);
    HMODULE handle = NULL;
    DWORD mode = 0;
    *out_placed = file != INVALID_HANDLE_VALUE;
    if (!*out_placed) {
        return NULL;
    }
    const bool quiet = SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &mode);
    handle = LoadLibraryExW(path, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    const DWORD error = GetLastError();
    if (quiet) {
        (void)SetThreadErrorMode(mode, NULL);
    }
    (void)CloseHandle(file);
    SetLastError(error);
    return handle;
}

static kiln_status load_from(const char *dir, const void *data, size_t size, kn_dylib **out_lib,
                             kiln_diag *diag)
{
    char name[64];
    kiln_status status = KILN_OK;
    bool placed = false;
    kn_text_putf(name, sizeof name, OBJECT_PREFIX "%016llx.dll",
                 (unsigned long long)kn_random_u64());
    kn_dylib *lib = calloc(1, sizeof *lib);
    char *path = kn_path_join(dir, name);
    wchar_t *wide = path != NULL ? kn_wide_path(path) : NULL;
    if (lib == NULL || wide == NULL) {
        status = kn_no_memory(diag, loading);
        goto cleanup;
    }
    lib->handle = load_placed(wide, data, size, &placed);
    if (lib->handle != NULL) {
        lib->path = path;
        lib->temporary = true;
        *out_lib = lib;
        free(wide);
        return KILN_OK;
    }
    status = kn_fail(diag, placed ? KILN_E_REJECTED : KILN_E_UNAVAILABLE, (int)GetLastError(),
                     placed ? "the system refuses" : "cannot write", placed ? "an object" : dir);
    (void)DeleteFileW(wide);
cleanup:
    free(wide);
    free(path);
    free(lib);
    return status;
}

kiln_status kn_dylib_open_memory(const void *data, size_t size, const char *const *dirs,
                                 kn_dylib **out_lib, kiln_diag *diag)
{
    *out_lib = NULL;
    char *dir = dirs == NULL      ? kn_paths_temporary()
                : dirs[0] != NULL ? kn_text_copy(dirs[0])
                                  : NULL;
    if (dir == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set TMP to a directory of your own",
                             loading, "there is no temporary directory");
    }
    sweep_once(dir);
    kiln_status status = load_from(dir, data, size, out_lib, diag);
    free(dir);
    return status;
}
