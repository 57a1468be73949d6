/* See session.h. */
#include "interpose/session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/unstable/admin.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/thread.h"

static struct {
    pthread_once_t once;
    kiln_cache *cache;
    kn_header_memo *headers;
    const char *report_path; /* NULL: nobody reads one */
    int report;              /* -1: it could not be opened */
    struct stat report_facts;
} session = {.once = PTHREAD_ONCE_INIT, .report = -1};

/* The program has not asked for anything: what its user has not asked for either stays unsaid. */
static void drop_line(void *user, kiln_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
}

/* A pipe would hold up the program when nobody reads it. */
static int open_report(struct stat *out_facts)
{
    const int file =
        open(session.report_path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file >= 0 && (fstat(file, out_facts) != 0 || !S_ISREG(out_facts->st_mode))) {
        (void)close(file);
        return -1;
    }
    return file;
}

/* The program may have closed the report, and have a file of its own under its number: then it is
 * opened for this line. */
static void write_report_line(const kn_strbuf *line)
{
    struct stat facts;
    const bool own = session.report >= 0 && fstat(session.report, &facts) == 0 &&
                     facts.st_dev == session.report_facts.st_dev &&
                     facts.st_ino == session.report_facts.st_ino;
    const int file = own ? session.report : open_report(&facts);
    if (file >= 0) {
        /* A report that cannot be written is nobody's failure. */
        const ssize_t written = write(file, line->data, line->length);
        (void)written;
    }
    if (file >= 0 && !own) {
        (void)close(file);
    }
}

/* A field may hold anything but what ends it. */
static void append_field(kn_strbuf *line, const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        const char c = *text;
        kn_strbuf_append_char(line, (unsigned char)c < ' ' || c == 127 ? ' ' : c);
    }
}

static void write_line(const kn_session_event *event)
{
    if (session.report_path == NULL) {
        return;
    }
    kn_strbuf line;
    kn_strbuf_init(&line, 4096); /* PIPE_BUF; a longer line is not written */
    kn_strbuf_printf(&line, "%s\t%s\t%llu\t%llu\t", event->what, event->origin,
                     (unsigned long long)event->took_ns, (unsigned long long)event->saved_ns);
    append_field(&line, event->name);
    kn_strbuf_append_char(&line, '\t');
    append_field(&line, event->reason);
    if (event->key != NULL) {
        char key[KILN_KEY_TEXT_SIZE];
        kiln_key_format(event->key, key);
        kn_strbuf_printf(&line, "\t%s", key);
    }
    kn_strbuf_append_char(&line, '\n');
    if (kn_strbuf_ok(&line)) {
        write_report_line(&line);
    }
    kn_strbuf_deinit(&line);
}

/* A cache that is off, or only read, is a line of the report. */
static void report_cache(const kiln_cache *cache, const kiln_diag *failure)
{
    char text[sizeof(failure->what) + sizeof(failure->why) + sizeof(failure->fix) + 8];
    kiln_cache_options asked = {0};
    const char *root = cache != NULL ? kiln_cache_root(cache) : "";
    const char *reason = cache != NULL ? kiln_cache_disk_reason(cache) : text;
    if (cache == NULL) {
        (void)kiln_diag_format(failure, text, sizeof(text));
    } else if (reason[0] == '\0' && kiln_cache_options_init(&asked, NULL) == KILN_OK &&
               (asked.flags & KILN_CACHE_READONLY) != 0) {
        reason = "KILN_READONLY is set";
    }
    if (reason[0] != '\0') {
        write_line(&(kn_session_event){.what = "cache",
                                       .origin = root[0] != '\0' ? "read-only" : "off",
                                       .name = root,
                                       .reason = reason});
    }
}

static void open_session(void)
{
    const char *level = kn_env_get("KILN_LOG");
    if (level == NULL || level[0] == '\0') {
        kiln_log_set(drop_line, NULL, KILN_LOG_ERROR);
    }
    kiln_diag diag = KILN_DIAG_INIT;
    const char *report = kn_env_get("KILN_EXEC_REPORT");
    if (report != NULL && report[0] == '/') {
        session.report_path = kn_text_copy(report); /* without memory there is no report */
        session.report = session.report_path != NULL ? open_report(&session.report_facts) : -1;
    }
    if (kiln_cache_create(NULL, &session.cache, &diag) != KILN_OK) {
        kn_log_diag(KILN_LOG_WARN, "opening the cache", &diag);
        session.cache = NULL;
    }
    if (session.report_path != NULL) {
        report_cache(session.cache, &diag);
    }
    kiln_diag_clear(&diag);
    session.headers = kn_header_memo_create();
}

kn_header_memo *kn_session_headers(void)
{
    pthread_once(&session.once, open_session);
    return session.headers;
}

kiln_cache *kn_session_cache(void)
{
    pthread_once(&session.once, open_session);
    return session.cache;
}

void kn_session_report(const kn_session_event *event)
{
    const bool has_reason = event->reason != NULL && event->reason[0] != '\0';
    pthread_once(&session.once, open_session);
    kn_log(KILN_LOG_DEBUG, "%s: %s: %s%s%s (%.1f ms)", event->what,
           event->name != NULL && event->name[0] != '\0' ? event->name : "a program without a name",
           event->origin, has_reason ? ": " : "", has_reason ? event->reason : "",
           (double)event->took_ns / 1e6);
    write_line(event);
}
