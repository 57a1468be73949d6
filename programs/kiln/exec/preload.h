/* What `kiln exec` names in LD_PRELOAD and LD_AUDIT. Both reach every process below the program, of
 * which some have another loader, another word size or a runtime that wants to come first. */
#ifndef KILN_PROGRAM_EXEC_PRELOAD_H
#define KILN_PROGRAM_EXEC_PRELOAD_H

#include "exec/environment.h"

/* The path of a library of kiln's for such a list: LIBRARIES/preload/MARK/$PLATFORM/NAME, where
 * glibc's loader puts in x86_64 or a like name, i686 in a program of 32 bits, which gets a library
 * that holds nothing, and musl's loader leaves the token and finds nothing. MARK is for
 * AddressSanitizer's runtime (kiln-interpose/mark.h). `library` itself where the loader of this
 * process does not find it so. NULL: out of memory. Blocks: disk. */
const char *exec_preload_path(cli_pool *pool, const char *libraries, const char *library);

/* Preloads `list` behind what the user does, so that a sanitizer's runtime of his stays first.
 * Nothing where kiln's directory has a blank or a $ in its name, which no such list can hold. */
void exec_preload_add(exec_environment *environment, const char *list);

#endif
