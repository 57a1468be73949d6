/* What kiln prune and kiln clear say when they are done. */
#ifndef KILN_PROGRAM_REMOVAL_H
#define KILN_PROGRAM_REMOVAL_H

#include <kiln/cache.h>

#include "cli/cmd.h"

/* `dry`: nothing was removed. */
exit_code removal_tell(const cmd_context *context, const kiln_prune_result *result, bool dry,
                       bool json);

#endif
