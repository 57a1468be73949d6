/* Why kiln can do nothing under a program: what its libraries did not report themselves, since the
 * program called none of them or they could not. */
#ifndef KILN_PROGRAM_EXEC_TROUBLE_H
#define KILN_PROGRAM_EXEC_TROUBLE_H

#include "exec/environment.h"
#include "exec/report.h"

/* Adds to `report`. `missing` says why the environment has no libraries; else it is not looked at.
 * From then on nothing is logged on standard error, unless KILN_LOG asks for it. Blocks: disk. */
void exec_trouble_find(const exec_environment *environment, const kiln_diag *missing,
                       exec_report *report);
/* Whether KILN_DISABLE takes kiln out. */
bool exec_trouble_is_disabled(void);
/* Whether kiln's core can be loaded from the directory; false with the reason. Blocks: disk. */
bool exec_trouble_try_core(const char *libraries, char *out_reason, size_t size);

#endif
