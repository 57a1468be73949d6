/* kiln stats: what the cache holds and what it has done, over all processes that used it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/bypasses.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"
#include "cli/stats_metrics.h"

typedef struct stats_options {
    session_options session;
    bool openmetrics, all;
} stats_options;

static const opt_spec specs[] = {
    {"openmetrics", 0, OPT_FLAG, offsetof(stats_options, openmetrics), NULL,
     "print OpenMetrics text, for Prometheus"},
    {"all", 'a', OPT_FLAG, offsetof(stats_options, all), NULL, "list the counters that are 0, too"},
    SESSION_CACHE_ROW(stats_options),
    SESSION_JSON_ROW(stats_options),
    OPT_END};

static uint64_t hits_of(const kiln_cache_stats *stats)
{
    return stats->hits_memory + stats->hits_disk + stats->hits_pack + stats->hits_remote +
           stats->hits_shared;
}

static double rate_of(const kiln_cache_stats *stats)
{
    uint64_t hits = hits_of(stats);
    uint64_t asked = hits + stats->misses;
    return asked == 0 ? 0.0 : (double)hits / (double)asked;
}

static void print_counter(const cmd_context *context, const char *name, const char *text,
                          uint64_t value)
{
    char label[64];
    size_t length = strlen(name);
    if (length > 3 && strcmp(name + length - 3, "_ns") == 0) {
        /* The table's text ends in ", ns"; people get a unit that fits. */
        const char *time = out_time(context->pool, value);
        (void)snprintf(label, sizeof(label), "%.*s", (int)strcspn(text, ","), text);
        (void)printf("  %-42s %s\n", label, time != NULL ? time : "?");
    } else if (strstr(name, "bytes") != NULL || strstr(name, "_raw_") != NULL) {
        const char *bytes = out_bytes(context->pool, value);
        (void)printf("  %-42s %s\n", text, bytes != NULL ? bytes : "?");
    } else {
        (void)printf("  %-42s %" PRIu64 "\n", text, value);
    }
}

typedef struct counter_row {
    const char *name, *text;
    size_t offset;
} counter_row;

#define COUNTER_ROW(name, text) {#name, text, offsetof(kiln_cache_stats, name)},
static const counter_row counter_rows[] = {KILN_CACHE_COUNTERS(COUNTER_ROW)};
#undef COUNTER_ROW
enum { COUNTERS = sizeof(counter_rows) / sizeof(*counter_rows) };

static uint64_t value_of(const counter_row *row, const kiln_cache_stats *stats)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + row->offset, sizeof(value));
    return value;
}

static bool is_reason(const counter_row *row)
{
    return strncmp(row->name, "misses_", 7) == 0;
}

/* Whether a counter is listed: a machine without remotes, packs or tunings has nothing to say of
 * them. */
static bool is_listed(const counter_row *row, const kiln_cache_stats *stats, bool all)
{
    static const char *const always[] = {"hits_memory", "hits_disk", "misses", "compiles"};
    bool listed = all || value_of(row, stats) > 0;
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
        listed = listed || strcmp(row->name, always[i]) == 0;
    }
    return listed;
}

/* In the order of the table, but the reasons of misses under these. */
static void print_counters(const cmd_context *context, const kiln_cache_stats *stats, bool all)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        if (!is_reason(&counter_rows[i]) && is_listed(&counter_rows[i], stats, all)) {
            print_counter(context, counter_rows[i].name, counter_rows[i].text,
                          value_of(&counter_rows[i], stats));
        }
        for (size_t j = 0; strcmp(counter_rows[i].name, "misses") == 0 && j < COUNTERS; j++) {
            if (is_reason(&counter_rows[j]) && is_listed(&counter_rows[j], stats, all)) {
                const char *text = counter_rows[j].text;
                text += strncmp(text, "misses ", 7) == 0 ? 7 : 0;
                (void)printf("    %-40s %" PRIu64 "\n", text, value_of(&counter_rows[j], stats));
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
    kiln_cache_stats stats;
    cli_bypasses bypasses;
} stats_shown;

/* What was compiled without the cache being asked is in no rate: it has a paragraph of its own. */
static bool print_stats_bypasses(cli_pool *pool, const stats_shown *shown)
{
    enum { SHOWN = 5 };
    const cli_bypasses *bypasses = &shown->bypasses;
    const kiln_cache_stats *stats = &shown->stats;
    const char *time = out_time(pool, stats->bypass_ns);
    if (time == NULL) {
        return false;
    }
    out_print(stdout, "bypassed  %" PRIu64 " %s in %s%s\n", stats->bypassed,
              stats->bypassed == 1 ? "compile" : "compiles", time,
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
    const kiln_cache_stats *stats = &shown->stats;
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
    if (hits_of(stats) + stats->misses == 0) {
        (void)printf("hit rate  nothing %s yet\n", stats->bypassed > 0 ? "looked up" : "asked for");
        return stats->bypassed == 0 || print_stats_bypasses(context->pool, shown);
    }
    (void)printf("hit rate  %.1f %% (%" PRIu64 " of %" PRIu64 ")\n", rate_of(stats) * 100,
                 hits_of(stats), hits_of(stats) + stats->misses);
    if (stats->bypassed > 0 && !print_stats_bypasses(context->pool, shown)) {
        return false;
    }
    (void)putchar('\n');
    print_counters(context, stats, all);
    return true;
}

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
    const kiln_cache_stats *stats = &shown->stats;
    json_t *root = json_object();
    json_t *counters = json_object();
    out_json_set(&root, "root", out_json_text(shown->root));
    out_json_set(&root, "entries", out_json_u64(shown->listing.count));
    out_json_set(&root, "bytes", out_json_u64(shown->listing.disk_bytes));
    out_json_set(&root, "temporaries", out_json_u64(unfinished->files));
    out_json_set(&root, "temporary_bytes", out_json_u64(unfinished->bytes));
    out_json_set(&root, "hits", out_json_u64(hits_of(stats)));
    out_json_set(&root, "hit_rate", out_json_real(rate_of(stats)));
#define COUNTER_VALUE(name, text) out_json_set(&counters, #name, out_json_u64(stats->name));
    KILN_CACHE_COUNTERS(COUNTER_VALUE)
#undef COUNTER_VALUE
    out_json_set(&root, "counters", counters);
    out_json_set(&root, "bypasses", bypasses_json(&shown->bypasses));
    return out_json(stdout, root);
}

static exit_code run_stats(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const stats_options *options = fields;
    kiln_cache *cache = NULL;
    stats_shown shown;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)arguments; /* takes none */
    exit_code code = session_open_disk(context, &options->session, &cache);
    if (code != EXIT_FINE) {
        return code;
    }
    if (kiln_cache_stats_total(cache, &shown.stats, &diag) != KILN_OK ||
        listing_make(cache, NULL, context->pool, &shown.listing, &diag) != KILN_OK ||
        bypasses_read(cache, context->pool, &shown.bypasses, &diag) != KILN_OK) {
        code = cmd_fail_as(context, EXIT_CACHE, &diag);
    } else {
        bool good = true;
        shown.root = kiln_cache_root(cache);
        kiln_cache_temporaries(cache, &shown.unfinished.files, &shown.unfinished.bytes);
        if (options->openmetrics) {
            stats_print_metrics(stdout, shown.root, shown.listing.count, shown.listing.disk_bytes,
                                &shown.stats, &shown.bypasses);
        } else {
            good = options->session.json ? print_stats_json(&shown)
                                         : print_stats_text(context, &shown, options->all);
        }
        code = good ? EXIT_FINE : cmd_no_memory(context);
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
        "keeps for itself: the headers that a source includes, the compilers that are installed.",
    .options = specs,
    .options_size = sizeof(stats_options),
    .run = run_stats,
};
