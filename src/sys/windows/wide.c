/* UTF-8 here, UTF-16 there; opening with patience. See wide.h. */
#include "sys/windows/wide.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "sys/clock.h"

/* The system takes at most 260 characters with the NUL, for a directory 12 less, without the
 * prefix.
 */
#define LONG_PATH 247
#define MAX_PAUSE_MS 64

wchar_t *kn_wide(const char *text)
{
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    if (length <= 0) {
        return NULL;
    }
    wchar_t *wide = malloc((size_t)length * sizeof *wide);
    if (wide == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, length) != length) {
        free(wide);
        return NULL;
    }
    return wide;
}

char *kn_narrow(const wchar_t *text)
{
    int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    if (length <= 0) {
        return NULL;
    }
    char *narrow = malloc((size_t)length);
    if (narrow == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    if (WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, length, NULL, NULL) != length) {
        free(narrow);
        return NULL;
    }
    return narrow;
}

/* Writes `path` after `prefix`, without its first `skip` characters; malloc'ed. */
static wchar_t *prefixed_path(const wchar_t *prefix, const wchar_t *path, size_t skip)
{
    size_t before = wcslen(prefix);
    size_t length = wcslen(path) - skip;
    wchar_t *whole = malloc((before + length + 1) * sizeof *whole);
    if (whole == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    memcpy(whole, prefix, before * sizeof *whole);
    memcpy(whole + before, path + skip, (length + 1) * sizeof *whole);
    return whole;
}

wchar_t *kn_wide_path(const char *path)
{
    wchar_t *given = kn_wide(path);
    if (given == NULL) {
        return NULL;
    }
    DWORD room = GetFullPathNameW(given, 0, NULL, NULL);
    wchar_t *full = room > 0 ? malloc(room * sizeof *full) : NULL;
    DWORD length = full != NULL ? GetFullPathNameW(given, room, full, NULL) : 0;
    if (room > 0 && full == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    free(given);
    if (length == 0 || length >= room) {
        free(full);
        return NULL;
    }
    if (length < LONG_PATH || wcsncmp(full, L"\\\\?\\", 4) == 0 ||
        wcsncmp(full, L"\\\\.\\", 4) == 0) {
        return full;
    }
    wchar_t *whole = wcsncmp(full, L"\\\\", 2) == 0 ? prefixed_path(L"\\\\?\\UNC\\", full, 2)
                                                    : prefixed_path(L"\\\\?\\", full, 0);
    free(full);
    return whole;
}

char *kn_narrow_path(const wchar_t *path)
{
    wchar_t *whole = NULL;
    if (wcsncmp(path, L"\\\\?\\UNC\\", 8) == 0) {
        whole = prefixed_path(L"\\\\", path, 8);
    } else {
        whole = prefixed_path(L"", path, wcsncmp(path, L"\\\\?\\", 4) == 0 ? 4 : 0);
    }
    char *narrow = whole != NULL ? kn_narrow(whole) : NULL;
    free(whole);
    for (char *p = narrow; p != NULL && *p != '\0'; p++) {
        *p = *p == '\\' ? '/' : *p;
    }
    return narrow;
}

bool kn_means_missing(DWORD error)
{
    switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_DRIVE:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_BAD_NET_NAME:
    case ERROR_DIRECTORY:
    case ERROR_DELETE_PENDING:
        return true;
    default:
        return false;
    }
}

kn_retry kn_retry_begin(uint32_t limit_ms)
{
    return (kn_retry){.until_ns = kn_clock_now() + (uint64_t)limit_ms * 1000000, .pause_ms = 1};
}

bool kn_retry_again(kn_retry *retry, DWORD error)
{
    bool passing = error == ERROR_SHARING_VIOLATION || error == ERROR_LOCK_VIOLATION ||
                   error == ERROR_USER_MAPPED_FILE;
    if (passing && kn_clock_now() < retry->until_ns) {
        Sleep(retry->pause_ms);
        retry->pause_ms = retry->pause_ms < MAX_PAUSE_MS ? 2 * retry->pause_ms : MAX_PAUSE_MS;
        return true;
    }
    SetLastError(error);
    return false;
}

HANDLE kn_open(const char *path, DWORD access, DWORD disposition, DWORD flags, uint32_t retry_ms)
{
    HANDLE handle = INVALID_HANDLE_VALUE;
    wchar_t *wide = kn_wide_path(path);
    if (wide == NULL) {
        return handle;
    }
    kn_retry retry = kn_retry_begin(retry_ms);
    do {
        handle = CreateFileW(wide, access, KN_SHARE_ALL, NULL, disposition, flags, NULL);
    } while (handle == INVALID_HANDLE_VALUE && kn_retry_again(&retry, GetLastError()));
    DWORD error = GetLastError();
    free(wide);
    SetLastError(error);
    return handle;
}
