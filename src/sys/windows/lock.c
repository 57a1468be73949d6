/* Advisory locks on byte ranges; see lock.h. A range belongs to the handle that locked it, and the
 * system lets go of it when the handle is closed, by whatever end of its process. */
#include "sys/lock.h"

#include <stdlib.h>

#include "sys/clock.h"
#include "sys/fail.h"
#include "sys/windows/wide.h"

#define MAX_OFFSET (UINT64_C(1) << 62)

struct kn_lock_file {
    HANDLE handle;
};

kiln_status kn_lock_file_open(const char *path, kn_lock_file **out_file, kiln_diag *diag)
{
    FILE_ATTRIBUTE_TAG_INFO facts;
    *out_file = NULL;
    HANDLE handle = kn_open(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS,
                            FILE_FLAG_OPEN_REPARSE_POINT, KN_RETRY_CHANGE_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot open lock file", path);
    }
    kn_lock_file *file = NULL;
    kiln_status status = KILN_OK;
    if (GetFileType(handle) != FILE_TYPE_DISK ||
        GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &facts, sizeof facts) == 0 ||
        (facts.FileAttributes & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY)) != 0) {
        status = kiln_diag_set(diag, KILN_E_IO, NULL, path, "it is not a regular file");
    } else if ((file = malloc(sizeof *file)) == NULL) {
        status = kn_fail_nomem(diag, "cannot open lock file", path);
    }
    if (status != KILN_OK || file == NULL) {
        (void)CloseHandle(handle);
        return status;
    }
    file->handle = handle;
    *out_file = file;
    return KILN_OK;
}

void kn_lock_file_keep(kn_lock_file *file)
{
    (void)file; /* a handle is closed by who knows it */
}

void kn_lock_file_close(kn_lock_file *file)
{
    if (file != NULL) {
        (void)CloseHandle(file->handle);
        free(file);
    }
}

bool kn_lock_file_is_at(const kn_lock_file *file, const char *path)
{
    BY_HANDLE_FILE_INFORMATION mine, there;
    HANDLE handle = kn_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT,
                            KN_RETRY_CHANGE_MS);
    const bool same =
        handle != INVALID_HANDLE_VALUE && GetFileInformationByHandle(file->handle, &mine) != 0 &&
        GetFileInformationByHandle(handle, &there) != 0 &&
        mine.dwVolumeSerialNumber == there.dwVolumeSerialNumber &&
        mine.nFileIndexHigh == there.nFileIndexHigh && mine.nFileIndexLow == there.nFileIndexLow;
    if (handle != INVALID_HANDLE_VALUE) {
        (void)CloseHandle(handle);
    }
    return same;
}

static OVERLAPPED lock_offset(uint64_t offset)
{
    OVERLAPPED where = {0};
    where.Offset = (DWORD)offset;
    where.OffsetHigh = (DWORD)(offset >> 32);
    return where;
}

kiln_status kn_lock_try_handle(int handle, uint64_t offset)
{
    if (offset >= MAX_OFFSET) {
        return KILN_E_INVALID;
    }
    OVERLAPPED where = lock_offset(offset);
    if (LockFileEx((HANDLE)(intptr_t)handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0,
                   1, 0, &where) != 0) {
        return KILN_OK;
    }
    switch (GetLastError()) {
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING:
    case ERROR_SHARING_VIOLATION:
        return KILN_E_BUSY;
    case ERROR_NOT_SUPPORTED:
    case ERROR_INVALID_FUNCTION:
    case ERROR_CALL_NOT_IMPLEMENTED:
    case ERROR_INVALID_PARAMETER:
        return KILN_E_UNSUPPORTED;
    default:
        return KILN_E_IO;
    }
}

kiln_status kn_lock_try(kn_lock_file *file, uint64_t offset)
{
    return kn_lock_try_handle((int)(intptr_t)file->handle, offset);
}

void kn_lock_drop(kn_lock_file *file, uint64_t offset)
{
    if (offset < MAX_OFFSET) {
        OVERLAPPED where = lock_offset(offset);
        (void)UnlockFileEx(file->handle, 0, 1, 0, &where); /* the rest ends with the closing */
    }
}

bool kn_lock_is_held(kn_lock_file *file, uint64_t offset)
{
    /* The system has no such question. A shared lock for a moment: those who ask at the same time
     * do not take one another for a holder; who wants the byte itself is kept from it once. */
    if (offset >= MAX_OFFSET) {
        return false;
    }
    OVERLAPPED where = lock_offset(offset);
    if (LockFileEx(file->handle, LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &where) != 0) {
        kn_lock_drop(file, offset);
        return false;
    }
    const DWORD error = GetLastError();
    return error == ERROR_LOCK_VIOLATION || error == ERROR_IO_PENDING;
}

bool kn_lock_is_any_held(kn_lock_file *file, uint64_t offset, uint64_t count)
{
    bool held = false;
    for (uint64_t i = 0; i < count && !held; i++) {
        held = kn_lock_is_held(file, offset + i);
    }
    return held;
}

uint64_t kn_lock_find(kn_lock_file *file, uint64_t offset, uint64_t count)
{
    (void)file;
    (void)offset;
    (void)count;
    return 0; /* the system has no such question */
}

bool kn_lock_is_forkers(const kn_lock_file *file, uint64_t offset)
{
    (void)file;
    (void)offset;
    return false; /* there is no fork */
}

bool kn_lock_wait(kn_lock_file *file, const char *path, uint64_t ns)
{
    (void)file;
    (void)path;
    kn_clock_sleep(ns); /* the system reports changes of a directory, not the end of a lock */
    return false;
}
