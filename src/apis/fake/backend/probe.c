/* Opening: where a real backend loads its vendor's library and binds its symbols. The outcome can
 * be scripted: $KILN_FAKE_PROBE is one of the names of kiln_probe_outcome. */
#include <stdlib.h>
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"

static void copy_env(const char *variable, const char *otherwise, char *field, size_t size)
{
    const char *value = kn_env_get(variable);
    kn_text_put(field, size, value != NULL && value[0] != '\0' ? value : otherwise);
}

static void report_set(kiln_probe_report *report, kiln_probe_outcome outcome, const char *why,
                       const char *fix)
{
    report->outcome = outcome;
    kn_text_put(report->library, sizeof(report->library), "libfake.so.1");
    kn_text_put(report->why, sizeof(report->why), why);
    kn_text_put(report->fix, sizeof(report->fix), fix);
}

/* True if an outcome other than ready is scripted. */
static bool scripted_outcome(kiln_probe_report *report)
{
    const char *wanted = kn_env_get("KILN_FAKE_PROBE");
    for (int i = KILN_PROBE_READY + 1; wanted != NULL && i <= KILN_PROBE_SKIPPED; i++) {
        if (strcmp(wanted, kiln_probe_outcome_name((kiln_probe_outcome)i)) == 0) {
            report_set(report, (kiln_probe_outcome)i, "KILN_FAKE_PROBE says so",
                       "clear KILN_FAKE_PROBE");
            return true;
        }
    }
    return false;
}

kiln_status kn_fake_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                         kiln_diag *diag)
{
    uint64_t devices = FAKE_DEVICES;
    if (scripted_outcome(report)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "fake", "%s", report->why);
    }
    kn_fake_instance *instance = (kn_fake_instance *)calloc(1, sizeof(*instance));
    if (instance == NULL) {
        report_set(report, KILN_PROBE_FAILED, "out of memory", "");
        return kn_no_memory(diag, "fake");
    }
    kiln_status status =
        kn_fake_faults_init(&instance->faults, kn_env_get("KILN_FAKE_FAULTS"), diag);
    if (status == KILN_OK) {
        status = kn_fake_call(&instance->faults, FAKE_OPEN, NULL, diag);
    }
    if (status == KILN_OK) {
        status = kn_env_u64("KILN_FAKE_DEVICES", 0, 64, &devices, diag);
    }
    if (status == KILN_OK) {
        status = kn_env_bool("KILN_FAKE_BOUND", &instance->bound, diag);
    }
    if (status != KILN_OK) {
        report_set(report, KILN_PROBE_FAILED, diag != NULL ? diag->why : "it was scripted to fail",
                   "look at the KILN_FAKE_ variables");
        free(instance);
        return status;
    }
    instance->host = host;
    instance->devices = (uint32_t)devices;
    copy_env("KILN_FAKE_DRIVER", "1.0", instance->driver, sizeof(instance->driver));
    copy_env("KILN_FAKE_BUILD_ID", "0123abcd", instance->build, sizeof(instance->build));
    copy_env("KILN_FAKE_DEVICE", "Fake Processor", instance->device, sizeof(instance->device));
    report_set(report, devices > 0 ? KILN_PROBE_READY : KILN_PROBE_NO_DEVICE,
               devices > 0 ? "" : "KILN_FAKE_DEVICES is 0",
               devices > 0 ? "" : "set KILN_FAKE_DEVICES to 1 or more");
    kn_text_put(report->version, sizeof(report->version), instance->driver);
    report->device_count = instance->devices;
    *out_instance = instance;
    return KILN_OK;
}

void kn_fake_close(void *instance)
{
    free(instance);
}

kiln_status kn_fake_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                                kiln_diag *diag)
{
    const kn_fake_instance *fake = (const kn_fake_instance *)instance;
    if (index >= fake->devices) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "fake", "there is no device %u",
                             (unsigned)index);
    }
    kn_text_putf(out_info->name, sizeof(out_info->name), "%s %u", fake->device, (unsigned)index);
    kn_text_put(out_info->vendor, sizeof(out_info->vendor), "kiln");
    kn_text_put(out_info->driver, sizeof(out_info->driver), fake->driver);
    kn_text_put(out_info->version, sizeof(out_info->version), "Fake 1.0");
    kn_text_put(out_info->platform, sizeof(out_info->platform), "fake");
    out_info->device_class = KILN_DEVICE_SOFTWARE;
    out_info->compute_units = 1;
    out_info->max_group_size = 256;
    out_info->max_group_dim[0] = 256;
    out_info->max_group_dim[1] = 256;
    out_info->max_group_dim[2] = 64;
    out_info->address_bits = 64;
    out_info->memory_bytes = (uint64_t)256 << 20;
    out_info->max_buffer_bytes = (uint64_t)64 << 20;
    out_info->local_bytes = 32768;
    out_info->timestamps = true;
    return KILN_OK;
}

kiln_status kn_fake_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kn_fake_instance *fake = (kn_fake_instance *)instance;
    kiln_status status = kn_fake_call(&fake->faults, FAKE_DEVICE, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fake_device *device = (kn_fake_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "fake");
    }
    device->instance = fake;
    device->index = index;
    *out_device = device;
    return KILN_OK;
}

void kn_fake_device_close(void *device)
{
    free(device);
}
