/* Words that a shell asks for while a line is completed: they depend on the machine and the cache.
 */
#ifndef KILN_PROGRAM_COMPLETION_WORDS_H
#define KILN_PROGRAM_COMPLETION_WORDS_H

#include "cli/cmd.h"

/* What `kiln completion NAME` prints, one a line: "devices" (opencl:0), "targets" (devices and
 * names that need none), "stored" (targets of entries), "keys". False if `name` is none of them. */
bool completion_words_print(const cmd_context *context, const char *name);

#endif
