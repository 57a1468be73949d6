/* kiln devices: what was found, what was not, and why. */
#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/names.h>
#include <kiln/unstable/probe.h>

#include "cli/out.h"
#include "cli/session.h"

typedef struct devices_options {
    session_options session;
    bool isolate;
} devices_options;

static const opt_spec specs[] = {SESSION_DEVICE_ROWS(devices_options),
                                 {"isolate", 0, OPT_FLAG, offsetof(devices_options, isolate), NULL,
                                  "probe each backend in a process of its own first"},
                                 {"fresh", 0, OPT_FLAG,
                                  offsetof(devices_options, session.fresh_probe), NULL,
                                  "probe again, ignoring remembered results"},
                                 SESSION_CACHE_ROW(devices_options),
                                 SESSION_JSON_ROW(devices_options),
                                 OPT_END};

static bool print_device_table(cli_pool *pool, kiln_runtime *runtime)
{
    out_table table = out_table_make(pool, "device|name|class|>units|>memory|target|driver");
    size_t count = kiln_runtime_device_count(runtime);
    for (size_t i = 0; i < count; i++) {
        const kiln_device_info *info = kiln_device_get_info(kiln_runtime_device(runtime, i));
        const char *cells[] = {
            pool_format(pool, "%s:%u", info->backend, info->index),
            info->name,
            kiln_device_class_name(info->device_class),
            info->compute_units == 0 ? "-" : pool_format(pool, "%u", info->compute_units),
            info->memory_bytes == 0 ? "-" : out_bytes(pool, info->memory_bytes),
            info->target,
            info->driver};
        out_table_add(&table, cells);
    }
    if (count == 0) {
        (void)puts("no devices");
        return true;
    }
    return out_table_print(&table, stdout);
}

static bool print_reports(cli_pool *pool, kiln_runtime *runtime)
{
    out_table table = out_table_make(pool, "backend|state|>devices|>probe ms|");
    size_t count = kiln_runtime_report_count(runtime);
    for (size_t i = 0; i < count; i++) {
        const kiln_probe_report *report = kiln_runtime_get_report(runtime, i);
        const char *why = report->outcome == KILN_PROBE_READY ? report->library : report->why;
        const char *cells[] = {report->backend, kiln_probe_outcome_name(report->outcome),
                               pool_format(pool, "%u", report->device_count),
                               report->remembered ? "known" : out_ms(pool, report->probe_ns), why};
        out_table_add(&table, cells);
    }
    (void)putchar('\n');
    return out_table_print(&table, stdout);
}

static json_t *device_json(const kiln_device_info *info)
{
    json_t *row = json_object();
    out_json_set(&row, "backend", out_json_text(info->backend));
    out_json_set(&row, "index", out_json_u64(info->index));
    out_json_set(&row, "name", out_json_text(info->name));
    out_json_set(&row, "vendor", out_json_text(info->vendor));
    out_json_set(&row, "driver", out_json_text(info->driver));
    out_json_set(&row, "version", out_json_text(info->version));
    out_json_set(&row, "platform", out_json_text(info->platform));
    out_json_set(&row, "target", out_json_text(info->target));
    out_json_set(&row, "uuid", out_json_text(info->uuid));
    out_json_set(&row, "class", out_json_text(kiln_device_class_name(info->device_class)));
    out_json_set(&row, "compute_units", out_json_u64(info->compute_units));
    out_json_set(&row, "max_group_size", out_json_u64(info->max_group_size));
    out_json_set(&row, "subgroup_size", out_json_u64(info->subgroup_size));
    out_json_set(&row, "address_bits", out_json_u64(info->address_bits));
    out_json_set(&row, "memory_bytes", out_json_u64(info->memory_bytes));
    out_json_set(&row, "max_buffer_bytes", out_json_u64(info->max_buffer_bytes));
    out_json_set(&row, "local_bytes", out_json_u64(info->local_bytes));
    out_json_set(&row, "fp16", json_boolean(info->fp16));
    out_json_set(&row, "fp64", json_boolean(info->fp64));
    return row;
}

static json_t *report_json(const kiln_probe_report *report)
{
    json_t *row = json_object();
    out_json_set(&row, "backend", out_json_text(report->backend));
    out_json_set(&row, "outcome", out_json_text(kiln_probe_outcome_name(report->outcome)));
    out_json_set(&row, "library", out_json_text(report->library));
    out_json_set(&row, "version", out_json_text(report->version));
    out_json_set(&row, "why", out_json_text(report->why));
    out_json_set(&row, "fix", out_json_text(report->fix));
    out_json_set(&row, "devices", out_json_u64(report->device_count));
    out_json_set(&row, "probe_ms", out_json_ms(report->probe_ns));
    out_json_set(&row, "remembered", json_boolean(report->remembered));
    return row;
}

static bool print_devices_json(kiln_runtime *runtime)
{
    json_t *root = json_object();
    json_t *devices = json_array();
    json_t *backends = json_array();
    for (size_t i = 0; i < kiln_runtime_device_count(runtime); i++) {
        out_json_append(&devices,
                        device_json(kiln_device_get_info(kiln_runtime_device(runtime, i))));
    }
    for (size_t i = 0; i < kiln_runtime_report_count(runtime); i++) {
        out_json_append(&backends, report_json(kiln_runtime_get_report(runtime, i)));
    }
    out_json_set(&root, "summary", out_json_text(kiln_runtime_summary(runtime)));
    out_json_set(&root, "devices", devices);
    out_json_set(&root, "backends", backends);
    return out_json(stdout, root);
}

/* The end of "requested=... detected=[...] selected=opencl:0". */
static const char *chosen_device(const char *summary)
{
    static const char before[] = "selected=";
    const char *found = summary;
    for (const char *at = summary; (at = strstr(at, before)) != NULL;) {
        at += sizeof(before) - 1; /* a device's name may have it, too */
        found = at;
    }
    return found;
}

static exit_code run_devices(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const devices_options *options = fields;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    (void)arguments; /* takes none */
    exit_code code = session_open_cache(context, &options->session, &cache);
    if (code == EXIT_FINE) {
        code = session_open_runtime_isolated(context, &options->session, cache, options->isolate,
                                             &runtime);
    }
    if (code == EXIT_FINE) {
        bool good = options->session.json ? print_devices_json(runtime)
                                          : print_device_table(context->pool, runtime) &&
                                                print_reports(context->pool, runtime);
        code = kiln_runtime_device_count(runtime) > 0 ? EXIT_FINE : EXIT_UNAVAILABLE;
        code = good ? code : cmd_no_memory(context);
    }
    if (code == EXIT_FINE && !options->session.json) {
        (void)putchar('\n');
        out_print(stdout, "chosen: %s\n", chosen_device(kiln_runtime_summary(runtime)));
    }
    session_close(cache, runtime);
    return code;
}

const cli_command cmd_devices = {
    .name = "devices",
    .usage = "",
    .summary = "Lists the devices found, and says why others are missing",
    .options = specs,
    .options_size = sizeof(devices_options),
    .run = run_devices,
};
