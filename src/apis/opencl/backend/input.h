/* A request made ready for clBuildProgram: one text, one string of options, and a private directory
 * for what such a string cannot carry.
 *
 *     kn_opencl_input_init(&input, source, NULL, diag)
 *     kn_opencl_input_enter(&input, diag)      makes the directory, if one is needed
 *     ... compile input.text with input.options ...
 *     kn_opencl_input_leave(&input)            removes it
 *     kn_opencl_input_deinit(&input)
 *
 * Drivers split the options at blanks, each with its own idea of quoting. So a directory with an
 * unusual name is reached through a link with a plain one, a header in memory becomes a file, and a
 * definition with an unusual value becomes a #define before the text. A source that includes
 * becomes a file, too, for compilers look for "x.h" in a text without a file in whatever directory
 * the program happens to be started from, before all others. */
#ifndef KILN_OPENCL_BACKEND_INPUT_H
#define KILN_OPENCL_BACKEND_INPUT_H

#include "base/strbuf.h"
#include "kiln/source.h"
#include "kiln/status.h"

typedef struct kn_opencl_input {
    char *text; /* source with its prologue; SPIR-V as it is */
    size_t length;
    char *options;
    char *dir; /* the private directory, NULL if none is needed */
    bool entered;
    char **links; /* targets of directory/i0, directory/i1, ... */
    size_t link_count;
    struct kn_opencl_file {
        char *name, *text; /* below the directory: "h/name" of a header, "m/name" of the source */
        size_t length;
    } * files;
    size_t file_count;
} kn_opencl_input;

/* Copies all it needs. `dir` is the private directory's name in an earlier compile whose
 * options are to be repeated to the letter, or NULL for a fresh one. KILN_E_INVALID for text that
 * no compiler can take (a line break in a definition, a header named by an absolute path). */
kiln_status kn_opencl_input_init(kn_opencl_input *input, const kiln_source *source, const char *dir,
                                 kiln_diag *diag);
kiln_status kn_opencl_input_enter(kn_opencl_input *input, kiln_diag *diag);
void kn_opencl_input_leave(kn_opencl_input *input);
/* Rewrites a compiler's log so that it speaks of the names that the user knows; malloc'ed, or NULL
 * when there is nothing to rewrite. */
char *kn_opencl_input_clean_log(const kn_opencl_input *input, const char *log);
/* The options of the request as a program from a binary takes them: without include directories,
 * which are gone. malloc'ed; NULL when out of memory. */
char *kn_opencl_input_load_options(const kiln_source *source);
void kn_opencl_input_deinit(kn_opencl_input *input);

#endif
