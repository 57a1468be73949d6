#include "unit/backends/opencl/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "support/cmocka.h"
#include "sys/clock.h"

static const kiln_compiler_ops *compiler(void)
{
    return kn_backend_opencl.compiler;
}

static const kiln_device_ops *device(void)
{
    return kn_backend_opencl.device;
}

void rig_ok(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char line[2048];
        (void)kiln_diag_format(diag, line, sizeof(line));
        print_error("%s: %s\n%s\n", kiln_status_name(status), line, diag->log ? diag->log : "");
    }
    assert_int_equal(status, KILN_OK);
    kiln_diag_clear(diag);
}

static bool find(rig *r, const char *platform, uint32_t *out_index)
{
    kiln_diag diag = KILN_DIAG_INIT;
    for (uint32_t i = 0; i < r->report.device_count; i++) {
        kiln_device_info info = {0};
        rig_ok(device()->device_info(r->instance, i, &info, &diag), &diag);
        if (platform == NULL || strstr(info.platform, platform) != NULL) {
            *out_index = i;
            return true;
        }
    }
    return false;
}

bool rig_open(rig *r, const char *platform)
{
    kiln_diag diag = KILN_DIAG_INIT;
    uint32_t index = 0;
    *r = (rig){0};
    if (kn_backend_opencl.open(&kn_host, &r->instance, &r->report, &diag) != KILN_OK) {
        kiln_diag_clear(&diag);
        return false;
    }
    if (!find(r, platform, &index)) {
        kn_backend_opencl.close(r->instance);
        return false;
    }
    rig_ok(compiler()->target_of_device(r->instance, index, &r->target, &diag), &diag);
    rig_ok(device()->device_open(r->instance, index, &r->device, &diag), &diag);
    rig_ok(device()->queue_create(r->device, &r->queue, &diag), &diag);
    return true;
}

void rig_close(rig *r)
{
    device()->queue_destroy(r->device, r->queue);
    device()->device_close(r->device);
    compiler()->target_destroy(r->instance, &r->target);
    kn_backend_opencl.close(r->instance);
}

const char rig_two_kernels[] =
    "__kernel void add(__global float *a, float v) { a[get_global_id(0)] += v; }\n"
    "__kernel void scale(__global float *a, float v) { a[get_global_id(0)] *= v; }\n";

kiln_source rig_source(const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.text = text;
    source.length = strlen(text);
    return source;
}

kiln_status rig_compile(rig *r, const kiln_source *source, kn_artifact *artifact, void **out_live,
                        kiln_diag *diag)
{
    size_t count = 0;
    const kiln_stage *stages =
        compiler()->stages(r->instance, &r->target, source->language, &count);
    assert_int_equal(count, 1);
    kiln_compile_request request = {
        .stage = stages,
        .target = &r->target,
        .source = source,
        .device = r->device,
        .want_live = out_live != NULL,
    };
    kn_artifact_init(artifact);
    kiln_status status =
        compiler()->compile(r->instance, &request, &artifact->base, out_live, diag);
    if (status == KILN_OK && artifact->base.later) {
        status = device()->program_capture(r->device, *out_live, &artifact->base, diag);
    }
    return status;
}

kiln_status rig_load(rig *r, const kiln_source *source, const kn_artifact *artifact,
                     void **out_program, kiln_diag *diag)
{
    const kiln_artifact *artifacts[] = {&artifact->base};
    kiln_load_request request = {
        .target = &r->target,
        .source = source,
        .artifacts = artifacts,
        .artifact_count = 1,
    };
    *out_program = NULL;
    return device()->program_load(r->device, &request, out_program, diag);
}

uint64_t rig_launch(rig *r, void *program, const char *entry, void *buffer, float value,
                    uint64_t global, uint64_t local)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_sys_arg args[] = {
        {.kind = KILN_ARG_BUFFER, .buffer = buffer},
        {.kind = KILN_ARG_VALUE, .value = &value, .size = sizeof(value)},
    };
    kiln_sys_launch launch = {
        .program = program,
        .entry = entry,
        .dims = 1,
        .global = {global, 1, 1},
        .local = {local, local != 0, local != 0},
        .args = args,
        .arg_count = 2,
    };
    uint64_t start = kn_clock_now();
    rig_ok(device()->queue_launch(r->queue, &launch, NULL, &diag), &diag);
    rig_ok(device()->queue_finish(r->queue, &diag), &diag);
    return kn_clock_now() - start;
}

static void take_text(void *sink, const char *name, const char *value)
{
    kn_strbuf_printf((kn_strbuf *)sink, "%s=%s\n", name, value);
}

static void take_env(void *sink, const char *variable)
{
    const char *value = getenv(variable);
    kn_strbuf_printf((kn_strbuf *)sink, "%s%s%s\n", variable, value ? "=" : "", value ? value : "");
}

char *rig_identity(rig *r)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_strbuf text;
    size_t count = 0;
    kn_strbuf_init(&text, 0);
    kiln_identity identity = {&text, take_text, take_env};
    const kiln_stage *stages =
        compiler()->stages(r->instance, &r->target, KILN_LANG_OPENCL_C, &count);
    rig_ok(compiler()->identify(r->instance, stages, &r->target, &identity, &diag), &diag);
    return kn_strbuf_detach(&text, NULL);
}

void *rig_buffer(rig *r, size_t items)
{
    const kiln_device_ops *ops = kn_backend_opencl.device;
    kiln_diag diag = KILN_DIAG_INIT;
    void *buffer = NULL;
    const float zero = 0.0F;
    rig_ok(ops->buffer_create(r->device, items * sizeof(float), &buffer, &diag), &diag);
    rig_ok(ops->queue_fill(r->queue, buffer, 0, &zero, sizeof(zero), items * sizeof(float), &diag),
           &diag);
    return buffer;
}

float rig_item(rig *r, void *buffer, size_t index)
{
    kiln_diag diag = KILN_DIAG_INIT;
    float value = -1.0F;
    rig_ok(kn_backend_opencl.device->queue_read(r->queue, buffer, index * sizeof(float), &value,
                                                sizeof(value), NULL, &diag),
           &diag);
    return value;
}

float rig_compile_and_run(rig *r, const kiln_source *source)
{
    const kiln_device_ops *ops = kn_backend_opencl.device;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    rig_ok(rig_compile(r, source, &artifact, &program, &diag), &diag);
    void *buffer = rig_buffer(r, 64);
    (void)rig_launch(r, program, "k", buffer, 1.0F, 64, 0);
    float value = rig_item(r, buffer, 63);
    ops->buffer_destroy(r->device, buffer);
    ops->program_unload(r->device, program);
    kn_artifact_deinit(&artifact);
    return value;
}

kiln_status rig_open_runtime(const kiln_source *source, kiln_runtime **out_runtime,
                             kiln_device **out_device)
{
    kiln_runtime_options options;
    kiln_status status = kiln_runtime_options_init(&options, NULL);
    options.backend = "opencl";
    options.strict = true;
    status = status == KILN_OK ? kiln_runtime_create(&options, out_runtime, NULL) : status;
    return status == KILN_OK ? kiln_runtime_select(*out_runtime, source, 1, out_device, NULL)
                             : status;
}

kiln_status rig_launch_once(kiln_device *on, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_launch request = {
        .struct_size = sizeof(request), .dims = 1, .global = {64, 1, 1}, .local = {8, 1, 1}};
    kiln_status status = kiln_queue_create(on, &queue, NULL);
    if (status == KILN_OK) {
        status = kiln_queue_launch(queue, program, "k", &request, NULL, NULL);
    }
    if (status == KILN_OK) {
        status = kiln_queue_finish(queue, NULL);
    }
    kiln_queue_destroy(queue);
    return status;
}
