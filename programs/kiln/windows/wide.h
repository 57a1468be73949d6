/* The seam to Windows' own text: UTF-8 above, UTF-16 below. For programs/kiln/windows alone. */
#ifndef KILN_PROGRAM_WINDOWS_WIDE_H
#define KILN_PROGRAM_WINDOWS_WIDE_H

#include <wchar.h>

/* malloc'ed, or NULL: out of memory, or not UTF-8. */
wchar_t *wide_text(const char *text);
/* The same for a path: from the root on, with the prefix that lifts the limit of 260 characters
 * where it is long. */
wchar_t *wide_path(const char *path);
/* Back to UTF-8, half a surrogate pair as U+FFFD; malloc'ed, or NULL. */
char *narrow_text(const wchar_t *text);
/* The same for a path: with slashes, and without the prefix. */
char *narrow_path(const wchar_t *path);

#endif
