/* Opening the driver, distinguishing its failures, and listing devices. Makes no context: a machine
 * is looked at without taking any of its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/locate.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ..." -> "580.159.04" */
static void read_driver_text(kn_cuda *cuda)
{
    char line[256];
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file == NULL) {
        return;
    }
    const char *at = fgets(line, sizeof(line), file) != NULL ? strstr(line, "  ") : NULL;
    while (at != NULL && *at == ' ') {
        at++;
    }
    size_t length = at != NULL ? strspn(at, "0123456789.") : 0;
    if (length > 0 && length < sizeof(cuda->driver_text)) {
        memcpy(cuda->driver_text, at, length);
        cuda->driver_text[length] = '\0';
    }
    (void)fclose(file);
}

static void report_init_failure(const kn_cuda *cuda, CUresult result, kiln_probe_report *report)
{
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kn_cuda_fail(cuda, result, "cuInit", &diag);
    if (result == CUDA_ERROR_NO_DEVICE && !kn_gpu_no_permission("/dev/nvidiactl")) {
        kn_gpu_probe_answer(
            report, KILN_PROBE_NO_DEVICE,
            "check that an NVIDIA GPU is present and visible (nvidia-smi, CUDA_VISIBLE_DEVICES, "
            "the container's GPU option)",
            diag.why);
    } else if (result == CUDA_ERROR_STUB_LIBRARY) {
        kn_gpu_probe_answer(
            report, KILN_PROBE_LIBRARY_UNUSABLE,
            "install the NVIDIA driver, or remove the toolkit's stubs directory from "
            "LD_LIBRARY_PATH",
            "this is the toolkit's stub of libcuda, not the driver");
    } else if (kn_gpu_no_permission("/dev/nvidiactl")) {
        kn_gpu_probe_answer(
            report, KILN_PROBE_NO_PERMISSION,
            "add the user to the group that owns /dev/nvidia* (often 'video' or 'render')",
            "/dev/nvidiactl cannot be opened: permission denied");
    } else {
        kn_gpu_probe_answer(report, KILN_PROBE_FAILED,
                            diag.fix[0] != '\0' ? diag.fix
                                                : "run nvidia-smi; reload the driver or reboot",
                            diag.why);
    }
    kiln_diag_clear(&diag);
}

static void list_devices(kn_cuda *cuda, kiln_probe_report *report)
{
    int count = 0;
    CUresult result = cuda->driver.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS || count <= 0) {
        report_init_failure(cuda, result != CUDA_SUCCESS ? result : CUDA_ERROR_NO_DEVICE, report);
        return;
    }
    /* What a driver counts is not what it can give: no loop is as long as it says. */
    count = count < KN_CUDA_MAX_DEVICES ? count : KN_CUDA_MAX_DEVICES;
    for (int i = 0; i < count; i++) {
        /* One bad device does not hide the others. */
        if (cuda->driver.cuDeviceGet(&cuda->devices[cuda->device_count], i) == CUDA_SUCCESS) {
            cuda->device_count++;
        }
    }
    kn_text_putf(report->why, sizeof(report->why), "%d device%s", cuda->device_count,
                 cuda->device_count == 1 ? "" : "s");
    report->outcome = KILN_PROBE_READY;
    report->device_count = (uint32_t)cuda->device_count;
}

static void put_version(kiln_probe_report *report, int version)
{
    kn_text_putf(report->version, sizeof(report->version), "CUDA %d.%d", version / 1000,
                 version % 1000 / 10);
}

static const char newer_driver[] = "install an NVIDIA driver for CUDA 11.0 or newer";

/* Tries one candidate; true when the search is over, one way or the other. */
static bool try_driver(kn_cuda *cuda, const char *name, kiln_probe_report *report)
{
    const char *const names[] = {name, NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    bool over = true;
    kn_dylib *lib = NULL;
    if (kn_dylib_open(names, &lib, &outcome, &diag) != KILN_OK) {
        if (outcome != KILN_PROBE_LIBRARY_MISSING || report->why[0] == '\0') {
            kn_gpu_probe_answer(report, outcome, "install the NVIDIA driver", diag.why);
        }
        over = false;
        goto cleanup;
    }
    kn_text_put(report->library, sizeof(report->library), kn_dylib_path(lib));
    int version = 0;
    CUresult (*get_version)(int *) = NULL;
    void *symbol = kn_dylib_symbol(lib, "cuDriverGetVersion");
    memcpy(&get_version, &symbol, sizeof(get_version));
    if (get_version != NULL) {
        (void)get_version(&version);
    }
    if (kn_dylib_bind(lib, kn_cuda_driver_symbols, kn_cuda_driver_symbol_count, (uint32_t)version,
                      &cuda->driver, &diag) != KILN_OK) {
        const bool old = version > 0 && version < 11000;
        put_version(report, version);
        kn_gpu_probe_answer(report, old ? KILN_PROBE_DRIVER_TOO_OLD : KILN_PROBE_SYMBOL_MISSING,
                            newer_driver, diag.why);
        memset(&cuda->driver, 0, sizeof(cuda->driver));
        goto cleanup;
    }
    put_version(report, version);
    CUresult result = version < 11000 ? CUDA_SUCCESS : cuda->driver.cuInit(0);
    if (version < 11000) {
        kn_gpu_probe_answer(report, KILN_PROBE_DRIVER_TOO_OLD, newer_driver,
                            "the driver offers an older CUDA than 11.0");
    } else if (result != CUDA_SUCCESS) {
        report_init_failure(cuda, result, report);
        over = result != CUDA_ERROR_STUB_LIBRARY; /* a real driver may lie behind a stub */
    } else {
        list_devices(cuda, report);
    }
    if (cuda->device_count > 0) {
        char path[KN_CUDA_PATH];
        const void *address = NULL;
        memcpy(&address, &cuda->driver.cuInit, sizeof(address));
        (void)kn_module_of_address(address, path, sizeof(path), cuda->driver_build_id,
                                   sizeof(cuda->driver_build_id));
        cuda->driver_version = version;
        cuda->driver_lib = lib;
        lib = NULL;
    }
cleanup:
    if (lib != NULL && over) {
        memset(&cuda->driver, 0, sizeof(cuda->driver));
    }
    kn_dylib_close(lib);
    kiln_diag_clear(&diag);
    return over;
}

static void open_driver(kn_cuda *cuda, kiln_probe_report *report)
{
    const char *const *names = kn_cuda_driver_names();
    for (size_t i = 0; names[i] != NULL; i++) {
        if (try_driver(cuda, names[i], report)) {
            return;
        }
        memset(&cuda->driver, 0, sizeof(cuda->driver));
    }
}

/* Adds what is known of the toolkit to the answer. P6: NVRTC without its builtins cannot compile.
 */
static void report_toolkit(const kn_cuda *cuda, kiln_probe_report *report)
{
    char text[256];
    const kn_cuda_toolkit *toolkit = &cuda->toolkit;
    if (toolkit->nvrtc.path[0] == '\0') {
        kn_text_put(text, sizeof(text), "; no NVRTC found, so CUDA C++ cannot be compiled here");
    } else if (toolkit->builtins.path[0] == '\0') {
        kn_text_putf(text, sizeof(text), "; NVRTC found (%.160s) but not its %s",
                     toolkit->nvrtc.path, kn_cuda_names.shown[KN_CUDA_BUILTINS]);
    } else {
        kn_text_putf(text, sizeof(text), "; NVRTC %d.%d", toolkit->major, toolkit->minor);
    }
    size_t used = strlen(report->why);
    kn_text_put(report->why + used, sizeof(report->why) - used, text);
    if (toolkit->builtins.path[0] == '\0' && report->fix[0] == '\0') {
        kn_text_put(report->fix, sizeof(report->fix),
                    "install the CUDA toolkit's NVRTC (cuda-nvrtc), or set CUDA_PATH");
    }
}

kiln_status kn_cuda_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                         kiln_diag *diag)
{
    *out_instance = NULL;
    kn_cuda *cuda = (kn_cuda *)calloc(1, sizeof(*cuda));
    if (cuda == NULL) {
        return kn_no_memory(diag, "cuda");
    }
    const uint64_t start = kn_clock_now();
    cuda->host = host;
    kn_fork_guard_init(&cuda->guard);
    kn_mutex_init(&cuda->lock);
    kn_text_put(report->backend, sizeof(report->backend), "cuda");
    if (host->compile_only) {
        kn_gpu_probe_answer(report, KILN_PROBE_SKIPPED, "", "the driver was not opened");
    } else {
        open_driver(cuda, report);
    }
    if (cuda->driver_version > 0) {
        read_driver_text(cuda);
    }
    kn_cuda_toolkit_find(&cuda->toolkit);
    report_toolkit(cuda, report);
    report->probe_ns = kn_clock_now() - start;
    if (cuda->driver_version == 0 && cuda->toolkit.nvrtc.path[0] == '\0') {
        kiln_status status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "cuda", "%s", report->why);
        kn_cuda_close(cuda);
        return status;
    }
    *out_instance = cuda;
    return KILN_OK;
}

void kn_cuda_close(void *instance)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    if (cuda == NULL) {
        return;
    }
    kn_dylib_close(cuda->nvjitlink_lib);
    kn_dylib_close(cuda->nvrtc_lib);
    kn_dylib_close(cuda->builtins_lib);
    kn_dylib_retire(cuda->driver_lib); /* it has threads and exit handlers from cuInit on */
    kn_mutex_deinit(&cuda->lock);
    kn_fork_guard_deinit(&cuda->guard);
    free(cuda);
}

/* Of a compute capability; 0 for what cannot be one. */
static int version_part(const kn_cuda *cuda, CUdevice device, int which)
{
    const int value = kn_gpu_attribute(&cuda->driver.gpu, device, which);
    return value < 1000 ? value : 0;
}

static const kn_gpu_limits limits = {
    .compute_units = CU_ATTRIBUTE_MULTIPROCESSOR_COUNT,
    .max_group_size = CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    .max_group_dim = {CU_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                      CU_ATTRIBUTE_MAX_BLOCK_DIM_Z},
    .subgroup_size = CU_ATTRIBUTE_WARP_SIZE,
    .local_bytes = CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    .integrated = CU_ATTRIBUTE_INTEGRATED,
};

kiln_status kn_cuda_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                kiln_diag *diag)
{
    const kn_cuda *cuda = (const kn_cuda *)instance;
    if (index >= (uint32_t)cuda->device_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "cuda", "there is no device %u", index);
    }
    const CUdevice device = cuda->devices[index];
    kiln_device_info info = {.struct_size = sizeof(info), .index = index};
    const CUresult result = kn_gpu_describe(&cuda->driver.gpu, device, &limits, &info);
    if (result != CUDA_SUCCESS) {
        return kn_cuda_fail(cuda, result, "cuDeviceGetName", diag);
    }
    const int major = version_part(cuda, device, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = version_part(cuda, device, CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    kn_text_put(info.backend, sizeof(info.backend), "cuda");
    kn_text_put(info.vendor, sizeof(info.vendor), "NVIDIA");
    kn_text_put(info.platform, sizeof(info.platform), "NVIDIA CUDA");
    kn_text_putf(info.version, sizeof(info.version), "CUDA %d.%d", cuda->driver_version / 1000,
                 cuda->driver_version % 1000 / 10);
    kn_text_put(info.driver, sizeof(info.driver),
                cuda->driver_text[0] != '\0' ? cuda->driver_text : info.version);
    kn_text_putf(info.target, sizeof(info.target), "sm_%d", major * 10 + minor);
    CUuuid uuid;
    if (cuda->driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
        kn_hex_encode(uuid.bytes, sizeof(uuid.bytes), info.uuid);
    }
    info.fp16 = major * 10 + minor >= 53;
    info.fp64 = true;
    info.int8_dot = major * 10 + minor >= 61;
    info.timestamps = true;
    *out_info = info;
    return KILN_OK;
}
