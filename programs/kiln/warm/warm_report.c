/* A row for each kernel and target, what could not be made and why, and a summary. */
#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "cli/out.h"
#include "warm/warm.h"

const char *warm_outcome_name(warm_outcome outcome)
{
    static const char *const names[] = {"compiled", "there", "skipped", "failed", "passed over"};
    return names[outcome];
}

size_t warm_count(const warm_result *result, warm_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++) {
        count += result->items[i].outcome == outcome;
    }
    return count;
}

size_t warm_count_other_keys(const warm_result *result, size_t *out_compared)
{
    size_t count = 0;
    *out_compared = 0;
    for (size_t i = 0; i < result->count; i++) {
        *out_compared += result->items[i].compared;
        count += result->items[i].other_key;
    }
    return count;
}

static bool has_variants(const warm_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        if (*result->items[i].variant_name != '\0') {
            return true;
        }
    }
    return false;
}

/* "gemm", or "gemm opencl-c/tile32". */
static void print_what(const char *before, const warm_item *item)
{
    out_print(stdout, "%s%s%s%s", before, item->name, *item->variant_name != '\0' ? " " : "",
              item->variant_name);
}

static void add_warm_row(out_table *table, const warm_result *result, const warm_item *item,
                         cli_pool *pool)
{
    bool good = item->outcome == WARM_COMPILED || item->outcome == WARM_THERE;
    const char *cells[] = {item->name,
                           result->targets[item->target],
                           warm_outcome_name(item->outcome),
                           good ? kiln_language_name(item->language) : "-",
                           good ? out_ms(pool, item->compile_ns) : "-",
                           good ? out_bytes(pool, item->size) : "-",
                           *item->variant_name != '\0' ? item->variant_name : "-"};
    out_table_add(table, cells);
}

static bool is_same_skip(const warm_item *a, const warm_item *b)
{
    return b->outcome == WARM_SKIPPED && a->target == b->target &&
           strcmp(a->reason, b->reason) == 0;
}

/* One line for each target and reason, with the first kernels' names: a manifest in several
 * languages is skipped in part for every target. */
static void print_skipped_items(const warm_result *result)
{
    enum { NAMED = 3 };
    for (size_t i = 0; i < result->count; i++) {
        const warm_item *item = &result->items[i];
        size_t before = 0;
        size_t count = 0;
        for (size_t j = 0; item->outcome == WARM_SKIPPED && j < result->count; j++) {
            before += j < i && is_same_skip(item, &result->items[j]);
            count += is_same_skip(item, &result->items[j]);
        }
        if (count == 0 || before > 0) {
            continue;
        }
        out_print(stdout, "skipped for %s: ", result->targets[item->target]);
        size_t named = 0;
        for (size_t j = i; j < result->count && named < NAMED; j++) {
            if (is_same_skip(item, &result->items[j])) {
                print_what(named > 0 ? ", " : "", &result->items[j]);
                named++;
            }
        }
        if (count > named) {
            (void)printf(" and %zu more", count - named);
        }
        out_print(stdout, ": %s\n", item->reason);
    }
}

static void print_unpacked(const warm_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const warm_item *item = &result->items[i];
        if (item->outcome != WARM_SKIPPED && item->unpacked != NULL) {
            print_what("not in the pack: ", item);
            out_print(stdout, " for %s %s\n", result->targets[item->target], item->unpacked);
        }
    }
}

static void print_other_keys(const warm_result *result)
{
    size_t compared = 0;
    const size_t others = warm_count_other_keys(result, &compared);
    if (others > 0) {
        (void)printf("%zu of %zu keys are not the recorded ones: the compiler, the driver or a "
                     "header of the toolchain is another one here\n",
                     others, compared);
    }
}

bool warm_print_table(const warm_result *result, cli_pool *pool)
{
    out_table table = out_table_make(
        pool, has_variants(result) ? "kernel|target|result|language|>compile ms|>size|variant"
                                   : "kernel|target|result|language|>compile ms|>size");
    bool any = false;
    for (int failed = 0; failed < 2; failed++) { /* what failed comes last */
        for (size_t i = 0; i < result->count; i++) {
            const warm_item *item = &result->items[i];
            if (item->outcome != WARM_SKIPPED && (item->outcome == WARM_FAILED) == (failed != 0)) {
                add_warm_row(&table, result, item, pool);
                any = true;
            }
        }
    }
    const char *time = out_time(pool, result->total_ns);
    const char *bytes = out_bytes(pool, result->info.file_bytes);
    if (time == NULL || bytes == NULL || (any && !out_table_print(&table, stdout))) {
        return false;
    }
    print_skipped_items(result);
    print_unpacked(result);
    (void)printf("%zu there, %zu compiled, %zu skipped, %zu failed, %s\n",
                 warm_count(result, WARM_THERE), warm_count(result, WARM_COMPILED),
                 warm_count(result, WARM_SKIPPED), warm_count(result, WARM_FAILED), time);
    print_other_keys(result);
    if (result->pack != NULL) {
        out_print(stdout, "%s: %" PRIu64 " entries, %s\n", result->pack, result->info.entries,
                  bytes);
    }
    return true;
}

bool warm_print_json(const warm_result *result)
{
    json_t *root = json_object();
    json_t *rows = json_array();
    for (size_t i = 0; i < result->count; i++) {
        const warm_item *item = &result->items[i];
        json_t *row = json_object();
        out_json_set(&row, "kernel", out_json_text(item->name));
        out_json_set(&row, "variant", out_json_text(item->variant_name));
        out_json_set(&row, "target", out_json_text(result->targets[item->target]));
        out_json_set(&row, "result", out_json_text(warm_outcome_name(item->outcome)));
        out_json_set(&row, "language", out_json_text(kiln_language_name(item->language)));
        out_json_set(&row, "uses", out_json_u64(item->uses));
        out_json_set(&row, "bytes", out_json_u64(item->size));
        out_json_set(&row, "compile_ms", out_json_ms(item->compile_ns));
        out_json_set(&row, "saved_ms", out_json_ms(item->saved_ns));
        if (item->compared) {
            out_json_set(&row, "key", out_json_text(item->other_key ? "other" : "recorded"));
        }
        const char *reason = item->reason != NULL ? item->reason : item->unpacked;
        out_json_set(&row, "reason", out_json_text(reason != NULL ? reason : ""));
        out_json_append(&rows, row);
    }
    out_json_set(&root, "kernels", rows);
    out_json_set(&root, "there", out_json_u64(warm_count(result, WARM_THERE)));
    out_json_set(&root, "compiled", out_json_u64(warm_count(result, WARM_COMPILED)));
    out_json_set(&root, "skipped", out_json_u64(warm_count(result, WARM_SKIPPED)));
    out_json_set(&root, "failed", out_json_u64(warm_count(result, WARM_FAILED)));
    out_json_set(&root, "total_ms", out_json_ms(result->total_ns));
    out_json_set(&root, "pack", result->pack != NULL ? out_json_text(result->pack) : json_null());
    out_json_set(&root, "pack_entries", out_json_u64(result->info.entries));
    out_json_set(&root, "pack_bytes", out_json_u64(result->info.file_bytes));
    return out_json(stdout, root);
}
