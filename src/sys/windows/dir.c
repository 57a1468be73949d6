/* Directories: making and listing them. Removing is in remove.c. */
#include "sys/dir.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"
#include "sys/fail.h"
#include "sys/windows/wide.h"

/* How often another process may remove a parent under our hands. */
#define MAX_TRIES 4

/* 0, or the error that says why there is no such directory now. */
static DWORD make_one(const wchar_t *path)
{
    if (CreateDirectoryW(path, NULL) != 0) {
        return ERROR_SUCCESS;
    }
    DWORD error = GetLastError();
    if (error == ERROR_PATH_NOT_FOUND) {
        return error;
    }
    /* Whatever the refusal was: it does not matter if it is there. */
    DWORD attributes = GetFileAttributesW(path);
    if (attributes != INVALID_FILE_ATTRIBUTES) {
        return (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? ERROR_SUCCESS : ERROR_DIRECTORY;
    }
    return error;
}

/* Where the part of a path begins that can be made: after "C:\", "\\server\share\" and the
 * prefixes. */
static wchar_t *first_part(wchar_t *path)
{
    bool device = wcsncmp(path, L"\\\\?\\", 4) == 0 || wcsncmp(path, L"\\\\.\\", 4) == 0;
    wchar_t *p = device ? path + 4 : path;
    int skip = 1; /* the drive */
    if (device && wcsncmp(p, L"UNC\\", 4) == 0) {
        p += 4;
        skip = 2;
    } else if (!device && wcsncmp(p, L"\\\\", 2) == 0) {
        p += 2;
        skip = 2;
    }
    for (; skip > 0 && *p != L'\0'; p++) {
        skip -= *p == L'\\';
    }
    return p;
}

/* Makes each part of `path`, which is changed on the way and restored. */
static DWORD make_all(wchar_t *path)
{
    for (wchar_t *p = first_part(path); *p != L'\0'; p++) {
        if (*p != L'\\') {
            continue;
        }
        *p = L'\0';
        DWORD error = make_one(path);
        *p = L'\\';
        if (error != ERROR_SUCCESS) {
            return error;
        }
    }
    return make_one(path);
}

kiln_status kn_file_make_dir(const char *path, kiln_diag *diag)
{
    if (path[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "cannot create a directory", "empty path");
    }
    wchar_t *wide = kn_wide_path(path);
    if (wide == NULL) {
        return GetLastError() == ERROR_NOT_ENOUGH_MEMORY
                   ? kn_fail_nomem(diag, "cannot create directory", path)
                   : kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot create directory", path);
    }
    size_t length = wcslen(wide);
    while (length > 3 && wide[length - 1] == L'\\') {
        wide[--length] = L'\0';
    }
    DWORD error = make_one(wide);
    for (int tries = 0; error == ERROR_PATH_NOT_FOUND && tries < MAX_TRIES; tries++) {
        error = make_all(wide);
    }
    free(wide);
    return error == ERROR_SUCCESS
               ? KILN_OK
               : kn_fail(diag, KILN_E_IO, (int)error, "cannot create directory", path);
}

kiln_status kn_file_make_new_dir(const char *path, kiln_diag *diag)
{
    wchar_t *wide = kn_wide_path(path);
    if (wide == NULL) {
        return kn_fail_nomem(diag, "cannot create directory", path);
    }
    DWORD error = CreateDirectoryW(wide, NULL) != 0 ? ERROR_SUCCESS : GetLastError();
    if (error == ERROR_PATH_NOT_FOUND) {
        char *parent = kn_path_dir(path);
        if (parent != NULL && kn_file_make_dir(parent, NULL) == KILN_OK) {
            error = CreateDirectoryW(wide, NULL) != 0 ? ERROR_SUCCESS : GetLastError();
        }
        free(parent);
    }
    free(wide);
    return error == ERROR_SUCCESS
               ? KILN_OK
               : kn_fail(diag, error == ERROR_ALREADY_EXISTS ? KILN_E_BUSY : KILN_E_IO, (int)error,
                         "cannot create directory", path);
}

kiln_status kn_file_writable(const char *dir, kiln_diag *diag)
{
    HANDLE handle = kn_open(dir, FILE_ADD_FILE | FILE_ADD_SUBDIRECTORY, OPEN_EXISTING,
                            FILE_FLAG_BACKUP_SEMANTICS, KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot write to", dir);
    }
    (void)CloseHandle(handle);
    return KILN_OK;
}

kiln_status kn_file_space(const char *path, uint64_t *out_free, uint64_t *out_size)
{
    ULARGE_INTEGER mine;
    ULARGE_INTEGER size;
    *out_free = *out_size = 0;
    wchar_t *wide = kn_wide_path(path);
    bool good = wide != NULL && GetDiskFreeSpaceExW(wide, &mine, &size, NULL) != 0;
    free(wide);
    if (!good) {
        return KILN_E_IO;
    }
    *out_free = mine.QuadPart;
    *out_size = size.QuadPart;
    return KILN_OK;
}

static kiln_status visit_listed(HANDLE list, WIN32_FIND_DATAW *entry, const char *dir,
                                kn_file_visit *visit, void *user, kiln_diag *diag)
{
    for (;;) {
        if (wcscmp(entry->cFileName, L".") != 0 && wcscmp(entry->cFileName, L"..") != 0) {
            char *name = kn_narrow(entry->cFileName);
            kiln_status status =
                name != NULL ? visit(user, name) : kn_fail_nomem(diag, "cannot list", dir);
            free(name);
            if (status != KILN_OK) {
                return status;
            }
        }
        if (FindNextFileW(list, entry) == 0) {
            DWORD error = GetLastError();
            return error == ERROR_NO_MORE_FILES
                       ? KILN_OK
                       : kn_fail(diag, KILN_E_IO, (int)error, "cannot list", dir);
        }
    }
}

kiln_status kn_file_list(const char *dir, kn_file_visit *visit, void *user, kiln_diag *diag)
{
    WIN32_FIND_DATAW entry;
    char *pattern = kn_path_join(dir, "*");
    wchar_t *wide = pattern != NULL ? kn_wide_path(pattern) : NULL;
    DWORD error = pattern == NULL ? ERROR_NOT_ENOUGH_MEMORY : GetLastError();
    HANDLE list = INVALID_HANDLE_VALUE;
    if (wide != NULL) {
        list = FindFirstFileExW(wide, FindExInfoBasic, &entry, FindExSearchNameMatch, NULL,
                                FIND_FIRST_EX_LARGE_FETCH);
        error = GetLastError();
    }
    free(wide);
    free(pattern);
    if (list == INVALID_HANDLE_VALUE) {
        return kn_fail_or_miss(diag, (int)error, "cannot list", dir);
    }
    kiln_status status = visit_listed(list, &entry, dir, visit, user, diag);
    (void)FindClose(list);
    return status;
}

/* A handle cannot lead to names here without the kernel's own calls: every name is looked at by its
 * path, as the contract lets callers do. */
kiln_status kn_dir_open(const char *path, kn_dir *out_dir)
{
    kn_file_facts facts;
    out_dir->handle = -1;
    kiln_status status = kn_file_stat(path, true, &facts, NULL);
    return status == KILN_MISS || (status == KILN_OK && facts.kind != KN_FILE_DIR) ? KILN_MISS
                                                                                   : KILN_E_IO;
}

void kn_dir_close(kn_dir *dir)
{
    (void)dir;
}

kiln_status kn_dir_stat(const kn_dir *dir, const char *name, bool follow, kn_file_facts *out_facts)
{
    (void)dir;
    (void)name;
    (void)follow;
    *out_facts = (kn_file_facts){0};
    return KILN_E_IO;
}
