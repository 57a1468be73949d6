/* kiln prune --unreachable. */
#ifndef KILN_PROGRAM_PRUNE_UNREACHABLE_H
#define KILN_PROGRAM_PRUNE_UNREACHABLE_H

#include "cli/session.h"

exit_code prune_unreachable(const cmd_context *context, const session_options *options,
                            bool dry_run);

#endif
