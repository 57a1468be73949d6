/* Kernels times targets, and the variants of each: all of them, or the one that kiln tune chose. */
#include "warm/warm_list.h"

#include <stdlib.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/opt.h"
#include "kernel/kernel_data.h"
#include "kernel/kernel_variants.h"

static size_t most_items(const cli_kernel *kernel)
{
    size_t count = 1;
    for (size_t i = 0; i < kernel->form_count; i++) {
        count += 1 + kernel->forms[i].variant_count;
    }
    return count;
}

/* One form, or one of its variants. */
static bool add_item(warm_list *list, const warm_item *common, const kernel_form *form,
                     const kernel_variant *variant, cli_pool *pool)
{
    warm_item *item = &list->items[list->count++];
    *item = *common;
    item->form = form;
    item->variant = variant;
    item->variant_name =
        pool_format(pool, "%s%s%s", kiln_language_name(form->language), variant != NULL ? "/" : "",
                    variant != NULL ? variant->name : "");
    return item->variant_name != NULL;
}

static bool add_variants(warm_list *list, const warm_item *common, cli_pool *pool)
{
    bool good = true;
    for (size_t i = 0; i < common->kernel->form_count; i++) {
        const kernel_form *form = &common->kernel->forms[i];
        good = add_item(list, common, form, NULL, pool) && good;
        for (size_t j = 0; j < form->variant_count; j++) {
            good = add_item(list, common, form, &form->variants[j], pool) && good;
        }
    }
    return good;
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
static bool add_chosen(warm_list *list, const warm_item *common, kiln_device *device,
                       cli_pool *pool)
{
    kernel_variants *variants = NULL;
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    bool good = true;
    if (kernel_variants_create(common->kernel, &variants, NULL) == KILN_OK &&
        kiln_tuned_find(device, &variants->kernel, &tuning, NULL) == KILN_OK && tuning.known &&
        tuning.variant != tuning.baseline) {
        const kernel_origin *origin = &variants->origins[tuning.variant];
        const kernel_variant *chosen = NULL;
        for (size_t i = 0; i < origin->form->variant_count; i++) {
            const kernel_variant *one = &origin->form->variants[i];
            chosen = origin->shape == &one->shape ? one : chosen;
        }
        good = add_item(list, common, origin->form, chosen, pool);
    }
    kernel_variants_destroy(variants);
    return good;
}

static bool add_kernel(warm_list *list, cli_kernel *kernel, const cli_targets *targets,
                       size_t target, bool variants, cli_pool *pool)
{
    const warm_item common = {
        .name = kernel->name, .kernel = kernel, .target = target, .variant_name = ""};
    const cli_target *to = &targets->items[target];
    if (to->runtime == NULL || !kernel_has_variants(kernel)) {
        list->items[list->count++] = common;
        return true;
    }
    if (variants) {
        return add_variants(list, &common, pool);
    }
    kiln_device *device = find_device(to);
    list->items[list->count++] = common;
    /* Without the data files that sizes come from there is no knowing what was chosen for these. */
    const bool known = kernel_data_settle(kernel, NULL) == KILN_OK || kernel->size_count == 0;
    return device == NULL || !known || add_chosen(list, &common, device, pool);
}

kiln_status warm_list_make(cli_manifest *manifests, size_t manifest_count,
                           const cli_targets *targets, bool variants, cli_pool *pool,
                           warm_list *out_list, kiln_diag *diag)
{
    size_t most = 1;
    for (size_t i = 0; i < manifest_count; i++) {
        for (size_t k = 0; k < manifests[i].count; k++) {
            most += targets->count * most_items(&manifests[i].kernels[k]);
        }
    }
    *out_list = (warm_list){.items = pool_array(pool, most, sizeof(warm_item))};
    bool good = out_list->items != NULL;
    for (size_t t = 0; t < targets->count && good; t++) {
        for (size_t i = 0; i < manifest_count && good; i++) {
            for (size_t k = 0; k < manifests[i].count && good; k++) {
                good = add_kernel(out_list, &manifests[i].kernels[k], targets, t, variants, pool);
            }
        }
    }
    return good ? KILN_OK : diag_no_memory(diag, "reading manifests");
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
