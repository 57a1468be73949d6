/* The report of `kiln exec --stats`: what the interposed libraries of all processes of a program
 * wrote, one line a compile (src/interpose/session.h). */
#ifndef KILN_PROGRAM_EXEC_REPORT_H
#define KILN_PROGRAM_EXEC_REPORT_H

#include <stdint.h>

#include <jansson.h>

#include "cli/cmd.h"

enum {
    EXEC_REASONS_MAX = 16,
    EXEC_REASON_SIZE = 160,
    EXEC_FRONTENDS_MAX = 16,
    EXEC_TROUBLES_MAX = 4
};

/* The compiles of one kind, by the name that the report has for it: "nvrtc". */
typedef struct exec_frontend {
    char what[16];
    uint64_t answered, bypassed;
} exec_frontend;

/* Why kiln could do nothing, or only read. */
typedef struct exec_trouble {
    char what[16]; /* "core", "cache", "disabled" */
    bool reads;    /* what is stored is found, and nothing is added */
    char object[EXEC_REASON_SIZE];
    char reason[2 * EXEC_REASON_SIZE];
} exec_trouble;

typedef struct exec_report {
    uint64_t compiled, hits, bypassed, failed;
    uint64_t left, stored; /* of what was compiled: not stored then, and stored later after all */
    uint64_t compile_ns, saved_ns, bypass_ns;
    struct {
        char text[EXEC_REASON_SIZE];
        uint64_t count, took_ns;
    } reasons[EXEC_REASONS_MAX]; /* the first of them; the rest are counted only */
    size_t reason_count;
    exec_frontend frontends[EXEC_FRONTENDS_MAX];
    size_t frontend_count;
    exec_trouble troubles[EXEC_TROUBLES_MAX]; /* one of each kind */
    size_t trouble_count;
    bool binaries, pyopencl; /* OpenCL programs were loaded from what the program kept itself */
    uint64_t unread;         /* lines that are not a report's */
} exec_report;

/* Reads a report file; lines that are not whole are counted in `unread`. KILN_E_INVALID. */
kiln_status exec_report_read(const char *path, exec_report *out_report, kiln_diag *diag);
/* Takes one line, without its end. */
void exec_report_add(exec_report *report, const char *line);
/* What was asked for: 0 where no library of kiln's was called to compile. */
uint64_t exec_report_asked(const exec_report *report);
/* What was compiled and could have been stored, but for what that takes. */
uint64_t exec_report_not_stored(const exec_report *report);
/* The compiles of a kind; NULL: there were none. */
const exec_frontend *exec_report_frontend(const exec_report *report, const char *what);
/* Adds a trouble, unless there is one of its kind. */
void exec_report_add_trouble(exec_report *report, const exec_trouble *trouble);
const exec_trouble *exec_report_trouble(const exec_report *report, const char *what);
/* What to do about it. */
const char *exec_trouble_fix(const exec_trouble *trouble);
/* Without read-only caches, where everything was found. */
bool exec_trouble_matters(const exec_report *report, const exec_trouble *trouble);
/* The troubles that matter, for a JSON report; NULL when memory ran out. */
json_t *exec_report_troubles_json(const exec_report *report);
/* What a person wants to know in the end, one line without its line break: how many kernels were
 * found, or the one reason why not. NULL when memory ran out. */
const char *exec_report_verdict(const exec_report *report, cli_pool *pool);
/* For people, the verdict last, after `note` (NULL: none); as JSON, false when memory ran out. */
void exec_report_print(const exec_report *report, cli_pool *pool, const char *note, FILE *file);
bool exec_report_print_json(const exec_report *report, cli_pool *pool, FILE *file);

#endif
