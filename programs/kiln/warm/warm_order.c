/* Orders kernels by the cache's records of their uses: by the key of the first stage, as the
 * runtime counts them. */
#include "warm/warm_order.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/explain.h>
#include <kiln/unstable/warm.h>

size_t warm_form_count(const warm_item *item)
{
    return item->form != NULL ? 1 : item->kernel->form_count;
}

kiln_status warm_source_read(const warm_item *item, size_t index, kernel_source *out_source,
                             kiln_diag *diag)
{
    return kernel_source_read_file(item->kernel,
                                   item->form != NULL ? item->form : &item->kernel->forms[index],
                                   "compile", out_source, diag);
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
        kernel_source own;
        kiln_key key = none;
        kiln_status status = warm_source_read(item, i, &own, NULL);
        if (status == KILN_OK) {
            status = kiln_compile_plan(runtime, target, &own.source, take_first, &key, NULL);
        }
        kernel_source_deinit(&own);
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
