/* Option strings as OpenCL's compilers take them, and what in them reaches for files. */
#ifndef KILN_OPENCL_BACKEND_OPTIONS_H
#define KILN_OPENCL_BACKEND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"
#include "base/strbuf.h"

/* Takes the next token off `*cursor`: blanks separate, double quotes group and are dropped. False
 * at the end; *out_odd is set where drivers disagree on the reading (quotes left open, single
 * quotes, backslashes). */
bool kn_opencl_option_next(const char **cursor, kn_strbuf *token, bool *out_odd);

/* One option of a string, "-I dir" with both its tokens. Texts live until the next is read. */
typedef struct kn_opencl_option {
    const char *before; /* the token before it, "" if there is none */
    const char *token;  /* its last token, without quotes */
    kn_span whole;      /* the option as it stands in the string, */
    kn_span raw;        /* and its last token */
    const char *dir;    /* -I: the directory, without quotes; NULL: another option */
    kn_span raw_dir;
    bool quoted_before; /* -I: quotes open before the directory */
} kn_opencl_option;

/* Reads options for those who follow -I. */
typedef struct kn_opencl_option_reader {
    const char *at;
    kn_strbuf before, token;
    bool odd; /* as kn_opencl_option_next, and for a last -I without a directory */
} kn_opencl_option_reader;

void kn_opencl_option_reader_init(kn_opencl_option_reader *reader, const char *options);
/* False at the end, or without memory. */
bool kn_opencl_option_read(kn_opencl_option_reader *reader, kn_opencl_option *out);
/* False: some option was not read, for want of memory. */
bool kn_opencl_option_reader_ok(const kn_opencl_option_reader *reader);
void kn_opencl_option_reader_deinit(kn_opencl_option_reader *reader);

/* Why one token keeps a compile from being cached, static: it is not in the closed list of those
 * that read and write no file. NULL if it is. `before` is the token before it, or NULL: the one
 * after "-D" is a value. -I is not in the list; callers that follow -I take it out first. */
const char *kn_opencl_option_reason(const char *before, const char *token);
/* The same for a string of options, read with and without a meaning of quotes. */
const char *kn_opencl_options_reason(const char *options);

/* Whether the code names files for the sake of an option: -g. */
bool kn_opencl_options_name_files(const char *options);

/* True for text that every driver's tokeniser takes as one token and as it is. */
bool kn_opencl_text_is_plain(const char *text);

/* A string of options without those that only a front end reads (definitions, directories,
 * warnings, the language's version): for drivers that take no such option with a binary, whose text
 * has been read long ago. Appended to `out` with blanks between. */
void kn_opencl_options_of_code(const char *options, kn_strbuf *out);

#endif
