/* Tunings as tables and as JSON. */
#include "cmd/tune_report.h"

#include <stdio.h>
#include <string.h>

#include "cli/out.h"
#include "kernel/kernel_variants.h"

static char *tuned_device_text(cli_pool *pool, const tune_item *item)
{
    return item->device == NULL
               ? pool_text(pool, "-", 1)
               : pool_format(pool, "%s:%u", item->device->backend, item->device->index);
}

static char *rate_text(cli_pool *pool, double per_s)
{
    return per_s > 0 ? pool_format(pool, "%.2f", per_s / 1e9) : pool_text(pool, "-", 1);
}

/* How many times as fast as the baseline. */
static char *gain_text(cli_pool *pool, const kiln_tuning *tuning)
{
    return tuning->ns > 0
               ? pool_format(pool, "%.2fx", (double)tuning->baseline_ns / (double)tuning->ns)
               : pool_text(pool, "-", 1);
}

static const char *variant_text(const tune_item *item, size_t place)
{
    return kernel_variants_form(item->kernel, place)->name;
}

static const char *outcome_text(const tune_item *item)
{
    if (item->reason != NULL) {
        return item->skipped ? "skipped" : "FAILED";
    }
    return item->tuning.origin == KILN_ORIGIN_NONE ? "measured"
                                                   : kiln_origin_name(item->tuning.origin);
}

static void add_tuning_row(out_table *table, cli_pool *pool, const tune_item *item)
{
    const char *none = "-";
    bool good = item->reason == NULL;
    const kiln_tuning *tuning = &item->tuning;
    const char *cells[] = {
        item->kernel->name,
        tuned_device_text(pool, item),
        good ? variant_text(item, tuning->variant) : none,
        good ? out_ms(pool, tuning->ns) : none,
        good ? out_ms(pool, tuning->baseline_ns) : none,
        good ? gain_text(pool, tuning) : none,
        good ? rate_text(pool, tuning->flops_per_s) : none,
        good ? rate_text(pool, tuning->bytes_per_s) : none,
        outcome_text(item),
    };
    out_table_add(table, cells);
}

static void add_variant(out_table *table, cli_pool *pool, const tune_item *item, size_t index)
{
    const char *none = "-";
    const kiln_tune_row *row = &item->rows[index];
    bool timed = row->median_ns > 0;
    const char *cells[] = {
        item->kernel->name,
        tuned_device_text(pool, item),
        variant_text(item, index),
        timed ? out_ms(pool, row->median_ns) : none,
        timed ? out_ms(pool, row->low_ns) : none,
        timed ? out_ms(pool, row->high_ns) : none,
        pool_format(pool, "%u", row->samples),
        kiln_tune_outcome_name(row->outcome),
    };
    out_table_add(table, cells);
}

/* Not those in other devices' languages. */
static bool is_told(const kiln_tune_row *row)
{
    return row->outcome != KILN_TUNE_PASSED_OVER || row->status != KILN_OK;
}

/* Every variant that the device takes. */
static bool print_variants(const tune_result *result, cli_pool *pool)
{
    out_table table =
        out_table_make(pool, "kernel|device|variant|>median ms|>low ms|>high ms|>samples|outcome");
    for (size_t i = 0; i < result->count; i++) {
        const tune_item *item = &result->items[i];
        for (size_t j = 0; item->reason == NULL && j < item->count; j++) {
            if (is_told(&item->rows[j])) {
                add_variant(&table, pool, item, j);
            }
        }
    }
    (void)putchar('\n');
    return out_table_print(&table, stdout);
}

static void print_rest(const tune_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        const tune_item *item = &result->items[i];
        if (item->skipped) {
            out_print(stdout, "skipped %s on %s:%u: %s\n", item->kernel->name,
                      item->device != NULL ? item->device->backend : "-",
                      item->device != NULL ? item->device->index : 0, item->reason);
        }
    }
    if (result->without > 0) {
        (void)printf("%zu %s no variants\n", result->without,
                     result->without == 1 ? "kernel has" : "kernels have");
    }
}

bool tune_print_table(const tune_result *result, cli_pool *pool)
{
    out_table table =
        out_table_make(pool, "kernel|device|variant|>ms|>baseline|>gain|>GFLOP/s|>GB/s|from");
    size_t rows = 0;
    for (size_t i = 0; i < result->count; i++) {
        if (!result->items[i].skipped) { /* these are reported below, with their reason */
            add_tuning_row(&table, pool, &result->items[i]);
            rows++;
        }
    }
    if (rows > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    if (result->all_rows && !print_variants(result, pool)) {
        return false;
    }
    print_rest(result);
    return true;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *row_json(const tune_item *item, size_t index)
{
    const kiln_tune_row *row = &item->rows[index];
    json_t *out = json_object();
    out_json_set(&out, "variant", out_json_text(variant_text(item, index)));
    out_json_set(&out, "outcome", out_json_text(kiln_tune_outcome_name(row->outcome)));
    out_json_set(&out, "samples", out_json_u64(row->samples));
    out_json_set(&out, "median_ms", out_json_ms(row->median_ns));
    out_json_set(&out, "low_ms", out_json_ms(row->low_ns));
    out_json_set(&out, "high_ms", out_json_ms(row->high_ns));
    out_json_set(&out, "status", out_json_text(kiln_status_name(row->status)));
    out_json_set(&out, "reason", out_json_text(row->reason));
    return out;
}

static json_t *item_json(const tune_item *item)
{
    const kiln_tuning *tuning = &item->tuning;
    const kiln_device_info *device = item->device;
    bool good = item->reason == NULL;
    json_t *rows = json_array();
    json_t *out = json_object();
    for (size_t i = 0; good && i < item->count; i++) {
        if (is_told(&item->rows[i])) {
            out_json_append(&rows, row_json(item, i));
        }
    }
    out_json_set(&out, "kernel", out_json_text(item->kernel->name));
    out_json_set(&out, "backend", device != NULL ? out_json_text(device->backend) : json_null());
    out_json_set(&out, "device_index", device != NULL ? out_json_u64(device->index) : json_null());
    out_json_set(&out, "device", device != NULL ? out_json_text(device->name) : json_null());
    out_json_set(&out, "variant",
                 good ? out_json_text(variant_text(item, tuning->variant)) : json_null());
    out_json_set(&out, "baseline",
                 good ? out_json_text(variant_text(item, tuning->baseline)) : json_null());
    out_json_set(&out, "from", out_json_text(outcome_text(item)));
    out_json_set(&out, "ms", out_json_ms(tuning->ns));
    out_json_set(&out, "baseline_ms", out_json_ms(tuning->baseline_ns));
    out_json_set(&out, "gflops_per_s", out_json_real(tuning->flops_per_s / 1e9));
    out_json_set(&out, "gbytes_per_s", out_json_real(tuning->bytes_per_s / 1e9));
    out_json_set(&out, "launches", out_json_u64(tuning->launches));
    out_json_set(&out, "took_ms", out_json_ms(tuning->took_ns));
    out_json_set(&out, "variants", rows);
    out_json_set(&out, "status", out_json_text(kiln_status_name(item->status)));
    out_json_set(&out, "reason", out_json_text(good ? "" : item->reason));
    return out;
}

bool tune_print_json(const tune_result *result)
{
    json_t *root = json_object();
    json_t *items = json_array();
    uint64_t launches = 0;
    for (size_t i = 0; i < result->count; i++) {
        out_json_append(&items, item_json(&result->items[i]));
        launches += result->items[i].tuning.launches;
    }
    out_json_set(&root, "kiln_tune", json_integer(1));
    out_json_set(&root, "source", out_json_text(result->source));
    out_json_set(&root, "summary", out_json_text(result->summary));
    out_json_set(&root, "tunings", items);
    out_json_set(&root, "without_variants", out_json_u64(result->without));
    out_json_set(&root, "launches", out_json_u64(launches));
    return out_json(stdout, root);
}
