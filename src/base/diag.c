/* The caller's diagnostic: filled by the function that fails, read by its caller.
 *
 * Setting never fails: it works in fixed fields, and only the compiler's log is allocated. The
 * arguments of kiln_diag_set may point into the diag itself, so that a caller can add to the line
 * that a lower layer wrote. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#undef kiln_diag_set /* a macro for the analyser */

#define MAX_LOG ((size_t)1 << 20)

static void put_line(char *field, size_t field_size, const char *text)
{
    kn_text_put(field, field_size, text != NULL ? text : "");
    kn_text_flatten(field);
}

void kiln_diag_clear(kiln_diag *diag)
{
    if (diag == NULL) {
        return;
    }
    free(diag->log);
    *diag = (kiln_diag)KILN_DIAG_INIT;
}

kiln_status kiln_diag_set(kiln_diag *diag, kiln_status status, const char *fix, const char *what,
                          const char *why_format, ...)
{
    if (diag == NULL) {
        return status;
    }
    char what_line[sizeof diag->what];
    char why_line[sizeof diag->why + 4]; /* room for the character that is cut */
    char fix_line[sizeof diag->fix];

    put_line(what_line, sizeof what_line, what);
    put_line(fix_line, sizeof fix_line, fix);
    why_line[0] = '\0';
    if (why_format != NULL) {
        va_list args;
        va_start(args, why_format);
        if (vsnprintf(why_line, sizeof why_line, why_format, args) < 0) {
            why_line[0] = '\0';
        }
        va_end(args);
    }

    kiln_diag_clear(diag);
    diag->status = status;
    put_line(diag->what, sizeof diag->what, what_line);
    put_line(diag->why, sizeof diag->why, why_line);
    put_line(diag->fix, sizeof diag->fix, fix_line);
    return status;
}

void kiln_diag_set_log(kiln_diag *diag, const char *log, size_t length)
{
    if (diag == NULL) {
        return;
    }
    char *copy = NULL;
    if (log != NULL) {
        length = length < MAX_LOG ? length : MAX_LOG;
        copy = kn_text_copy_n(log, length);
    }
    free(diag->log);
    diag->log = copy;
    diag->log_length = copy != NULL ? length : 0;
}

void kiln_diag_set_vendor_code(kiln_diag *diag, int64_t code)
{
    if (diag != NULL) {
        diag->vendor_code = code;
    }
}

void kn_diag_move(kiln_diag *to, kiln_diag *from)
{
    if (to == NULL) {
        kiln_diag_clear(from);
        return;
    }
    kiln_diag_clear(to);
    *to = *from;
    *from = (kiln_diag)KILN_DIAG_INIT;
}

void kn_diag_copy(kiln_diag *to, const kiln_diag *from)
{
    if (to == NULL) {
        return;
    }
    kiln_diag_clear(to);
    *to = *from;
    to->log = NULL;
    to->log_length = 0;
    kiln_diag_set_log(to, from->log, from->log_length);
}

size_t kiln_diag_format(const kiln_diag *diag, char *buffer, size_t size)
{
    const char *what = diag != NULL ? diag->what : "";
    const char *why = diag != NULL ? diag->why : "";
    const char *fix = diag != NULL ? diag->fix : "";

    if (diag != NULL && why[0] == '\0' && diag->status != KILN_OK) {
        why = kiln_status_text(diag->status);
    }
    const char *colon = what[0] != '\0' && why[0] != '\0' ? ": " : "";
    const char *open = fix[0] == '\0' ? "" : what[0] != '\0' || why[0] != '\0' ? " (" : "(";
    const char *close = fix[0] != '\0' ? ")" : "";
    int length = snprintf(buffer, size, "%s%s%s%s%s%s", what, colon, why, open, fix, close);
    return length > 0 ? (size_t)length : 0;
}
