/* The one device of the cpu backend. */
#include "apis/cpu/backend/device.h"

#include <stdlib.h>

#include "kiln/version.h"

#include "base/diag.h"
#include "base/text.h"

static bool has_int8_dot(const cpu_target *target)
{
    const unsigned bit = target->architecture == KN_ARCH_X86_64 ? (unsigned)KN_X86_AVX512VNNI
                                                                : (unsigned)KN_ARM_DOTPROD;
    return (target->features >> bit & 1u) != 0;
}

static kiln_status check_index(uint32_t index, kiln_diag *diag)
{
    return index == 0 ? KILN_OK
                      : kiln_diag_set(diag, KILN_E_INVALID, NULL, "device of the cpu backend",
                                      "the only device has index 0");
}

kiln_status kn_cpu_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                               kiln_diag *diag)
{
    const cpu_instance *cpu = (const cpu_instance *)instance;
    kiln_status status = check_index(index, diag);
    if (status != KILN_OK) {
        return status;
    }
    *out_info =
        (kiln_device_info){.struct_size = sizeof(*out_info),
                           .device_class = KILN_DEVICE_SOFTWARE,
                           .compute_units = cpu->threads,
                           .max_group_size = CPU_GROUP_LIMIT,
                           .max_group_dim = {CPU_GROUP_LIMIT, CPU_GROUP_LIMIT, CPU_GROUP_LIMIT},
                           .address_bits = 8 * sizeof(void *),
                           .memory_bytes = cpu->processor.memory_bytes,
                           .max_buffer_bytes = cpu->processor.memory_bytes,
                           .local_bytes = CPU_LOCAL_LIMIT,
                           .fp64 = true,
                           .int8_dot = has_int8_dot(&cpu->native),
                           .timestamps = true};
    kn_text_put(out_info->backend, sizeof(out_info->backend), "cpu");
    kn_text_put(out_info->name, sizeof(out_info->name), cpu->processor.model);
    kn_text_put(out_info->vendor, sizeof(out_info->vendor), cpu->processor.vendor);
    kn_text_put(out_info->driver, sizeof(out_info->driver), "kiln " KILN_VERSION);
    kn_text_put(out_info->version, sizeof(out_info->version), "C17");
    kn_text_put(out_info->platform, sizeof(out_info->platform), "host");
    kn_cpu_target_name(&cpu->native, out_info->target, sizeof(out_info->target));
    return KILN_OK;
}

kiln_status kn_cpu_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kiln_status status = check_index(index, diag);
    cpu_device *device = NULL;
    if (status != KILN_OK) {
        return status;
    }
    device = (cpu_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "opening the cpu device");
    }
    device->cpu = (cpu_instance *)instance;
    kn_cpu_toolchain_recall(&device->cpu->tools);
    *out_device = device;
    return KILN_OK;
}

void kn_cpu_device_close(void *device)
{
    free(device);
}
