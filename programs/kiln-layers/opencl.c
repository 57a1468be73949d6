/* libkiln-opencl.so: the layer that an OpenCL loader opens ($OPENCL_LAYERS, /etc/OpenCL/layers). It
 * links libc alone; the core, which answers from the cache, is opened when the program makes its
 * first OpenCL program. Where it is unavailable the driver is called; with KILN_DISABLE the loader
 * is refused, and leaves the layer out. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/layer/api.h"
#include "kiln-interpose/enter.h"

#define EXPORT __attribute__((visibility("default")))
#define LAYER_NAME "kiln"

static struct {
    pthread_mutex_t lock;   /* of opening the core */
    bool opened;            /* or it was tried */
    cl_icd_dispatch target; /* as far as the loader has it */
    cl_icd_dispatch own;
    _Atomic(const kn_cl_calls *) core; /* NULL: not opened, or not available */
} layer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the core --------------------------------------------------------------------------------- */

/* LIBEXEC/opencl/1/libkiln-opencl.so and LIBEXEC/libkiln-interpose.so. */
static void open_layer_core(void)
{
    union {
        void *object;
        kn_interpose_opencl_fn *function;
    } entry = {kn_enter_core(KN_INTERPOSE_OPENCL)};
    if (entry.object != NULL) {
        atomic_store(&layer.core, entry.function(&layer.target));
    }
}

/* Nothing is known of programs before the first is made: until then the driver is called. */
static bool makes_program(const char *name)
{
    return strncmp(name, "clCreateProgram", sizeof("clCreateProgram") - 1) == 0;
}

static const kn_cl_calls *use_core(const char *name)
{
    if (makes_program(name)) {
        (void)pthread_mutex_lock(&layer.lock);
        if (!layer.opened) {
            layer.opened = true;
            open_layer_core();
        }
        (void)pthread_mutex_unlock(&layer.lock);
    }
    return atomic_load_explicit(&layer.core, memory_order_acquire);
}

#define X(result, name, parameters, arguments)                                                     \
    static result CL_API_CALL front_##name parameters                                              \
    {                                                                                              \
        const kn_cl_calls *core = use_core(#name);                                                 \
        return core != NULL ? core->name arguments : layer.target.name arguments;                  \
    }
#include "apis/opencl/layer/calls.def"
#undef X

/* --- programs that keep binaries -------------------------------------------------------------- */

static int match_pyopencl(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    *(bool *)user = info->dlpi_name != NULL && strstr(info->dlpi_name, "/pyopencl/") != NULL;
    return *(bool *)user;
}

static void report_binary(void)
{
    bool is_pyopencl = false;
    (void)dl_iterate_phdr(match_pyopencl, &is_pyopencl);
    kn_enter_report("binary\tloaded", is_pyopencl ? "pyopencl" : "", "");
}

/* In the table only where a report is asked for: `kiln exec --stats` says then why kiln was not
 * asked for a program that was compiled in an earlier process. */
static cl_program CL_API_CALL call_create_binary(cl_context context, cl_uint count,
                                                 const cl_device_id *devices, const size_t *lengths,
                                                 const unsigned char **binaries, cl_int *status,
                                                 cl_int *code)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, report_binary);
    return layer.target.clCreateProgramWithBinary(context, count, devices, lengths, binaries,
                                                  status, code);
}

/* --- what a loader calls ---------------------------------------------------------------------- */

EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                         size_t *out_size)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const bool is_version = name == CL_LAYER_API_VERSION;
    const void *answer = is_version ? (const void *)&version : LAYER_NAME;
    const size_t length = is_version ? sizeof(version) : sizeof(LAYER_NAME);
    if ((!is_version && name != CL_LAYER_NAME) || (value != NULL && size < length)) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(value, answer, length);
    }
    if (out_size != NULL) {
        *out_size = length;
    }
    return CL_SUCCESS;
}

static cl_int init_layer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *out_entries,
                         const cl_icd_dispatch **out_dispatch)
{
    const size_t known = sizeof(layer.target) / sizeof(void *);
    /* A second loader in the process goes on without the layer, whose target is the first's. */
    if (target == NULL || out_entries == NULL || out_dispatch == NULL || kn_is_disabled() ||
        layer.own.clGetPlatformIDs != NULL) {
        return CL_INVALID_VALUE;
    }
    const size_t count = entries < known ? entries : known;
    memcpy((void *)&layer.target, (const void *)target, count * sizeof(void *));
    layer.own = layer.target;
#define X(result, name, parameters, arguments)                                                     \
    if (layer.target.name != NULL) {                                                               \
        layer.own.name = front_##name;                                                             \
    }
#include "apis/opencl/layer/calls.def"
#undef X
    const char *report = getenv("KILN_EXEC_REPORT");
    if (layer.target.clCreateProgramWithBinary != NULL && report != NULL && report[0] == '/') {
        layer.own.clCreateProgramWithBinary = call_create_binary;
    }
    *out_entries = (cl_uint)count;
    *out_dispatch = &layer.own;
    return CL_SUCCESS;
}

/* Makes the library that holds it stay in the process. */
static void keep_library(const void *address)
{
    Dl_info info;
    if (address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL) {
        (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    }
}

/* A loader that calls this one does not say when it is closed. Its functions are called until the
 * process ends, so it stays. */
EXPORT cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
                                      cl_uint *out_entries, const cl_icd_dispatch **out_dispatch)
{
    const cl_int code = init_layer(entries, target, out_entries, out_dispatch);
    if (code == CL_SUCCESS) {
        const void *function = NULL;
        memcpy((void *)&function, (const void *)&layer.target.clGetPlatformIDs, sizeof(function));
        keep_library(target);
        keep_library(function);
    }
    return code;
}

/* What Khronos' loader of 2026 asks for in the place of clInitLayer. No property is known. */
EXPORT cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch *target,
                                                    cl_uint *out_entries,
                                                    const cl_icd_dispatch **out_dispatch,
                                                    const void *properties);
cl_int CL_API_CALL clInitLayerWithProperties(cl_uint entries, const cl_icd_dispatch *target,
                                             cl_uint *out_entries,
                                             const cl_icd_dispatch **out_dispatch,
                                             const void *properties)
{
    (void)properties;
    return init_layer(entries, target, out_entries, out_dispatch);
}

/* Called when the loader is closed, in the middle of the process or at its end. The core stays. */
EXPORT cl_int CL_API_CALL clDeinitLayer(void);
cl_int CL_API_CALL clDeinitLayer(void)
{
    const kn_cl_calls *core = atomic_exchange(&layer.core, NULL);
    if (core != NULL) {
        core->leave();
    }
    layer.opened = false;
    layer.own.clGetPlatformIDs = NULL; /* a loader may come again */
    return CL_SUCCESS;
}
