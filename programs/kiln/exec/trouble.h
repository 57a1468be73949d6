/* Why kiln can do nothing under a program: what its libraries did not report themselves, since the
 * program called none of them or they could not. */
#ifndef KILN_PROGRAM_EXEC_TROUBLE_H
#define KILN_PROGRAM_EXEC_TROUBLE_H

#include "exec/environment.h"
#include "exec/report.h"

/* Adds to `report` what keeps kiln's libraries from working: KILN_DISABLE, or a core that cannot be
 * loaded. `missing` says why the environment has no libraries; else it is not looked at. Blocks:
 * disk. */
void exec_trouble_find_core(const exec_environment *environment, const kiln_diag *missing,
                            exec_report *report);
/* The same for a program that has exited and a cache that is off or only read. From then on nothing
 * is logged on standard error, unless KILN_LOG asks for it. Blocks: disk. */
void exec_trouble_find(const exec_environment *environment, const kiln_diag *missing,
                       exec_report *report);

#endif
