/* The --target of a command that looks at entries: the name that an entry has, as `kiln ls` prints
 * it, and not what `kiln compile --target` takes. One that selects nothing is mentioned, or refused
 * where nothing can have it. */
#ifndef KILN_PROGRAM_CHOSEN_TARGET_H
#define KILN_PROGRAM_CHOSEN_TARGET_H

#include <kiln/unstable/admin.h>
#include <kiln/unstable/pack.h>

#include "cli/cmd.h"

/* EXIT_FINE where `target` is NULL or selects an entry, or could be one's; else what was refused,
 * in a message that names the targets that there are. */
exit_code chosen_target_check(const cmd_context *context, kiln_cache *cache, const char *target);
exit_code chosen_target_check_pack(const cmd_context *context, kiln_pack *pack, const char *target);

#endif
