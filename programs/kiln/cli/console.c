/* One mutex around standard error. */
#include "cli/console.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"

struct cli_console {
    host_mutex *lock;
    bool bar;     /* standard error is a terminal that can draw one */
    bool notes;   /* show console_note */
    bool warned;  /* a warning of the library's was shown */
    bool drawn;   /* a bar stands on the current line */
    size_t done;  /* of the last console_progress */
    size_t total; /* 0: nothing to draw */
};

/* With the lock held. */
static void wipe_bar(cli_console *console)
{
    if (console->drawn) {
        (void)fputs("\r\033[K", stderr);
        console->drawn = false;
    }
}

static void on_log(void *user, kiln_log_level level, const char *line)
{
    cli_console *console = user;
    host_mutex_lock(console->lock);
    wipe_bar(console);
    const char *kind = level == KILN_LOG_ERROR ? "error: " : "";
    if (level == KILN_LOG_WARN) {
        console->warned = true;
        kind = "warning: ";
    }
    out_paint(stderr, level == KILN_LOG_ERROR ? OUT_BAD : OUT_WARN);
    (void)fprintf(stderr, "kiln: %s", kind);
    out_paint(stderr, OUT_PLAIN);
    out_print(stderr, "%s\n", line);
    (void)fflush(stderr);
    host_mutex_unlock(console->lock);
}

cli_console *console_create(void)
{
    cli_console *console = calloc(1, sizeof(*console));
    if (console == NULL) {
        return NULL;
    }
    console->lock = host_mutex_create();
    if (console->lock == NULL) {
        free(console);
        return NULL;
    }
    const char *log = getenv("KILN_LOG");
    log = log != NULL && *log != '\0' ? log : NULL; /* an empty one counts as unset */
    console->bar = host_can_draw(stderr);
    console->notes = host_is_terminal(stderr) ||
                     (log != NULL && (strcmp(log, "info") == 0 || strcmp(log, "debug") == 0));
    if (log == NULL) {
        kiln_log_set(on_log, console, KILN_LOG_WARN);
    }
    return console;
}

bool console_has_warned(cli_console *console)
{
    host_mutex_lock(console->lock);
    const bool warned = console->warned;
    host_mutex_unlock(console->lock);
    return warned;
}

void console_destroy(cli_console *console)
{
    if (console != NULL) {
        console_progress_end(console);
        kiln_log_set(NULL, NULL, KILN_LOG_OFF);
        host_mutex_destroy(console->lock);
        free(console);
    }
}

static void say_line(cli_console *console, const char *format, va_list args)
{
    if (host_is_ending()) {
        return;
    }
    host_mutex_lock(console->lock);
    wipe_bar(console);
    (void)fputs("kiln: ", stderr);
    out_vprint(stderr, format, args);
    (void)fputc('\n', stderr);
    (void)fflush(stderr);
    host_mutex_unlock(console->lock);
}

void console_say(cli_console *console, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_line(console, format, args);
    va_end(args);
}

void console_note(cli_console *console, const char *format, ...)
{
    if (console->notes) {
        va_list args;
        va_start(args, format);
        say_line(console, format, args);
        va_end(args);
    }
}

void console_tell(cli_console *console, const char *where, const kiln_diag *diag)
{
    char line[2048];
    if (kiln_diag_format(diag, line, sizeof(line)) == 0) {
        (void)snprintf(line, sizeof(line), "%s", kiln_status_text(diag->status));
    }
    console_say(console, "%s%s%s", where, *where != '\0' ? ": " : "", line);
    if (diag->log != NULL && diag->log_length > 0) {
        host_mutex_lock(console->lock);
        out_write(stderr, diag->log);
        if (diag->log[diag->log_length - 1] != '\n') {
            (void)fputc('\n', stderr);
        }
        host_mutex_unlock(console->lock);
    }
}

/* With the lock held. */
static void draw_bar(cli_console *console, const char *what, double seconds)
{
    enum { BAR = 24, ROOM = 320 };
    if (!console->bar || console->total == 0) {
        return;
    }
    size_t filled = console->done >= console->total ? BAR : console->done * BAR / console->total;
    char time[32] = "";
    if (seconds > 0) {
        (void)snprintf(time, sizeof(time), " %.0f s", seconds);
    }
    char line[ROOM + BAR];
    (void)snprintf(line, sizeof(line), "[%.*s%.*s] %zu/%zu %.100s%s", (int)filled,
                   "########################", (int)(BAR - filled), "                        ",
                   console->done, console->total, what, time);
    unsigned columns = host_columns();
    (void)fprintf(stderr, "\r%.*s\033[K", (int)(columns > 1 ? columns - 1 : 1), line);
    (void)fflush(stderr);
    console->drawn = true;
}

void console_progress(cli_console *console, size_t done, size_t total, const char *what,
                      double seconds)
{
    host_mutex_lock(console->lock);
    console->done = done;
    console->total = total;
    draw_bar(console, what, seconds);
    host_mutex_unlock(console->lock);
}

void console_on_progress(void *user, const char *what, double seconds)
{
    cli_console *console = user;
    host_mutex_lock(console->lock);
    draw_bar(console, what, seconds);
    host_mutex_unlock(console->lock);
}

void console_progress_end(cli_console *console)
{
    host_mutex_lock(console->lock);
    wipe_bar(console);
    console->total = 0;
    (void)fflush(stderr);
    host_mutex_unlock(console->lock);
}
