/* See wide.h. The library has its own of these (src/sys/windows/wide.c), which a program may not
 * look into. */
#include "windows/wide.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define LONG_PATH 240 /* MAX_PATH, less what a directory must leave for a name */

wchar_t *wide_text(const char *text)
{
    int length = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
    wchar_t *wide = length > 0 ? malloc((size_t)length * sizeof(*wide)) : NULL;
    if (wide != NULL) {
        (void)MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, length);
    }
    return wide;
}

char *narrow_text(const wchar_t *text)
{
    int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, NULL, 0, NULL, NULL);
    char *narrow = length > 0 ? malloc((size_t)length) : NULL;
    if (narrow != NULL) {
        (void)WideCharToMultiByte(CP_UTF8, 0, text, -1, narrow, length, NULL, NULL);
    }
    return narrow;
}

/* `text` from its character `from` on, after `prefix`. */
static wchar_t *with_prefix(const wchar_t *prefix, const wchar_t *text, size_t from)
{
    size_t before = wcslen(prefix);
    size_t after = wcslen(text + from) + 1;
    wchar_t *whole = malloc((before + after) * sizeof(*whole));
    if (whole != NULL) {
        memcpy(whole, prefix, before * sizeof(*whole));
        memcpy(whole + before, text + from, after * sizeof(*whole));
    }
    return whole;
}

/* As the system completes it: absolute, with backslashes. */
static wchar_t *complete_path(const wchar_t *path)
{
    DWORD room = GetFullPathNameW(path, 0, NULL, NULL);
    wchar_t *full = room > 0 ? malloc(room * sizeof(*full)) : NULL;
    if (full != NULL) {
        DWORD length = GetFullPathNameW(path, room, full, NULL);
        if (length == 0 || length >= room) {
            free(full);
            full = NULL;
        }
    }
    return full;
}

wchar_t *wide_path(const char *path)
{
    wchar_t *given = wide_text(path);
    wchar_t *full = given != NULL ? complete_path(given) : NULL;
    free(given);
    if (full == NULL || wcslen(full) < LONG_PATH || wcsncmp(full, L"\\\\?\\", 4) == 0) {
        return full;
    }
    bool served = wcsncmp(full, L"\\\\", 2) == 0;
    wchar_t *whole = with_prefix(served ? L"\\\\?\\UNC\\" : L"\\\\?\\", full, served ? 2 : 0);
    free(full);
    return whole;
}

char *narrow_path(const wchar_t *path)
{
    bool served = wcsncmp(path, L"\\\\?\\UNC\\", 8) == 0;
    size_t skipped = served ? 8 : wcsncmp(path, L"\\\\?\\", 4) == 0 ? 4 : 0;
    wchar_t *whole = with_prefix(served ? L"\\\\" : L"", path, skipped);
    char *narrow = whole != NULL ? narrow_text(whole) : NULL;
    free(whole);
    for (char *at = narrow; at != NULL && *at != '\0'; at++) {
        *at = *at == '\\' ? '/' : *at;
    }
    return narrow;
}
