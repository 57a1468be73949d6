/* Standard error: messages, the library's log, and the progress bar, which must not run into each
 * other. The bar is drawn on a terminal only. Progress and log lines may come from any thread. */
#ifndef KILN_PROGRAM_CONSOLE_H
#define KILN_PROGRAM_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>

#include <kiln/status.h>

typedef struct cli_console cli_console; /* create/destroy */

/* NULL when there is no memory. Takes the library's log: warnings are shown unless KILN_LOG says
 * otherwise. */
cli_console *console_create(void);
void console_destroy(cli_console *console);
bool console_has_warned(cli_console *console); /* a warning of the library's was shown */

/* A line of our own, "kiln: ..."; and a diag with its compiler log after it. `where` may be "". */
void console_say(cli_console *console, const char *format, ...) KILN_PRINTF(2, 3);
void console_tell(cli_console *console, const char *where, const kiln_diag *diag);
/* A line that is shown on a terminal, or with KILN_LOG=info: times and the like. */
void console_note(cli_console *console, const char *format, ...) KILN_PRINTF(2, 3);

/* Draws "[#####     ] 3/12 what", leaves a running time after `what` if seconds > 0. */
void console_progress(cli_console *console, size_t done, size_t total, const char *what,
                      double seconds);
/* As a kiln_progress_fn: keeps the counts of the last console_progress. */
void console_on_progress(void *user, const char *what, double seconds);
void console_progress_end(cli_console *console);

#endif
