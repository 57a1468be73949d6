/* The environment, for tests; see posix.h. */
#include "support/windows/posix.h"

#include <malloc.h>
#include <stdlib.h>
#include <windows.h>

#include "sys/windows/wide.h"

int setenv(const char *name, const char *value, int replace)
{
    (void)replace; /* every test means it */
    wchar_t *wide_name = kn_wide(name);
    wchar_t *wide_value = value != NULL ? kn_wide(value) : NULL;
    int result = wide_name != NULL && (value == NULL || wide_value != NULL) ? 0 : -1;
    if (result == 0) {
        /* The C library's call sets the system's, too; but it takes "" for unsetting. */
        result = _wputenv_s(wide_name, wide_value != NULL ? wide_value : L"");
        (void)SetEnvironmentVariableW(wide_name, wide_value);
    }
    free(wide_value);
    free(wide_name);
    return result;
}

int unsetenv(const char *name)
{
    return setenv(name, NULL, 1);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return _aligned_malloc(size, alignment);
}
