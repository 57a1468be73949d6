/* Environment variables as they are; see env.h. The system keeps them in UTF-16, so what is handed
 * out is a copy. It is kept for as long as the process lives, once for each value that was ever
 * seen: callers borrow it as they borrow from the environment elsewhere. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"
#include "sys/env.h"
#include "sys/windows/wide.h"

typedef struct seen_value {
    struct seen_value *next;
    char text[];
} seen_value;

/* The kept copy of `text`, or NULL when out of memory. */
static const char *keep_text(const char *text)
{
    static SRWLOCK lock = SRWLOCK_INIT;
    static seen_value *values;
    size_t size = strlen(text) + 1;
    AcquireSRWLockExclusive(&lock);
    seen_value *value = values;
    while (value != NULL && strcmp(value->text, text) != 0) {
        value = value->next;
    }
    if (value == NULL && (value = malloc(sizeof *value + size)) != NULL) {
        memcpy(value->text, text, size);
        value->next = values;
        values = value;
    }
    ReleaseSRWLockExclusive(&lock);
    return value != NULL ? value->text : NULL;
}

const char *kn_env_shell(const char *name)
{
    wchar_t *wide_name = kn_wide(name);
    const char *kept = NULL;
    /* The value may grow between being measured and being taken: then it is measured again. */
    for (DWORD room = 256; wide_name != NULL && room > 0;) {
        wchar_t *value = malloc(room * sizeof *value);
        DWORD length = 0;
        if (value != NULL) {
            value[0] = L'\0';
            SetLastError(ERROR_SUCCESS);
            length = GetEnvironmentVariableW(wide_name, value, room);
        }
        bool unset = value == NULL || (length == 0 && GetLastError() != ERROR_SUCCESS);
        bool whole = !unset && length < room;
        char *text = whole ? kn_narrow(value) : NULL;
        kept = text != NULL ? keep_text(text) : NULL;
        free(text);
        free(value);
        room = unset || whole ? 0 : length;
    }
    free(wide_name);
    return kept;
}

/* To look through all of them takes longer than to ask. */
bool kn_env_may_have(const char prefix[2], const char *third)
{
    (void)prefix;
    (void)third;
    return true;
}

void kn_env_each(kn_env_visit *visit, void *user)
{
    wchar_t *all = GetEnvironmentStringsW();
    for (const wchar_t *at = all; at != NULL && *at != L'\0'; at += wcslen(at) + 1) {
        /* The system's own, such as "=C:=C:\\directory", are nobody's. */
        char *variable = *at != L'=' ? kn_narrow(at) : NULL;
        if (variable != NULL) {
            visit(user, variable);
        }
        free(variable);
    }
    if (all != NULL) {
        (void)FreeEnvironmentStringsW(all);
    }
}

/* The copy that the C library keeps for getenv is set with it. */
bool kn_env_set(const char *name, const char *value)
{
    wchar_t *wide_name = kn_wide(name);
    wchar_t *wide_value = kn_wide(value != NULL ? value : "");
    const bool done =
        wide_name != NULL && wide_value != NULL && _wputenv_s(wide_name, wide_value) == 0;
    free(wide_value);
    free(wide_name);
    return done;
}

/* A value got here is a copy: nobody can cut it. */
kn_env_kept kn_env_keep(const char *name)
{
    return (kn_env_kept){name, NULL, NULL};
}

void kn_env_mend(kn_env_kept *kept)
{
    (void)kept;
}
