/* A program as its caller gave it, handed to the recorder (record/recorder.h). */
#include "core/build/build.h"

#include <string.h>

#include "base/text.h"
#include "record/recorder.h"
#include "store/format/blob.h"

/* The target as kiln_compile takes it, where there is a name for it: SPIR-V is one for all devices,
 * and what a backend compiles for by name has that name behind its own. */
static void name_recorded_target(const kn_build *build, char *out, size_t size)
{
    const char *backend = build->driver->in.backend->name;
    const char *name = build->target->name;
    const kiln_stage *first = &build->stages[0];
    const size_t length = strlen(backend);
    if (kn_instance_can(&build->driver->in, KILN_CAP_COMPILE_OFFLINE)) {
        if (first->portable && first->output == KILN_LANG_SPIRV) {
            name = kiln_language_name(first->output);
        } else if (kn_text_starts(name, backend) && name[length] == '-') {
            name += length + 1;
        }
    }
    kn_text_putf(out, size, "%s:%s", backend, name);
}

/* Of all stages: in this build, or when their entries were made. */
static uint64_t count_compile_ns(const kn_build *build)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < build->stage_count; i++) {
        const kiln_blob *blob = build->runs[i].blob;
        sum += blob != NULL ? kiln_blob_compile_ns(blob) : 0;
    }
    return sum > 0 ? sum : build->info.compile_ns;
}

static bool is_recordable(const kn_build *build)
{
    const kn_stage_run *first = &build->runs[0];
    return build->stage_count > 0 && build->stages[0].takes_source && first->bypass[0] == '\0' &&
           (first->blob != NULL || first->later) &&
           build->source.source.language != KILN_LANG_BUILTIN &&
           (first->closure == NULL || !first->closure->assumed);
}

void kn_build_record(const kn_build *build)
{
    char target[128];
    kn_draft draft;
    const kiln_source *source = &build->source.source;
    if (!is_recordable(build) || !kn_draft_begin(&draft, build->cache, &build->runs[0].key)) {
        return;
    }
    /* The source's own directory is not one of the caller's. */
    const size_t own = build->source.dir != NULL && !build->source.not_beside ? 1 : 0;
    kn_recorded *program = &draft.program;
    program->frontend = KN_FRONTEND_WALK;
    program->flags = build->dropin ? KN_RECORDED_DROPIN : 0;
    program->language = source->language;
    program->name = source->name;
    program->defines = source->defines;
    program->define_count = source->define_count;
    program->options = source->options;
    program->option_count = source->option_count;
    program->include_dirs = source->include_dirs + own;
    program->include_dir_count = source->include_dir_count - own;
    program->entries = source->entries;
    program->entry_count = source->entry_count;
    kn_draft_add_text(&draft, source->text, source->length, "", source->headers,
                      source->header_count);
    kn_draft_add_closure(&draft, build->runs[0].closure);
    name_recorded_target(build, target, sizeof(target));
    kn_draft_end(&draft, target, count_compile_ns(build));
}
