/* Launches: arguments and shape are checked against the kernel's description when the launch is
 * put in the queue, so that nothing can fail later; then its groups run on the pool. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/device.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"

enum { FAVOURITE_ITEMS = 1024, FEWEST_ITEMS = 64, GROUPS_PER_WORKER = 4 };

static kiln_status wrong_shape(const cpu_launch *launch, kiln_diag *diag, const char *why)
{
    char what[256];
    kn_text_putf(what, sizeof(what), "launching %s", launch->kernel->name);
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "%s", why);
}

/* --- shape ------------------------------------------------------------------------------------ */

/* Wide groups for long loops over x, but some for every worker. */
static void choose_local(const kiln_sys_launch *request, uint32_t workers, size_t *local)
{
    const uint64_t items = request->global[0] * request->global[1] * request->global[2];
    uint64_t want = items / ((uint64_t)workers * GROUPS_PER_WORKER);
    want = want < FEWEST_ITEMS ? FEWEST_ITEMS : want;
    want = want > FAVOURITE_ITEMS ? FAVOURITE_ITEMS : want;
    local[0] = (size_t)(request->global[0] < want ? request->global[0] : want);
    want /= local[0];
    local[1] = (size_t)(request->global[1] < want ? request->global[1] : want);
    local[1] = local[1] > 0 ? local[1] : 1;
    local[2] = 1;
}

static kiln_status check_local(const cpu_launch *launch, kiln_diag *diag)
{
    const kiln_cpu_kernel *kernel = launch->kernel;
    const size_t *local = launch->shape.local;
    size_t items = 1;
    for (int i = 0; i < 3; i++) {
        if (local[i] == 0 || local[i] > CPU_GROUP_LIMIT) {
            return wrong_shape(launch, diag, "a dimension of the work-group is 0 or above 4096");
        }
        items *= local[i];
    }
    if (items > CPU_GROUP_LIMIT) {
        return wrong_shape(launch, diag, "the work-group has more than 4096 items");
    }
    if (kernel->group[0] != 0 && (local[0] != kernel->group[0] || local[1] != kernel->group[1] ||
                                  local[2] != kernel->group[2])) {
        char why[128];
        kn_text_putf(why, sizeof(why), "its work-group is fixed to %ux%ux%u, not %zux%zux%zu",
                     (unsigned)kernel->group[0], (unsigned)kernel->group[1],
                     (unsigned)kernel->group[2], local[0], local[1], local[2]);
        return wrong_shape(launch, diag, why);
    }
    return KILN_OK;
}

static kiln_status set_shape(cpu_launch *launch, const kiln_sys_launch *request, uint32_t workers,
                             kiln_diag *diag)
{
    kiln_cpu_group *shape = &launch->shape;
    bool chosen = false;
    size_t groups = 1;
    size_t items = 1;
    shape->dims = request->dims;
    for (int i = 0; i < 3; i++) {
        if (request->global[i] == 0 || request->global[i] > SIZE_MAX - request->offset[i] ||
            !kn_mul_size(items, (size_t)request->global[i], &items)) {
            return wrong_shape(launch, diag, "a dimension of the range is 0, or it is too large");
        }
        shape->global[i] = (size_t)request->global[i];
        shape->offset[i] = (size_t)request->offset[i];
        shape->local[i] = (size_t)request->local[i];
        chosen = chosen || request->local[i] != 0;
    }
    if (!chosen && launch->kernel->group[0] != 0) {
        for (int i = 0; i < 3; i++) {
            shape->local[i] = launch->kernel->group[i];
        }
    } else if (!chosen) {
        choose_local(request, workers, shape->local);
    }
    kiln_status status = check_local(launch, diag);
    for (int i = 0; status == KILN_OK && i < 3; i++) {
        const size_t local = shape->local[i] > 0 ? shape->local[i] : 1;
        shape->count[i] = (shape->global[i] - 1) / local + 1;
        groups *= shape->count[i]; /* at most `items` */
    }
    launch->groups = groups;
    return status;
}

/* --- arguments -------------------------------------------------------------------------------- */

static kiln_status wrong_arg(const cpu_launch *launch, uint32_t index, kiln_diag *diag,
                             const char *why)
{
    char what[256];
    kn_text_putf(what, sizeof(what), "argument %u (%.64s) of %.64s", (unsigned)index,
                 launch->kernel->params[index].name, launch->kernel->name);
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "%s", why);
}

static kiln_arg_kind kind_of(const kiln_cpu_param *param)
{
    if (param->access == KILN_CPU_VALUE) {
        return KILN_ARG_VALUE;
    }
    return param->access == KILN_CPU_LOCAL ? KILN_ARG_LOCAL : KILN_ARG_BUFFER;
}

static kiln_status set_buffer(cpu_launch *launch, uint32_t index, const kiln_sys_arg *arg,
                              kiln_diag *diag)
{
    cpu_buffer *buffer = (cpu_buffer *)arg->buffer;
    if (buffer == NULL) {
        return wrong_arg(launch, index, diag, "it is a buffer, but none was given");
    }
    /* Memory of kiln's own is aligned for all types; what others own may lie anywhere. */
    if (arg->offset > buffer->size ||
        ((uintptr_t)buffer->data + arg->offset) % launch->kernel->params[index].align != 0) {
        return wrong_arg(launch, index, diag,
                         "its offset is past the buffer's end, or not aligned for its type");
    }
    launch->buffers[index] = kn_cpu_buffer_retain(buffer);
    launch->args[index] = buffer->data + arg->offset;
    return KILN_OK;
}

static kiln_status set_value(cpu_launch *launch, uint32_t index, const kiln_sys_arg *arg,
                             size_t *used, kiln_diag *diag)
{
    const kiln_cpu_param *param = &launch->kernel->params[index];
    if (arg->value == NULL || arg->size != param->size) {
        char why[128];
        kn_text_putf(why, sizeof(why), "%.48s has %zu bytes, %zu were given", param->type,
                     param->size, arg->value != NULL ? arg->size : 0);
        return wrong_arg(launch, index, diag, why);
    }
    memcpy(launch->values + *used, arg->value, arg->size);
    launch->args[index] = launch->values + *used;
    *used += (param->size + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
    return KILN_OK;
}

static kiln_status set_local(cpu_launch *launch, uint32_t index, const kiln_sys_arg *arg,
                             kiln_diag *diag)
{
    if (arg->size > CPU_LOCAL_LIMIT || launch->scratch_each > CPU_LOCAL_LIMIT - arg->size) {
        return wrong_arg(launch, index, diag, "a work-group has at most 1 MiB of memory");
    }
    launch->local_offset[index] = launch->scratch_each;
    launch->scratch_each += (arg->size + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
    return KILN_OK;
}

static kiln_status set_args(cpu_launch *launch, const kiln_sys_launch *request, kiln_diag *diag)
{
    const kiln_cpu_kernel *kernel = launch->kernel;
    kiln_status status = KILN_OK;
    size_t bytes = 0;
    size_t used = 0;
    if (request->arg_count != kernel->param_count) {
        char what[256];
        kn_text_putf(what, sizeof(what), "launching %s", kernel->name);
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what,
                             "it takes %u arguments, %zu were given", (unsigned)kernel->param_count,
                             request->arg_count);
    }
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        if (kind_of(&kernel->params[i]) == KILN_ARG_VALUE) {
            bytes += kernel->params[i].size + CPU_ALIGNMENT;
        }
    }
    launch->values = (unsigned char *)kn_cpu_memory_create(bytes);
    if (launch->values == NULL) {
        return kn_no_memory(diag, "launching a kernel");
    }
    for (uint32_t i = 0; status == KILN_OK && i < kernel->param_count; i++) {
        const kiln_sys_arg *arg = &request->args[i];
        const kiln_arg_kind kind = kind_of(&kernel->params[i]);
        if (arg->kind != kind) {
            static const char *const texts[] = {
                "", "it is a buffer, but something else was given",
                "it is a value, but something else was given",
                "it is work-group memory, but something else was given"};
            status = wrong_arg(launch, i, diag, texts[kind]);
        } else if (kind == KILN_ARG_BUFFER) {
            status = set_buffer(launch, i, arg, diag);
        } else if (kind == KILN_ARG_VALUE) {
            status = set_value(launch, i, arg, &used, diag);
        } else {
            status = set_local(launch, i, arg, diag);
        }
    }
    return status;
}

kiln_status kn_cpu_launch_create(cpu_instance *cpu, const kiln_sys_launch *request,
                                 cpu_launch **out_launch, kiln_diag *diag)
{
    const uint32_t workers = kn_cpu_pool_workers(&cpu->pool);
    cpu_launch *launch = (cpu_launch *)calloc(1, sizeof(*launch));
    if (launch == NULL) {
        return kn_no_memory(diag, "launching a kernel");
    }
    launch->program = kn_cpu_program_retain((cpu_program *)request->program);
    kiln_status status =
        kn_cpu_program_find(launch->program, request->entry, &launch->kernel, diag);
    if (status == KILN_MISS) {
        status = KILN_E_INVALID;
        if (diag != NULL) {
            diag->status = status;
        }
    }
    if (status == KILN_OK) {
        status = set_shape(launch, request, workers, diag);
    }
    if (status == KILN_OK) {
        status = set_args(launch, request, diag);
    }
    if (status == KILN_OK && launch->scratch_each > 0) {
        launch->scratch = (unsigned char *)kn_cpu_memory_create(launch->scratch_each * workers);
        status = launch->scratch != NULL ? KILN_OK : kn_no_memory(diag, "launching a kernel");
    }
    if (status != KILN_OK) {
        kn_cpu_launch_destroy(launch);
        return status;
    }
    *out_launch = launch;
    return KILN_OK;
}

void kn_cpu_launch_destroy(cpu_launch *launch)
{
    if (launch == NULL) {
        return;
    }
    for (size_t i = 0; i < CPU_PARAM_LIMIT; i++) {
        kn_cpu_buffer_release(launch->buffers[i]);
    }
    kn_cpu_memory_release(launch->values);
    kn_cpu_memory_release(launch->scratch);
    kn_cpu_program_release(launch->program);
    free(launch);
}

/* Groups [first, last), counted x first. */
static void run_groups(void *user, size_t first, size_t last, uint32_t worker)
{
    const cpu_launch *launch = (const cpu_launch *)user;
    const kiln_cpu_kernel *kernel = launch->kernel;
    kiln_cpu_group group = launch->shape;
    void *args[CPU_PARAM_LIMIT];
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        args[i] = launch->args[i];
        if (kernel->params[i].access == KILN_CPU_LOCAL && launch->scratch != NULL) {
            args[i] = launch->scratch + launch->scratch_each * worker + launch->local_offset[i];
        }
    }
    for (size_t at = first; at < last; at++) {
        size_t rest = at;
        for (int i = 0; i < 3; i++) {
            group.id[i] = rest % group.count[i];
            rest /= group.count[i];
            const size_t begin = group.id[i] * group.local[i];
            const size_t left = group.global[i] - begin;
            group.first[i] = group.offset[i] + begin;
            group.last[i] = group.first[i] + (left < group.local[i] ? left : group.local[i]);
        }
        kernel->run(&group, args);
    }
}

void kn_cpu_launch_run(cpu_instance *cpu, cpu_launch *launch)
{
    kn_cpu_pool_run(&cpu->pool, run_groups, launch, launch->groups);
}
