/* An opened device, and what HIP does in ways of its own where CUDA and HIP are alike otherwise:
 * the thread's device is a number that is set and set back. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/code_object.h"
#include "apis/hip/backend/instance.h"
#include "apis/hip/backend/metadata.h"
#include "base/diag.h"
#include "sys/process.h"

typedef struct hip_device {
    kn_gpu_device base; /* first */
    kn_hip *hip;
    kn_hip_target target;
} hip_device;

static const kn_hip *hip_of(const kn_gpu_device *device)
{
    return ((const hip_device *)device)->hip;
}

static kiln_status enter_device(const kn_gpu_device *device, int *out_before, kiln_diag *diag)
{
    const kn_hip *hip = hip_of(device);
    if (hip->process != kn_process_id()) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "create the runtime in the child", "hip",
                             "HIP was initialised before fork() and cannot be used in the child");
    }
    int result = hip->driver.hipGetDevice(out_before);
    if (result == HIP_SUCCESS && *out_before != device->ordinal) {
        result = hip->driver.hipSetDevice(device->ordinal);
    }
    return result == HIP_SUCCESS ? KILN_OK : kn_hip_fail(hip, result, "hipSetDevice", diag);
}

static void leave_device(const kn_gpu_device *device, int before)
{
    if (before != device->ordinal) {
        (void)hip_of(device)->driver.hipSetDevice(before);
    }
}

static kiln_status fail_on_device(const kn_gpu_device *device, int result, const char *what,
                                  kiln_diag *diag)
{
    return kn_hip_fail(hip_of(device), result, what, diag);
}

/* HIP has no fill of such patterns: the first is written by words, and what there is is copied
 * behind itself, twice as much each time. */
static int fill_words(const kn_gpu_device *device, uint64_t to, const uint32_t *words,
                      size_t word_count, size_t count, void *stream)
{
    const size_t size = 4 * word_count;
    int result = HIP_SUCCESS;
    for (size_t i = 0; i < word_count && count > 0 && result == HIP_SUCCESS; i++) {
        result = device->driver->fill_32(to + 4 * i, words[i], 1, stream);
    }
    for (size_t done = 1; done < count && result == HIP_SUCCESS;) {
        const size_t more = done < count - done ? done : count - done;
        result = device->driver->copy(to + done * size, to, more * size, stream);
        done += more;
    }
    return result;
}

/* --- programs --------------------------------------------------------------------------------- */

/* hipModuleLoadData gets no size and goes by what the headers say. */
static kiln_status load_module(kn_gpu_program *program, bool eager, kiln_diag *diag)
{
    const hip_device *device = (const hip_device *)program->device;
    char why[KN_CODE_OBJECT_WHY];
    (void)eager; /* a module is loaded whole */
    if (!kn_code_object_check(program->image, program->image_size, &device->target, why)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, device->target.name,
                             "the code object is refused: %s", why);
    }
    return kn_gpu_check(program->device,
                        device->hip->driver.hipModuleLoadData(&program->module, program->image),
                        "hipModuleLoadData", diag);
}

/* The parameters that a source declares; the compiler adds hidden ones behind them. */
typedef struct param_walk {
    kn_gpu_function *function;
    bool no_memory;
} param_walk;

static void take_param(void *user, kn_metadata_arg arg)
{
    static const char hidden[] = "hidden_";
    param_walk *walk = (param_walk *)user;
    kn_gpu_function *function = walk->function;
    const size_t count = function->param_count;
    if (walk->no_memory || count == KN_HIP_MAX_PARAMS ||
        (arg.kind.length >= sizeof(hidden) - 1 &&
         memcmp(arg.kind.data, hidden, sizeof(hidden) - 1) == 0)) {
        return;
    }
    if (count % 32 == 0) {
        kiln_param *grown =
            (kiln_param *)realloc(function->params, (count + 32) * sizeof(kiln_param));
        walk->no_memory = grown == NULL;
        if (grown == NULL) {
            return;
        }
        function->params = grown;
    }
    memset(&function->params[count], 0, sizeof(kiln_param));
    function->params[count].size = arg.size;
    function->param_count++;
}

static kiln_status find_kernel(kn_gpu_program *program, const char *name, kn_gpu_function *function,
                               int *out_result, kiln_diag *diag)
{
    param_walk walk = {function, false};
    *out_result =
        program->device->driver->module_function(&function->function, program->module, name);
    if (*out_result == HIP_SUCCESS &&
        !kn_code_object_params(program->image, program->image_size, name, take_param, &walk)) {
        function->param_count = SIZE_MAX;
    }
    return walk.no_memory ? kn_no_memory(diag, name) : KILN_OK;
}

static kiln_status launch_cooperative(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                      const kn_gpu_function *function, const kn_gpu_shape *shape,
                                      void *stream, void **params, kiln_diag *diag)
{
    const kn_hip_driver *driver = &hip_of(device)->driver;
    if (driver->hipModuleLaunchCooperativeKernel == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "install a newer ROCm", launch->entry,
                             "this HIP has no cooperative launches of modules' kernels");
    }
    return kn_gpu_check(device,
                        driver->hipModuleLaunchCooperativeKernel(
                            function->function, shape->grid[0], shape->grid[1], shape->grid[2],
                            shape->block[0], shape->block[1], shape->block[2], shape->shared_bytes,
                            stream, params),
                        "hipModuleLaunchCooperativeKernel", diag);
}

/* --- devices ---------------------------------------------------------------------------------- */

#define G(row, called, symbol) .row = (called),
static const kn_gpu_vendor vendor = {
    .label = "HIP",
    .calls =
        {
#include "apis/hip/backend/gpu.def"
        },
    .grid_max = {INT_MAX, INT_MAX, INT_MAX},
    .items_max = UINT32_MAX, /* of a dimension, in HIP's documentation */
    .block_max_z = 1024,
    .not_found = HIP_ERROR_NOT_FOUND,
    .enter = enter_device,
    .leave = leave_device,
    .fail = fail_on_device,
    .fill_words = fill_words,
    .load = load_module,
    .find = find_kernel,
    .launch_with = launch_cooperative,
};
#undef G

kiln_status kn_hip_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kn_hip *hip = (kn_hip *)instance;
    *out_device = NULL;
    kiln_status status = kn_hip_check_index(hip, index, diag);
    if (status != KILN_OK) {
        return status;
    }
    hip_device *device = (hip_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "hip");
    }
    device->hip = hip;
    device->base = (kn_gpu_device){.vendor = &vendor,
                                   .driver = &hip->driver.gpu,
                                   .host = hip->host,
                                   .ordinal = hip->devices[index].ordinal,
                                   .device_memory = hip->version >= 60000000 ? 2 : 1};
    if (!kn_hip_target_read(hip->devices[index].arch, &device->target)) {
        free(device);
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "hip",
                             "'%s' is not an AMD GPU's processor", hip->devices[index].arch);
    }
    *out_device = device;
    return KILN_OK;
}

void kn_hip_device_close(void *device)
{
    free(device);
}
