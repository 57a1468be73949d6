/* Command lines and environment blocks; see command.h. */
#include "sys/windows/command.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/strbuf.h"
#include "sys/windows/wide.h"

#define MAX_LINE 32767 /* the system's limit, with the NUL */

/* Backslashes mean themselves, but before a quotation mark, where each is written twice. */
static void append_quoted(kn_strbuf *line, const char *argument)
{
    size_t slashes = 0;
    kn_strbuf_append_char(line, '"');
    for (const char *p = argument;; p++) {
        if (*p == '\\') {
            slashes++;
            continue;
        }
        size_t count = *p == '"' ? 2 * slashes + 1 : *p == '\0' ? 2 * slashes : slashes;
        for (size_t i = 0; i < count; i++) {
            kn_strbuf_append_char(line, '\\');
        }
        slashes = 0;
        if (*p == '\0') {
            break;
        }
        kn_strbuf_append_char(line, *p);
    }
    kn_strbuf_append_char(line, '"');
}

static wchar_t *make_line(const char *const *argv)
{
    kn_strbuf line;
    wchar_t *wide = NULL;
    kn_strbuf_init(&line, (size_t)4 * MAX_LINE);
    for (size_t i = 0; argv[i] != NULL; i++) {
        if (i > 0) {
            kn_strbuf_append_char(&line, ' ');
        }
        append_quoted(&line, argv[i]);
    }
    if (kn_strbuf_ok(&line)) {
        wide = kn_wide(kn_strbuf_text(&line));
    } else {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    kn_strbuf_deinit(&line);
    if (wide != NULL && wcslen(wide) >= MAX_LINE) {
        free(wide);
        SetLastError(ERROR_FILENAME_EXCED_RANGE);
        return NULL;
    }
    return wide;
}

/* The length of the name in "NAME=value". Names of the system's own begin with '='. */
static size_t name_length(const wchar_t *entry)
{
    return entry[0] == L'\0' ? 0 : 1 + wcscspn(entry + 1, L"=");
}

static bool is_replaced(const wchar_t *entry, wchar_t *const *extra, size_t count)
{
    size_t length = name_length(entry);
    for (size_t i = 0; i < count; i++) {
        if (name_length(extra[i]) == length && _wcsnicmp(entry, extra[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* This process's entries but those that are replaced, then the extra ones, then an empty one. */
static wchar_t *merge_variables(const wchar_t *mine, wchar_t *const *extra, size_t count)
{
    size_t size = 2;
    for (const wchar_t *p = mine; *p != L'\0'; p += wcslen(p) + 1) {
        size += wcslen(p) + 1;
    }
    for (size_t i = 0; i < count; i++) {
        size += wcslen(extra[i]) + 1;
    }
    wchar_t *merged = calloc(size, sizeof *merged);
    wchar_t *to = merged;
    if (merged == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
        return NULL;
    }
    for (const wchar_t *p = mine; *p != L'\0'; p += wcslen(p) + 1) {
        if (!is_replaced(p, extra, count)) {
            memcpy(to, p, wcslen(p) * sizeof *to);
            to += wcslen(p) + 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(to, extra[i], wcslen(extra[i]) * sizeof *to);
        to += wcslen(extra[i]) + 1;
    }
    return merged;
}

static wchar_t *make_environment(const char *const *extra)
{
    size_t count = 0;
    size_t made = 0;
    wchar_t *merged = NULL;
    while (extra[count] != NULL) {
        count++;
    }
    wchar_t **wide = calloc(count + 1, sizeof *wide);
    wchar_t *mine = GetEnvironmentStringsW();
    if (wide == NULL || mine == NULL) {
        SetLastError(ERROR_NOT_ENOUGH_MEMORY);
    }
    while (wide != NULL && made < count && (wide[made] = kn_wide(extra[made])) != NULL) {
        made++;
    }
    if (wide != NULL && mine != NULL && made == count) {
        merged = merge_variables(mine, wide, count);
    }
    DWORD error = GetLastError();
    while (made > 0) {
        free(wide[--made]);
    }
    free((void *)wide);
    if (mine != NULL) {
        (void)FreeEnvironmentStringsW(mine);
    }
    SetLastError(error);
    return merged;
}

bool kn_command_init(kn_command *command, const kn_process_request *request)
{
    *command = (kn_command){.program = kn_wide_path(request->argv[0])};
    bool good = command->program != NULL && (command->line = make_line(request->argv)) != NULL;
    if (good && request->environment != NULL) {
        good = (command->environment = make_environment(request->environment)) != NULL;
    }
    if (good && request->dir != NULL) {
        good = (command->dir = kn_wide_path(request->dir)) != NULL;
    }
    if (!good) {
        DWORD error = GetLastError();
        kn_command_deinit(command);
        SetLastError(error);
    }
    return good;
}

void kn_command_deinit(kn_command *command)
{
    free(command->program);
    free(command->line);
    free(command->environment);
    free(command->dir);
    *command = (kn_command){0};
}
