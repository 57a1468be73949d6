/* What the environment's variables mean for the key of a compile: one table, variables.def, for
 * each frontend of kiln to a compiler. Threads: any. Opens nothing and never fails. */
#ifndef KILN_COMPILERS_VARIABLES_H
#define KILN_COMPILERS_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

typedef enum kn_compiler {
    KN_COMPILER_NVRTC,
    KN_COMPILER_NVJITLINK,
    KN_COMPILER_PTXAS,
    KN_COMPILER_HIPRTC,
    KN_COMPILERS
} kn_compiler;

/* Why a compile bypasses the cache, static; NULL if it need not. Also to be called before the
 * library is loaded: what it reads only then is remembered. */
const char *kn_variables_reason(kn_compiler compiler);

/* Whether a variable that holds more options has `option` in it. */
bool kn_variables_hold_option(kn_compiler compiler, const char *option);

/* The name of the `index`th variable whose value is in keys; NULL after the last. */
const char *kn_variables_keyed(kn_compiler compiler, size_t index);

#endif
