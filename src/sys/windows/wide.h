/* The seam to Windows' own text and handles. For src/sys/windows alone.
 *
 * Above this directory all text is UTF-8; the system's is UTF-16. A failure leaves the reason where
 * the system leaves its own, for GetLastError(). */
#ifndef KILN_SYS_WINDOWS_WIDE_H
#define KILN_SYS_WINDOWS_WIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

/* malloc'ed, or NULL: out of memory, or not UTF-8. */
wchar_t *kn_wide(const char *text);
/* The same for a path: absolute, with backslashes, and with the prefix that lifts the limit of 260
 * characters where it is long. */
wchar_t *kn_wide_path(const char *path);
/* Back to UTF-8; malloc'ed, or NULL. Half a surrogate pair becomes U+FFFD. */
char *kn_narrow(const wchar_t *text);
/* The same for a path: slashes, and without the prefix. */
char *kn_narrow_path(const wchar_t *path);

/* Every file is opened so that others may read, write, rename and remove it meanwhile. */
#define KN_SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* No entry, no directory on the way to it, or one whose removal is under way. */
bool kn_means_missing(DWORD error);

/* Scanners, indexers and backup programs hold fresh files for moments, against every wish of ours.
 * A call that fails for this is made again, with growing pauses, for a bounded time:
 *
 *     kn_retry retry = kn_retry_begin(KN_RETRY_CHANGE_MS);
 *     do {
 *         good = Call(...);
 *     } while (!good && kn_retry_again(&retry, GetLastError()));
 */
enum { KN_RETRY_READ_MS = 200, KN_RETRY_CHANGE_MS = 2000 };

typedef struct kn_retry {
    uint64_t until_ns;
    DWORD pause_ms;
} kn_retry;

kn_retry kn_retry_begin(uint32_t limit_ms);
/* Pauses and says true where the error is such a moment and there is time left. The error is the
 * last one again afterwards. */
bool kn_retry_again(kn_retry *retry, DWORD error);

/* CreateFileW with a path in UTF-8, shared with all, retried. INVALID_HANDLE_VALUE and the last
 * error on failure. */
HANDLE kn_open(const char *path, DWORD access, DWORD disposition, DWORD flags, uint32_t retry_ms);

#endif
