/* Orders kernels by the cache's records of their uses: by the key of the first stage, as the
 * runtime counts them. */
#include "warm/warm_order.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/explain.h>
#include <kiln/unstable/warm.h>

#include "cli/host.h"
#include "kernel/kernel_build.h"

static const size_t max_source = (size_t)64 << 20;

size_t warm_form_count(const warm_item *item)
{
    return item->form != NULL ? 1 : item->kernel->form_count;
}

kiln_status warm_source_read(const warm_item *item, size_t index, warm_source *out_source,
                             kiln_diag *diag)
{
    const struct kiln_cpu_kernel *builtin = NULL;
    const kernel_variant *variant = item->variant;
    kernel_form *form = &out_source->form;
    kiln_source *source = &out_source->source;
    memset(out_source, 0, sizeof(*out_source));
    *form = item->form != NULL ? *item->form : item->kernel->forms[index];
    if (variant != NULL) {
        form->path = variant->path;
        form->entry = variant->entry;
        form->options = variant->options;
        form->option_count = variant->option_count;
    }
    if (form->path == NULL || !kernel_source_init(item->kernel, form, source, &builtin)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, item->kernel->name,
                             "it is built into the program: there is nothing to compile");
    }
    if (variant != NULL) {
        source->defines = variant->defines;
        source->define_count = variant->define_count;
    }
    kiln_status status =
        host_read_file(form->path, max_source, &out_source->text, &source->length, diag);
    source->text = out_source->text;
    source->name = host_spell(form->path, out_source->name, sizeof(out_source->name));
    return status;
}

void warm_source_deinit(warm_source *source)
{
    free(source->text);
    source->text = NULL;
}

static kiln_status take_first(void *user, const kiln_explanation *stage)
{
    memcpy(user, &stage->key, sizeof(stage->key));
    return KILN_MISS; /* the rest does not matter */
}

void warm_find_uses(kiln_runtime *runtime, const char *target, kiln_cache *cache, warm_item *item)
{
    static const kiln_key none;
    for (size_t i = 0; runtime != NULL && i < warm_form_count(item); i++) {
        warm_source own;
        kiln_key key = none;
        kiln_status status = warm_source_read(item, i, &own, NULL);
        if (status == KILN_OK) {
            status = kiln_compile_plan(runtime, target, &own.source, take_first, &key, NULL);
        }
        warm_source_deinit(&own);
        if (status == KILN_MISS && memcmp(&key, &none, sizeof(key)) != 0) {
            kiln_cache_uses(cache, &key, 1, &item->uses, &item->last_use_ns);
            return;
        }
    }
}

static int compare_uses(const void *left, const void *right)
{
    const warm_item *a = left;
    const warm_item *b = right;
    if (a->uses != b->uses) {
        return a->uses > b->uses ? -1 : 1;
    }
    if (a->last_use_ns != b->last_use_ns) {
        return a->last_use_ns > b->last_use_ns ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

void warm_order(warm_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i].place = i;
    }
    if (count > 1) {
        qsort(items, count, sizeof(*items), compare_uses);
    }
}
