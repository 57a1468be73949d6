/* The report of `kiln exec --stats`: what the interposed libraries of all processes of a program
 * wrote, one line a compile (docs/formats.md, "Report of kiln exec"). */
#ifndef KILN_PROGRAM_EXEC_REPORT_H
#define KILN_PROGRAM_EXEC_REPORT_H

#include <stdint.h>

#include "cli/cmd.h"

enum { EXEC_REASONS_MAX = 16, EXEC_REASON_SIZE = 160 };

typedef struct exec_report {
    uint64_t compiled, hits, bypassed, failed;
    uint64_t compile_ns, saved_ns, bypass_ns;
    struct {
        char text[EXEC_REASON_SIZE];
        uint64_t count, took_ns;
    } reasons[EXEC_REASONS_MAX]; /* the first of them; the rest are counted only */
    size_t reason_count;
    uint64_t unread; /* lines that are not a report's */
} exec_report;

/* Reads a report file; lines that are not whole are counted in `unread`. KILN_E_INVALID. */
kiln_status exec_report_read(const char *path, exec_report *out_report, kiln_diag *diag);
/* Takes one line, without its end. */
void exec_report_add(exec_report *report, const char *line);
/* For people; as JSON, false when memory ran out. */
void exec_report_print(const exec_report *report, cli_pool *pool, FILE *file);
bool exec_report_print_json(const exec_report *report, FILE *file);

#endif
