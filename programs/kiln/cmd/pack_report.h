/* What kiln pack says: a table or lines for people, JSON for programs. */
#ifndef KILN_PROGRAM_PACK_REPORT_H
#define KILN_PROGRAM_PACK_REPORT_H

#include <kiln/unstable/admin.h>
#include <kiln/unstable/pack.h>

#include "cli/cmd.h"
#include "cmd/pack_left_out.h"

/* After create and add. */
exit_code pack_tell_written(const cmd_context *context, const char *path,
                            const kiln_pack_info *info, const kiln_pack_copied *copied,
                            const left_out_list *list, bool json);
exit_code pack_tell_extracted(const cmd_context *context, const kiln_pack_copied *copied,
                              bool json);
/* All entries; `full` prints whole keys. */
exit_code pack_tell_list(const cmd_context *context, const char *path, kiln_pack *pack,
                         const char *target, bool full, bool json);

#endif
