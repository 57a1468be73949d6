/* Hot reload: a copy of the source, and what was at every place that its compile looked at. A look
 * that cannot tell a change from none (a file too young for its times) builds: with an equal key
 * that gives the same program, and costs no compile. */
#include "kiln/unstable/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "core/build/build.h"
#include "core/build/program.h"
#include "core/build/source_copy.h"
#include "sized/sized.h"
#include "sys/file.h"

#define SOURCE_MAX ((size_t)64 << 20)
#define SETTLED_NS ((int64_t)2500000000) /* after it, times say whether a file changed */

typedef struct place {
    char *path;
    bool there;
    kn_stamp stamp;
} place;

typedef struct place_list {
    place *items;
    size_t count, capacity;
    bool whole; /* false: out of memory on the way */
} place_list;

struct kiln_watch {
    kiln_device *device;
    kn_source_copy copy; /* without a text: that is read again */
    kiln_build_options options;
    kiln_program *program;
    place_list places; /* the source file is the first */
    bool begun;        /* there was a build */
    bool young;        /* a change may hide behind equal times: look again */
    bool uncached;     /* the last build bypassed the cache: another one is another compile */
    bool again;        /* that build was due to young files alone */
    int64_t looked_ns; /* wall clock before the last build */
};

/* --- places ----------------------------------------------------------------------------------- */

static void places_deinit(place_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
    }
    free(list->items);
    *list = (place_list){.whole = true};
}

static kiln_status places_add(void *user, const char *path, const kn_stamp *stamp)
{
    place_list *list = (place_list *)user;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? list->capacity * 2 : 16;
        place *items = (place *)realloc(list->items, capacity * sizeof(*items));
        if (items == NULL) {
            list->whole = false;
            return KILN_E_NOMEM;
        }
        list->items = items;
        list->capacity = capacity;
    }
    place added = {.path = kn_text_copy(path), .there = stamp != NULL};
    if (added.path == NULL) {
        list->whole = false;
        return KILN_E_NOMEM;
    }
    if (stamp != NULL) {
        added.stamp = *stamp;
    }
    list->items[list->count++] = added;
    return KILN_OK;
}

static bool place_changed(const place *p, int64_t looked_ns, bool *out_young)
{
    kn_file_facts facts;
    if (kn_file_stat(p->path, true, &facts, NULL) != KILN_OK || facts.kind != KN_FILE_REGULAR) {
        return p->there;
    }
    const kn_stamp now = kn_stamp_of(&facts);
    if (!p->there || memcmp(&now, &p->stamp, sizeof(now)) != 0) {
        return true;
    }
    *out_young = *out_young || !kn_stamp_holds(&p->stamp, &now, looked_ns);
    return false;
}

/* True if a build is due. */
static bool is_due(kiln_watch *watch)
{
    bool young = false;
    watch->again = false;
    if (!watch->begun) {
        return true;
    }
    for (size_t i = 0; i < watch->places.count; i++) {
        if (place_changed(&watch->places.items[i], watch->looked_ns, &young)) {
            return true;
        }
    }
    /* Again, after the times have become sure; until then, where that costs no compile. */
    const int64_t age = kn_clock_wall() - watch->looked_ns;
    watch->again = watch->young && (!watch->uncached || age < 0 || age > SETTLED_NS);
    return watch->again;
}

/* --- building --------------------------------------------------------------------------------- */

typedef struct sighting {
    place_list *places;
    bool followed; /* the build got as far as the headers */
    bool uncached;
} sighting;

/* The places of a build: what its first stage's closure looked at. */
static void see_build(void *user, const kn_build *build)
{
    sighting *s = (sighting *)user;
    for (size_t i = 0; i < build->stage_count; i++) {
        s->uncached = s->uncached || build->runs[i].bypass[0] != '\0';
        if (build->runs[i].closure != NULL) {
            s->followed =
                kn_closure_watch(build->runs[i].closure, places_add, s->places) == KILN_OK;
        }
    }
}

/* Files that the last build knew of and this one did not reach stay watched when it failed early.
 */
static void keep_places(kiln_watch *watch, place_list *places, bool followed)
{
    for (size_t i = 1; !followed && i < watch->places.count; i++) {
        const place *old = &watch->places.items[i];
        kn_file_facts facts;
        const bool there = kn_file_stat(old->path, true, &facts, NULL) == KILN_OK;
        const kn_stamp now = there ? kn_stamp_of(&facts) : (kn_stamp){0};
        if (places_add(places, old->path, there ? &now : NULL) != KILN_OK) {
            break;
        }
    }
    places_deinit(&watch->places);
    watch->places = *places;
}

static bool any_young(const place_list *places, int64_t looked_ns)
{
    for (size_t i = 0; i < places->count; i++) {
        const place *p = &places->items[i];
        if (p->there && !kn_stamp_holds(&p->stamp, &p->stamp, looked_ns)) {
            return true;
        }
    }
    return false;
}

static kiln_status build_watched(kiln_watch *watch, bool *out_changed, kiln_diag *diag)
{
    kn_file_facts facts;
    void *text = NULL;
    kiln_program *program = NULL;
    place_list places = {.whole = true};
    sighting seen = {.places = &places};
    kiln_source source = watch->copy.source;
    watch->looked_ns = kn_clock_wall();
    kiln_status status =
        kn_file_read(source.name, SOURCE_MAX, false, &text, &source.length, &facts, diag);
    if (status == KILN_MISS) {
        status = kiln_diag_set(diag, KILN_E_IO, NULL, source.name, "no such file");
    }
    const kn_stamp stamp = status == KILN_OK ? kn_stamp_of(&facts) : (kn_stamp){0};
    const kiln_status added = places_add(&places, source.name, status == KILN_OK ? &stamp : NULL);
    status = status == KILN_OK && added != KILN_OK
                 ? kiln_diag_set(diag, added, NULL, source.name, "out of memory")
                 : status;
    if (status == KILN_OK) {
        source.text = text;
        kn_build_extra extra = {.seen = see_build, .user = &seen};
        status = kn_build_program(watch->device, &source, &watch->options, &extra, &program, diag);
    }
    keep_places(watch, &places, seen.followed);
    /* What failed is reported once: it is looked at again when something changes. */
    watch->uncached = seen.uncached;
    watch->young = status == KILN_OK && !(watch->again && watch->uncached) &&
                   any_young(&watch->places, watch->looked_ns);
    watch->begun = watch->places.whole && watch->places.count > 0;
    if (status == KILN_OK) {
        *out_changed = program != watch->program;
        kiln_program_release(watch->program);
        watch->program = program;
    }
    free(text);
    return status;
}

/* --- outside ---------------------------------------------------------------------------------- */

static kiln_status check_source(kiln_device *device, const kiln_source *source, kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    size_t count = 0;
    kiln_status status = kn_driver_wake(device->runtime, device->driver, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (source->name == NULL || source->name[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, "start from KILN_SOURCE_INIT, and set name",
                             "watching a source", "it does not name a file");
    }
    if (source->language == KILN_LANG_BUILTIN ||
        kn_hal_stages(in, in->handle, &device->target, source->language, &count) == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, source->name,
                             "%s takes no %s from a file", in->backend->name,
                             kiln_language_name(source->language));
    }
    return KILN_OK;
}

kiln_status kiln_watch_create(kiln_device *device, const kiln_source *source,
                              const kiln_build_options *options, kiln_watch **out_watch,
                              kiln_diag *diag)
{
    static const kiln_build_options none = {.struct_size = sizeof(none)};
    kiln_source source_room;
    kiln_build_options room;
    *out_watch = NULL;
    source = kn_sized_view(KN_SIZED(kiln_source), source, &source_room, diag);
    options = source != NULL ? kn_sized_view(KN_SIZED(kiln_build_options),
                                             options != NULL ? options : &none, &room, diag)
                             : NULL;
    kiln_status status = options != NULL ? check_source(device, source, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    kiln_watch *watch = (kiln_watch *)calloc(1, sizeof(*watch));
    if (watch == NULL || !kn_source_copy_init(&watch->copy, source, false)) {
        free(watch);
        return kn_no_memory(diag, source->name);
    }
    watch->device = device;
    watch->options = *options;
    watch->places.whole = true;
    *out_watch = watch;
    return KILN_OK;
}

void kiln_watch_destroy(kiln_watch *watch)
{
    if (watch != NULL) {
        places_deinit(&watch->places);
        kiln_program_release(watch->program);
        kn_source_copy_deinit(&watch->copy);
        free(watch);
    }
}

kiln_status kiln_watch_poll(kiln_watch *watch, bool *out_changed, kiln_diag *diag)
{
    *out_changed = false;
    return is_due(watch) ? build_watched(watch, out_changed, diag) : KILN_OK;
}

kiln_program *kiln_watch_program(kiln_watch *watch)
{
    return watch->program != NULL ? kiln_program_retain(watch->program) : NULL;
}

size_t kiln_watch_place_count(const kiln_watch *watch)
{
    return watch->places.count;
}
