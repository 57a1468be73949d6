/* What a driver says of its devices, and why it fails. */
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "gpu/gpu.h"
#include "sys/file.h"

kiln_status kn_gpu_fail(const kn_gpu_result *rows, size_t count, int result, const char *what,
                        const char *name, const char *text, kiln_diag *diag)
{
    kn_gpu_result found = {result, KILN_E_INTERNAL, NULL};
    for (size_t i = 0; i < count; i++) {
        found = rows[i].result == result ? rows[i] : found;
    }
    (void)kiln_diag_set(diag, found.status, found.fix, what, "%s (%d)%s%s", name, result,
                        text[0] != '\0' ? ": " : "", text);
    kiln_diag_set_vendor_code(diag, result);
    return found.status;
}

void kn_gpu_probe_answer(kiln_probe_report *report, kiln_probe_outcome outcome, const char *fix,
                         const char *why)
{
    report->outcome = outcome;
    kn_text_put(report->why, sizeof(report->why), why);
    kn_text_put(report->fix, sizeof(report->fix), fix);
}

bool kn_gpu_no_permission(const char *path)
{
    kn_file *file = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    const bool denied =
        kn_file_open(path, false, &file, &diag) == KILN_E_IO && diag.vendor_code == 13; /* EACCES */
    kn_file_close(file);
    kiln_diag_clear(&diag);
    return denied;
}

int kn_gpu_attribute(const kn_gpu_driver *driver, int ordinal, int which)
{
    int value = 0;
    /* None of those that are asked for is negative. */
    return driver->device_attribute(&value, which, ordinal) == 0 && value > 0 ? value : 0;
}

int kn_gpu_describe(const kn_gpu_driver *driver, int ordinal, const kn_gpu_limits *limits,
                    kiln_device_info *info)
{
#define ASK(which) (uint32_t) kn_gpu_attribute(driver, ordinal, limits->which)
    size_t memory = 0;
    const int result = driver->device_name(info->name, (int)sizeof(info->name), ordinal);
    if (result != 0) {
        return result;
    }
    info->name[sizeof(info->name) - 1] = '\0';
    info->compute_units = ASK(compute_units);
    info->max_group_size = ASK(max_group_size);
    for (int i = 0; i < 3; i++) {
        info->max_group_dim[i] = ASK(max_group_dim[i]);
    }
    info->subgroup_size = ASK(subgroup_size);
    info->local_bytes = ASK(local_bytes);
    info->device_class = ASK(integrated) != 0 ? KILN_DEVICE_INTEGRATED : KILN_DEVICE_DISCRETE;
    info->address_bits = 64;
    if (driver->device_memory(&memory, ordinal) == 0) {
        info->memory_bytes = memory;
        info->max_buffer_bytes = memory;
    }
    return 0;
#undef ASK
}
