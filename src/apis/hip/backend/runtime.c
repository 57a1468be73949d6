/* HIP's runtime: opened from the release that hipRTC is of, its devices listed, its errors in
 * words. Nothing here was run on hardware: it is written from HIP's documentation, and run on the
 * tests' own driver. */
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/diag.h"
#include "base/text.h"

#define G(row, called, symbol) {symbol, offsetof(kn_hip_driver, gpu.row), 0, KN_REQUIRED},
#define X(since, need, ret, name, args) {#name, offsetof(kn_hip_driver, name), since, need},
static const kn_symbol driver_symbols[] = {
#include "apis/hip/backend/driver.def"
#include "apis/hip/backend/gpu.def"
};
#undef X
#undef G

static const char outside[] = "the kernel read or wrote outside its buffers, perhaps";

#define R(result, name, status, fix) {result, KILN_E_##status, fix},
static const kn_gpu_result results[] = {
#include "apis/hip/backend/status.def"
};
#undef R

kiln_status kn_hip_fail(const kn_hip *hip, int result, const char *what, kiln_diag *diag)
{
    const char *name = hip->driver.hipGetErrorName(result);
    const char *text = hip->driver.hipGetErrorString(result);
    text = text != NULL ? text : "no description";
    const bool repeats = name != NULL && strcmp(name, text) == 0;
    return kn_gpu_fail(results, sizeof(results) / sizeof(results[0]), result, what,
                       name != NULL ? name : "unknown hipError_t", repeats ? "" : text, diag);
}

/* --- opening ---------------------------------------------------------------------------------- */

static void report_failure(const kn_hip *hip, int result, const char *what,
                           kiln_probe_report *report)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char why[256];
    (void)kn_hip_fail(hip, result, what, &diag);
    kn_text_putf(why, sizeof(why), "no AMD GPU: %.200s", diag.why);
    if (kn_gpu_no_permission("/dev/kfd")) {
        kn_gpu_probe_answer(
            report, KILN_PROBE_NO_PERMISSION,
            "add the user to the groups that own /dev/kfd and /dev/dri/renderD* (often "
            "'render' and 'video')",
            "/dev/kfd cannot be opened: permission denied");
    } else if (result == HIP_ERROR_NO_DEVICE || result == HIP_ERROR_INVALID_DEVICE) {
        kn_gpu_probe_answer(report, KILN_PROBE_NO_DEVICE,
                            "check that an AMD GPU is present and visible (rocminfo, /dev/kfd, "
                            "HIP_VISIBLE_DEVICES)",
                            why);
    } else {
        kn_gpu_probe_answer(
            report, KILN_PROBE_FAILED,
            diag.fix[0] != '\0' ? diag.fix : "run rocminfo; reload the driver or reboot", diag.why);
    }
    kiln_diag_clear(&diag);
}

static void list_devices(kn_hip *hip, kiln_probe_report *report)
{
    int count = 0;
    int result = hip->driver.hipInit(0);
    if (result == HIP_SUCCESS) {
        result = hip->driver.hipGetDeviceCount(&count);
    }
    if (result != HIP_SUCCESS || count <= 0) {
        report_failure(hip, result != HIP_SUCCESS ? result : HIP_ERROR_NO_DEVICE,
                       "hipGetDeviceCount", report);
        return;
    }
    /* What a driver counts is not what it can give: a device that says nothing is not listed. */
    count = count < KN_HIP_MAX_DEVICES ? count : KN_HIP_MAX_DEVICES;
    for (int i = 0; i < count; i++) {
        kn_hip_listed *listed = &hip->devices[hip->device_count];
        listed->ordinal = i;
        if (kn_hip_device_arch(hip, i, listed->arch)) {
            hip->device_count++;
        }
    }
    if (hip->device_count == 0) {
        kn_gpu_probe_answer(report, KILN_PROBE_FAILED,
                            "run rocminfo; install a ROCm of 5.2 or later",
                            "no device says which processor it has");
        return;
    }
    report->device_count = hip->device_count;
    report->outcome = KILN_PROBE_READY;
    kn_text_putf(report->why, sizeof(report->why),
                 "%u device%s; kiln's launches through HIP were never tried on hardware",
                 (unsigned)hip->device_count, hip->device_count == 1 ? "" : "s");
}

/* hipRuntimeGetVersion's number: 50221153 is 5.2. */
static void put_version(const kn_hip *hip, char *out, size_t size)
{
    kn_text_putf(out, size, "HIP %d.%d", hip->version / 10000000, hip->version / 100000 % 100);
}

void kn_hip_runtime_open(kn_hip *hip, kiln_probe_report *report)
{
    const char *const names[] = {hip->runtime, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    kiln_diag diag = KILN_DIAG_INIT;
    if (hip->runtime[0] == '\0') {
        kn_gpu_probe_answer(report, KILN_PROBE_LIBRARY_MISSING,
                            "install the HIP runtime of that release", kn_hip_names.no_runtime);
        return;
    }
    if (kn_dylib_open(names, &hip->runtime_lib, &outcome, &diag) != KILN_OK) {
        kn_gpu_probe_answer(report, outcome, "install the HIP runtime again", diag.why);
        goto cleanup;
    }
    kn_text_put(report->library, sizeof(report->library), kn_dylib_path(hip->runtime_lib));
    if (kn_dylib_bind(hip->runtime_lib, driver_symbols,
                      sizeof(driver_symbols) / sizeof(driver_symbols[0]), 0, &hip->driver,
                      &diag) != KILN_OK) {
        kn_gpu_probe_answer(report, KILN_PROBE_SYMBOL_MISSING, "install ROCm 5.2 or later",
                            diag.why);
        goto cleanup;
    }
    (void)hip->driver.hipRuntimeGetVersion(&hip->version);
    hip->version = hip->version > 0 ? hip->version : 0;
    put_version(hip, report->version, sizeof(report->version));
    list_devices(hip, report);
cleanup:
    kiln_diag_clear(&diag);
}

/* --- devices ---------------------------------------------------------------------------------- */

/* "gfx90a:sramecc+:xnack-", and its end. */
static size_t measure_arch(const char *text, size_t room)
{
    size_t length = 0;
    while (length < room && text[length] != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyz0123456789:+-", text[length]) != NULL) {
        length++;
    }
    return length > strlen("gfx") && length < room && length < KN_HIP_TARGET &&
                   text[length] == '\0' && memcmp(text, "gfx", 3) == 0
               ? length
               : 0;
}

/* The properties are a struct that ROCm 6 has made another, and in which only the first member, the
 * name, stands where it was. What begins with "gfx" behind that is gcnArchName: no other member is
 * a text. */
bool kn_hip_device_arch(const kn_hip *hip, int ordinal, char out_arch[KN_HIP_TARGET])
{
    enum { NAME = 256, PROPERTIES = 8192 }; /* HIP 7's have 1,472 bytes */
    char properties[PROPERTIES];
    int (*ask)(void *, int) = hip->driver.hipGetDevicePropertiesR0600 != NULL
                                  ? hip->driver.hipGetDevicePropertiesR0600
                                  : hip->driver.hipGetDeviceProperties;
    memset(properties, 0, sizeof(properties));
    if (ask == NULL || ask(properties, ordinal) != HIP_SUCCESS) {
        return false;
    }
    for (size_t i = NAME; i < sizeof(properties); i++) {
        const size_t length = measure_arch(properties + i, sizeof(properties) - i);
        if (length > 0) {
            memcpy(out_arch, properties + i, length + 1);
            return true;
        }
    }
    return false;
}

kiln_status kn_hip_check_index(const kn_hip *hip, uint32_t index, kiln_diag *diag)
{
    return index < hip->device_count
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, NULL, "hip", "there is no device %u", index);
}

/* hipDeviceAttribute_t */
static const kn_gpu_limits limits = {.compute_units = 63,
                                     .max_group_size = 56,
                                     .max_group_dim = {26, 27, 28},
                                     .subgroup_size = 87,
                                     .local_bytes = 74,
                                     .integrated = 16};

kiln_status kn_hip_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                               kiln_diag *diag)
{
    const kn_hip *hip = (const kn_hip *)instance;
    kiln_status status = kn_hip_check_index(hip, index, diag);
    if (status != KILN_OK) {
        return status;
    }
    const int ordinal = hip->devices[index].ordinal;
    kiln_device_info info = {.struct_size = sizeof(info), .index = index};
    const int result = kn_gpu_describe(&hip->driver.gpu, ordinal, &limits, &info);
    if (result != HIP_SUCCESS) {
        return kn_hip_fail(hip, result, "hipDeviceGetName", diag);
    }
    kn_text_put(info.backend, sizeof(info.backend), "hip");
    kn_text_put(info.vendor, sizeof(info.vendor), "AMD");
    kn_text_put(info.platform, sizeof(info.platform), "AMD HIP");
    put_version(hip, info.version, sizeof(info.version));
    kn_text_putf(info.driver, sizeof(info.driver), "%s (not tried on hardware)", info.version);
    kn_text_put(info.target, sizeof(info.target), hip->devices[index].arch);
    kn_hip_uuid uuid;
    if (hip->driver.hipDeviceGetUuid != NULL &&
        hip->driver.hipDeviceGetUuid(&uuid, ordinal) == HIP_SUCCESS) {
        kn_hex_encode(uuid.bytes, sizeof(uuid.bytes), info.uuid);
    }
    info.fp16 = true;
    info.fp64 = true;
    info.timestamps = true;
    *out_info = info;
    return KILN_OK;
}
