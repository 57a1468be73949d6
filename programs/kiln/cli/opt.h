/* One small option parser for every command.
 *
 * A command has a struct for its options and a table that says where in it each option goes. Forms:
 * --name VALUE, --name=VALUE, -x VALUE, -xVALUE; "--" ends the options; arguments and options may
 * be mixed. There are no abbreviations: a name that works today works in every later version. */
#ifndef KILN_PROGRAM_OPT_H
#define KILN_PROGRAM_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <kiln/status.h>

#include "cli/pool.h"

typedef enum opt_kind {
    OPT_FLAG,     /* bool */
    OPT_TEXT,     /* const char *; NULL if not given, the last one wins */
    OPT_LIST,     /* opt_list; may be given many times */
    OPT_COUNT,    /* opt_number; a whole number */
    OPT_SIZE,     /* opt_number; bytes: 1048576, 512K, 1.5G, 2GiB */
    OPT_DURATION, /* opt_number; nanoseconds: 90s, 15m, 12h, 30d, 2w */
} opt_kind;

typedef struct opt_list {
    const char **items;
    size_t count;
} opt_list;

typedef struct opt_number {
    bool given;
    uint64_t value;
} opt_number;

typedef struct opt_spec {
    const char *name;  /* without dashes; NULL for a letter alone; one dash before it where another
                        * program's option is written so: "-MD", "-std=" */
    char letter;       /* 0 for none */
    opt_kind kind;     /* type of the field */
    size_t offset;     /* of the field in the command's struct */
    const char *value; /* how help calls the value; NULL for flags */
    const char *help;
} opt_spec;

#define OPT_END                                                                                    \
    {                                                                                              \
        NULL, 0, OPT_FLAG, 0, NULL, NULL                                                           \
    }

/* Parses `argv` (without the command's name) into `fields` and `out_arguments`. `out_help` is set
 * when --help or -h was met; nothing after it is looked at.
 * KILN_E_INVALID: the option is unknown (a near one is proposed) or its value is wrong. */
kiln_status opt_parse(const opt_spec *specs, int argc, char **argv, cli_pool *pool, void *fields,
                      opt_list *out_arguments, bool *out_help, kiln_diag *diag);

/* What is written before the row's name: "--", or nothing where the name has its dash. */
const char *opt_dashes(const opt_spec *spec);

/* The option part of a help page. */
void opt_print(const opt_spec *specs, FILE *file);

/* The values, for use elsewhere and for tests. False if the text is not exactly one. */
bool opt_parse_count(const char *text, uint64_t *out_value);
bool opt_parse_size(const char *text, uint64_t *out_bytes);
bool opt_parse_duration(const char *text, uint64_t *out_ns);

/* The one of `names` (NULL at the end) that `text` is most likely a misspelling of, or NULL. */
const char *opt_nearest(const char *const *names, const char *text);
/* Whether a list with blanks between its words has this one. */
bool opt_has_word(const char *list, const char *word);

#endif
