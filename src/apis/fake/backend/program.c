/* Programs on a device: loading a binary, reporting what is in it, and giving a better one back. */
#include <stdlib.h>
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"

#define STAMP_SIZE 64

static void describe_params(kn_fake_program *program)
{
    static const char *const types[FAKE_TYPE_COUNT] = {"float", "int", "float*", "int*", "local"};
    static const kiln_arg_kind kinds[FAKE_TYPE_COUNT] = {
        KILN_ARG_VALUE, KILN_ARG_VALUE, KILN_ARG_BUFFER, KILN_ARG_BUFFER, KILN_ARG_LOCAL};
    for (uint32_t i = 0; i < program->code.kernel_count; i++) {
        const kn_fake_kernel *kernel = &program->code.kernels[i];
        for (uint32_t k = 0; k < kernel->param_count; k++) {
            kiln_param *param = &program->params[i][k];
            uint32_t type = kernel->params[k].type;
            kn_text_put(param->name, sizeof(param->name), kernel->params[k].name);
            kn_text_put(param->type, sizeof(param->type), types[type]);
            param->kind = kinds[type];
            param->size = param->kind == KILN_ARG_VALUE ? 4 : 0;
        }
    }
}

kiln_status kn_fake_program_create(kn_fake_device *device, const void *binary, size_t size,
                                   kn_fake_program **out_program, kiln_diag *diag)
{
    char stamp[STAMP_SIZE];
    const char *bytes = (const char *)binary;
    kn_fake_binary_stamp(device->instance, device->index, stamp, sizeof(stamp));
    if (size < STAMP_SIZE + 8 || memcmp(stamp, bytes, STAMP_SIZE) != 0) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "fake",
                             "the binary is not one of this driver for this device");
    }
    kn_fake_program *program = (kn_fake_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        return kn_no_memory(diag, "fake");
    }
    if (!kn_fake_code_read(bytes + STAMP_SIZE + 8, size - STAMP_SIZE - 8, &program->code)) {
        free(program);
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "fake", "the binary is damaged");
    }
    program->device = device;
    atomic_init(&program->shapes, 0);
    atomic_init(&program->captured, kn_get_u64(bytes + STAMP_SIZE));
    describe_params(program);
    *out_program = program;
    return KILN_OK;
}

kiln_status kn_fake_program_load(void *device, const kiln_load_request *request, void **out_program,
                                 kiln_diag *diag)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    const kiln_artifact *binary = request->artifacts[request->artifact_count - 1];
    kn_fake_program *program = NULL;
    kiln_status status = kn_fake_call(&fake->instance->faults, FAKE_LOAD, NULL, diag);
    if (status == KILN_OK) {
        status = kn_fake_program_create(fake, binary->data, binary->size, &program, diag);
    }
    if (status == KILN_OK) {
        *out_program = program;
    }
    return status;
}

void kn_fake_program_unload(void *device, void *program)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    kn_fake_program *old = (kn_fake_program *)program;
    (void)kn_fake_call(&fake->instance->faults, FAKE_UNLOAD, NULL, NULL); /* counted */
    kn_fake_code_deinit(&old->code);
    free(old);
}

bool kn_fake_program_grew(void *device, void *program)
{
    (void)device;
    kn_fake_program *fake = (kn_fake_program *)program;
    return (atomic_load(&fake->shapes) & ~atomic_load(&fake->captured)) != 0;
}

/* The same binary, marked as finished for the shapes that were launched. */
kiln_status kn_fake_program_capture(void *device, void *program, kiln_artifact *artifact,
                                    kiln_diag *diag)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    kn_fake_program *grown = (kn_fake_program *)program;
    const kiln_host *host = fake->instance->host;
    char head[STAMP_SIZE + 8];
    kn_strbuf bytes;
    kiln_status status = kn_fake_call(&fake->instance->faults, FAKE_CAPTURE, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    uint64_t shapes = atomic_load(&grown->shapes) | atomic_load(&grown->captured);
    kn_strbuf_init(&bytes, 0);
    kn_fake_binary_stamp(fake->instance, fake->index, head, STAMP_SIZE);
    kn_put_u64(head + STAMP_SIZE, shapes);
    kn_strbuf_append(&bytes, head, sizeof(head));
    kn_fake_code_write(&grown->code, &bytes);
    if (!kn_strbuf_ok(&bytes) ||
        host->artifact_set(artifact, KILN_LANG_NONE, bytes.data, bytes.length) != KILN_OK) {
        status = kn_no_memory(diag, "fake");
    } else {
        atomic_store(&grown->captured, shapes);
    }
    kn_strbuf_deinit(&bytes);
    return status;
}

const char *kn_fake_program_entry(void *device, void *program, size_t index)
{
    (void)device;
    const kn_fake_program *fake = (const kn_fake_program *)program;
    return index < fake->code.kernel_count ? fake->code.kernels[index].name : NULL;
}

kiln_status kn_fake_program_params(void *device, void *program, const char *entry,
                                   const kiln_param **out_params, size_t *out_count,
                                   kiln_diag *diag)
{
    kn_fake_device *owner = (kn_fake_device *)device;
    const kn_fake_program *fake = (const kn_fake_program *)program;
    kiln_status status = kn_fake_call(&owner->instance->faults, FAKE_PARAMS, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    for (uint32_t i = 0; i < fake->code.kernel_count; i++) {
        if (strcmp(fake->code.kernels[i].name, entry) == 0) {
            *out_params = fake->params[i];
            *out_count = fake->code.kernels[i].param_count;
            return KILN_OK;
        }
    }
    return KILN_MISS;
}
