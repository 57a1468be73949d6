/* Results as text and as JSON. */
#include "cmd/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "cli/out.h"

static const char *verdict_of(const kernel_result *result)
{
    if (result->status == KILN_E_COMPILE) {
        return "does not compile";
    }
    if (result->status != KILN_OK) {
        return "FAILED";
    }
    if (!result->ok) {
        return "WRONG";
    }
    return result->checked ? "ok" : "not checked";
}

static char *device_text(cli_pool *pool, const kernel_result *result)
{
    if (result->device == NULL) {
        return pool_text(pool, "-", 1);
    }
    return pool_format(pool, "%s:%u", result->device->backend, result->device->index);
}

static const char *form_text(const kernel_result *result)
{
    if (result->variant != NULL) {
        return result->variant;
    }
    return result->language != KILN_LANG_NONE ? kiln_language_name(result->language) : "-";
}

static void add_result_row(out_table *table, cli_pool *pool, const kernel_result *result)
{
    bool ran = result->status == KILN_OK;
    bool built = ran || result->build_ns > 0;
    const char *none = "-";
    const char *cells[] = {
        result->kernel,
        device_text(pool, result),
        form_text(result),
        built ? kiln_origin_name(result->origin) : none,
        built ? out_ms(pool, result->compile_ns) : none,
        built ? out_ms(pool, result->load_ns) : none,
        ran ? out_ms(pool, result->first_launch_ns) : none,
        ran && result->repeats > 0 ? out_ms(pool, result->median_launch_ns) : none,
        ran && result->checked ? pool_format(pool, "%.2e", result->difference.max_abs) : none,
        verdict_of(result),
    };
    out_table_add(table, cells);
}

static bool is_same(const report_skip *a, const report_skip *b)
{
    return a->device == b->device && strcmp(a->reason, b->reason) == 0;
}

/* One line for each device and reason, with how many kernels it keeps away. */
static void print_skipped_kernels(const cli_report *report)
{
    for (size_t i = 0; i < report->skip_count; i++) {
        const report_skip *skip = &report->skips[i];
        size_t before = 0;
        size_t count = 0;
        for (size_t j = 0; j < report->skip_count; j++) {
            before += j < i && is_same(&report->skips[j], skip);
            count += is_same(&report->skips[j], skip);
        }
        if (before == 0) {
            out_print(stdout, "skipped on %s:%u: %zu %s: %s\n", skip->device->backend,
                      skip->device->index, count, count == 1 ? "kernel" : "kernels", skip->reason);
        }
    }
}

bool report_print_table(const cli_report *report, cli_pool *pool)
{
    out_table table = out_table_make(pool, "kernel|device|language|origin|>compile ms|>load "
                                           "ms|>first ms|>median ms|>max error|result");
    for (size_t i = 0; i < report->result_count; i++) {
        add_result_row(&table, pool, &report->results[i]);
    }
    if (report->result_count > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    print_skipped_kernels(report);
    return true;
}

static void put_device(json_t **row, const kiln_device_info *device)
{
    out_json_set(row, "backend", device != NULL ? out_json_text(device->backend) : json_null());
    out_json_set(row, "device_index", device != NULL ? out_json_u64(device->index) : json_null());
    out_json_set(row, "device", device != NULL ? out_json_text(device->name) : json_null());
}

static json_t *result_json(const kernel_result *result)
{
    json_t *row = json_object();
    out_json_set(&row, "kernel", out_json_text(result->kernel));
    put_device(&row, result->device);
    out_json_set(&row, "language", out_json_text(kiln_language_name(result->language)));
    out_json_set(&row, "variant",
                 result->variant != NULL ? out_json_text(result->variant) : json_null());
    out_json_set(&row, "origin", out_json_text(kiln_origin_name(result->origin)));
    out_json_set(&row, "compiles", out_json_u64(result->compiles));
    out_json_set(&row, "key_ms", out_json_ms(result->key_ns));
    out_json_set(&row, "lookup_ms", out_json_ms(result->lookup_ns));
    out_json_set(&row, "compile_ms", out_json_ms(result->compile_ns));
    out_json_set(&row, "load_ms", out_json_ms(result->load_ns));
    out_json_set(&row, "build_ms", out_json_ms(result->build_ns));
    out_json_set(&row, "first_launch_ms", out_json_ms(result->first_launch_ns));
    out_json_set(&row, "readback_ms", out_json_ms(result->readback_ns));
    out_json_set(&row, "first_result_ms", out_json_ms(result->first_result_ns));
    out_json_set(&row, "median_launch_ms", out_json_ms(result->median_launch_ns));
    out_json_set(&row, "median_device_ms", out_json_ms(result->median_device_ns));
    out_json_set(&row, "repeats", out_json_u64(result->repeats));
    out_json_set(&row, "checked", json_boolean(result->checked));
    out_json_set(&row, "ok", json_boolean(result->ok));
    out_json_set(&row, "max_abs_error", out_json_real(result->difference.max_abs));
    out_json_set(&row, "max_rel_error", out_json_real(result->difference.max_rel));
    out_json_set(&row, "status", out_json_text(kiln_status_name(result->status)));
    out_json_set(&row, "reason", out_json_text(result->reason));
    return row;
}

static json_t *totals_json(const cli_report *report)
{
    uint64_t good = 0;
    uint64_t wrong = 0;
    uint64_t compiles = 0;
    for (size_t i = 0; i < report->result_count; i++) {
        const kernel_result *result = &report->results[i];
        good += result->ok;
        wrong += result->status == KILN_OK && !result->ok;
        compiles += result->compiles;
    }
    json_t *totals = json_object();
    out_json_set(&totals, "results", out_json_u64(report->result_count));
    out_json_set(&totals, "ok", out_json_u64(good));
    out_json_set(&totals, "wrong", out_json_u64(wrong));
    out_json_set(&totals, "failed", out_json_u64(report->result_count - good - wrong));
    out_json_set(&totals, "skipped", out_json_u64(report->skip_count));
    out_json_set(&totals, "compiles", out_json_u64(compiles));
    return totals;
}

bool report_print_json(const cli_report *report)
{
    json_t *root = json_object();
    json_t *results = json_array();
    json_t *skips = json_array();
    for (size_t i = 0; i < report->result_count; i++) {
        out_json_append(&results, result_json(&report->results[i]));
    }
    for (size_t i = 0; i < report->skip_count; i++) {
        json_t *row = json_object();
        out_json_set(&row, "kernel", out_json_text(report->skips[i].kernel));
        put_device(&row, report->skips[i].device);
        out_json_set(&row, "reason", out_json_text(report->skips[i].reason));
        out_json_append(&skips, row);
    }
    out_json_set(&root, "kiln_run", json_integer(1));
    out_json_set(&root, "source", out_json_text(report->source));
    out_json_set(&root, "summary", out_json_text(report->summary));
    out_json_set(&root, "results", results);
    out_json_set(&root, "skipped", skips);
    out_json_set(&root, "totals", totals_json(report));
    return out_json(stdout, root);
}
