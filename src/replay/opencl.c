/* Recorded calls of the OpenCL drop-in and the OpenCL layer. */
#include "replay/opencl.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/options.h"
#include "apis/opencl/backend/program.h"
#include "base/diag.h"
#include "base/text.h"
#include "core/runtime/runtime.h"
#include "dropin/precompile.h"

static const char replaying[] = "replaying an OpenCL program";

/* --- options ---------------------------------------------------------------------------------- */

static bool append_dir(const kn_replay_program *program, const char *dir, kn_strbuf *out)
{
    char *placed = kn_scratch_path(program->tree, program->recorded.dir, dir);
    if (placed != NULL) {
        kn_strbuf_printf(out, "-I %s ", placed);
    }
    free(placed);
    return placed != NULL;
}

char *kn_replay_opencl_options(const kn_replay_program *program, const char *options)
{
    kn_strbuf out;
    kn_opencl_option option;
    kn_opencl_option_reader reader;
    bool good = true;
    kn_strbuf_init(&out, 0);
    kn_opencl_option_reader_init(&reader, options);
    /* PoCL searches the current directory first, which here is another one. */
    if (program->recorded.dir[0] != '\0') {
        good = append_dir(program, ".", &out);
    }
    while (good && kn_opencl_option_read(&reader, &option)) {
        /* Directories in quotes stay as they stand there, like all other options. */
        if (option.dir != NULL && memchr(option.whole.data, '"', option.whole.length) == NULL) {
            good = append_dir(program, option.dir, &out);
        } else {
            kn_strbuf_append(&out, option.whole.data, option.whole.length);
            kn_strbuf_append_char(&out, ' ');
        }
    }
    good = good && kn_opencl_option_reader_ok(&reader);
    kn_opencl_option_reader_deinit(&reader);
    /* An empty string stays one. */
    kn_strbuf_append_text(&out, "");
    char *text = good ? kn_strbuf_detach(&out, NULL) : NULL;
    kn_strbuf_deinit(&out);
    return text;
}

/* --- the wish --------------------------------------------------------------------------------- */

/* What kn_opencl_wish_create copies. */
typedef struct call_parts {
    kiln_opencl_unit *units;
    const char **texts;
    char **options;
    size_t *lengths;
    size_t count;
} call_parts;

static void call_parts_deinit(call_parts *parts)
{
    for (size_t i = 0; parts->options != NULL && i < parts->count; i++) {
        free(parts->options[i]);
    }
    free(parts->options);
    free((void *)parts->texts);
    free(parts->lengths);
    free(parts->units);
}

static kiln_status call_parts_init(call_parts *parts, const kn_replay_program *program,
                                   kiln_diag *diag)
{
    const size_t count = program->recorded.text_count;
    *parts = (call_parts){.units = calloc(count, sizeof(kiln_opencl_unit)),
                          .texts = (const char **)calloc(count, sizeof(char *)),
                          .options = (char **)calloc(count, sizeof(char *)),
                          .lengths = calloc(count, sizeof(size_t)),
                          .count = count};
    bool good = parts->units != NULL && parts->texts != NULL && parts->options != NULL &&
                parts->lengths != NULL;
    for (size_t i = 0; good && i < count; i++) {
        const kn_recorded_text *text = &program->recorded.texts[i];
        parts->options[i] = kn_replay_opencl_options(program, text->options);
        parts->texts[i] = program->texts[i];
        parts->lengths[i] = (size_t)text->text.size;
        parts->units[i] = (kiln_opencl_unit){.struct_size = sizeof(kiln_opencl_unit),
                                             .strings = &parts->texts[i],
                                             .string_count = 1,
                                             .lengths = &parts->lengths[i],
                                             .options = parts->options[i],
                                             .headers = program->headers[i],
                                             .header_count = text->header_count};
        good = parts->options[i] != NULL;
    }
    if (!good) {
        call_parts_deinit(parts);
        return kn_no_memory(diag, replaying);
    }
    return KILN_OK;
}

static kn_wish_of wish_of(const kn_recorded *recorded)
{
    if ((recorded->flags & KN_RECORDED_LAYER) == 0) {
        return KN_WISH_OF_DROPIN;
    }
    return (recorded->flags & KN_RECORDED_COMPILE) != 0 ? KN_WISH_OF_LAYER_UNIT : KN_WISH_OF_LAYER;
}

kiln_status kn_replay_opencl(const kn_replay_program *program, kiln_runtime *runtime,
                             const kn_plan *plan, kiln_blob **out_blob, kiln_build_info *info,
                             kiln_diag *diag)
{
    const kn_opencl_device *device = (const kn_opencl_device *)plan->build.device;
    const kn_recorded *recorded = &program->recorded;
    call_parts parts;
    kn_opencl_wish *wish = NULL;
    if (device == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "name a device that `kiln devices` lists",
                             replaying, "OpenCL compiles for devices of this machine");
    }
    kiln_status status = call_parts_init(&parts, program, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kiln_opencl_request request = {.struct_size = sizeof(request),
                                         .context = device->context,
                                         .devices = &device->unit->device,
                                         .device_count = 1,
                                         .units = parts.units,
                                         .unit_count = parts.count,
                                         .link = (recorded->flags & KN_RECORDED_LINK) != 0,
                                         .link_options = recorded->link_options};
    const kiln_source source = kn_replay_program_source(program);
    status = kn_opencl_wish_create(&request, &wish, diag);
    if (status == KILN_OK) {
        status = kn_dropin_compile_wish(runtime->cache, wish, wish_of(recorded), &source, out_blob,
                                        info, diag);
    }
    kn_opencl_wish_release(wish);
    call_parts_deinit(&parts);
    return status;
}
