/* The two stages: source to portable code, and code to a binary for one driver and device. */
#include <stdlib.h>
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "base/checked.h"
#include "base/diag.h"

#define STAMP_SIZE 64

static const kiln_stage stages[] = {
    {.name = "fake.code", .revision = 1, .takes_source = true, .portable = true},
    {.name = "fake.binary", .revision = 1},
};

/* The same where only the device's own driver makes binaries. */
static const kiln_stage bound_stages[] = {
    {.name = "fake.code", .revision = 1, .takes_source = true, .portable = true},
    {.name = "fake.bound", .revision = 1, .needs_device = true},
};

const kiln_stage *kn_fake_stages(void *instance, const kiln_target *target, kiln_language language,
                                 size_t *out_count)
{
    const kn_fake_instance *fake = (const kn_fake_instance *)instance;
    (void)target;
    *out_count = sizeof(stages) / sizeof(stages[0]);
    return language != KILN_LANG_FAKE ? NULL : fake != NULL && fake->bound ? bound_stages : stages;
}

const char *kn_fake_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    (void)instance;
    (void)target;
    (void)index;
    return NULL;
}

bool kn_fake_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance;
    (void)target;
    (void)name;
    return false;
}

const char *kn_fake_uncacheable_option(void *instance, const kiln_source *source)
{
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        if (strncmp(source->options[i], "-file=", 6) == 0) {
            return "the option -file= names a file";
        }
    }
    return NULL;
}

uint32_t kn_fake_option_effects(void *instance, const kiln_source *source)
{
    uint32_t effects = 0;
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        effects |= strcmp(source->options[i], "-not-beside") == 0 ? KILN_OPTION_NOT_BESIDE : 0u;
        effects |= strcmp(source->options[i], "-names") == 0 ? KILN_OPTION_NAMES : 0u;
    }
    return effects;
}

/* Source to code. The names of the kernels go along as a fact. */
static kiln_status compile_source(kn_fake_instance *fake, const kiln_source *source,
                                  kiln_artifact *artifact, kiln_diag *diag)
{
    kn_fake_code code;
    kn_strbuf log;
    kn_strbuf bytes;
    kn_strbuf names;
    kn_strbuf_init(&log, 0);
    kn_strbuf_init(&bytes, 0);
    kn_strbuf_init(&names, 0);
    kiln_status status = kn_fake_parse(source, &code, &log, diag);
    if (strstr(source->text, "kernel crashes_the_compiler ") != NULL) {
        abort();
    }
    if (status == KILN_OK) {
        kn_fake_code_write(&code, &bytes);
        for (uint32_t i = 0; i < code.kernel_count; i++) {
            kn_strbuf_append_text(&names, code.kernels[i].name);
            kn_strbuf_append_char(&names, '\n');
        }
        if (!kn_strbuf_ok(&bytes) || !kn_strbuf_ok(&names) ||
            fake->host->artifact_set(artifact, KILN_LANG_NONE, bytes.data, bytes.length) !=
                KILN_OK ||
            fake->host->artifact_set_log(artifact, log.data, log.length) != KILN_OK ||
            fake->host->artifact_set_fact(artifact, KILN_FACT_ENTRIES, names.data, names.length) !=
                KILN_OK) {
            status = kn_no_memory(diag, "fake");
        }
        kn_fake_code_deinit(&code);
    }
    kn_strbuf_deinit(&names);
    kn_strbuf_deinit(&bytes);
    kn_strbuf_deinit(&log);
    return status;
}

/* Code to a binary: a stamp that names driver and device, the shapes it is finished for, the code.
 */
static kiln_status link_code(kn_fake_instance *fake, const kiln_compile_request *request,
                             kiln_artifact *artifact, kiln_diag *diag)
{
    char head[STAMP_SIZE + 8];
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_fake_binary_stamp(fake, request->target->device_index, head, STAMP_SIZE);
    kn_put_u64(head + STAMP_SIZE, 0);
    kn_strbuf_append(&bytes, head, sizeof(head));
    kn_strbuf_append(&bytes, request->input->data, request->input->size);
    kiln_status status = KILN_OK;
    if (!kn_strbuf_ok(&bytes) ||
        fake->host->artifact_set(artifact, KILN_LANG_NONE, bytes.data, bytes.length) != KILN_OK) {
        status = kn_no_memory(diag, "fake");
    }
    kn_strbuf_deinit(&bytes);
    return status;
}

kiln_status kn_fake_compile(void *instance, const kiln_compile_request *request,
                            kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_fake_instance *fake = (kn_fake_instance *)instance;
    bool first = request->stage->takes_source;
    bool empty = false;
    kiln_status status =
        kn_fake_call(&fake->faults, first ? FAKE_COMPILE : FAKE_LINK, &empty, diag);
    if (status != KILN_OK || empty) {
        return status;
    }
    if (first) {
        return compile_source(fake, request->source, artifact, diag);
    }
    status = link_code(fake, request, artifact, diag);
    if (status == KILN_OK && request->want_live) {
        kn_fake_program *program = NULL;
        if (kn_fake_program_create((kn_fake_device *)request->device, artifact->data,
                                   artifact->size, &program, NULL) == KILN_OK) {
            *out_live = program;
        } /* else core loads the artifact, and hears why that fails */
    }
    return status;
}
