/* The table of stages. This file must not know who makes their entries. */
#include "base/stages.h"

#include <string.h>

#define KN_STAGE(id, name, ...) const char kn_stage_##id[sizeof(name)] = name;
#include "base/stages.def"
#undef KN_STAGE

static const kn_stage_row rows[] = {
#define KN_STAGE(id, name, revision, code, holds) {kn_stage_##id, revision, KN_STAGE_##code, holds},
#include "base/stages.def"
#undef KN_STAGE
};

const kn_stage_row *kn_stages(size_t *out_count)
{
    *out_count = sizeof rows / sizeof *rows;
    return rows;
}

const kn_stage_row *kn_stage_find(kn_span name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (kn_span_equal(name, kn_span_of_text(rows[i].name))) {
            return &rows[i];
        }
    }
    return NULL;
}
