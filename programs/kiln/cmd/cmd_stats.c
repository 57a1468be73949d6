/* kiln stats: what the cache holds and what it has done, over all processes that used it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/counters.h>

#include "cli/bypasses.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"
#include "cli/stats_metrics.h"
#include "cli/stats_since.h"
#include "page/holdings.h"

typedef struct stats_options {
    session_options session;
    bool openmetrics, timestamps, all, zero, programs;
    const char *since;
} stats_options;

static const opt_spec specs[] = {
    {"openmetrics", 0, OPT_FLAG, offsetof(stats_options, openmetrics), NULL,
     "print OpenMetrics text, for Prometheus"},
    {"timestamps", 0, OPT_FLAG, offsetof(stats_options, timestamps), NULL,
     "with --openmetrics: the time of each sample, for a file that is appended to"},
    {"all", 'a', OPT_FLAG, offsetof(stats_options, all), NULL, "list the counters that are 0, too"},
    {"since", 0, OPT_TEXT, offsetof(stats_options, since), "FILE",
     "count from what kiln stats --json wrote to FILE"},
    {"programs", 'p', OPT_FLAG, offsetof(stats_options, programs), NULL,
     "list the programs that took longest to compile, too"},
    {"zero", 'z', OPT_FLAG, offsetof(stats_options, zero), NULL,
     "set the counters to zero, after they are printed"},
    SESSION_CACHE_ROW(stats_options),
    SESSION_JSON_ROW(stats_options),
    OPT_END};

static uint64_t hits_of(const uint64_t *counters)
{
    return counters[KILN_COUNTER_HITS_MEMORY] + counters[KILN_COUNTER_HITS_DISK] +
           counters[KILN_COUNTER_HITS_PACK] + counters[KILN_COUNTER_HITS_REMOTE] +
           counters[KILN_COUNTER_HITS_SHARED];
}

static double rate_of(const uint64_t *counters)
{
    uint64_t hits = hits_of(counters);
    uint64_t asked = hits + counters[KILN_COUNTER_MISSES];
    return asked == 0 ? 0.0 : (double)hits / (double)asked;
}

static void print_counter(const cmd_context *context, uint32_t counter, uint64_t value)
{
    const char *unit = kiln_counter_unit(counter);
    const char *text = kiln_counter_text(counter);
    if (unit[0] == '\0') {
        (void)printf("  %-42s %" PRIu64 "\n", text, value);
        return;
    }
    const char *shown =
        strcmp(unit, "ns") == 0 ? out_time(context->pool, value) : out_bytes(context->pool, value);
    (void)printf("  %-42s %s\n", text, shown != NULL ? shown : "?");
}

static bool is_reason(uint32_t counter)
{
    return strncmp(kiln_counter_name(counter), "misses_", 7) == 0;
}

/* Whether a counter is listed: a machine without remotes, packs or tunings has nothing to say of
 * them. */
static bool is_listed(uint32_t counter, const uint64_t *counters, bool all)
{
    return all || counters[counter] > 0 || counter == KILN_COUNTER_HITS_MEMORY ||
           counter == KILN_COUNTER_HITS_DISK || counter == KILN_COUNTER_MISSES ||
           counter == KILN_COUNTER_COMPILES;
}

/* In the order of the table, but the reasons of misses under these. */
static void print_counters(const cmd_context *context, const uint64_t *counters, bool all)
{
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        if (!is_reason(i) && is_listed(i, counters, all)) {
            print_counter(context, i, counters[i]);
        }
        for (uint32_t j = 0; i == KILN_COUNTER_MISSES && j < KILN_COUNTERS; j++) {
            if (is_reason(j) && is_listed(j, counters, all)) {
                const char *text = kiln_counter_text(j);
                text += strncmp(text, "misses ", 7) == 0 ? 7 : 0;
                (void)printf("    %-40s %" PRIu64 "\n", text, counters[j]);
            }
        }
    }
}

/* Files that are being written, or that killed writers have left. */
typedef struct temporaries {
    uint64_t files, bytes;
} temporaries;

/* All that is shown. */
typedef struct stats_shown {
    const char *root;
    cli_listing listing;
    temporaries unfinished;
    uint64_t counters[KILN_COUNTERS];
    cli_bypasses bypasses;
    bool with_programs;
    holdings held;
} stats_shown;

/* What was compiled without the cache being asked is in no rate: it has a paragraph of its own. */
static bool print_stats_bypasses(cli_pool *pool, const stats_shown *shown)
{
    enum { SHOWN = 5 };
    const cli_bypasses *bypasses = &shown->bypasses;
    const uint64_t *counters = shown->counters;
    const char *time = out_time(pool, counters[KILN_COUNTER_BYPASS_NS]);
    if (time == NULL) {
        return false;
    }
    out_print(stdout, "bypassed  %" PRIu64 " %s in %s%s\n", counters[KILN_COUNTER_BYPASSED],
              counters[KILN_COUNTER_BYPASSED] == 1 ? "compile" : "compiles", time,
              bypasses->count > 0 ? ", most of the time for" : "");
    for (size_t i = 0; i < bypasses->count && i < SHOWN; i++) {
        const kiln_bypass *one = &bypasses->items[i];
        time = out_time(pool, one->time_ns);
        if (time == NULL) {
            return false;
        }
        out_print(stdout, "  %s (%" PRIu64 " in %s, the last one %s)\n", one->reason, one->count,
                  time, one->what);
    }
    if (bypasses->count > SHOWN) {
        out_print(stdout, "  and %zu other reasons: see --json\n", bypasses->count - SHOWN);
    }
    return true;
}

static bool print_stats_text(const cmd_context *context, const stats_shown *shown, bool all)
{
    const cli_listing *listing = &shown->listing;
    const temporaries *unfinished = &shown->unfinished;
    const uint64_t *counters = shown->counters;
    const char *bytes = out_bytes(context->pool, listing->disk_bytes);
    const char *more = out_bytes(context->pool, unfinished->bytes);
    if (bytes == NULL || more == NULL) {
        return false;
    }
    out_print(stdout, "cache     %s\n", shown->root);
    (void)printf("entries   %zu, %s\n", listing->count, bytes);
    if (unfinished->files > 0) {
        (void)printf("temporary %" PRIu64 " %s, %s\n", unfinished->files,
                     unfinished->files == 1 ? "file" : "files", more);
    }
    if (hits_of(counters) + counters[KILN_COUNTER_MISSES] == 0) {
        (void)printf("hit rate  nothing %s yet\n",
                     counters[KILN_COUNTER_BYPASSED] > 0 ? "looked up" : "asked for");
        return counters[KILN_COUNTER_BYPASSED] == 0 || print_stats_bypasses(context->pool, shown);
    }
    (void)printf("hit rate  %.1f %% (%" PRIu64 " of %" PRIu64 ")\n", rate_of(counters) * 100,
                 hits_of(counters), hits_of(counters) + counters[KILN_COUNTER_MISSES]);
    if (counters[KILN_COUNTER_BYPASSED] > 0 && !print_stats_bypasses(context->pool, shown)) {
        return false;
    }
    bypasses_print_refused("", counters);
    (void)putchar('\n');
    print_counters(context, counters, all);
    return true;
}

/* --- programs --------------------------------------------------------------------------------- */

enum { PROGRAMS_SHOWN = 20 };

static bool print_programs_text(cli_pool *pool, const holdings *held)
{
    size_t shown = 0, programs = 0;
    out_table table = out_table_make(pool, "program|stage|>compile|>size|used");
    for (size_t i = 0; i < held->count; i++) {
        const held_entry *entry = &held->entries[i];
        programs += !entry->note;
        if (!entry->note && shown < PROGRAMS_SHOWN) {
            const char *cells[] = {entry->name, entry->stage, out_time(pool, entry->compile_ns),
                                   out_bytes(pool, entry->stored_size),
                                   out_ago(pool, entry->used_ns)};
            out_table_add(&table, cells);
            shown++;
        }
    }
    (void)putchar('\n');
    if (shown > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    if (programs > shown) {
        (void)printf("and %zu more\n", programs - shown);
    }
    return true;
}

static json_t *programs_json(const holdings *held)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < held->count; i++) {
        const held_entry *entry = &held->entries[i];
        if (!entry->note) {
            char key[KILN_KEY_TEXT_SIZE];
            json_t *row = json_object();
            kiln_key_format(&entry->key, key);
            out_json_set(&row, "name", out_json_text(entry->name));
            out_json_set(&row, "stage", out_json_text(entry->stage));
            out_json_set(&row, "key", out_json_text(key));
            out_json_set(&row, "compile_ms", out_json_ms(entry->compile_ns));
            out_json_set(&row, "stored_bytes", out_json_u64(entry->stored_size));
            out_json_append(&rows, row);
        }
    }
    return rows;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *bypasses_json(const cli_bypasses *bypasses)
{
    json_t *list = json_array();
    for (size_t i = 0; i < bypasses->count; i++) {
        const kiln_bypass *one = &bypasses->items[i];
        json_t *row = json_object();
        out_json_set(&row, "reason", out_json_text(one->reason));
        out_json_set(&row, "last", out_json_text(one->what));
        out_json_set(&row, "compiles", out_json_u64(one->count));
        out_json_set(&row, "compile_ms", out_json_ms(one->time_ns));
        out_json_append(&list, row);
    }
    return list;
}

static bool print_stats_json(const stats_shown *shown)
{
    const temporaries *unfinished = &shown->unfinished;
    const uint64_t *counters = shown->counters;
    json_t *root = json_object();
    json_t *list = json_object();
    out_json_set(&root, "root", out_json_text(shown->root));
    out_json_set(&root, "entries", out_json_u64(shown->listing.count));
    out_json_set(&root, "bytes", out_json_u64(shown->listing.disk_bytes));
    out_json_set(&root, "temporaries", out_json_u64(unfinished->files));
    out_json_set(&root, "temporary_bytes", out_json_u64(unfinished->bytes));
    out_json_set(&root, "hits", out_json_u64(hits_of(counters)));
    out_json_set(&root, "hit_rate", out_json_real(rate_of(counters)));
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        out_json_set(&list, kiln_counter_name(i), out_json_u64(counters[i]));
    }
    out_json_set(&root, "counters", list);
    out_json_set(&root, "bypasses", bypasses_json(&shown->bypasses));
    if (shown->with_programs) {
        out_json_set(&root, "programs", programs_json(&shown->held));
    }
    return out_json(stdout, root);
}

static kiln_status gather_stats(const cmd_context *context, const stats_options *options,
                                kiln_cache *cache, stats_shown *out, kiln_diag *diag)
{
    kiln_status status = kiln_cache_get_totals(cache, out->counters, KILN_COUNTERS, diag);
    if (status == KILN_OK && options->since != NULL) {
        status = stats_since(options->since, out->counters, diag);
    }
    if (status == KILN_OK) {
        status = listing_make(cache, NULL, context->pool, &out->listing, diag);
    }
    if (status == KILN_OK) {
        status = bypasses_read(cache, context->pool, &out->bypasses, diag);
    }
    if (status == KILN_OK && options->programs) {
        status = holdings_read(cache, context->pool, context->console, &out->held, diag);
    }
    out->with_programs = options->programs;
    out->root = kiln_cache_root(cache);
    kiln_cache_get_temporaries(cache, &out->unfinished.files, &out->unfinished.bytes);
    return status;
}

static bool print_stats(const cmd_context *context, const stats_options *options,
                        const stats_shown *shown)
{
    if (options->openmetrics) {
        stats_print_metrics(stdout, shown->root, options->timestamps ? host_wall() : 0,
                            shown->listing.count, shown->listing.disk_bytes, shown->counters,
                            &shown->bypasses);
        return true;
    }
    if (options->session.json) {
        return print_stats_json(shown);
    }
    return print_stats_text(context, shown, options->all) &&
           (!options->programs || print_programs_text(context->pool, &shown->held));
}

static exit_code run_stats(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const stats_options *options = fields;
    kiln_cache *cache = NULL;
    stats_shown shown;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)arguments; /* takes none */
    if (options->timestamps && !options->openmetrics) {
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "give both", "--timestamps",
                            "it can be used with --openmetrics only");
        return cmd_fail(context, &diag);
    }
    exit_code code = options->zero ? session_open_disk_to_write(context, &options->session, &cache)
                                   : session_open_disk(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    const kiln_status status = gather_stats(context, options, cache, &shown, &diag);
    if (status != KILN_OK) {
        code = status == KILN_E_INVALID ? cmd_fail(context, &diag)
                                        : cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        code = print_stats(context, options, &shown) ? EXIT_FINE : cmd_no_memory(context);
    }
    if (code == EXIT_FINE && options->zero && kiln_cache_zero_totals(cache, &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_stats = {
    .name = "stats",
    .usage = "",
    .summary = "Shows what the cache holds and how often it helped",
    .details =
        "The counters add up over all processes that used this cache directory. Those that are 0\n"
        "are left out unless --all is given. A hit is a binary that was found: in this process's\n"
        "memory, on disk, in a pack (KILN_PACKS) or in a remote (KILN_REMOTE). A note is what "
        "kiln\n"
        "keeps for itself: the headers that a source includes, the compilers that are installed.\n"
        "With --since the counters are those since an earlier `kiln stats --json`.",
    .options = specs,
    .options_size = sizeof(stats_options),
    .run = run_stats,
};
