/* What tests call of POSIX that mingw-w64's C library lacks; put before every test of that build.
 * Setting the environment sets both the system's, which kiln reads, and the C library's. */
#ifndef KILN_TESTS_WINDOWS_POSIX_H
#define KILN_TESTS_WINDOWS_POSIX_H

#include <stddef.h>

int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
void *aligned_alloc(size_t alignment, size_t size); /* never free()d in a test */

#endif
