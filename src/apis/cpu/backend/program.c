/* Programs: the kernels of a loaded object, or those that the program brought along. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/device.h"
#include "apis/cpu/backend/object.h"
#include "base/diag.h"
#include "base/text.h"

static const char loading[] = "loading a cpu program"; /* what fails without memory */

enum { KERNEL_LIMIT = 4096 };

static bool sound_param(const kiln_cpu_param *param)
{
    return param->name != NULL && param->type != NULL && param->access >= KILN_CPU_IN &&
           param->access <= KILN_CPU_LOCAL && param->align > 0 &&
           (param->align & (param->align - 1)) == 0 && param->align <= CPU_ALIGNMENT;
}

static bool sound_kernel(const kiln_cpu_kernel *kernel)
{
    const uint32_t *group = kernel->group;
    if (kernel->abi != KILN_CPU_ABI || kernel->param_count > CPU_PARAM_LIMIT ||
        kernel->name == NULL || kernel->run == NULL ||
        (kernel->params == NULL && kernel->param_count > 0)) {
        return false;
    }
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        if (!sound_param(&kernel->params[i])) {
            return false;
        }
    }
    for (int i = 0; i < 3; i++) { /* all or none are given */
        if (group[i] > CPU_GROUP_LIMIT || (group[i] == 0) != (group[0] == 0)) {
            return false;
        }
    }
    return (uint64_t)group[0] * group[1] * group[2] <= CPU_GROUP_LIMIT;
}

static void put_param(const kiln_cpu_param *from, kiln_param *to)
{
    *to = (kiln_param){.kind = KILN_ARG_BUFFER};
    kn_text_put(to->name, sizeof(to->name), from->name);
    if (from->access == KILN_CPU_VALUE) {
        to->kind = KILN_ARG_VALUE;
        to->size = from->size;
        kn_text_put(to->type, sizeof(to->type), from->type);
        return;
    }
    if (from->access == KILN_CPU_LOCAL) {
        to->kind = KILN_ARG_LOCAL;
    }
    kn_text_putf(to->type, sizeof(to->type), "%s%s*", from->access == KILN_CPU_IN ? "const " : "",
                 from->type);
}

static kiln_status add_kernel(cpu_program *program, const kiln_cpu_kernel *kernel,
                              kiln_status refused, kiln_diag *diag)
{
    const size_t at = program->count;
    if (!sound_kernel(kernel)) {
        return kiln_diag_set(diag, refused, "define it with KILN_KERNEL of this kiln's kiln/cpu.h",
                             "loading a cpu program",
                             "a kernel's description is damaged or of "
                             "another version");
    }
    program->params[at] = (kiln_param *)calloc(kernel->param_count + 1, sizeof(kiln_param));
    if (program->params[at] == NULL) {
        return kn_no_memory(diag, loading);
    }
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        put_param(&kernel->params[i], &program->params[at][i]);
    }
    program->kernels[at] = kernel;
    program->count++;
    return KILN_OK;
}

static bool make_room(cpu_program *program, size_t count)
{
    program->kernels = (const kiln_cpu_kernel **)calloc(count + 1, sizeof(const kiln_cpu_kernel *));
    program->params = (kiln_param **)calloc(count + 1, sizeof(kiln_param *));
    return program->kernels != NULL && program->params != NULL;
}

static kiln_status load_builtin(cpu_program *program, const kiln_source *source, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (source->builtin_count == 0 || source->builtin == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "list them with KILN_KERNEL_REF",
                             "loading a cpu program", "the source names no kernel");
    }
    if (source->builtin_count > KERNEL_LIMIT) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "loading a cpu program",
                             "it has more than %d kernels", KERNEL_LIMIT);
    }
    if (!make_room(program, source->builtin_count)) {
        return kn_no_memory(diag, loading);
    }
    for (size_t i = 0; status == KILN_OK && i < source->builtin_count; i++) {
        status = source->builtin[i] == NULL
                     ? kiln_diag_set(diag, KILN_E_INVALID, NULL, "loading a cpu program",
                                     "kernel %zu of the source is NULL", i)
                     : add_kernel(program, source->builtin[i], KILN_E_INVALID, diag);
    }
    return status;
}

static kiln_status bind_kernels(cpu_program *program, const kiln_artifact *artifact,
                                kiln_diag *diag)
{
    size_t count = 0;
    kiln_status status = KILN_OK;
    const char *name = NULL;
    while (count < KERNEL_LIMIT && kn_cpu_object_kernel(artifact->data, artifact->size, count)) {
        count++;
    }
    if (!make_room(program, count)) {
        return kn_no_memory(diag, loading);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        char symbol[512];
        name = kn_cpu_object_kernel(artifact->data, artifact->size, i);
        kn_text_putf(symbol, sizeof(symbol), CPU_KERNEL_PREFIX "%s", name);
        const kiln_cpu_kernel *kernel =
            (const kiln_cpu_kernel *)kn_dylib_symbol(program->object, symbol);
        status = kernel == NULL
                     ? kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading a cpu program",
                                     "its kernel %.128s cannot be found", name)
                     : add_kernel(program, kernel, KILN_E_REJECTED, diag);
    }
    return status;
}

static kiln_status load_object(const cpu_instance *cpu, cpu_program *program,
                               const kiln_load_request *request, kiln_diag *diag)
{
    const char *why = "there is no artifact";
    const cpu_target *target = request->target != NULL ? kn_cpu_target_of(request->target) : NULL;
    if (target != NULL && !kn_cpu_target_runs_on(target, &cpu->native)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading a cpu program",
                             "it needs processor features that this one lacks");
    }
    const kiln_artifact *artifact =
        request->artifact_count > 0 ? request->artifacts[request->artifact_count - 1] : NULL;
    if (artifact == NULL ||
        !kn_cpu_object_check(artifact->data, artifact->size, cpu->native.architecture, &why)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading a cpu program",
                             "the shared object is unusable: %s", why);
    }
    kiln_status status =
        kn_dylib_open_memory(artifact->data, artifact->size, NULL, &program->object, diag);
    return status == KILN_OK ? bind_kernels(program, artifact, diag) : status;
}

/* Entries the user named must be there. */
static kiln_status check_entries(const cpu_program *program, const kiln_source *source,
                                 kiln_diag *diag)
{
    for (size_t i = 0; source != NULL && i < source->entry_count; i++) {
        const kiln_cpu_kernel *kernel = NULL;
        if (kn_cpu_program_find(program, source->entries[i], &kernel, diag) != KILN_OK) {
            if (diag != NULL) {
                diag->status = KILN_E_INVALID;
            }
            return KILN_E_INVALID;
        }
    }
    return KILN_OK;
}

kiln_status kn_cpu_program_load(void *device, const kiln_load_request *request, void **out_program,
                                kiln_diag *diag)
{
    const cpu_instance *cpu = ((const cpu_device *)device)->cpu;
    const bool builtin = request->source != NULL && request->source->language == KILN_LANG_BUILTIN;
    cpu_program *program = (cpu_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        return kn_no_memory(diag, loading);
    }
    atomic_init(&program->references, 1u);
    kiln_status status = builtin ? load_builtin(program, request->source, diag)
                                 : load_object(cpu, program, request, diag);
    if (status == KILN_OK) {
        status = check_entries(program, request->source, diag);
    }
    if (status != KILN_OK) {
        kn_cpu_program_release(program);
        return status;
    }
    *out_program = program;
    return KILN_OK;
}

void kn_cpu_program_unload(void *device, void *program)
{
    (void)device;
    kn_cpu_program_release((cpu_program *)program);
}

cpu_program *kn_cpu_program_retain(cpu_program *program)
{
    (void)atomic_fetch_add(&program->references, 1u);
    return program;
}

void kn_cpu_program_release(cpu_program *program)
{
    if (program == NULL || atomic_fetch_sub(&program->references, 1u) != 1u) {
        return;
    }
    for (size_t i = 0; i < program->count; i++) {
        free(program->params[i]);
    }
    free(program->params);
    free(program->kernels);
    kn_dylib_close(program->object);
    free(program);
}

const char *kn_cpu_program_entry(void *device, void *program, size_t index)
{
    const cpu_program *p = (const cpu_program *)program;
    (void)device;
    return index < p->count ? p->kernels[index]->name : NULL;
}

static size_t index_of(const cpu_program *program, const char *entry)
{
    size_t i = 0;
    while (i < program->count && strcmp(program->kernels[i]->name, entry) != 0) {
        i++;
    }
    return i;
}

static kiln_status no_kernel(const cpu_program *program, const char *entry, kiln_diag *diag)
{
    kn_strbuf list;
    kn_strbuf_init(&list, 1024);
    for (size_t i = 0; i < program->count && list.length < 400; i++) {
        kn_strbuf_printf(&list, "%s%.64s", i > 0 ? ", " : "", program->kernels[i]->name);
    }
    kiln_status status =
        kiln_diag_set(diag, KILN_MISS, "name one of these", "kernel of a cpu program",
                      "there is no \"%.64s\"; there are: %s", entry, kn_strbuf_text(&list));
    kn_strbuf_deinit(&list);
    return status;
}

kiln_status kn_cpu_program_find(const cpu_program *program, const char *entry,
                                const kiln_cpu_kernel **out_kernel, kiln_diag *diag)
{
    const size_t at = index_of(program, entry);
    if (at == program->count) {
        return no_kernel(program, entry, diag);
    }
    *out_kernel = program->kernels[at];
    return KILN_OK;
}

kiln_status kn_cpu_program_params(void *device, void *program, const char *entry,
                                  const kiln_param **out_params, size_t *out_count, kiln_diag *diag)
{
    const cpu_program *p = (const cpu_program *)program;
    const size_t at = index_of(p, entry);
    (void)device;
    if (at == p->count) {
        return no_kernel(p, entry, diag);
    }
    *out_params = p->params[at];
    *out_count = p->kernels[at]->param_count;
    return KILN_OK;
}
