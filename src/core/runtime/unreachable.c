/* Removing what was made for drivers and devices that have gone: what each backend says today of
 * each of its devices, compared with the recipe of each entry. Where anything is in doubt, the
 * entry stays. */
#include "kiln/unstable/unreachable.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "core/runtime/runtime.h"
#include "core/runtime/surroundings.h"
#include "core/runtime/target.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "store/cache/cache.h"

/* What a backend says of a stage on one device. */
typedef struct today {
    const char *backend;
    const kiln_stage *stage;
    uint32_t device;
    kiln_recipe *recipe; /* stage, revision, and the identity */
} today;

typedef struct todays {
    today *items;
    size_t count, capacity;
} todays;

typedef struct keys {
    kiln_key *items;
    size_t count, capacity;
} keys;

typedef struct search {
    kiln_runtime *runtime;
    kiln_unreachable_options options;
    todays known;
    keys keys;
    kiln_prune_result *result;
    kiln_diag *diag;
} search;

static void report_entry(const search *s, const char *backend, const kiln_entry_info *entry,
                         const char *why)
{
    const kiln_unreachable told = {
        .struct_size = sizeof(told), .backend = backend, .entry = entry, .why = why};
    if (s->options.visit != NULL) {
        s->options.visit(s->options.user, &told);
    }
}

/* --- what there is today ---------------------------------------------------------------------- */

static bool is_listed(const todays *known, const kiln_device *device, const kiln_stage *stage)
{
    for (size_t i = 0; i < known->count; i++) {
        const today *t = &known->items[i];
        if (t->device == device->info.index && strcmp(t->backend, device->info.backend) == 0 &&
            strcmp(t->stage->name, stage->name) == 0 && t->stage->revision == stage->revision) {
            return true;
        }
    }
    return false;
}

static kiln_status add_stage(search *s, const kiln_device *device, const kiln_stage *stage)
{
    todays *known = &s->known;
    kiln_recipe *recipe = NULL;
    if (!stage->needs_device || is_listed(known, device, stage)) {
        return KILN_OK;
    }
    if (known->count == known->capacity) {
        const size_t capacity = known->capacity > 0 ? known->capacity * 2 : 16;
        today *items = (today *)realloc(known->items, capacity * sizeof(*items));
        if (items == NULL) {
            return kn_no_memory(s->diag, "looking for unreachable entries");
        }
        known->items = items;
        known->capacity = capacity;
    }
    kiln_status status = kiln_recipe_create(stage->name, stage->revision, &recipe, s->diag);
    if (status == KILN_OK) {
        status = kn_target_add_to(device->driver, stage, &device->target, recipe, s->diag);
    }
    if (status != KILN_OK) {
        kiln_recipe_destroy(recipe);
        return status;
    }
    known->items[known->count++] =
        (today){device->driver->in.backend->name, stage, device->info.index, recipe};
    return KILN_OK;
}

static kiln_status add_searched_device(search *s, const kiln_device *device)
{
    const kn_instance *in = &device->driver->in;
    kiln_status status = KILN_OK;
    for (int i = KILN_LANG_NONE + 1; i <= KILN_LANG_FAKE && status == KILN_OK; i++) {
        size_t count = 0;
        const kiln_stage *stages =
            kn_hal_stages(in, in->handle, &device->target, (kiln_language)i, &count);
        for (size_t k = 0; stages != NULL && k < count && status == KILN_OK; k++) {
            status = add_stage(s, device, &stages[k]);
        }
    }
    return status;
}

/* Lets go of what was said of a backend that is to be left alone. */
static void drop_from(search *s, size_t kept)
{
    while (s->known.count > kept) {
        kiln_recipe_destroy(s->known.items[--s->known.count].recipe);
    }
}

/* All devices of a driver that is awake; KILN_E_NOMEM alone ends the search. */
static kiln_status add_driver(search *s, const kn_driver *driver, const kiln_probe_report *report)
{
    kiln_diag why = KILN_DIAG_INIT;
    kiln_diag *outer = s->diag;
    const size_t before = s->known.count;
    kiln_status status = KILN_OK;
    uint32_t listed = 0;
    s->diag = &why;
    for (size_t i = 0; i < s->runtime->device_count && status == KILN_OK; i++) {
        const kiln_device *device = s->runtime->devices[i];
        if (device->driver == driver && device->has_target) {
            listed++;
            status = add_searched_device(s, device);
        }
    }
    s->diag = outer;
    if (status == KILN_OK && listed != report->device_count) {
        status = kiln_diag_set(&why, KILN_E_UNAVAILABLE, NULL, report->backend,
                               "of its %u devices %u could be looked at",
                               (unsigned)report->device_count, (unsigned)listed);
    }
    if (status != KILN_OK) {
        drop_from(s, before);
        report_entry(s, report->backend, NULL, why.why);
    }
    kiln_diag_clear(&why);
    return status == KILN_E_NOMEM ? kn_no_memory(s->diag, "looking for unreachable entries")
                                  : KILN_OK;
}

static kiln_status add_backend(search *s, const kiln_probe_report *report)
{
    kn_driver *driver = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    char variable[128];
    for (size_t i = 0; i < s->runtime->driver_count; i++) {
        kn_driver *one = s->runtime->drivers[i];
        driver = strcmp(one->in.backend->name, report->backend) == 0 ? one : driver;
    }
    if (report->outcome != KILN_PROBE_READY || driver == NULL) {
        report_entry(s, report->backend, NULL,
                     report->outcome != KILN_PROBE_READY ? kiln_probe_outcome_name(report->outcome)
                                                         : "it was not opened");
        return KILN_OK;
    }
    const kiln_probe_basis *basis = driver->in.backend->basis;
    if (basis != NULL && basis->foreign &&
        kn_surroundings_hiding(basis, variable, sizeof(variable))) {
        char line[256];
        kn_text_putf(line, sizeof(line), "%s is set: what it hides would seem to have gone",
                     variable);
        report_entry(s, report->backend, NULL, line);
        return KILN_OK;
    }
    if (driver->left_out[0] != '\0') {
        report_entry(s, report->backend, NULL, report->why); /* it may be repaired */
        return KILN_OK;
    }
    kiln_status status = kn_driver_wake(s->runtime, driver, &why);
    if (status != KILN_OK) {
        report_entry(s, report->backend, NULL, why.why);
        kiln_diag_clear(&why);
        return KILN_OK;
    }
    return add_driver(s, driver, report);
}

/* --- one entry -------------------------------------------------------------------------------- */

/* What says which driver and device it is: not the variables of a process, nor the libraries that
 * it has loaded. */
static bool is_decisive(kn_span name)
{
    static const char module[] = "module";
    const size_t size = sizeof(module) - 1;
    return !(name.length > 4 && memcmp(name.data, "env.", 4) == 0) &&
           !(name.length >= size && memcmp(name.data + name.length - size, module, size) == 0);
}

static bool find_field(kn_span recipe, kn_span name, kn_recipe_field *out_field)
{
    while (kn_recipe_next(&recipe, out_field)) {
        if (kn_span_equal(out_field->name, name)) {
            return true;
        }
    }
    return false;
}

static bool same_field(kn_span entry, kn_span recipe, const char *name)
{
    kn_recipe_field a;
    kn_recipe_field b;
    return find_field(entry, kn_span_of_text(name), &a) &&
           find_field(recipe, kn_span_of_text(name), &b) && kn_span_equal(a.type, b.type) &&
           kn_span_equal(a.value, b.value);
}

typedef enum verdict { VERDICT_SAME, VERDICT_OTHER, VERDICT_UNKNOWN } verdict;

/* Whether an entry was made for a driver and device: every field that says so is equal. One that is
 * not there was made by another kiln. */
static verdict compare_entry(const today *t, kn_span entry, kn_recipe_field *out_other)
{
    kn_span rest = kn_recipe_span(t->recipe);
    kn_recipe_field field;
    bool any = false;
    bool other = false;
    for (size_t line = 0; kn_recipe_next(&rest, &field); line++) {
        kn_recipe_field made;
        if (line < 3 || !is_decisive(field.name)) { /* header, stage, revision */
            continue;
        }
        if (!find_field(entry, field.name, &made)) {
            return VERDICT_UNKNOWN;
        }
        any = true;
        if (!other &&
            !(kn_span_equal(made.type, field.type) && kn_span_equal(made.value, field.value))) {
            other = true;
            *out_other = made;
        }
    }
    return other ? VERDICT_OTHER : any ? VERDICT_SAME : VERDICT_UNKNOWN;
}

/* The backend whose every device differs from what the entry was made for, or NULL. */
static const char *find_gone(const search *s, kn_span entry, char *why, size_t size)
{
    const char *backend = NULL;
    for (size_t i = 0; i < s->known.count; i++) {
        const today *t = &s->known.items[i];
        const kn_span recipe = kn_recipe_span(t->recipe);
        kn_recipe_field other;
        if (!same_field(entry, recipe, "stage") || !same_field(entry, recipe, "revision")) {
            continue;
        }
        if (compare_entry(t, entry, &other) != VERDICT_OTHER) {
            return NULL;
        }
        if (backend == NULL) {
            kn_text_putf(why, size, "made for %.*s %.*s", (int)other.name.length, other.name.data,
                         (int)(other.value.length < 160 ? other.value.length : 160),
                         other.value.data);
        }
        backend = t->backend;
    }
    return backend;
}

static kiln_status look_at(void *user, const kiln_entry_info *entry)
{
    search *s = (search *)user;
    char why[256];
    const char *backend = entry->recipe != NULL
                              ? find_gone(s, kn_span_of_text(entry->recipe), why, sizeof(why))
                              : NULL;
    if (backend == NULL) {
        return KILN_OK;
    }
    if (!s->options.dry_run) {
        kiln_status status = kn_cache_drop(s->runtime->cache, &entry->key, s->diag);
        if (status != KILN_OK) {
            return status == KILN_MISS ? KILN_OK : status; /* pinned, or just gone */
        }
    }
    s->result->entries_removed++;
    s->result->bytes_removed += entry->stored_size;
    report_entry(s, backend, entry, why);
    return KILN_OK;
}

static kiln_status take_key(void *user, const kiln_entry_info *entry)
{
    search *s = (search *)user;
    keys *list = &s->keys;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? list->capacity * 2 : 256;
        kiln_key *items = (kiln_key *)realloc(list->items, capacity * sizeof(*items));
        if (items == NULL) {
            return kn_no_memory(s->diag, "looking for unreachable entries");
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = entry->key;
    s->result->bytes_seen += entry->stored_size;
    return KILN_OK;
}

/* --- outside ---------------------------------------------------------------------------------- */

static kiln_status run_search(search *s)
{
    kiln_cache *cache = s->runtime->cache;
    kiln_status status = kn_cache_need_disk(cache, !s->options.dry_run, s->diag);
    for (size_t i = 0; i < s->runtime->report_count && status == KILN_OK; i++) {
        status = add_backend(s, s->runtime->reports[i]);
    }
    if (status == KILN_OK) {
        status = kiln_cache_walk(cache, NULL, take_key, s, s->diag);
        s->result->entries_seen = s->keys.count;
    }
    for (size_t i = 0; status == KILN_OK && s->known.count > 0 && i < s->keys.count; i++) {
        status = kiln_cache_inspect(cache, &s->keys.items[i], look_at, s, s->diag);
        if (status == KILN_MISS || status == KILN_E_CORRUPT) { /* gone meanwhile; not ours to say */
            kiln_diag_clear(s->diag);
            status = KILN_OK;
        }
    }
    return status;
}

kiln_status kiln_runtime_prune_unreachable(kiln_runtime *runtime,
                                           const kiln_unreachable_options *options,
                                           kiln_prune_result *out_result, kiln_diag *diag)
{
    static const kiln_unreachable_options none = {.struct_size = sizeof(none)};
    kiln_unreachable_options room;
    kiln_prune_result result;
    search s = {.runtime = runtime, .result = &result, .diag = diag};
    if (kn_sized_begin(KN_SIZED(kiln_prune_result), out_result, &result, diag) != KILN_OK) {
        return KILN_E_INVALID;
    }
    options = kn_sized_view(KN_SIZED(kiln_unreachable_options), options != NULL ? options : &none,
                            &room, diag);
    if (options == NULL) {
        return KILN_E_INVALID;
    }
    s.options = *options;
    kiln_status status = run_search(&s);
    kn_sized_end(KN_SIZED(kiln_prune_result), &result, out_result);
    drop_from(&s, 0);
    free(s.known.items);
    free(s.keys.items);
    return status;
}
