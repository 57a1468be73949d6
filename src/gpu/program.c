/* Loaded code, and its functions, looked up once a name. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "gpu/gpu.h"
#include "gpu/rtc.h"

/* The lowered name of an entry, from the facts of whichever stage has it; false without memory. */
static bool copy_lowered(kn_gpu_program *program, const kiln_load_request *request, size_t entry)
{
    const kn_gpu_device *device = program->device;
    char fact[32];
    kn_text_put_number(fact, sizeof(fact), KN_GPU_LOWERED_FACT, entry);
    for (size_t i = 0; i < request->artifact_count; i++) {
        size_t size = 0;
        const char *name =
            (const char *)device->host->artifact_fact(request->artifacts[i], fact, &size);
        if (name != NULL && size > 0) {
            program->lowered[entry] = kn_text_copy_n(name, size - 1);
            return program->lowered[entry] != NULL;
        }
    }
    return true;
}

static bool copy_entries(kn_gpu_program *program, const kiln_load_request *request)
{
    const kiln_source *source = request->source;
    const size_t count = source != NULL ? source->entry_count : 0;
    program->entries = (char **)calloc(count + 1, sizeof(char *));
    program->lowered = (char **)calloc(count + 1, sizeof(char *));
    if (program->entries == NULL || program->lowered == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        program->entries[i] = kn_text_copy(source->entries[i]);
        if (program->entries[i] == NULL) {
            return false;
        }
        program->entry_count++;
        if (!copy_lowered(program, request, i)) {
            return false;
        }
    }
    return true;
}

/* What is loaded. What the cache gives is whole; what a caller gives is looked at. */
static kiln_status find_image(const kn_gpu_device *device, const kiln_load_request *request,
                              const void **out_data, size_t *out_size, kiln_diag *diag)
{
    if (request->artifact_count > 0) {
        *out_data = request->artifacts[request->artifact_count - 1]->data;
        *out_size = request->artifacts[request->artifact_count - 1]->size;
        return KILN_OK;
    }
    *out_data = request->source->text;
    *out_size = request->source->length;
    if (device->vendor->image_is_whole == NULL ||
        device->vendor->image_is_whole(*out_data, *out_size)) {
        return KILN_OK;
    }
    const char *name = request->source->name;
    return kiln_diag_set(
        diag, KILN_E_INVALID, "rebuild it, or copy all of it", name != NULL ? name : "the program",
        "the binary is truncated: it has %zu bytes, fewer than its header says", *out_size);
}

static bool take_image(kn_gpu_program *program, const kiln_load_request *request, const void *data,
                       size_t size)
{
    const size_t count = request->artifact_count;
    const bool binary = count > 0 && request->artifacts[count - 1]->language == KILN_LANG_CUBIN;
    program->image_size = size;
    if (!request->stays || !binary) {
        program->image_copy = kn_text_copy_n((const char *)data, size); /* PTX wants a NUL */
        program->image = program->image_copy;
        return program->image != NULL;
    }
    program->image = data;
    return true;
}

kiln_status kn_gpu_program_load(void *opaque, const kiln_load_request *request, void **out_program,
                                kiln_diag *diag)
{
    kn_gpu_device *device = (kn_gpu_device *)opaque;
    const void *data = NULL;
    size_t size = 0;
    int before = 0;
    *out_program = NULL;
    kiln_status status = find_image(device, request, &data, &size, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_gpu_program *program = (kn_gpu_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        return kn_no_memory(diag, "program");
    }
    program->device = device;
    kn_mutex_init(&program->lock);
    kn_map_init(&program->functions);
    if (!take_image(program, request, data, size) || !copy_entries(program, request)) {
        status = kn_no_memory(diag, "program");
        goto cleanup;
    }
    status = device->vendor->enter(device, &before, diag);
    if (status == KILN_OK) {
        status = device->vendor->load(program, request->eager, diag);
        device->vendor->leave(device, before);
    }
cleanup:
    if (status != KILN_OK) {
        kn_gpu_program_unload(device, program);
        return status;
    }
    *out_program = program;
    return KILN_OK;
}

static void destroy_functions(kn_map *functions)
{
    size_t cursor = 0;
    void *value = NULL;
    while (kn_map_next(functions, &cursor, NULL, NULL, &value)) {
        kn_gpu_function *function = (kn_gpu_function *)value;
        free(function->params);
        free(function);
    }
    kn_map_deinit(functions);
}

void kn_gpu_program_unload(void *opaque, void *handle)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    kn_gpu_program *program = (kn_gpu_program *)handle;
    int before = 0;
    if (program == NULL) {
        return;
    }
    if ((program->library != NULL || program->module != NULL) &&
        device->vendor->enter(device, &before, NULL) == KILN_OK) {
        if (device->vendor->unload != NULL) {
            device->vendor->unload(program);
        } else {
            (void)device->driver->module_unload(program->module);
        }
        device->vendor->leave(device, before);
    }
    destroy_functions(&program->functions);
    for (size_t i = 0; i < program->entry_count; i++) {
        free(program->entries[i]);
        free(program->lowered[i]);
    }
    free(program->lowered);
    free(program->entries);
    free(program->image_copy);
    kn_mutex_deinit(&program->lock);
    free(program);
}

static kiln_status no_such_entry(const kn_gpu_program *program, const char *entry, kiln_diag *diag)
{
    char list[512] = {0};
    for (size_t i = 0; i < program->entry_count; i++) {
        size_t used = strlen(list);
        kn_text_putf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
                     program->entries[i]);
    }
    return kiln_diag_set(
        diag, KILN_MISS,
        "name it as the source does; a C++ kernel that is not extern \"C\" must be "
        "listed as an entry of the source",
        entry, "the program has no such kernel (entries: %s)",
        list[0] != '\0' ? list : "none were named");
}

static kiln_status find_function(kn_gpu_program *program, const char *entry,
                                 kn_gpu_function *function, kiln_diag *diag)
{
    const kn_gpu_vendor *vendor = program->device->vendor;
    const char *name = entry;
    int result = 0;
    for (size_t i = 0; i < program->entry_count; i++) {
        if (strcmp(program->entries[i], entry) == 0 && program->lowered[i] != NULL) {
            name = program->lowered[i];
        }
    }
    kiln_status status = vendor->find(program, name, function, &result, diag);
    if (status == KILN_OK && result == vendor->not_found) {
        return no_such_entry(program, entry, diag);
    }
    return status == KILN_OK
               ? kn_gpu_check(program->device, result, vendor->calls.module_function, diag)
               : status;
}

kiln_status kn_gpu_program_function(kn_gpu_program *program, const char *entry,
                                    kn_gpu_function **out_function, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_mutex_lock(&program->lock);
    kn_gpu_function *function =
        (kn_gpu_function *)kn_map_find(&program->functions, entry, strlen(entry));
    if (function == NULL) {
        function = (kn_gpu_function *)calloc(1, sizeof(*function));
        status = function == NULL ? kn_no_memory(diag, entry)
                                  : find_function(program, entry, function, diag);
        if (status == KILN_OK &&
            !kn_map_put(&program->functions, entry, strlen(entry), function, NULL)) {
            status = kn_no_memory(diag, entry);
        }
        if (status != KILN_OK && function != NULL) {
            free(function->params);
            free(function);
            function = NULL;
        }
    }
    kn_mutex_unlock(&program->lock);
    *out_function = function;
    return status;
}

int kn_gpu_function_threads(const kn_gpu_device *device, const kn_gpu_function *function)
{
    int threads = 0;
    return device->driver->function_attribute(&threads, KN_GPU_FUNCTION_THREADS,
                                              function->function) == 0 &&
                   threads > 0
               ? threads
               : 1024;
}

const char *kn_gpu_program_entry(void *device, void *handle, size_t index)
{
    const kn_gpu_program *program = (const kn_gpu_program *)handle;
    (void)device;
    return index < program->entry_count ? program->entries[index] : NULL;
}

kiln_status kn_gpu_program_params(void *opaque, void *program, const char *entry,
                                  const kiln_param **out_params, size_t *out_count, kiln_diag *diag)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    kn_gpu_function *function = NULL;
    int before = 0;
    kiln_status status = device->vendor->enter(device, &before, diag);
    *out_params = NULL;
    *out_count = 0;
    if (status != KILN_OK) {
        return status;
    }
    status = kn_gpu_program_function((kn_gpu_program *)program, entry, &function, diag);
    device->vendor->leave(device, before);
    /* Sizes are known but not all kinds, and work-group memory is not a parameter at all: the
     * launch itself compares count and sizes. */
    return status == KILN_OK ? KILN_E_UNSUPPORTED : status;
}
