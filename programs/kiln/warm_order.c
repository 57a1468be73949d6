/* Orders kernels by the cache's records of their uses: by the key of the first stage, as the
 * runtime counts them. */
#include "warm_order.h"

#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "kernel_build.h"

static const size_t max_source = (size_t)64 << 20;

kiln_status warm_form_read(const cli_kernel *kernel, const kernel_form *form,
                           kiln_source *out_source, char **out_text, char *name, size_t name_size,
                           kiln_diag *diag)
{
    const struct kiln_cpu_kernel *builtin = NULL;
    *out_text = NULL;
    if (form->path == NULL || !kernel_source_init(kernel, form, out_source, &builtin)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, kernel->name,
                             "it is built into the program: there is nothing to compile");
    }
    kiln_status status =
        host_read_file(form->path, max_source, out_text, &out_source->length, diag);
    out_source->text = *out_text;
    out_source->name = host_spell(form->path, name, name_size);
    return status;
}

static kiln_status take_first(void *user, const kiln_explanation *stage)
{
    memcpy(user, &stage->key, sizeof(stage->key));
    return KILN_MISS; /* the rest does not matter */
}

void warm_find_uses(kiln_runtime *runtime, const char *target, kiln_cache *cache, warm_item *item)
{
    static const kiln_key none;
    for (size_t i = 0; runtime != NULL && i < item->kernel->form_count; i++) {
        kiln_source source;
        kiln_key key = none;
        char *text = NULL;
        char name[1024];
        kiln_status status = warm_form_read(item->kernel, &item->kernel->forms[i], &source, &text,
                                            name, sizeof(name), NULL);
        /* take_first ends the walk: that it says so is no failure. */
        const bool planned =
            status == KILN_OK &&
            kiln_compile_plan(runtime, target, &source, take_first, &key, NULL) != KILN_E_NOMEM;
        free(text);
        if (planned && memcmp(&key, &none, sizeof(key)) != 0) {
            kiln_cache_uses(cache, &key, 1, &item->uses);
            return;
        }
    }
}

static int compare(const void *left, const void *right)
{
    const warm_item *a = left;
    const warm_item *b = right;
    if (a->uses.count != b->uses.count) {
        return a->uses.count > b->uses.count ? -1 : 1;
    }
    if (a->uses.last_ns != b->uses.last_ns) {
        return a->uses.last_ns > b->uses.last_ns ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

void warm_order(warm_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i].place = i;
    }
    if (count > 1) {
        qsort(items, count, sizeof(*items), compare);
    }
}
