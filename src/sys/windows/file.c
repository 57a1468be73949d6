/* Files: facts, small shared records, and what file_read.c needs. Directories are in dir.c. */
#include "sys/file_read.h"

#include <stdlib.h>

#include "base/text.h"
#include "sys/fail.h"
#include "sys/windows/facts.h"
#include "sys/windows/wide.h"

#define EPOCH_1970 INT64_C(116444736000000000) /* in steps of 100 ns since 1601 */
#define MAX_READ ((DWORD)1 << 30)

struct kn_file {
    HANDLE handle;
};

static int last_error(void)
{
    return (int)GetLastError();
}

/* ---- facts ---- */

static int64_t to_ns(LARGE_INTEGER time)
{
    return time.QuadPart == 0 ? 0 : (time.QuadPart - EPOCH_1970) * 100;
}

static kn_file_kind kind_of(DWORD attributes)
{
    if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
        return KN_FILE_LINK;
    }
    return (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? KN_FILE_DIR : KN_FILE_REGULAR;
}

bool kn_file_take_facts(HANDLE handle, kn_file_facts *out)
{
    BY_HANDLE_FILE_INFORMATION facts;
    FILE_BASIC_INFO times;
    if (GetFileType(handle) != FILE_TYPE_DISK) {
        *out = (kn_file_facts){.kind = KN_FILE_OTHER};
        return true;
    }
    if (GetFileInformationByHandle(handle, &facts) == 0 ||
        GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times) == 0) {
        return false;
    }
    kn_file_kind kind = kind_of(facts.dwFileAttributes);
    *out = (kn_file_facts){
        .kind = kind,
        .size = (uint64_t)facts.nFileSizeHigh << 32 | facts.nFileSizeLow,
        .mtime_ns = to_ns(times.LastWriteTime),
        .ctime_ns = to_ns(times.ChangeTime),
        .inode = (uint64_t)facts.nFileIndexHigh << 32 | facts.nFileIndexLow,
        .device = facts.dwVolumeSerialNumber,
        .owner = 0,
        .mode = 0700, /* what may be run is said by names here */
    };
    return true;
}

/* FILE_FLAG_BACKUP_SEMANTICS is what opening a directory takes; it changes nothing for files. */
static DWORD flags_for(bool follow)
{
    return FILE_FLAG_BACKUP_SEMANTICS | (follow ? 0 : FILE_FLAG_OPEN_REPARSE_POINT);
}

kiln_status kn_file_stat(const char *path, bool follow, kn_file_facts *out_facts, kiln_diag *diag)
{
    kn_file_facts facts;
    *out_facts = (kn_file_facts){0};
    HANDLE handle =
        kn_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, flags_for(follow), KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail_or_miss(diag, last_error(), "cannot look at", path);
    }
    bool good = kn_file_take_facts(handle, &facts);
    int error = last_error();
    (void)CloseHandle(handle);
    if (!good) {
        return kn_fail(diag, KILN_E_IO, error, "cannot look at", path);
    }
    *out_facts = facts;
    return KILN_OK;
}

/* ---- reading whole ---- */

kiln_status kn_file_read_some(kn_handle handle, const char *path, char *data, size_t size,
                              size_t *out_got, kiln_diag *diag)
{
    *out_got = 0;
    while (*out_got < size) {
        size_t left = size - *out_got;
        DWORD n = 0;
        if (ReadFile(handle, data + *out_got, left < MAX_READ ? (DWORD)left : MAX_READ, &n, NULL) ==
            0) {
            return GetLastError() == ERROR_HANDLE_EOF
                       ? KILN_OK
                       : kn_fail(diag, KILN_E_IO, last_error(), "cannot read", path);
        }
        if (n == 0) {
            break;
        }
        *out_got += n;
    }
    return KILN_OK;
}

static kiln_status read_path(const char *path, size_t limit, bool nofollow, kn_room *to,
                             kn_file_facts *out_facts, kiln_diag *diag)
{
    HANDLE handle =
        kn_open(path, GENERIC_READ, OPEN_EXISTING, flags_for(!nofollow), KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail_or_miss(diag, last_error(), "cannot open", path);
    }
    kiln_status status = kn_file_take_facts(handle, out_facts)
                             ? kn_file_read_handle(handle, out_facts, path, limit, to, diag)
                             : kn_fail(diag, KILN_E_IO, last_error(), "cannot look at", path);
    (void)CloseHandle(handle); /* nothing was written */
    return status;
}

/* Remembers where it is: Windows opens by whole paths. */
struct kn_held_dir {
    char *path;
};

kiln_status kn_held_dir_open(const char *path, kn_held_dir **out_dir, kiln_diag *diag)
{
    kn_file_facts facts;
    *out_dir = NULL;
    kiln_status status = kn_file_stat(path, false, &facts, diag);
    if (status != KILN_OK || facts.kind != KN_FILE_DIR) {
        return status != KILN_OK ? status : KILN_MISS;
    }
    kn_held_dir *dir = malloc(sizeof *dir);
    char *copy = kn_text_copy(path);
    if (dir == NULL || copy == NULL) {
        free(copy);
        free(dir);
        return kn_fail_nomem(diag, "cannot open directory", path);
    }
    dir->path = copy;
    *out_dir = dir;
    return KILN_OK;
}

void kn_held_dir_close(kn_held_dir *dir)
{
    if (dir != NULL) {
        free(dir->path);
        free(dir);
    }
}

kiln_status kn_file_read_room(const kn_held_dir *dir, const char *path, size_t limit, bool nofollow,
                              kn_room *to, kn_file_facts *out_facts, kiln_diag *diag)
{
    char *whole = dir != NULL ? kn_path_join(dir->path, path) : NULL;
    if (dir != NULL && whole == NULL) {
        return kn_fail_nomem(diag, "cannot read", path);
    }
    kiln_status status =
        read_path(whole != NULL ? whole : path, limit, nofollow, to, out_facts, diag);
    free(whole);
    return status;
}

/* ---- changing ---- */

kiln_status kn_file_touch(const char *path)
{
    HANDLE handle =
        kn_open(path, FILE_WRITE_ATTRIBUTES, OPEN_EXISTING, flags_for(false), KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_means_missing(GetLastError()) ? KILN_MISS : KILN_E_IO;
    }
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    bool good = SetFileTime(handle, NULL, NULL, &now) != 0;
    (void)CloseHandle(handle);
    return good ? KILN_OK : KILN_E_IO;
}

char *kn_path_resolve(const char *path)
{
    HANDLE handle = kn_open(path, FILE_READ_ATTRIBUTES, OPEN_EXISTING, flags_for(true), 0);
    if (handle == INVALID_HANDLE_VALUE) {
        return NULL;
    }
    char *resolved = NULL;
    DWORD needed = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *wide = needed > 0 ? malloc(((size_t)needed + 1) * sizeof *wide) : NULL;
    if (wide != NULL) {
        DWORD length = GetFinalPathNameByHandleW(handle, wide, needed + 1, FILE_NAME_NORMALIZED);
        resolved = length > 0 && length <= needed ? kn_narrow_path(wide) : NULL;
    }
    free(wide);
    (void)CloseHandle(handle);
    return resolved;
}

/* ---- records ---- */

kiln_status kn_file_open(const char *path, bool writable, kn_file **out_file, kiln_diag *diag)
{
    kn_file_facts facts;
    *out_file = NULL;
    HANDLE handle = kn_open(path, writable ? GENERIC_READ | GENERIC_WRITE : GENERIC_READ,
                            writable ? OPEN_ALWAYS : OPEN_EXISTING, flags_for(false),
                            writable ? KN_RETRY_CHANGE_MS : KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return writable ? kn_fail(diag, KILN_E_IO, last_error(), "cannot open", path)
                        : kn_fail_or_miss(diag, last_error(), "cannot open", path);
    }
    kn_file *file = NULL;
    kiln_status status = KILN_OK;
    if (!kn_file_take_facts(handle, &facts) || facts.kind != KN_FILE_REGULAR) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a regular file");
    } else if ((file = malloc(sizeof *file)) == NULL) {
        status = kn_fail_nomem(diag, "cannot open", path);
    }
    if (status != KILN_OK || file == NULL) {
        (void)CloseHandle(handle);
        return status;
    }
    file->handle = handle;
    *out_file = file;
    return KILN_OK;
}

void kn_file_close(kn_file *file)
{
    if (file != NULL) {
        (void)CloseHandle(file->handle); /* the records it is for may be lost */
        free(file);
    }
}

static OVERLAPPED overlapped_at(uint64_t offset)
{
    OVERLAPPED where = {0};
    where.Offset = (DWORD)offset;
    where.OffsetHigh = (DWORD)(offset >> 32);
    return where;
}

kiln_status kn_file_read_at(kn_file *file, uint64_t offset, void *data, size_t size)
{
    char *to = data;
    while (size > 0) {
        OVERLAPPED where = overlapped_at(offset);
        DWORD n = 0;
        if (ReadFile(file->handle, to, size < MAX_READ ? (DWORD)size : MAX_READ, &n, &where) == 0) {
            return GetLastError() == ERROR_HANDLE_EOF ? KILN_MISS : KILN_E_IO;
        }
        if (n == 0) {
            return KILN_MISS;
        }
        to += n;
        offset += n;
        size -= n;
    }
    return KILN_OK;
}

kiln_status kn_file_write_at(kn_file *file, uint64_t offset, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0) {
        OVERLAPPED where = overlapped_at(offset);
        DWORD n = 0;
        if (WriteFile(file->handle, from, size < MAX_READ ? (DWORD)size : MAX_READ, &n, &where) ==
                0 ||
            n == 0) {
            return KILN_E_IO;
        }
        from += n;
        offset += n;
        size -= n;
    }
    return KILN_OK;
}

FILE *kn_file_create_stream(const char *path)
{
    return fopen(path, "wb");
}

/* Windows lets only some users make links, so kiln makes none. */
kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag)
{
    (void)target;
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "linking to a directory",
                         "%s: not on Windows", path);
}
