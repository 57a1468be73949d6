/* What kiln prune and kiln clear, kiln verify and kiln pack verify say when they are done. */
#ifndef KILN_PROGRAM_REMOVAL_H
#define KILN_PROGRAM_REMOVAL_H

#include <kiln/unstable/admin.h>

#include "cli/cmd.h"

/* `dry`: nothing was removed. */
exit_code removal_tell(const cmd_context *context, const kiln_prune_result *result, bool dry,
                       bool json);
/* `removed`: whether what is damaged was removed; NULL where it cannot be. EXIT_DAMAGE: there was
 * some. */
exit_code removal_tell_verified(const cmd_context *context, const kiln_verify_result *result,
                                const bool *removed, bool json);

#endif
