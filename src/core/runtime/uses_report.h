/* Counting which programs are used, for the store's table (store/disk/use_counts.h): in memory
 * while the runtime lives, in the table when it goes. */
#ifndef KILN_CORE_USES_H
#define KILN_CORE_USES_H

#include "core/walk/program.h"

void kn_uses_note(kiln_program *program);
void kn_uses_flush(kiln_runtime *runtime);

#endif
