/* Programs that are compiled in the background while another one runs (kiln_build_options). */
#ifndef KILN_UNSTABLE_BACKGROUND_H
#define KILN_UNSTABLE_BACKGROUND_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

/* Whether a program that was built with options.background is what was asked for by now: KILN_OK
 * for ever after, and for every other program. kiln_program_wait waits for the end of the compile.
 * Threads: any.   Blocks: ready: never; wait: until the compile has finished.   Owns: nothing.
 * Fails: ready: KILN_E_BUSY (no diag) while it is compiled. Both: what the compile failed with,
 * each time; the fallback stays. It was also logged, once. KILN_E_CANCELLED if the runtime went
 * first. */
KILN_API KILN_MUST_CHECK kiln_status kiln_program_ready(kiln_program *program, kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_program_wait(kiln_program *program, kiln_diag *diag);

KILN_END_DECLS

#endif
