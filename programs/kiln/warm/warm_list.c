/* Kernels times targets, and the variants of each: all of them, or the one that kiln tune chose. */
#include "warm/warm_list.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "cli/diag.h"
#include "cli/opt.h"
#include "kernel/kernel_variants.h"

static void add_item(warm_list *list, const warm_item *common, const kernel_form *form)
{
    warm_item *item = &list->items[list->count++];
    *item = *common;
    item->form = form;
    item->variant_name = form->name;
}

/* NULL unless the target is a device of this machine. */
static kiln_device *find_device(const cli_target *target)
{
    const char *index = strchr(target->name, ':');
    if (index == NULL || index[1] == '\0' || strlen(index + 1) > 4 ||
        strspn(index + 1, "0123456789") != strlen(index + 1)) {
        return NULL;
    }
    return kiln_runtime_device(target->runtime, strtoul(index + 1, NULL, 10));
}

/* What kiln tune chose, if it is not what is made anyway. Nothing that goes wrong here matters. */
static void add_chosen(warm_list *list, const warm_item *common, kiln_device *device)
{
    kernel_variants *variants = NULL;
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    if (kernel_variants_create(common->kernel, &variants, NULL) == KILN_OK &&
        kiln_tuned_find(device, &variants->kernel, &tuning, NULL) == KILN_OK && tuning.known &&
        tuning.variant != tuning.baseline) {
        add_item(list, common, variants->sources[tuning.variant].form);
    }
    kernel_variants_destroy(variants);
}

static void add_kernel(warm_list *list, const cli_kernel *kernel, const cli_targets *targets,
                       size_t target, bool variants)
{
    const warm_item common = {
        .name = kernel->name, .kernel = kernel, .target = target, .variant_name = ""};
    const cli_target *to = &targets->items[target];
    const kernel_form *form = NULL;
    if (to->runtime == NULL || kernel->variant_count == 0 || !variants) {
        list->items[list->count++] = common;
        kiln_device *device =
            to->runtime != NULL && kernel->variant_count > 0 ? find_device(to) : NULL;
        if (device != NULL) {
            add_chosen(list, &common, device);
        }
        return;
    }
    for (size_t i = 0; (form = kernel_variants_form(kernel, i)) != NULL; i++) {
        add_item(list, &common, form);
    }
}

kiln_status warm_list_make(const cli_manifest *manifests, size_t manifest_count,
                           const cli_targets *targets, bool variants, cli_pool *pool,
                           warm_list *out_list, kiln_diag *diag)
{
    size_t most = 1;
    for (size_t i = 0; i < manifest_count; i++) {
        for (size_t k = 0; k < manifests[i].count; k++) {
            const cli_kernel *kernel = &manifests[i].kernels[k];
            most += targets->count * (1 + kernel->form_count + kernel->variant_count);
        }
    }
    *out_list = (warm_list){.items = pool_array(pool, most, sizeof(warm_item))};
    if (out_list->items == NULL) {
        return diag_no_memory(diag, "reading manifests");
    }
    for (size_t t = 0; t < targets->count; t++) {
        for (size_t i = 0; i < manifest_count; i++) {
            for (size_t k = 0; k < manifests[i].count; k++) {
                add_kernel(out_list, &manifests[i].kernels[k], targets, t, variants);
            }
        }
    }
    return KILN_OK;
}

kiln_status warm_shard_read(const char *text, warm_shard *out_shard, kiln_diag *diag)
{
    const char *slash = strchr(text, '/');
    char index[24];
    const size_t length = slash != NULL ? (size_t)(slash - text) : 0;
    if (length > 0 && length < sizeof(index)) {
        memcpy(index, text, length);
        index[length] = '\0';
        if (opt_parse_count(index, &out_shard->index) &&
            opt_parse_count(slash + 1, &out_shard->count) && out_shard->index >= 1 &&
            out_shard->index <= out_shard->count) {
            return KILN_OK;
        }
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "give I/N with I from 1 to N", "--shard",
                         "\"%.60s\" is not a part of a whole", text);
}

void warm_list_take_shard(warm_list *list, const warm_shard *shard)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (shard->count == 0 || i % shard->count == shard->index - 1) {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

/* Whether the list has anything else of this kernel for this target: kept already, or to come. */
static bool has_other(const warm_list *list, size_t kept, size_t index)
{
    const warm_item *item = &list->items[index];
    for (size_t i = 0; i < list->count; i++) {
        const warm_item *other = &list->items[i];
        const bool counts = i < kept || (i > index && other->outcome != WARM_PASSED_OVER);
        if (counts && other->kernel == item->kernel && other->target == item->target) {
            return true;
        }
    }
    return false;
}

void warm_list_settle(warm_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        warm_item *item = &list->items[i];
        if (item->outcome == WARM_PASSED_OVER) {
            if (has_other(list, kept, i)) {
                continue;
            }
            item->outcome = WARM_SKIPPED;
            item->variant_name = "";
        }
        list->items[kept++] = *item;
    }
    list->count = kept;
}
