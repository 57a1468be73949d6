/* What hipRTC's options (clang's) mean for a key: a closed list. Pure text work: opens nothing and
 * calls nobody. */
#ifndef KILN_BACKENDS_HIP_OPTIONS_H
#define KILN_BACKENDS_HIP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kn_hip_option_facts {
    const char *reason; /* why the compile bypasses the cache, static; NULL if it need not */
    bool names;         /* the code holds the names of files: line information */
    bool target;        /* an option names a target */
} kn_hip_option_facts;

/* Reads options one by one, as hiprtcCompileProgram takes them. */
void kn_hip_options_read(const char *const *options, size_t count, kn_hip_option_facts *out);

/* The same for options in one text, separated by blanks. */
void kn_hip_options_read_text(const char *text, kn_hip_option_facts *out);

#endif
