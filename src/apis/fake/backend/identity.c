/* What the output of each stage depends on besides its input. A real backend asks the library that
 * is loaded for its version and build id, and the device for everything that names it. */
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "base/text.h"

kiln_status kn_fake_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                     kiln_diag *diag)
{
    (void)instance;
    (void)diag;
    out_target->has_device = true;
    out_target->device_index = device_index;
    kn_text_putf(out_target->name, sizeof(out_target->name), "fake-%u", (unsigned)device_index);
    return KILN_OK;
}

/* "any" and "native" name device 0's kind without a device. */
kiln_status kn_fake_target_parse(void *instance, const char *name, kiln_target *out_target,
                                 kiln_diag *diag)
{
    (void)instance;
    if (strcmp(name, "native") != 0 && strcmp(name, "any") != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "write fake:native", "finding a target",
                             "fake has no target \"%s\"", name);
    }
    kn_text_put(out_target->name, sizeof(out_target->name), "fake-0");
    return KILN_OK;
}

void kn_fake_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    target->handle = NULL;
}

kiln_status kn_fake_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                             const kiln_identity *identity, kiln_diag *diag)
{
    kn_fake_instance *fake = (kn_fake_instance *)instance;
    kiln_status status = kn_fake_call(&fake->faults, FAKE_IDENTIFY, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    identity->text(identity->sink, "compiler.build", fake->build);
    identity->env(identity->sink, "KILN_FAKE_CODEGEN");
    if (!stage->portable) {
        char number[16];
        kn_text_putf(number, sizeof(number), "%u", (unsigned)target->device_index);
        identity->text(identity->sink, "driver.version", fake->driver);
        identity->text(identity->sink, "device.name", fake->device);
        identity->text(identity->sink, "device.number", number);
    }
    return KILN_OK;
}

void kn_fake_binary_stamp(const kn_fake_instance *instance, uint32_t device, char *stamp,
                          size_t size)
{
    memset(stamp, 0, size);
    kn_text_putf(stamp, size, "fake %s on %s %u", instance->driver, instance->device,
                 (unsigned)device);
}
