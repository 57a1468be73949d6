/* cli/host.h for Windows: files and directories, by the system's wide calls. A path may have
 * slashes of both kinds, and is absolute with a drive or a server. */
#include "cli/host.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "windows/wide.h"

#define SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
enum { CHUNK = 1 << 30 };

const char host_list_separator = ';';
const bool host_is_windows = true;

static bool means_missing(DWORD error)
{
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ||
           error == ERROR_INVALID_NAME || error == ERROR_INVALID_DRIVE ||
           error == ERROR_BAD_NETPATH || error == ERROR_BAD_NET_NAME || error == ERROR_DIRECTORY;
}

/* The system's own text, in one line and without the full stop. */
static void describe_error(DWORD error, char *text, size_t size)
{
    wchar_t wide[256];
    DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                  error, 0, wide, sizeof(wide) / sizeof(wide[0]), NULL);
    while (length > 0 && wcschr(L"\r\n .", wide[length - 1]) != NULL) {
        length--;
    }
    wide[length] = L'\0';
    char *narrow = narrow_text(wide);
    (void)snprintf(text, size, "%s", narrow != NULL ? narrow : "");
    free(narrow);
    if (text[0] == '\0') {
        (void)snprintf(text, size, "error %lu", error);
    }
}

static HANDLE open_wide(const char *path, DWORD access, DWORD disposition, DWORD flags)
{
    wchar_t *wide = wide_path(path);
    HANDLE handle = INVALID_HANDLE_VALUE;
    if (wide != NULL) {
        handle = CreateFileW(wide, access, SHARE_ALL, NULL, disposition,
                             flags | FILE_FLAG_BACKUP_SEMANTICS, NULL);
    } else {
        SetLastError(ERROR_INVALID_NAME);
    }
    const DWORD error = GetLastError();
    free(wide);
    SetLastError(error);
    return handle;
}

static kiln_status refuse_path(const char *path, kiln_diag *diag, DWORD error)
{
    char why[256];
    describe_error(error, why, sizeof(why));
    return means_missing(error)
               ? kiln_diag_set(diag, KILN_E_INVALID, "check the name", path, "no such file")
               : kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "%s", why);
}

static kiln_status read_all(const char *path, HANDLE file, size_t size, char **out_data,
                            size_t *out_size, kiln_diag *diag)
{
    char *data = malloc(size + 1);
    size_t got = 0;
    DWORD n = 1;
    if (data == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, path, "no memory for %zu bytes", size);
    }
    while (got < size && n > 0) {
        const size_t left = size - got;
        if (ReadFile(file, data + got, left < CHUNK ? (DWORD)left : CHUNK, &n, NULL) == 0) {
            free(data);
            return refuse_path(path, diag, GetLastError());
        }
        got += n;
    }
    data[got] = '\0';
    *out_data = data;
    *out_size = got;
    return KILN_OK;
}

/* `whole`: a longer file than `limit` is refused; else no more of it is read. */
static kiln_status read_regular(const char *path, size_t limit, bool whole, char **out_data,
                                size_t *out_size, kiln_diag *diag)
{
    *out_data = NULL;
    *out_size = 0;
    HANDLE file = open_wide(path, GENERIC_READ, OPEN_EXISTING, 0);
    if (file == INVALID_HANDLE_VALUE) {
        return refuse_path(path, diag, GetLastError());
    }
    BY_HANDLE_FILE_INFORMATION info = {0};
    kiln_status status = KILN_OK;
    if (GetFileType(file) != FILE_TYPE_DISK || GetFileInformationByHandle(file, &info) == 0) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "is not a file");
    } else if ((info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "is a directory");
    } else {
        const uint64_t length = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
        const size_t size = length < limit ? (size_t)length : limit;
        status = whole && length > limit ? kiln_diag_set(diag, KILN_E_INVALID, NULL, path,
                                                         "larger than %zu bytes", limit)
                                         : read_all(path, file, size, out_data, out_size, diag);
    }
    (void)CloseHandle(file); /* nothing was written */
    return status;
}

kiln_status host_read_file(const char *path, size_t limit, char **out_data, size_t *out_size,
                           kiln_diag *diag)
{
    return read_regular(path, limit, true, out_data, out_size, diag);
}

kiln_status host_read_start(const char *path, size_t most, char **out_data, size_t *out_size,
                            kiln_diag *diag)
{
    return read_regular(path, most, false, out_data, out_size, diag);
}

kiln_status host_write_file(const char *path, const void *data, size_t size, kiln_diag *diag)
{
    const char *from = data;
    char why[256];
    HANDLE file = open_wide(path, GENERIC_WRITE, CREATE_ALWAYS, FILE_ATTRIBUTE_NORMAL);
    if (file == INVALID_HANDLE_VALUE) {
        const DWORD error = GetLastError();
        describe_error(error, why, sizeof(why));
        return kiln_diag_set(diag, KILN_E_IO,
                             means_missing(error) ? "make its directory first, or name another"
                                                  : NULL,
                             path, "%s", why);
    }
    bool good = true;
    for (size_t left = size; left > 0 && good;) {
        DWORD n = 0;
        good = WriteFile(file, from, left < CHUNK ? (DWORD)left : CHUNK, &n, NULL) != 0 && n > 0;
        from += n;
        left -= n;
    }
    DWORD error = GetLastError();
    if (CloseHandle(file) == 0 && good) {
        error = GetLastError();
        good = false;
    }
    if (!good) {
        describe_error(error, why, sizeof(why));
        return kiln_diag_set(diag, KILN_E_IO, NULL, path, "cannot write: %s", why);
    }
    return KILN_OK;
}

/* --- text that is printed first and kept afterwards ------------------------------------------- */

FILE *host_text_open(char **text, size_t *size)
{
    wchar_t dir[MAX_PATH + 1];
    wchar_t path[MAX_PATH + 1];
    const DWORD length = GetTempPathW(MAX_PATH + 1, dir);
    *text = NULL;
    *size = 0;
    return length > 0 && length <= MAX_PATH && GetTempFileNameW(dir, L"kln", 0, path) != 0
               ? _wfopen(path, L"w+bTD") /* gone when it is closed */
               : NULL;
}

bool host_text_finish(FILE *file, char **text, size_t *size)
{
    if (fflush(file) != 0 || ferror(file) != 0) {
        return false;
    }
    const long end = ftell(file);
    char *data = end >= 0 ? malloc((size_t)end + 1) : NULL;
    rewind(file);
    if (data == NULL || fread(data, 1, (size_t)end, file) != (size_t)end) {
        free(data);
        return false;
    }
    data[end] = '\0';
    *text = data;
    *size = (size_t)end;
    return true;
}

/* --- paths ------------------------------------------------------------------------------------ */

static DWORD attributes_of(const char *path)
{
    wchar_t *wide = wide_path(path);
    const DWORD attributes = wide != NULL ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    free(wide);
    return attributes;
}

bool host_is_dir(const char *path)
{
    const DWORD attributes = attributes_of(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

bool host_exists(const char *path)
{
    return attributes_of(path) != INVALID_FILE_ATTRIBUTES;
}

/* By the access list, as the system judges it when a file is opened. */
bool host_is_writable(const char *path)
{
    HANDLE handle =
        open_wide(path, host_is_dir(path) ? FILE_ADD_FILE : FILE_WRITE_DATA, OPEN_EXISTING, 0);
    if (handle != INVALID_HANDLE_VALUE) {
        (void)CloseHandle(handle);
    }
    return handle != INVALID_HANDLE_VALUE;
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* Where the name begins: after the last slash, or after the drive. */
static size_t name_start(const char *path)
{
    size_t start = path[0] != '\0' && path[1] == ':' ? 2 : 0;
    for (size_t i = start; path[i] != '\0'; i++) {
        start = is_slash(path[i]) ? i + 1 : start;
    }
    return start;
}

/* With a drive and a slash, or a server. */
bool host_is_absolute(const char *path)
{
    return path[0] != '\0' &&
           ((path[1] == ':' && is_slash(path[2])) || (is_slash(path[0]) && is_slash(path[1])));
}

const char *host_spell(const char *path, char *buffer, size_t size)
{
    if (name_start(path) > 0 || strlen(path) + 3 > size) {
        return path;
    }
    (void)snprintf(buffer, size, "./%s", path);
    return buffer;
}

char *host_absolute(cli_pool *pool, const char *path)
{
    if (host_is_absolute(path)) {
        return pool_text(pool, path, strlen(path));
    }
    wchar_t *wide = wide_path(path);
    char *narrow = wide != NULL ? narrow_path(wide) : NULL;
    char *kept = narrow != NULL ? pool_text(pool, narrow, strlen(narrow)) : NULL;
    free(narrow);
    free(wide);
    return kept;
}

char *host_dir_of(cli_pool *pool, const char *path)
{
    const size_t start = name_start(path);
    if (start == 0) {
        return pool_text(pool, ".", 1);
    }
    /* Without the slash, but "/" and "C:/" keep it. */
    const bool keeps = start == 1 || path[start - 2] == ':' || !is_slash(path[start - 1]);
    return pool_text(pool, path, keeps ? start : start - 1);
}

const char *host_name_of(const char *path)
{
    return path + name_start(path);
}

char *host_join(cli_pool *pool, const char *dir, const char *path)
{
    if (host_is_absolute(path) || is_slash(path[0]) || strcmp(dir, ".") == 0) {
        return pool_text(pool, path, strlen(path));
    }
    const size_t length = strlen(dir);
    const bool slash = length > 0 && is_slash(dir[length - 1]);
    char *whole = pool_format(pool, slash ? "%s%s" : "%s/%s", dir, path);
    for (char *at = whole; at != NULL && *at != '\0'; at++) {
        *at = *at == '\\' ? '/' : *at; /* one kind in what is printed */
    }
    return whole;
}

/* --- what a directory holds ------------------------------------------------------------------- */

/* Directories deeper than this are not a cache's. */
enum { MAX_DEPTH = 16 };

static bool add_dir(const wchar_t *dir, int depth, uint64_t *bytes, uint64_t *files);

static void add_entry(const wchar_t *dir, const WIN32_FIND_DATAW *entry, int depth, uint64_t *bytes,
                      uint64_t *files)
{
    if ((entry->dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) {
        return;
    }
    if ((entry->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0) {
        *bytes += (uint64_t)entry->nFileSizeHigh << 32 | entry->nFileSizeLow;
        *files += 1;
    } else if (depth < MAX_DEPTH && wcscmp(entry->cFileName, L".") != 0 &&
               wcscmp(entry->cFileName, L"..") != 0) {
        const size_t room = wcslen(dir) + wcslen(entry->cFileName) + 2;
        wchar_t *below = malloc(room * sizeof(*below));
        if (below != NULL) {
            (void)_snwprintf(below, room, L"%ls\\%ls", dir, entry->cFileName);
            (void)add_dir(below, depth + 1, bytes, files);
        }
        free(below);
    }
}

static bool add_dir(const wchar_t *dir, int depth, uint64_t *bytes, uint64_t *files)
{
    const size_t room = wcslen(dir) + sizeof("\\*");
    wchar_t *pattern = malloc(room * sizeof(*pattern));
    WIN32_FIND_DATAW entry;
    if (pattern == NULL) {
        return false;
    }
    (void)_snwprintf(pattern, room, L"%ls\\*", dir);
    HANDLE found = FindFirstFileW(pattern, &entry);
    free(pattern);
    if (found == INVALID_HANDLE_VALUE) {
        return false;
    }
    do {
        add_entry(dir, &entry, depth, bytes, files);
    } while (FindNextFileW(found, &entry) != 0);
    (void)FindClose(found); /* only read */
    return true;
}

bool host_dir_size(const char *path, uint64_t *out_bytes, uint64_t *out_files)
{
    *out_bytes = 0;
    *out_files = 0;
    wchar_t *wide = host_is_dir(path) ? wide_path(path) : NULL;
    const bool read = wide != NULL && add_dir(wide, 0, out_bytes, out_files);
    free(wide);
    return read;
}
