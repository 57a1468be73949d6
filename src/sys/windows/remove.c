/* Removing and renaming, as near to POSIX as the system lets; see remove.h. */
#include "sys/windows/remove.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "sys/fail.h"
#include "sys/file.h"
#include "sys/windows/wide.h"

/* FileDispositionInfoEx and FileRenameInfoEx of Windows 10, which the headers have only for some of
 * its releases. */
#define DISPOSITION_EX ((FILE_INFO_BY_HANDLE_CLASS)21)
#define RENAME_EX ((FILE_INFO_BY_HANDLE_CLASS)22)
#define DISPOSITION_DELETE 0x1u
#define DISPOSITION_POSIX 0x2u
#define DISPOSITION_IGNORE_READONLY 0x10u
#define RENAME_REPLACE 0x1u
#define RENAME_POSIX 0x2u
#define RENAME_IGNORE_READONLY 0x40u

typedef struct disposition_ex {
    ULONG flags;
} disposition_ex;

typedef struct rename_ex {
    ULONG flags;
    HANDLE root;
    ULONG bytes;
    wchar_t name[];
} rename_ex;

/* The call, or one of its flags, is newer than this system or file system. */
static bool means_unknown(DWORD error)
{
    return error == ERROR_INVALID_PARAMETER || error == ERROR_INVALID_FUNCTION ||
           error == ERROR_NOT_SUPPORTED || error == ERROR_CALL_NOT_IMPLEMENTED ||
           error == ERROR_INVALID_LEVEL;
}

bool kn_remove_open(HANDLE handle)
{
    disposition_ex now = {DISPOSITION_DELETE | DISPOSITION_POSIX | DISPOSITION_IGNORE_READONLY};
    if (SetFileInformationByHandle(handle, DISPOSITION_EX, &now, sizeof now) != 0) {
        return true;
    }
    if (!means_unknown(GetLastError())) {
        return false;
    }
    FILE_DISPOSITION_INFO later = {.DeleteFile = TRUE};
    return SetFileInformationByHandle(handle, FileDispositionInfo, &later, sizeof later) != 0;
}

bool kn_rename_open(HANDLE handle, const wchar_t *to)
{
    size_t bytes = wcslen(to) * sizeof *to;
    size_t size = sizeof(rename_ex) + bytes + sizeof *to;
    rename_ex *wanted = calloc(1, size);
    if (wanted == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return false;
    }
    wanted->flags = RENAME_REPLACE | RENAME_POSIX | RENAME_IGNORE_READONLY;
    wanted->bytes = (ULONG)bytes;
    memcpy(wanted->name, to, bytes);
    bool good = SetFileInformationByHandle(handle, RENAME_EX, wanted, (DWORD)size) != 0;
    DWORD error = GetLastError();
    free(wanted);
    SetLastError(!good && means_unknown(error) ? KN_RENAME_UNKNOWN : error);
    return good;
}

/* 0, or the error. */
static DWORD remove_path(const char *path, DWORD flags)
{
    HANDLE handle = kn_open(path, DELETE, OPEN_EXISTING, flags | FILE_FLAG_OPEN_REPARSE_POINT,
                            KN_RETRY_CHANGE_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return GetLastError();
    }
    FILE_ATTRIBUTE_TAG_INFO facts;
    bool wants_dir = (flags & FILE_FLAG_BACKUP_SEMANTICS) != 0;
    bool is_dir =
        GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &facts, sizeof facts) != 0 &&
        (facts.FileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    DWORD error = wants_dir && !is_dir     ? ERROR_DIRECTORY
                  : kn_remove_open(handle) ? ERROR_SUCCESS
                                           : GetLastError();
    (void)CloseHandle(handle);
    return error;
}

kiln_status kn_file_remove(const char *path, kiln_diag *diag)
{
    /* Without FILE_FLAG_BACKUP_SEMANTICS a directory cannot be opened: "access denied". */
    DWORD error = remove_path(path, 0);
    if (error == ERROR_SUCCESS) {
        return KILN_OK;
    }
    return kn_fail_or_miss(diag, (int)error, "cannot remove", path);
}

kiln_status kn_file_remove_dir(const char *path)
{
    DWORD error = remove_path(path, FILE_FLAG_BACKUP_SEMANTICS);
    if (error == ERROR_SUCCESS) {
        return KILN_OK;
    }
    if (kn_means_missing(error)) {
        return KILN_MISS;
    }
    return error == ERROR_DIR_NOT_EMPTY || error == ERROR_SHARING_VIOLATION ||
                   error == ERROR_BUSY || error == ERROR_CURRENT_DIRECTORY
               ? KILN_E_BUSY
               : KILN_E_IO;
}
