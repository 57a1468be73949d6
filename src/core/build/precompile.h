/* What a backend gets so that it can keep precompiled headers (kiln_precompile): the name that
 * stands for them, and the files that they are made of. */
#ifndef KILN_CORE_PRECOMPILE_H
#define KILN_CORE_PRECOMPILE_H

#include "core/build/build.h"

typedef struct kn_precompile {
    kiln_precompile view; /* path NULL: nothing is to be kept */
    char *path;
    kiln_precompile_file *files;
    size_t capacity;
} kn_precompile;

/* Never fails: where anything is missing, nothing is kept. Blocks: disk. */
void kn_precompile_init(kn_precompile *precompile, const kn_build *build, const kn_stage_run *run,
                        const kiln_stage *stage);
void kn_precompile_deinit(kn_precompile *precompile);

#endif
