/* What hipRTC's options (clang's) mean for a key: a closed list. Pure text work: opens nothing and
 * calls nobody. */
#ifndef KILN_HIP_OPTIONS_HIPRTC_OPTIONS_H
#define KILN_HIP_OPTIONS_HIPRTC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "compilers/call_option.h"

typedef struct kn_hiprtc_option_facts {
    const char *reason; /* why the compile bypasses the cache, static; NULL if it need not */
    bool names;         /* the code holds the names of files: line information */
    bool target;        /* an option names a target */
} kn_hiprtc_option_facts;

/* Reads options one by one, as hiprtcCompileProgram takes them. */
void kn_hiprtc_options_read(const char *const *options, size_t count, kn_hiprtc_option_facts *out);

/* The same for options in one text, separated by blanks. */
void kn_hiprtc_options_read_text(const char *text, kn_hiprtc_option_facts *out);

/* What the option at `index` is to a program's call. */
void kn_hiprtc_option_read(const char *const *options, size_t count, size_t index,
                           kn_call_option *out);

/* Whether the output is bitcode and not a code object. */
bool kn_hiprtc_option_asks_bitcode(const char *option);

#endif
