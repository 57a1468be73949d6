/* The log inside the library; the public half is in kiln/status.h. */
#ifndef KILN_BASE_LOG_H
#define KILN_BASE_LOG_H

#include <stdbool.h>

#include "kiln/status.h"

/* True when a line of this level would reach a log: ask before costly formatting. */
bool kn_log_enabled(kiln_log_level level);
void kn_log(kiln_log_level level, const char *format, ...) KILN_PRINTF(2, 3);
/* As kn_log, once per process for equal lines (a bounded set is remembered). */
void kn_log_once(kiln_log_level level, const char *format, ...) KILN_PRINTF(2, 3);
/* A warning that is not kept from a program that never asked for lines: it goes to standard error
 * where there is no sink and KILN_LOG is not set. For what costs at every start, and once only. */
void kn_log_unasked(const char *format, ...) KILN_PRINTF(1, 2);
/* One line from a diag: "context: what: why (fix)". */
void kn_log_diag(kiln_log_level level, const char *context, const kiln_diag *diag);

#endif
