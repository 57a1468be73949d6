/* The log: one sink for the process, quiet unless KILN_LOG or kiln_log_set asks for lines.
 *
 * The lock is a flag of our own, not a mutex: base is libc only, the thread sanitizer does not see
 * through the C11 mutex, and a line must not wait for ever. Two cases never get the lock: a sink
 * that logs, against the rule, and the child of a fork that happened while a line was written. A
 * line gives up after a while and is dropped then, and those after it at once, until another thread
 * releases the lock; kiln_log_set takes it over. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/map.h"
#include "base/text.h"

#define MAX_LINE 2048
#define REMEMBERED 256
#define PAUSE_NS 200000
#define MAX_PAUSES 5000 /* about a second */
#define LEVEL_UNREAD (-1)

/* Guarded by the flag, but for the atomic ones. */
static struct {
    atomic_flag held;
    atomic_bool
        stuck; /* a line waited for the flag without getting it, and nobody has had it since */
    atomic_int level;
    kiln_log_fn *sink;
    void *user;
    uint64_t remembered[REMEMBERED]; /* a ring of hashes; 0 where empty */
    size_t remembered_next;
} log_state = {.held = ATOMIC_FLAG_INIT, .level = LEVEL_UNREAD};

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

/* A malformed value behaves as off; core reports it. */
static int environment_level(void)
{
    const char *text = getenv("KILN_LOG");
    for (int level = KILN_LOG_OFF; text != NULL && level <= KILN_LOG_DEBUG; level++) {
        if (strcmp(text, level_names[level]) == 0) {
            return level;
        }
    }
    return KILN_LOG_OFF;
}

/* The level in force. Threads that come first together read the same variable. */
static int current_level(void)
{
    int level = atomic_load_explicit(&log_state.level, memory_order_relaxed);
    if (level == LEVEL_UNREAD) {
        int wanted = environment_level();
        if (atomic_compare_exchange_strong(&log_state.level, &level, wanted)) {
            level = wanted;
        }
    }
    return level;
}

static bool lock_log(bool patient)
{
    for (int pauses = 0; atomic_flag_test_and_set_explicit(&log_state.held, memory_order_acquire);
         pauses++) {
        if (pauses >= MAX_PAUSES || (!patient && atomic_load(&log_state.stuck))) {
            atomic_store(&log_state.stuck, true);
            return false;
        }
        (void)thrd_sleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

static void unlock_log(void)
{
    atomic_store(&log_state.stuck, false);
    atomic_flag_clear_explicit(&log_state.held, memory_order_release);
}

void kiln_log_set(kiln_log_fn *sink, void *user, kiln_log_level level)
{
    (void)lock_log(true); /* after so long a wait its holder is gone, or is the caller's own sink */
    log_state.sink = sink;
    log_state.user = user;
    atomic_store(&log_state.level, sink != NULL ? (int)level : environment_level());
    unlock_log();
}

bool kn_log_enabled(kiln_log_level level)
{
    return level != KILN_LOG_OFF && (int)level <= current_level();
}

/* True if an equal line was remembered; remembers this one, for the oldest, if not. */
static bool seen_before(const char *line)
{
    uint64_t hash = kn_map_hash(line, strlen(line)) | 1; /* never the mark of an empty place */
    for (size_t i = 0; i < REMEMBERED; i++) {
        if (log_state.remembered[i] == hash) {
            return true;
        }
    }
    log_state.remembered[log_state.remembered_next] = hash;
    log_state.remembered_next = (log_state.remembered_next + 1) % REMEMBERED;
    return false;
}

/* How a line is asked for. */
typedef enum manner { EACH_TIME, ONCE, UNASKED } manner;

static bool is_wanted(kiln_log_level level, manner how)
{
    const bool unheard = how == UNASKED && log_state.sink == NULL && getenv("KILN_LOG") == NULL;
    return unheard || (int)level <= atomic_load(&log_state.level);
}

static void emit_line(kiln_log_level level, const char *line, manner how)
{
    if (!lock_log(false)) {
        return;
    }
    if (is_wanted(level, how) && !(how == ONCE && seen_before(line))) {
        if (log_state.sink != NULL) {
            log_state.sink(log_state.user, level, line);
        } else {
            (void)fprintf(stderr, "kiln: %s: %s\n", level_names[level], line);
        }
    }
    unlock_log();
}

static void format_and_emit(kiln_log_level level, manner how, const char *format, va_list args)
    KILN_PRINTF(3, 0);
static void format_and_emit(kiln_log_level level, manner how, const char *format, va_list args)
{
    char text[MAX_LINE + 4]; /* room for the character that is cut */
    char line[MAX_LINE];

    if (vsnprintf(text, sizeof text, format, args) < 0) {
        return;
    }
    kn_text_put(line, sizeof line, text);
    kn_text_flatten(line);
    emit_line(level, line, how);
}

void kn_log(kiln_log_level level, const char *format, ...)
{
    if (!kn_log_enabled(level)) {
        return;
    }
    va_list args;
    va_start(args, format);
    format_and_emit(level, EACH_TIME, format, args);
    va_end(args);
}

void kn_log_once(kiln_log_level level, const char *format, ...)
{
    if (!kn_log_enabled(level)) {
        return;
    }
    va_list args;
    va_start(args, format);
    format_and_emit(level, ONCE, format, args);
    va_end(args);
}

void kn_log_unasked(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    format_and_emit(KILN_LOG_WARN, UNASKED, format, args);
    va_end(args);
}

void kn_log_diag(kiln_log_level level, const char *context, const kiln_diag *diag)
{
    char line[sizeof diag->what + sizeof diag->why + sizeof diag->fix + 8];

    if (!kn_log_enabled(level)) {
        return;
    }
    (void)kiln_diag_format(diag, line, sizeof line);
    kn_log(level, "%s: %s", context, line);
}
