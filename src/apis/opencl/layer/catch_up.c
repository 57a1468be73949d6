/* See build.h: what the cache answered for is built by the driver after all, since something is
 * asked that only the driver can answer. */
#include "apis/opencl/layer/build.h"

#include <stdlib.h>

static void release_headers(cl_program *headers, size_t count)
{
    for (size_t i = 0; headers != NULL && i < count; i++) {
        if (headers[i] != NULL) {
            (void)kn_layer_target()->clReleaseProgram(headers[i]);
        }
    }
    free((void *)headers);
}

static void compile_after_all(const kn_layer_program *program, const kn_opencl_wish *wish)
{
    const cl_icd_dispatch *target = kn_layer_target();
    const kn_opencl_text *text = &wish->texts[0];
    const size_t count = text->header_count;
    cl_program *headers = calloc(count + 1, sizeof(cl_program));
    const char **names = calloc(count + 1, sizeof(*names));
    bool made = headers != NULL && names != NULL;
    for (size_t i = 0; made && i < count; i++) {
        const char *header = text->headers[i].text;
        names[i] = text->headers[i].name;
        headers[i] = target->clCreateProgramWithSource(wish->context, 1, &header,
                                                       &text->headers[i].length, NULL);
        made = headers[i] != NULL;
    }
    if (made) {
        /* What it says is in the program, for whom it concerns. */
        (void)target->clCompileProgram(program->handle, (cl_uint)wish->device_count, wish->devices,
                                       text->options, (cl_uint)count, count > 0 ? headers : NULL,
                                       count > 0 ? names : NULL, NULL, NULL);
    }
    release_headers(headers, count);
    free((void *)names);
}

bool kn_layer_build_catch_up(kn_layer_program *program)
{
    kn_layer_build *build = program->build;
    if (build == NULL || program->plain) {
        return true;
    }
    if (kn_handles_has_kernels(program)) {
        return false;
    }
    const kn_opencl_wish *wish = build->wish;
    program->plain = true;
    if (build->deferred) {
        compile_after_all(program, wish);
        build->deferred = false;
        return true;
    }
    (void)kn_layer_target()->clBuildProgram(program->handle, (cl_uint)wish->device_count,
                                            wish->devices, wish->texts[0].options, NULL, NULL);
    kn_layer_build_forget(program);
    return true;
}
