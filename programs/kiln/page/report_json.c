/* See report_json.h. What can be derived (sums, rates, what is stale) is left to the reader. */
#include "page/report_json.h"

#include <math.h>

#include <kiln/unstable/counters.h>
#include <kiln/unstable/names.h>
#include <kiln/version.h>

#include "cli/host.h"
#include "cli/out.h"

static json_t *make_report(const char *kind)
{
    json_t *root = json_object();
    out_json_set(&root, "kind", out_json_text(kind));
    out_json_set(&root, "kiln_version", out_json_text(kiln_version()));
    out_json_set(&root, "made_ns", json_integer(host_wall()));
    return root;
}

static json_t *counters_json(const uint64_t *counters)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        out_json_set(&object, kiln_counter_name(i), out_json_u64(counters[i]));
    }
    return object;
}

/* What each counter is, so that a page and `kiln stats` use the same words. */
static json_t *texts_json(void)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        json_t *row = json_object();
        out_json_set(&row, "text", out_json_text(kiln_counter_text(i)));
        out_json_set(&row, "unit", out_json_text(kiln_counter_unit(i)));
        out_json_set(&object, kiln_counter_name(i), row);
    }
    return object;
}

static json_t *key_json(const kiln_key *key)
{
    char text[KILN_KEY_TEXT_SIZE];
    kiln_key_format(key, text);
    return out_json_text(text);
}

/* --- a cache ---------------------------------------------------------------------------------- */

static json_t *entry_json(const held_entry *entry)
{
    json_t *row = json_object();
    out_json_set(&row, "key", key_json(&entry->key));
    out_json_set(&row, "name", out_json_text(entry->name));
    out_json_set(&row, "stage", out_json_text(entry->stage));
    out_json_set(&row, "target", out_json_text(entry->target));
    out_json_set(&row, "note", json_boolean(entry->note));
    out_json_set(&row, "compile_ms", out_json_ms(entry->compile_ns));
    out_json_set(&row, "uses", out_json_u64(entry->uses));
    out_json_set(&row, "stored_bytes", out_json_u64(entry->stored_size));
    out_json_set(&row, "created_ns", json_integer(entry->created_ns));
    out_json_set(&row, "used_ns", json_integer(entry->used_ns));
    return row;
}

json_t *report_cache_json(const holdings *held)
{
    json_t *root = make_report("cache");
    json_t *entries = json_array();
    json_t *bypasses = json_array();
    for (size_t i = 0; i < held->count; i++) {
        out_json_append(&entries, entry_json(&held->entries[i]));
    }
    for (size_t i = 0; i < held->bypasses.count; i++) {
        const kiln_bypass *one = &held->bypasses.items[i];
        json_t *row = json_object();
        out_json_set(&row, "reason", out_json_text(one->reason));
        out_json_set(&row, "last", out_json_text(one->what));
        out_json_set(&row, "compiles", out_json_u64(one->count));
        out_json_set(&row, "compile_ms", out_json_ms(one->time_ns));
        out_json_append(&bypasses, row);
    }
    out_json_set(&root, "root", out_json_text(held->root));
    out_json_set(&root, "bytes", out_json_u64(held->disk_bytes));
    out_json_set(&root, "unreadable", out_json_u64(held->unreadable));
    out_json_set(&root, "counters", counters_json(held->counters));
    out_json_set(&root, "counter_texts", texts_json());
    out_json_set(&root, "bypasses", bypasses);
    out_json_set(&root, "entries", entries);
    return root;
}

/* --- a recording ------------------------------------------------------------------------------ */

static json_t *use_json(const kiln_recorded_use *use, kiln_cache *cache)
{
    json_t *row = json_object();
    bool cached = false;
    kiln_cache_contains(cache, &use->key, 1, &cached);
    out_json_set(&row, "program", out_json_u64(use->program));
    out_json_set(&row, "key", key_json(&use->key));
    out_json_set(&row, "name", out_json_text(use->name));
    out_json_set(&row, "language", out_json_text(kiln_language_name(use->language)));
    out_json_set(&row, "target", out_json_text(use->target));
    out_json_set(&row, "frontend", out_json_text(use->door));
    out_json_set(&row, "cached", json_boolean(cached));
    out_json_set(&row, "source_bytes", out_json_u64(use->source_bytes));
    out_json_set(&row, "compile_ms", out_json_ms(use->compile_ns));
    out_json_set(&row, "days", out_json_u64(use->days));
    out_json_set(&row, "first_ns", json_integer(use->first_ns));
    out_json_set(&row, "last_ns", json_integer(use->last_ns));
    return row;
}

json_t *report_recording_json(const char *path, const kiln_recording *recording, kiln_cache *cache)
{
    json_t *root = make_report("recording");
    json_t *uses = json_array();
    const char *what = "";
    const size_t damaged = kiln_recording_damage(recording, &what);
    for (size_t i = 0; i < kiln_recording_count(recording); i++) {
        out_json_append(&uses, use_json(kiln_recording_use(recording, i), cache));
    }
    out_json_set(&root, "root", out_json_text(path));
    out_json_set(&root, "damaged", out_json_u64(damaged));
    out_json_set(&root, "damage", out_json_text(what));
    out_json_set(&root, "uses", uses);
    return root;
}

/* --- a fleet ---------------------------------------------------------------------------------- */

static json_t *point_json(const metrics_point *point)
{
    json_t *row = json_object();
    /* null: the samples have no time */
    out_json_set(&row, "time_ns",
                 isnan(point->time) ? json_null() : json_integer((json_int_t)(point->time * 1e9)));
    out_json_set(&row, "entries", out_json_u64(point->entries));
    out_json_set(&row, "bytes", out_json_u64(point->bytes));
    out_json_set(&row, "counters", counters_json(point->counters));
    return row;
}

json_t *report_fleet_json(const metrics_set *set)
{
    json_t *root = make_report("fleet");
    json_t *caches = json_array();
    for (size_t i = 0; i < set->count; i++) {
        const metrics_series *series = &set->series[i];
        json_t *row = json_object();
        json_t *points = json_array();
        for (size_t j = 0; j < series->count; j++) {
            out_json_append(&points, point_json(&series->points[j]));
        }
        out_json_set(&row, "file", out_json_text(series->file));
        out_json_set(&row, "labels", out_json_text(series->labels));
        out_json_set(&row, "points", points);
        out_json_append(&caches, row);
    }
    out_json_set(&root, "counter_texts", texts_json());
    out_json_set(&root, "caches", caches);
    return root;
}
