/* kiln push and kiln pull with a place in a registry of container images. */
#ifndef KILN_PROGRAM_SHIP_COMMAND_H
#define KILN_PROGRAM_SHIP_COMMAND_H

#include "cmd/transfer_command.h"

/* Whether the first argument is such a place. */
bool ship_is_meant(const opt_list *arguments);
exit_code ship_push_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments);
exit_code ship_pull_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments);

#endif
