/* Status codes, diagnostics and the log: the vocabulary that all of kiln speaks.
 *
 * A status says what kind of thing happened; the caller's kiln_diag says what, why and what to do.
 * There is no thread-local "last error": an asynchronous job fails on another thread than the one
 * that asks. The library never prints and never exits; it speaks to the log hook only.
 *
 * In all headers: destroy, release and close end an object and take NULL; retain gives another
 * reference, and NULL for NULL. Nothing else takes NULL unless it says so. Out parameters are
 * zeroed on entry and filled on success only. Text is UTF-8 and ends with NUL, sizes are in bytes,
 * and a name says the unit of a time: _ns, _ms, _s.
 *
 * Growth. A struct that begins with a struct_size may get members at its end with a later version,
 * and whatever the library fills has one, but for kiln_key and kiln_diag. One without never
 * changes. struct_size is sizeof the struct, as the program was compiled, and must be set. A
 * program compiled with older headers (0.1.0's and later) runs with a newer library: what it does
 * not have is as if it were zero. A program compiled with newer headers runs with an older library
 * as long as what that library does not know is zero: otherwise the call fails with KILN_E_INVALID,
 * and the diag names the struct and both sizes. In a list, all have the struct_size of the first.
 * What the library fills is filled as far as the caller's struct_size reaches, and zeroed after
 * what the library knows: set struct_size before such a call, or it gives KILN_E_INVALID and does
 * nothing. Where the library owns the struct (kiln_device_info, kiln_nvrtc_result, what a callback
 * is shown), struct_size is the library's, and what lies after it is not there; a list of such
 * structs is a list of pointers. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"

KILN_BEGIN_DECLS

/* X(name, value, text). Values are stable; gaps are kept between groups. */
#define KILN_STATUS_MAP(X)                                                                         \
    X(KILN_OK, 0, "success")                                                                       \
    X(KILN_MISS, 1, "not found")                                                                   \
    X(KILN_E_INVALID, 10, "invalid argument or input")                                             \
    X(KILN_E_UNSUPPORTED, 11, "not supported here")                                                \
    X(KILN_E_UNAVAILABLE, 12, "library, driver or device not available")                           \
    X(KILN_E_COMPILE, 20, "the kernel does not compile")                                           \
    X(KILN_E_REJECTED, 21, "the driver refused a binary")                                          \
    X(KILN_E_CORRUPT, 30, "stored data is damaged")                                                \
    X(KILN_E_IO, 31, "input or output failed")                                                     \
    X(KILN_E_TIMEOUT, 40, "time limit reached")                                                    \
    X(KILN_E_CANCELLED, 41, "cancelled")                                                           \
    X(KILN_E_BUSY, 42, "in use")                                                                   \
    X(KILN_E_DEVICE_LOST, 50, "the device stopped working")                                        \
    X(KILN_E_NOMEM, 60, "out of memory")                                                           \
    X(KILN_E_INTERNAL, 70, "internal error")

/* What kind of thing happened. */
typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, value, text) name = (value),
    KILN_STATUS_MAP(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/* The enumerator's own name ("KILN_E_IO") and its short English text. Unknown values give
 * "KILN_E_UNKNOWN" and "unknown status".
 * Threads: any.   Blocks: never.
 * Owns: static strings.
 * Fails: never. */
KILN_API const char *kiln_status_name(kiln_status status);
KILN_API const char *kiln_status_text(kiln_status status);

/* What went wrong, in the caller's memory. `what` names the operation and its object, `why` the
 * cause, `fix` one thing to do about it; each is one line of UTF-8 and may be empty. `vendor_code`
 * is the driver's or the system's own number (CUresult, cl_int, errno), 0 if none. `log` is the
 * compiler's log, NULL if none. It never changes: `more` is for what a later version may have to
 * say, which functions will give. Initialise with KILN_DIAG_INIT, release with kiln_diag_clear. */
typedef struct kiln_diag {
    kiln_status status;
    int64_t vendor_code;
    char what[256];
    char why[768];
    char fix[512];
    char *log; /* owned by the diag, NUL-terminated */
    size_t log_length;
    void *more; /* NULL */
} kiln_diag;

#define KILN_DIAG_INIT                                                                             \
    {                                                                                              \
        KILN_OK, 0, {0}, {0}, {0}, NULL, 0, NULL                                                   \
    }

/* Frees the log and returns the diag to its initial state. NULL is allowed.
 * Threads: one at a time per diag.   Blocks: never.
 * Owns: the log inside the diag is freed.
 * Fails: never. */
KILN_API void kiln_diag_clear(kiln_diag *diag);

/* Fills the diag (which may be NULL) and returns `status`, so that `return kiln_diag_set(...)`
 * reads well. Anything that was in it before is replaced. A NULL or empty `why` or `fix` leaves
 * that line empty; over-long lines are cut at a character boundary; line breaks become blanks.
 * Threads: one at a time per diag.   Blocks: never.
 * Owns: copies all text.
 * Fails: never. */
KILN_API kiln_status kiln_diag_set(kiln_diag *diag, kiln_status status, const char *fix,
                                   const char *what, const char *why_format, ...) KILN_PRINTF(5, 6);
#ifdef __clang_analyzer__ /* what it returns is `status`: the analyser cannot see that by itself   \
                           */
#define kiln_diag_set(diag, status, ...) (kiln_diag_set((diag), (status), __VA_ARGS__), (status))
#endif

/* Attaches a compiler log (copied, at most 1 MiB, kept as it is) and a vendor's own error number.
 * Threads: one at a time per diag.   Blocks: never.
 * Owns: copies the text.
 * Fails: never; a log that cannot be copied for lack of memory is dropped. */
KILN_API void kiln_diag_set_log(kiln_diag *diag, const char *log, size_t length);
KILN_API void kiln_diag_set_vendor_code(kiln_diag *diag, int64_t code);

/* Writes "what: why (fix)" as one line to `buffer` and returns the length it would need, as
 * snprintf does. Where `why` is empty the status's text stands in; an empty diag gives "".
 * Threads: one at a time per diag.   Blocks: never.
 * Owns: nothing.
 * Fails: never. */
KILN_API size_t kiln_diag_format(const kiln_diag *diag, char *buffer, size_t size);

/* Log levels, from rare to chatty. */
typedef enum kiln_log_level {
    KILN_LOG_OFF = 0,
    KILN_LOG_ERROR = 1,
    KILN_LOG_WARN = 2,
    KILN_LOG_INFO = 3,
    KILN_LOG_DEBUG = 4,
} kiln_log_level;

/* Receives one finished line without a line break. Called on whatever thread logs, one call at a
 * time; it must not call kiln. */
typedef void kiln_log_fn(void *user, kiln_log_level level, const char *line);

/* Sends lines of `level` and more important to `sink` for the whole process. A NULL sink restores
 * the default: quiet, unless KILN_LOG=error|warn|info|debug asks for lines on standard error.
 * Threads: any.   Blocks: until a line being written is done.
 * Owns: `user` stays the caller's and must live until the sink is replaced.
 * Fails: never. */
KILN_API void kiln_log_set(kiln_log_fn *sink, void *user, kiln_log_level level);

KILN_END_DECLS

#endif
