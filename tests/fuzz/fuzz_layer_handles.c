/* Any sequence of OpenCL calls, by itself and under the layer, on a driver that knows which of its
 * handles are alive: every code and every answer is the same, and nothing is left behind. Two bytes
 * are a call; the first byte of all chooses the driver's manner. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/layer/handles.h"
#include "base/strbuf.h"
#include "support/strictcl/session.h"
#include "support/strictcl/strictcl.h"

enum { PROGRAMS = 8, KERNELS = 16, CALLS_MAX = 400, RUNS_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const kn_cl_calls *kn_interpose_opencl(const cl_icd_dispatch *target);

/* What an application holds. A program without references is known as long as it has kernels. */
typedef struct application {
    const cl_icd_dispatch *cl;
    kn_strbuf said; /* all that was answered */
    unsigned generation;
    struct {
        cl_program handle;
        cl_uint references, kernels;
    } programs[PROGRAMS];
    struct {
        cl_kernel handle;
        cl_uint references;
        size_t program;
    } kernels[KERNELS];
} application;

static void say(application *app, const char *what, int64_t number)
{
    kn_strbuf_printf(&app->said, "%s %lld\n", what, (long long)number);
}

static void say_bytes(application *app, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        kn_strbuf_printf(&app->said, "%02x", ((const unsigned char *)bytes)[i]);
    }
    kn_strbuf_append_char(&app->said, '\n');
}

/* --- slots ------------------------------------------------------------------------------------ */

static bool find_free_program(const application *app, size_t *out)
{
    for (*out = 0; *out < PROGRAMS; ++*out) {
        if (app->programs[*out].references == 0 && app->programs[*out].kernels == 0) {
            return true;
        }
    }
    return false;
}

static bool find_free_kernel(const application *app, size_t *out)
{
    for (*out = 0; *out < KERNELS; ++*out) {
        if (app->kernels[*out].references == 0) {
            return true;
        }
    }
    return false;
}

static void keep_program(application *app, cl_program handle, cl_int code)
{
    size_t slot = 0;
    say(app, handle != NULL ? "program" : "none", code);
    if (handle == NULL) {
        return;
    }
    if (!find_free_program(app, &slot)) {
        (void)app->cl->clReleaseProgram(handle);
        return;
    }
    app->programs[slot].handle = handle;
    app->programs[slot].references = 1;
}

static void keep_kernel(application *app, size_t program, cl_kernel handle)
{
    size_t slot = 0;
    if (!find_free_kernel(app, &slot)) {
        (void)app->cl->clReleaseKernel(handle);
        return;
    }
    app->kernels[slot].handle = handle;
    app->kernels[slot].references = 1;
    app->kernels[slot].program = program;
    app->programs[program].kernels++;
}

/* --- calls that make -------------------------------------------------------------------------- */

static void CL_CALLBACK count_call(cl_program program, void *user)
{
    (void)program;
    ++*(unsigned *)user;
}

static void make_program(application *app, unsigned how)
{
    static const char *const texts[] = {
        "__kernel add(int *out) {} __kernel scale(int *out) {}", "warn __kernel add(int *out) {}",
        "broken __kernel add(int *out) {}", "loose __kernel other(int *out) {}"};
    static const unsigned char binary[] = "STRICTE__kernel add(int *out) {}";
    const char *text = texts[how % 4];
    const size_t length = sizeof(binary) - 1;
    const unsigned char *bytes = binary;
    const cl_device_id device = strictcl_device(0);
    cl_int code = 77, status = 77;
    cl_program program = NULL;
    if (how % 16 < 12) {
        program = app->cl->clCreateProgramWithSource(strictcl_context(), 1, &text, NULL, &code);
    } else if (how % 16 < 14) {
        program = app->cl->clCreateProgramWithIL(strictcl_context(), text, strlen(text), &code);
    } else {
        program = app->cl->clCreateProgramWithBinary(strictcl_context(), 1, &device, &length,
                                                     &bytes, &status, &code);
        say(app, "status", status);
    }
    keep_program(app, program, code);
}

static void build(application *app, cl_program program, unsigned how)
{
    static const char *const words[] = {"", "-w", "-bad", "-cl-kernel-arg-info"};
    const cl_device_id devices[STRICTCL_DEVICES] = {strictcl_device(0), strictcl_device(1)};
    char options[64];
    const unsigned chosen =
        how >> 2 & 3; /* all; the first; the second; none where some should be */
    const cl_uint count = chosen == 0 ? 0 : 1;
    const cl_device_id *list = chosen == 1 ? devices : chosen == 2 ? devices + 1 : NULL;
    unsigned calls = 0;
    kn_cl_notify *notify = (how & 16) != 0 ? count_call : NULL;
    void *user = notify != NULL ? &calls : NULL;
    cl_int code = 77;
    (void)snprintf(options, sizeof(options), "%s -DG=%08u", words[how & 3], app->generation);
    if ((how & 32) == 0) {
        code = app->cl->clBuildProgram(program, count, list, options, notify, user);
    } else {
        const cl_program header = app->programs[how >> 6].handle;
        const bool headed = (how & 64) != 0 && app->programs[how >> 6].references > 0;
        const char *name = "shared.h";
        code =
            app->cl->clCompileProgram(program, count, list, options, headed,
                                      headed ? &header : NULL, headed ? &name : NULL, notify, user);
    }
    say(app, "build", code);
    say(app, "callbacks", calls);
}

static void link_two(application *app, unsigned how)
{
    const cl_program inputs[2] = {app->programs[how % PROGRAMS].handle,
                                  app->programs[how / PROGRAMS % PROGRAMS].handle};
    const cl_device_id device = strictcl_device(0);
    unsigned calls = 0;
    const bool notified = (how & 64) != 0, one = (how & 128) != 0;
    cl_int code = 77;
    if (app->programs[how % PROGRAMS].references > 0 &&
        app->programs[how / PROGRAMS % PROGRAMS].references > 0) {
        cl_program program =
            app->cl->clLinkProgram(strictcl_context(), one, one ? &device : NULL, "", 2, inputs,
                                   notified ? count_call : NULL, notified ? &calls : NULL, &code);
        keep_program(app, program, code);
        say(app, "callbacks", calls);
    }
}

static void make_kernels(application *app, size_t program, unsigned how)
{
    static const char *const names[] = {"add", "scale", "none"};
    cl_program handle = app->programs[program].handle;
    cl_kernel all[4] = {NULL};
    cl_uint count = 77;
    cl_int code = 77;
    if (how % 4 < 3) {
        cl_kernel kernel = app->cl->clCreateKernel(handle, names[how % 4], &code);
        say(app, kernel != NULL ? "kernel" : "none", code);
        if (kernel != NULL) {
            keep_kernel(app, program, kernel);
        }
        return;
    }
    const cl_uint room = (how & 4) != 0 ? 4 : 1;
    code = app->cl->clCreateKernelsInProgram(handle, room, (how & 8) != 0 ? NULL : all, &count);
    say(app, "kernels", code);
    say(app, "count", count);
    for (size_t i = 0; code == CL_SUCCESS && i < 4 && all[i] != NULL; i++) {
        keep_kernel(app, program, all[i]);
    }
}

/* --- references ------------------------------------------------------------------------------- */

static void change_program(application *app, size_t program, bool more)
{
    const bool of_kernels = app->programs[program].kernels > 0;
    if (more && (app->programs[program].references > 0 || of_kernels)) {
        say(app, "retain", app->cl->clRetainProgram(app->programs[program].handle));
        app->programs[program].references++;
    } else if (!more && app->programs[program].references > 0) {
        app->programs[program].references--;
        say(app, "release", app->cl->clReleaseProgram(app->programs[program].handle));
    }
}

static void change_kernel(application *app, size_t kernel, unsigned how)
{
    cl_int code = 77;
    if (app->kernels[kernel].references == 0) {
        return;
    }
    if (how % 3 == 0) {
        say(app, "retain kernel", app->cl->clRetainKernel(app->kernels[kernel].handle));
        app->kernels[kernel].references++;
    } else if (how % 3 == 1) {
        say(app, "release kernel", app->cl->clReleaseKernel(app->kernels[kernel].handle));
        if (--app->kernels[kernel].references == 0) {
            app->programs[app->kernels[kernel].program].kernels--;
        }
    } else {
        cl_kernel clone = app->cl->clCloneKernel(app->kernels[kernel].handle, &code);
        say(app, clone != NULL ? "clone" : "none", code);
        if (clone != NULL) {
            keep_kernel(app, app->kernels[kernel].program, clone);
        }
    }
}

/* --- questions -------------------------------------------------------------------------------- */

static void say_answer(application *app, cl_int code, size_t length, const void *value)
{
    say(app, "answer", code);
    if (code == CL_SUCCESS) {
        say(app, "length", (int64_t)length);
        say_bytes(app, value, length < 512 ? length : 0);
    }
}

static void ask_program(application *app, cl_program program, unsigned how)
{
    static const cl_program_info names[] = {
        CL_PROGRAM_REFERENCE_COUNT, CL_PROGRAM_NUM_DEVICES, CL_PROGRAM_SOURCE,       CL_PROGRAM_IL,
        CL_PROGRAM_BINARY_SIZES,    CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES, 0x9999};
    static const cl_program_build_info builds[] = {CL_PROGRAM_BUILD_STATUS,
                                                   CL_PROGRAM_BUILD_OPTIONS, CL_PROGRAM_BUILD_LOG,
                                                   CL_PROGRAM_BINARY_TYPE};
    unsigned char value[512] = {0};
    unsigned char *binaries[STRICTCL_DEVICES] = {value, value + 256};
    const size_t size = (how & 16) != 0 ? sizeof(value) : 1;
    size_t length = 0;
    cl_int code = 77;
    if ((how & 32) != 0) {
        code = app->cl->clGetProgramBuildInfo(program, strictcl_device(how >> 7), builds[how & 3],
                                              size, value, &length);
    } else if ((how & 128) != 0) {
        code = app->cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(binaries),
                                         (void *)binaries, &length);
        length = code == CL_SUCCESS ? sizeof(value) : length;
    } else {
        code = app->cl->clGetProgramInfo(program, names[how & 7], size,
                                         (how & 64) != 0 ? NULL : value, &length);
    }
    say_answer(app, code, length, value);
}

static void ask_kernel(application *app, size_t kernel, unsigned how)
{
    static const cl_kernel_info names[] = {CL_KERNEL_FUNCTION_NAME, CL_KERNEL_ATTRIBUTES,
                                           CL_KERNEL_REFERENCE_COUNT, 0x9999};
    cl_kernel handle = app->kernels[kernel].handle;
    unsigned char value[512] = {0};
    cl_program of = NULL;
    size_t length = 0;
    cl_int code = 77;
    switch (how % 4) {
    case 0:
        code = app->cl->clGetKernelInfo(handle, names[how >> 2 & 3], sizeof(value), value, &length);
        break;
    case 1:
        code = app->cl->clGetKernelArgInfo(handle, how >> 2 & 1, CL_KERNEL_ARG_NAME, sizeof(value),
                                           value, &length);
        break;
    case 2:
        code = app->cl->clGetKernelWorkGroupInfo(
            handle, (how & 4) != 0 ? NULL : strictcl_device(how >> 3),
            (how & 16) != 0 ? CL_KERNEL_WORK_GROUP_SIZE : CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
            sizeof(value), value, &length);
        break;
    default:
        code = app->cl->clGetKernelInfo(handle, CL_KERNEL_PROGRAM, sizeof(cl_program), (void *)&of,
                                        NULL);
        say(app, "its own", of == app->programs[app->kernels[kernel].program].handle);
    }
    say_answer(app, code, length, value);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* A handle that is not a program's: none, or a kernel's. */
static void call_stranger(application *app, unsigned how)
{
    cl_program stranger = NULL;
    cl_kernel kernel = app->kernels[how % KERNELS].handle;
    if ((how & 16) != 0 && app->kernels[how % KERNELS].references > 0) {
        memcpy((void *)&stranger, (const void *)&kernel, sizeof(stranger));
    }
    build(app, stranger, how);
    ask_program(app, stranger, how);
    say(app, "retain", app->cl->clRetainProgram(stranger));
    say(app, "release", app->cl->clReleaseProgram(stranger));
    say(app, "kernel", app->cl->clCreateKernel(stranger, "add", NULL) != NULL);
    say(app, "kernels", app->cl->clReleaseKernel(NULL));
}

static void call(application *app, unsigned what, unsigned how)
{
    const size_t program = what / 8 % PROGRAMS, kernel = what / 8 % KERNELS;
    const bool held = app->programs[program].references > 0;
    say(app, "call", what);
    switch (what % 8) {
    case 0:
        make_program(app, how);
        break;
    case 1:
        if (held) {
            build(app, app->programs[program].handle, how);
        }
        break;
    case 2:
        link_two(app, how);
        break;
    case 3:
        if (held) {
            make_kernels(app, program, how);
        }
        break;
    case 4:
        change_program(app, program, how % 3 == 0);
        break;
    case 5:
        change_kernel(app, kernel, how);
        break;
    case 6:
        if (held || app->programs[program].kernels > 0) {
            ask_program(app, app->programs[program].handle, how);
        }
        break;
    default:
        if (app->kernels[kernel].references > 0) {
            ask_kernel(app, kernel, how);
        } else {
            call_stranger(app, how);
        }
    }
}

static void release_all(application *app)
{
    for (size_t i = 0; i < KERNELS; i++) {
        while (app->kernels[i].references > 0) {
            change_kernel(app, i, 1);
        }
    }
    for (size_t i = 0; i < PROGRAMS; i++) {
        while (app->programs[i].references > 0) {
            change_program(app, i, false);
        }
    }
}

static kn_strbuf run(const cl_icd_dispatch *cl, const strictcl_manner *manner, unsigned generation,
                     const uint8_t *data, size_t size)
{
    application app = {.cl = cl, .generation = generation};
    kn_strbuf_init(&app.said, 0);
    strictcl_open(manner);
    for (size_t i = 0; i + 1 < size && i < (size_t)2 * CALLS_MAX; i += 2) {
        call(&app, data[i], data[i + 1]);
    }
    release_all(&app);
    say(&app, "alive", (int64_t)strictcl_count().alive);
    say(&app, "strangers", (int64_t)strictcl_count().strangers);
    return app.said;
}

/* The driver's table with the layer's functions in it, as a loader makes it. */
static void enter_layer(cl_icd_dispatch *table)
{
    const kn_cl_calls *calls = kn_interpose_opencl(strictcl_dispatch());
    *table = *strictcl_dispatch();
#define X(result, name, parameters, arguments)                                                     \
    if (table->name != NULL) {                                                                     \
        table->name = calls->name;                                                                 \
    }
#include "apis/opencl/layer/calls.def"
#undef X
}

static void compare(const kn_strbuf *plain, const kn_strbuf *layered)
{
    if (!kn_strbuf_ok(plain) || !kn_strbuf_ok(layered)) {
        return;
    }
    const char *a = kn_strbuf_text(plain), *b = kn_strbuf_text(layered);
    size_t same = 0;
    while (a[same] != '\0' && a[same] == b[same]) {
        same++;
    }
    if (a[same] != b[same]) {
        const size_t before = same < 160 ? same : 160;
        (void)fprintf(stderr,
                      "...%.*s\n=== the driver alone:\n%.80s\n=== under the layer:\n%.80s\n",
                      (int)before, a + same - before, a + same, b + same);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cl_icd_dispatch layer;
    static unsigned runs;
    if (size < 3) {
        return 0;
    }
    if (runs % RUNS_MAX == 0) { /* the cache does not grow without an end */
        session_open(NULL);
        enter_layer(&layer);
    }
    runs++;
    const uint8_t how = data[0];
    const strictcl_manner manner = {.devices = 1 + (how & 1u),
                                    .is_pocl = (how & 2u) != 0,
                                    .counts_kernels = (how & 4u) != 0,
                                    .gives_failed_link = (how & 8u) != 0,
                                    .refuses_binaries = (how & 16u) != 0};
    const unsigned generation = (how & 32u) != 0 ? runs : 0;
    kn_strbuf plain = run(strictcl_dispatch(), &manner, generation, data + 1, size - 1);
    for (int again = 0; again < 2; again++) { /* with an empty cache, and with what is there then */
        kn_strbuf layered = run(&layer, &manner, generation, data + 1, size - 1);
        compare(&plain, &layered);
        kn_strbuf_deinit(&layered);
        if (kn_handles_next(NULL) != NULL) {
            abort();
        }
    }
    kn_strbuf_deinit(&plain);
    return 0;
}
