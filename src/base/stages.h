/* The stages of kiln's own entries: stages.def has one row for each, and every name comes from
 * there: kn_stage_opencl_binary is "opencl.binary". They are arrays, so that a table of a backend
 * can be initialized with them. */
#ifndef KILN_BASE_STAGES_H
#define KILN_BASE_STAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define KN_STAGE(id, name, ...) extern const char kn_stage_##id[sizeof(name)];
#include "base/stages.def"
#undef KN_STAGE

enum {
#define KN_STAGE(id, name, revision, ...) KN_REVISION_##id = (revision),
#include "base/stages.def"
#undef KN_STAGE
};

/* Name and revision, where both are wanted: kiln_recipe_create(KN_STAGE_AT(tuning), ...). */
#define KN_STAGE_AT(id) kn_stage_##id, KN_REVISION_##id

/* What an entry of a stage is to the machine that loads it; see stages.def. */
typedef enum kn_stage_code {
    KN_STAGE_PORTABLE,
    KN_STAGE_DRIVER,
    KN_STAGE_HOST,
    KN_STAGE_NOTE,
} kn_stage_code;

typedef struct kn_stage_row {
    const char *name;
    uint32_t revision;
    kn_stage_code code;
    const char *holds;
} kn_stage_row;

/* All of them, by name. */
const kn_stage_row *kn_stages(size_t *out_count);
/* NULL: not a stage of kiln's own. */
const kn_stage_row *kn_stage_find(kn_span name);

#endif
