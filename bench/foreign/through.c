/* An OpenCL layer that puts unmodified programs through kiln, as their authors would by calling
 * kiln_opencl_build_program: clBuildProgram for one device builds with the cache in the directory
 * that FOREIGN_CACHE names, and what the program asks of its handle is asked of the program that
 * kiln gave. The cache is destroyed with the last context, or when the process exits.
 * FOREIGN_REPORT names a file that gets one line: compiled, found, built without the cache.
 *
 * For figures only: programs that link units, or build for several devices, go to the driver. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>

#include <inttypes.h>
#include <kiln/opencl.h>
#include <kiln/unstable/counters.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct known_program {
    struct known_program *next;
    cl_program program; /* the handle that the host program has */
    cl_program built;   /* kiln's; NULL until there is one */
    cl_context context;
    char *text;
    unsigned references;
} known_program;

static const cl_icd_dispatch *target;
static cl_icd_dispatch own;
static known_program *programs;
static kiln_cache *cache;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool inside; /* kiln's own calls come through the loader, and here */

static known_program *find_program(cl_program program)
{
    (void)pthread_mutex_lock(&lock);
    known_program *one = programs;
    while (one != NULL && one->program != program) {
        one = one->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return one;
}

static cl_program built_program(cl_program program)
{
    const known_program *known = inside ? NULL : find_program(program);
    return known != NULL && known->built != NULL ? known->built : program;
}

/* --- the cache -------------------------------------------------------------------------------- */

static void leave(void)
{
    uint64_t counters[KILN_COUNTERS] = {0};
    const char *path = getenv("FOREIGN_REPORT");
    if (cache == NULL) {
        return;
    }
    FILE *report = path != NULL ? fopen(path, "a") : NULL;
    inside = true;
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        counters[i] = kiln_cache_counter(cache, i);
    }
    if (report != NULL) {
        (void)fprintf(report, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                      counters[KILN_COUNTER_COMPILES],
                      counters[KILN_COUNTER_HITS_DISK] + counters[KILN_COUNTER_HITS_MEMORY],
                      counters[KILN_COUNTER_BYPASSED]);
        (void)fclose(report);
    }
    kiln_cache_destroy(cache);
    cache = NULL;
    inside = false;
}

/* Again after each wait, up to a bound: LLVM inside the driver registers handlers with each thing
 * that it does for the first time, and those that are registered last run first. */
static void leave_before_driver(void)
{
    static unsigned times;
    if (cache != NULL && times++ < 16) {
        (void)atexit(leave);
    }
}

static void open_cache(void)
{
    kiln_cache_options options = {0};
    if (kiln_cache_options_init(&options, NULL) == KILN_OK) {
        options.root = getenv("FOREIGN_CACHE");
        if (options.root == NULL || kiln_cache_create(&options, &cache, NULL) != KILN_OK) {
            cache = NULL;
        }
    }
}

/* --- programs --------------------------------------------------------------------------------- */

static char *join_texts(cl_uint count, const char **texts, const size_t *lengths)
{
    size_t total = 1;
    for (cl_uint i = 0; i < count; i++) {
        total += lengths != NULL && lengths[i] > 0 ? lengths[i] : strlen(texts[i]);
    }
    char *whole = calloc(1, total);
    size_t used = 0;
    for (cl_uint i = 0; i < count && whole != NULL; i++) {
        const size_t length = lengths != NULL && lengths[i] > 0 ? lengths[i] : strlen(texts[i]);
        memcpy(whole + used, texts[i], length);
        used += length;
    }
    return whole;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *error)
{
    cl_program program = target->clCreateProgramWithSource(context, count, texts, lengths, error);
    known_program *known = program != NULL && !inside ? calloc(1, sizeof(*known)) : NULL;
    if (known != NULL) {
        *known = (known_program){.program = program, .context = context, .references = 1};
        known->text = join_texts(count, texts, lengths);
        (void)pthread_mutex_lock(&lock);
        known->next = programs;
        programs = known;
        (void)pthread_mutex_unlock(&lock);
    }
    return program;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    known_program *known = inside ? NULL : find_program(program);
    cl_device_id device = count > 0 ? devices[0] : NULL;
    if (known == NULL || known->text == NULL || known->built != NULL || count > 1) {
        return target->clBuildProgram(program, count, devices, options, notify, user);
    }
    inside = true;
    if (cache == NULL) {
        open_cache();
    }
    const bool single =
        device != NULL || target->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(device),
                                                   &device, NULL) == CL_SUCCESS;
    const bool done = single && cache != NULL &&
                      kiln_opencl_build_program(cache, known->context, device, known->text, options,
                                                &known->built, NULL) == KILN_OK;
    inside = false;
    leave_before_driver();
    if (!done) { /* its log and its error are the driver's to give */
        return target->clBuildProgram(program, count, devices, options, notify, user);
    }
    if (notify != NULL) {
        notify(program, user);
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain_program(cl_program program)
{
    known_program *known = inside ? NULL : find_program(program);
    if (known != NULL) {
        known->references++;
    }
    return target->clRetainProgram(program);
}

static cl_int CL_API_CALL release_program(cl_program program)
{
    known_program *known = inside ? NULL : find_program(program);
    if (known != NULL && --known->references == 0) {
        (void)pthread_mutex_lock(&lock);
        known_program **at = &programs;
        while (*at != known) {
            at = &(*at)->next;
        }
        *at = known->next;
        (void)pthread_mutex_unlock(&lock);
        if (known->built != NULL) {
            (void)target->clReleaseProgram(known->built);
        }
        free(known->text);
        free(known);
    }
    return target->clReleaseProgram(program);
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *error)
{
    return target->clCreateKernel(built_program(program), name, error);
}

static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint count, cl_kernel *kernels,
                                         cl_uint *out_count)
{
    return target->clCreateKernelsInProgram(built_program(program), count, kernels, out_count);
}

static cl_int CL_API_CALL ask_program(cl_program program, cl_program_info name, size_t size,
                                      void *value, size_t *out_size)
{
    return target->clGetProgramInfo(built_program(program), name, size, value, out_size);
}

static cl_int CL_API_CALL ask_build(cl_program program, cl_device_id device,
                                    cl_program_build_info name, size_t size, void *value,
                                    size_t *out_size)
{
    return target->clGetProgramBuildInfo(built_program(program), device, name, size, value,
                                         out_size);
}

/* --- the end ---------------------------------------------------------------------------------- */

static cl_int CL_API_CALL finish(cl_command_queue queue)
{
    const cl_int code = target->clFinish(queue);
    leave_before_driver();
    return code;
}

static cl_int CL_API_CALL release_queue(cl_command_queue queue)
{
    leave_before_driver();
    return target->clReleaseCommandQueue(queue);
}

static cl_int CL_API_CALL release_context(cl_context context)
{
    bool used = false;
    for (const known_program *one = programs; one != NULL; one = one->next) {
        used = used || one->context == context;
    }
    if (!inside && !used) {
        leave();
    }
    return target->clReleaseContext(context);
}

/* --- the layer -------------------------------------------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                               size_t *size_ret)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char label[] = "kiln foreign, through";
    const bool is_version = name == CL_LAYER_API_VERSION;
    const size_t length = is_version ? sizeof(version) : sizeof(label);
    if ((!is_version && name != CL_LAYER_NAME) || (value != NULL && size < length)) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(value, is_version ? (const void *)&version : (const void *)label, length);
    }
    if (size_ret != NULL) {
        *size_ret = length;
    }
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *dispatch,
                                            cl_uint *count_ret, const cl_icd_dispatch **own_ret)
{
    if (dispatch == NULL || count_ret == NULL || own_ret == NULL ||
        count < sizeof(own) / sizeof(void *)) {
        return CL_INVALID_VALUE;
    }
    target = dispatch;
    own = *dispatch;
    own.clCreateProgramWithSource = create_program;
    own.clBuildProgram = build_program;
    own.clFinish = finish;
    own.clReleaseCommandQueue = release_queue;
    own.clReleaseContext = release_context;
    own.clRetainProgram = retain_program;
    own.clReleaseProgram = release_program;
    own.clCreateKernel = create_kernel;
    own.clCreateKernelsInProgram = create_kernels;
    own.clGetProgramInfo = ask_program;
    own.clGetProgramBuildInfo = ask_build;
    *count_ret = sizeof(own) / sizeof(void *);
    *own_ret = &own;
    return CL_SUCCESS;
}
