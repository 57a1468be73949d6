/* See object.h and strictcl.h: programs made, built, compiled and linked. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/strictcl/object.h"

static cl_program answer_program(cl_program program, cl_int *code)
{
    if (code != NULL) {
        *code = program != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    }
    return program;
}

/* --- made ------------------------------------------------------------------------------------- */

static cl_program CL_API_CALL create_with_source(cl_context context, cl_uint count,
                                                 const char **strings, const size_t *lengths,
                                                 cl_int *code)
{
    char text[STRICTCL_TEXT] = "";
    size_t length = 0;
    (void)context;
    for (cl_uint i = 0; i < count; i++) {
        const size_t part = lengths != NULL && lengths[i] > 0 ? lengths[i] : strlen(strings[i]);
        if (part < sizeof(text) - length) {
            memcpy(text + length, strings[i], part);
            length += part;
        }
    }
    strictcl_lock();
    cl_program program = strictcl_new_program(MADE_OF_SOURCE, text, length);
    strictcl_unlock();
    return answer_program(program, code);
}

static cl_program CL_API_CALL create_with_il(cl_context context, const void *il, size_t length,
                                             cl_int *code)
{
    (void)context;
    strictcl_lock();
    cl_program program = strictcl_new_program(MADE_OF_IL, il, length);
    strictcl_counted()->il++;
    strictcl_unlock();
    return answer_program(program, code);
}

static bool is_binary(const unsigned char *bytes, size_t length)
{
    return length > sizeof(STRICTCL_BINARY) && !strictcl_how()->refuses_binaries &&
           memcmp(bytes, STRICTCL_BINARY, sizeof(STRICTCL_BINARY) - 1) == 0;
}

/* Without the NULs at its end that NVIDIA's have. */
static size_t length_of_text(const unsigned char *text, size_t length)
{
    while (strictcl_how()->is_nvidia && length > 0 && text[length - 1] == '\0') {
        length--;
    }
    return length;
}

/* How many bytes of machine code's mark are in front of what is a binary else. */
static size_t find_code(const unsigned char *bytes, size_t length)
{
    static const char mark[] = "\177ELF";
    const size_t size = sizeof(mark) - 1;
    return strictcl_how()->is_nvidia && length > size && memcmp(bytes, mark, size) == 0 ? size : 0;
}

static cl_program CL_API_CALL create_with_binary(cl_context context, cl_uint count,
                                                 const cl_device_id *devices, const size_t *lengths,
                                                 const unsigned char **binaries, cl_int *statuses,
                                                 cl_int *code)
{
    const size_t skipped = count == 1 ? find_code(binaries[0], lengths[0]) : 0;
    const size_t head = skipped + sizeof(STRICTCL_BINARY); /* and a letter for the type */
    bool sound = count > 0;
    (void)context;
    (void)devices;
    for (cl_uint i = 0; i < count; i++) {
        const bool one = is_binary(binaries[i] + skipped, lengths[i] - skipped);
        if (statuses != NULL) {
            statuses[i] = one ? CL_SUCCESS : CL_INVALID_BINARY;
        }
        sound = sound && one;
    }
    if (!sound) {
        *code = CL_INVALID_BINARY;
        return NULL;
    }
    strictcl_lock();
    cl_program program = strictcl_new_program(
        MADE_OF_BINARY, binaries[0] + head, length_of_text(binaries[0] + head, lengths[0] - head));
    for (unsigned i = 0; program != NULL && i < STRICTCL_DEVICES; i++) {
        program->built[i].type = binaries[0][head - 1] == 'C'
                                     ? CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT
                                     : CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
    }
    strictcl_counted()->loaded++;
    strictcl_counted()->code += skipped > 0;
    strictcl_unlock();
    return answer_program(program, code);
}

static cl_int CL_API_CALL retain_program(cl_program program)
{
    strictcl_lock();
    const bool known = strictcl_has_program(program);
    if (known) {
        program->references++;
    }
    strictcl_unlock();
    return known ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

static cl_int CL_API_CALL release_program(cl_program program)
{
    strictcl_lock();
    const bool known = strictcl_has_program(program) && program->references > 0;
    if (known) {
        program->references--;
        strictcl_drop_program(program);
    }
    strictcl_unlock();
    return known ? CL_SUCCESS : CL_INVALID_PROGRAM;
}

/* --- callbacks -------------------------------------------------------------------------------- */

typedef struct late_call {
    cl_program program;
    kn_cl_notify *notify;
    void *user;
} late_call;

enum { LATE_MAX = 4096 };
static struct {
    pthread_mutex_t lock;
    pthread_t threads[LATE_MAX];
    size_t count;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *call_late(void *user)
{
    late_call *call = (late_call *)user;
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    call->notify(call->program, call->user);
    free(call);
    return NULL;
}

void strictcl_settle(void)
{
    (void)pthread_mutex_lock(&late.lock);
    for (size_t i = 0; i < late.count; i++) {
        (void)pthread_join(late.threads[i], NULL);
    }
    late.count = 0;
    (void)pthread_mutex_unlock(&late.lock);
}

static bool start_late(const late_call *call)
{
    bool started = false;
    late_call *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return false;
    }
    *copy = *call;
    (void)pthread_mutex_lock(&late.lock);
    started = late.count < LATE_MAX &&
              pthread_create(&late.threads[late.count], NULL, call_late, copy) == 0;
    late.count += started;
    (void)pthread_mutex_unlock(&late.lock);
    if (!started) {
        free(copy);
    }
    return started;
}

static void call_back(const late_call *call, bool failed)
{
    const strictcl_manner *how = strictcl_how();
    const bool is_late = how->calls_back_late && (!failed || how->fails_late);
    if (call->notify != NULL && (!is_late || !start_late(call))) {
        call->notify(call->program, call->user);
    }
}

/* --- built ------------------------------------------------------------------------------------ */

typedef struct build_call {
    cl_program program;
    cl_uint count;
    const cl_device_id *devices;
    const char *options;
    kn_cl_notify *notify;
    void *user;
} build_call;

static cl_int check_devices(const build_call *call)
{
    if ((call->count == 0) != (call->devices == NULL) ||
        (call->notify == NULL && call->user != NULL)) {
        return CL_INVALID_VALUE;
    }
    for (cl_uint i = 0; i < call->count; i++) {
        if (strictcl_number(call->devices[i]) == STRICTCL_DEVICES) {
            return CL_INVALID_DEVICE;
        }
    }
    return CL_SUCCESS;
}

static bool means_device(const build_call *call, unsigned device)
{
    bool meant = call->count == 0;
    for (cl_uint i = 0; i < call->count; i++) {
        meant = meant || strictcl_number(call->devices[i]) == device;
    }
    return meant;
}

static void set_built(const build_call *call, cl_build_status status, cl_program_binary_type type)
{
    for (unsigned i = 0; i < strictcl_how()->devices; i++) {
        if (means_device(call, i)) {
            strictcl_built *built = &call->program->built[i];
            built->status = status;
            built->type = status == CL_BUILD_SUCCESS ? type : CL_PROGRAM_BINARY_TYPE_NONE;
            (void)snprintf(built->options, sizeof(built->options), "%s",
                           call->options != NULL && call->program->made != MADE_OF_BINARY
                               ? call->options
                               : "");
        }
    }
}

/* What a driver looks at before it begins. With the lock held. */
static cl_int check_build(const build_call *call, bool compile)
{
    const struct _cl_program *program = call->program;
    if (!strictcl_has_program(call->program)) {
        return CL_INVALID_PROGRAM;
    }
    const cl_int code = check_devices(call);
    const bool has_text = program->made == MADE_OF_SOURCE || program->made == MADE_OF_IL;
    if (code == CL_SUCCESS && (program->kernels > 0 || (compile && !has_text))) {
        return CL_INVALID_OPERATION;
    }
    if (code == CL_SUCCESS && call->options != NULL && strstr(call->options, "-bad") != NULL) {
        return compile ? CL_INVALID_COMPILER_OPTIONS : CL_INVALID_BUILD_OPTIONS;
    }
    return code;
}

static bool build_whole(const build_call *call, bool compile)
{
    const struct _cl_program *program = call->program;
    const bool broken = strstr(program->text, "broken") != NULL;
    cl_program_binary_type type =
        compile ? CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT : CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
    if (program->made == MADE_OF_BINARY && program->built[0].type != CL_PROGRAM_BINARY_TYPE_NONE) {
        type = program->built[0].type;
    }
    strictcl_counted()->compiled += program->made != MADE_OF_BINARY;
    if (program->made != MADE_OF_BINARY && strictcl_how()->build_ms > 0) {
        (void)nanosleep(
            &(struct timespec){.tv_sec = strictcl_how()->build_ms / 1000,
                               .tv_nsec = (long)(strictcl_how()->build_ms % 1000) * 1000000},
            NULL);
    }
    set_built(call, broken ? CL_BUILD_ERROR : CL_BUILD_SUCCESS, type);
    return !broken;
}

static cl_int run_build(const build_call *call, bool compile)
{
    strictcl_lock();
    const cl_int refused = check_build(call, compile);
    const bool built = refused == CL_SUCCESS && build_whole(call, compile);
    strictcl_unlock();
    if (refused != CL_SUCCESS) {
        return refused;
    }
    call_back(&(late_call){call->program, call->notify, call->user}, !built);
    return built ? CL_SUCCESS : compile ? CL_COMPILE_PROGRAM_FAILURE : CL_BUILD_PROGRAM_FAILURE;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        kn_cl_notify *notify, void *user)
{
    return run_build(&(build_call){program, count, devices, options, notify, user}, false);
}

static cl_int CL_API_CALL compile_program(cl_program program, cl_uint count,
                                          const cl_device_id *devices, const char *options,
                                          cl_uint header_count, const cl_program *headers,
                                          const char **names, kn_cl_notify *notify, void *user)
{
    cl_int code = (header_count == 0) != (headers == NULL) || (headers == NULL) != (names == NULL)
                      ? CL_INVALID_VALUE
                      : CL_SUCCESS;
    strictcl_lock();
    for (cl_uint i = 0; code == CL_SUCCESS && i < header_count; i++) {
        code = strictcl_has_program(headers[i]) ? CL_SUCCESS : CL_INVALID_PROGRAM;
    }
    strictcl_unlock();
    return code == CL_SUCCESS
               ? run_build(&(build_call){program, count, devices, options, notify, user}, true)
               : code;
}

/* --- linked ----------------------------------------------------------------------------------- */

static cl_int join_inputs(const build_call *call, cl_uint count, const cl_program *programs,
                          char text[STRICTCL_TEXT])
{
    size_t length = 0;
    cl_int code = count == 0 || programs == NULL ? CL_INVALID_VALUE : check_devices(call);
    for (cl_uint i = 0; code == CL_SUCCESS && i < count; i++) {
        cl_program input = programs[i];
        if (!strictcl_has_program(input)) {
            return CL_INVALID_PROGRAM;
        }
        for (unsigned k = 0; k < strictcl_how()->devices; k++) {
            if (means_device(call, k) &&
                (input->built[k].status != CL_BUILD_SUCCESS ||
                 input->built[k].type != CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT)) {
                return CL_INVALID_OPERATION;
            }
        }
        if (input->length + 1 < STRICTCL_TEXT - length) {
            memcpy(text + length, input->text, input->length);
            length += input->length;
        }
    }
    return code;
}

static cl_program CL_API_CALL link_program(cl_context context, cl_uint count,
                                           const cl_device_id *devices, const char *options,
                                           cl_uint program_count, const cl_program *programs,
                                           kn_cl_notify *notify, void *user, cl_int *out_code)
{
    char text[STRICTCL_TEXT] = "";
    build_call call = {NULL, count, devices, options, notify, user};
    (void)context;
    strictcl_lock();
    cl_int code = join_inputs(&call, program_count, programs, text);
    if (code == CL_SUCCESS && options != NULL && strstr(options, "-bad") != NULL) {
        code = CL_INVALID_LINKER_OPTIONS;
    } else if (code == CL_SUCCESS) {
        const bool loose = strstr(text, "loose") != NULL;
        code = loose ? CL_LINK_PROGRAM_FAILURE : CL_SUCCESS;
        if (!loose || strictcl_how()->gives_failed_link) {
            call.program = strictcl_new_program(MADE_BY_LINK, text, strlen(text));
            strictcl_counted()->linked++;
        }
        if (call.program != NULL) {
            set_built(&call, loose ? CL_BUILD_ERROR : CL_BUILD_SUCCESS,
                      CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
        }
    }
    strictcl_unlock();
    if (call.program != NULL) {
        call_back(&(late_call){call.program, notify, user}, code != CL_SUCCESS);
    }
    if (out_code != NULL) {
        *out_code = code;
    }
    return call.program;
}

void strictcl_add_programs(cl_icd_dispatch *table)
{
    table->clCreateProgramWithSource = create_with_source;
    table->clCreateProgramWithIL = create_with_il;
    table->clCreateProgramWithBinary = create_with_binary;
    table->clRetainProgram = retain_program;
    table->clReleaseProgram = release_program;
    table->clBuildProgram = build_program;
    table->clCompileProgram = compile_program;
    table->clLinkProgram = link_program;
}
