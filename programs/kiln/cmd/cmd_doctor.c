/* kiln doctor: is everything as it should be, and if not, what to do. */
#include <inttypes.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/counters.h>
#include <kiln/unstable/probe.h>

#include "cli/bypasses.h"
#include "cli/diag.h"
#include "cli/host.h"
#include "cli/listing.h"
#include "cli/out.h"
#include "cli/session.h"
#include "cmd/doctor_packs.h"
#include "cmd/doctor_problems.h"
#include "cmd/doctor_program.h"
#include "cmd/doctor_remotes.h"
#include "cmd/doctor_settings.h"
#include "cmd/driver_caches.h"
#include "exec/python.h"

typedef struct doctor_options {
    session_options session;
    opt_number timeout;
    opt_list backends;
} doctor_options;

static const opt_spec specs[] = {{"backend", 'b', OPT_LIST, offsetof(doctor_options, backends),
                                  "NAME", "look at this backend only (may be repeated)"},
                                 {"timeout", 0, OPT_DURATION, offsetof(doctor_options, timeout),
                                  "TIME", "longest time for one backend (default 10s)"},
                                 SESSION_CACHE_ROW(doctor_options),
                                 SESSION_JSON_ROW(doctor_options),
                                 OPT_END};

enum { MAX_BACKENDS = 32, MAX_CACHES = 16 };

/* What was found out, before any of it is printed. */
typedef struct doctor_findings {
    kiln_probe_report reports[MAX_BACKENDS];
    size_t report_count;
    size_t ready;
    driver_cache caches[MAX_CACHES];
    size_t cache_count;
    bool disk;          /* kiln's own cache has a disk tier */
    bool wanted;        /* and was not turned off by the user */
    const char *root;   /* "" without one */
    const char *reason; /* why there is none */
    uint64_t entries, bytes;
    uint64_t temporaries, temporary_bytes;
    bool blocked; /* by what `trouble` says */
    kiln_diag trouble;
    uint64_t counters[KILN_COUNTERS];
    bool reads_only; /* nothing is stored: `reason`, or KILN_READONLY */
    doctor_packs packs;
    doctor_remotes remotes;
    doctor_settings settings;
    doctor_problems problems;
    cli_bypasses bypasses;
} doctor_findings;

static kiln_status probe_one(const cmd_context *context, const doctor_options *options,
                             const char *name, doctor_findings *findings, kiln_diag *diag)
{
    uint32_t limit_ms = 0;
    if (options->timeout.given) {
        uint64_t ms = options->timeout.value / 1000000u;
        limit_ms = ms > 0 && ms < UINT32_MAX ? (uint32_t)ms : 1;
    }
    kiln_probe_report *report = &findings->reports[findings->report_count];
    report->struct_size = sizeof(*report);
    console_progress(context->console, findings->report_count, MAX_BACKENDS, name, 0);
    kiln_status status = kiln_backend_probe_isolated(name, limit_ms, report, diag);
    if (status == KILN_OK) {
        findings->report_count++;
        findings->ready += report->outcome == KILN_PROBE_READY;
    }
    return status;
}

static kiln_status probe_backends(const cmd_context *context, const doctor_options *options,
                                  doctor_findings *findings, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    const char *name = kiln_backend_name(0);
    if (options->backends.count > MAX_BACKENDS) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "--backend", "at most 32 can be given");
    }
    /* Named ones are asked for by name, so that an unknown name is reported. */
    for (size_t i = 0; i < options->backends.count && status == KILN_OK; i++) {
        status = probe_one(context, options, options->backends.items[i], findings, diag);
    }
    for (size_t i = 0; name != NULL && status == KILN_OK && options->backends.count == 0; i++) {
        if (findings->report_count == MAX_BACKENDS) {
            break;
        }
        if (strcmp(name, "fake") != 0) { /* for tests of kiln itself */
            status = probe_one(context, options, name, findings, diag);
        }
        name = kiln_backend_name(i + 1);
    }
    console_progress_end(context->console);
    return status;
}

static kiln_status examine_cache(const cmd_context *context, kiln_cache *cache,
                                 doctor_findings *findings, kiln_diag *diag)
{
    cli_listing listing;
    kiln_cache_options asked = {0};
    kiln_status status = kiln_cache_options_init(&asked, diag);
    if (status != KILN_OK) {
        return status;
    }
    findings->root = kiln_cache_root(cache);
    findings->reason = kiln_cache_disk_reason(cache);
    findings->disk = *findings->root != '\0';
    findings->wanted = (asked.flags & KILN_CACHE_DISABLED) == 0;
    findings->reads_only = findings->disk && session_only_reads(cache);
    if (!doctor_packs_examine(asked.packs, context->pool, &findings->packs)) {
        return diag_no_memory(diag, "looking at packs");
    }
    if (!findings->disk) {
        return KILN_OK;
    }
    status = listing_make(cache, NULL, context->pool, &listing, diag);
    if (status == KILN_OK) {
        findings->entries = listing.count;
        findings->bytes = listing.disk_bytes;
        kiln_cache_get_temporaries(cache, &findings->temporaries, &findings->temporary_bytes);
        findings->trouble = (kiln_diag)KILN_DIAG_INIT;
        findings->blocked = kiln_cache_examine(cache, &findings->trouble) != KILN_OK;
        status = kiln_cache_get_totals(cache, findings->counters, KILN_COUNTERS, diag);
    }
    if (status == KILN_OK) {
        status = bypasses_read(cache, context->pool, &findings->bypasses, diag);
    }
    return status;
}

static void examine_drivers(const cmd_context *context, doctor_findings *findings)
{
    driver_cache cache;
    for (unsigned i = 0; i < MAX_CACHES && driver_cache_get(context->pool, i, &cache); i++) {
        findings->caches[findings->cache_count++] = cache;
    }
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* PoCL finds no device where it cannot write; any other backend does without a home. */
static void judge_backends(doctor_findings *findings)
{
    doctor_problems *problems = &findings->problems;
    for (size_t i = 0; i < findings->report_count; i++) {
        const kiln_probe_report *report = &findings->reports[i];
        if (strstr(report->fix, "POCL_CACHE_DIR") != NULL) {
            doctor_problem_add(problems, EXIT_FINE, report->backend, report->why, report->fix);
        }
    }
    if (findings->ready == 0) {
        doctor_problem_add(problems, EXIT_UNAVAILABLE, "backends", "none of them is ready",
                           "see above what each of them needs");
    }
}

static void judge_cache(doctor_findings *findings)
{
    doctor_problems *problems = &findings->problems;
    if (!findings->disk && findings->wanted && findings->root != NULL) {
        doctor_problem_add(problems, EXIT_CACHE, "the cache is off", findings->reason,
                           "name a directory that can be written with KILN_CACHE_DIR");
    } else if (findings->reads_only && *findings->reason != '\0') {
        doctor_problem_add(problems, EXIT_FINE, "the cache is only read", findings->reason,
                           "make the directory writable, or set KILN_READONLY=1 where that is "
                           "intended");
    }
    if (findings->blocked) {
        doctor_problem_add(problems, EXIT_CACHE, findings->trouble.what, findings->trouble.why,
                           findings->trouble.fix);
    }
    for (size_t i = 0; i < findings->packs.count; i++) {
        const doctor_pack *pack = &findings->packs.items[i];
        if (pack->trouble != NULL) {
            doctor_problem_add(problems, EXIT_CACHE, pack->path, pack->trouble,
                               "correct KILN_PACKS, or install the pack");
        }
    }
}

/* What a machine without problems hears; NULL: no memory. */
static const char *describe_readiness(cli_pool *pool, const doctor_findings *findings)
{
    const char *names = pool_text(pool, "", 0);
    for (size_t i = 0; names != NULL && i < findings->report_count; i++) {
        const kiln_probe_report *report = &findings->reports[i];
        if (report->outcome == KILN_PROBE_READY) {
            names = pool_format(pool, "%s%s%s", names, *names != '\0' ? ", " : "", report->backend);
        }
    }
    return names != NULL ? pool_format(pool, "kiln is ready: %s; the cache is %s", names,
                                       findings->disk ? "on" : "off, as asked")
                         : NULL;
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_backends(const doctor_findings *findings)
{
    (void)puts("Backends");
    for (size_t i = 0; i < findings->report_count; i++) {
        const kiln_probe_report *report = &findings->reports[i];
        out_print(stdout, "  %-9s %s", report->backend, kiln_probe_outcome_name(report->outcome));
        if (report->outcome == KILN_PROBE_READY) {
            out_print(stdout, "  %u device%s, %.1f ms", report->device_count,
                      report->device_count == 1 ? "" : "s", (double)report->probe_ns / 1e6);
        }
        (void)putchar('\n');
        if (report->library[0] != '\0') {
            out_print(stdout, "            library: %s%s%s%s\n", report->library,
                      report->version[0] != '\0' ? " (" : "", report->version,
                      report->version[0] != '\0' ? ")" : "");
        }
        if (report->why[0] != '\0' && report->outcome != KILN_PROBE_READY) {
            out_print(stdout, "            why: %s\n", report->why);
        }
        if (report->fix[0] != '\0') {
            out_print(stdout, "            fix: %s\n", report->fix);
        }
    }
}

static void print_bypasses(cli_pool *pool, const doctor_findings *findings)
{
    const uint64_t *counters = findings->counters;
    if (counters[KILN_COUNTER_BYPASSED] > 0) {
        const char *time = out_time(pool, counters[KILN_COUNTER_BYPASS_NS]);
        out_print(stdout, "  bypassed  %" PRIu64 " %s in %s%s%s: see kiln stats\n",
                  counters[KILN_COUNTER_BYPASSED],
                  counters[KILN_COUNTER_BYPASSED] == 1 ? "compile" : "compiles",
                  time != NULL ? time : "?",
                  findings->bypasses.count > 0 ? ", most of the time for " : "",
                  findings->bypasses.count > 0 ? findings->bypasses.items[0].reason : "");
    }
}

/* What went wrong in it, as far as counters say. */
static void print_cache_errors(cli_pool *pool, const doctor_findings *findings)
{
    const uint64_t *counters = findings->counters;
    print_bypasses(pool, findings);
    bypasses_print_refused("  ", counters);
    if (counters[KILN_COUNTER_UNENDED] > 0) {
        out_print(stdout,
                  "  unended   %" PRIu64 " %s rebuilt because loading %s did not end: update that "
                  "driver, then kiln clear\n",
                  counters[KILN_COUNTER_UNENDED],
                  counters[KILN_COUNTER_UNENDED] == 1 ? "binary" : "binaries",
                  counters[KILN_COUNTER_UNENDED] == 1 ? "it" : "them");
    }
    if (counters[KILN_COUNTER_PUT_FAILURES] + counters[KILN_COUNTER_IO_ERRORS] +
            counters[KILN_COUNTER_CORRUPT] >
        0) {
        out_print(stdout,
                  "  errors    %" PRIu64 " not stored, %" PRIu64 " damaged, %" PRIu64
                  " other errors\n",
                  counters[KILN_COUNTER_PUT_FAILURES], counters[KILN_COUNTER_CORRUPT],
                  counters[KILN_COUNTER_IO_ERRORS]);
    }
}

static bool print_cache(cli_pool *pool, const doctor_findings *findings)
{
    const uint64_t *counters = findings->counters;
    const char *bytes = out_bytes(pool, findings->bytes);
    const char *more = out_bytes(pool, findings->temporary_bytes);
    const char *saved = out_time(pool, counters[KILN_COUNTER_SAVED_NS]);
    uint64_t hits = counters[KILN_COUNTER_HITS_MEMORY] + counters[KILN_COUNTER_HITS_DISK] +
                    counters[KILN_COUNTER_HITS_PACK] + counters[KILN_COUNTER_HITS_REMOTE] +
                    counters[KILN_COUNTER_HITS_SHARED];
    if (bytes == NULL || more == NULL || saved == NULL) {
        return false;
    }
    (void)puts("\nCache");
    if (!findings->disk) {
        out_print(stdout, "  off       %s\n", findings->reason);
        return true;
    }
    out_print(stdout, "  on        %s\n", findings->root);
    if (findings->reads_only) {
        const bool asked = *findings->reason == '\0';
        out_print(stdout, "  read-only nothing is stored: %s\n",
                  asked ? "KILN_READONLY is set" : findings->reason);
        out_print(stdout, "            fix: %s\n",
                  asked ? "unset KILN_READONLY"
                        : "make the directory writable, or name another with KILN_CACHE_DIR");
    }
    out_print(stdout, "  holds     %" PRIu64 " %s, %s\n", findings->entries,
              findings->entries == 1 ? "entry" : "entries", bytes);
    if (findings->temporaries > 0) {
        out_print(stdout,
                  "  temporary %" PRIu64 " %s, %s (`kiln prune` removes those that killed writers "
                  "left)\n",
                  findings->temporaries, findings->temporaries == 1 ? "file" : "files", more);
    }
    if (findings->blocked) {
        out_print(stdout, "  blocked   %s: %s\n            fix: %s\n", findings->trouble.what,
                  findings->trouble.why, findings->trouble.fix);
    }
    out_print(stdout, "  usage     %" PRIu64 " %s, %" PRIu64 " %s, %s of compiling saved\n", hits,
              hits == 1 ? "hit" : "hits", counters[KILN_COUNTER_MISSES],
              counters[KILN_COUNTER_MISSES] == 1 ? "miss" : "misses", saved);
    print_cache_errors(pool, findings);
    return true;
}

static bool print_drivers(cli_pool *pool, const doctor_findings *findings)
{
    out_table table = out_table_make(pool, "  cache|>size|>files|state|path");
    for (size_t i = 0; i < findings->cache_count; i++) {
        const driver_cache *cache = &findings->caches[i];
        const char *cells[] = {pool_format(pool, "  %s", cache->name),
                               cache->present ? out_bytes(pool, cache->bytes) : "-",
                               cache->present ? pool_format(pool, "%" PRIu64, cache->files) : "-",
                               cache->state, cache->path != NULL ? cache->path : "-"};
        out_table_add(&table, cells);
    }
    (void)puts("\nDrivers' own caches");
    return out_table_print(&table, stdout);
}

static void print_python(cli_pool *pool)
{
    const char *trouble = exec_python_bytecode(pool, NULL);
    if (trouble != NULL) {
        out_print(stdout, "\nPython\n  slow      %s\n", trouble);
    }
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *backends_json(const doctor_findings *findings)
{
    json_t *backends = json_array();
    for (size_t i = 0; i < findings->report_count; i++) {
        const kiln_probe_report *report = &findings->reports[i];
        json_t *row = json_object();
        out_json_set(&row, "backend", out_json_text(report->backend));
        out_json_set(&row, "outcome", out_json_text(kiln_probe_outcome_name(report->outcome)));
        out_json_set(&row, "library", out_json_text(report->library));
        out_json_set(&row, "version", out_json_text(report->version));
        out_json_set(&row, "why", out_json_text(report->why));
        out_json_set(&row, "fix", out_json_text(report->fix));
        out_json_set(&row, "devices", out_json_u64(report->device_count));
        out_json_set(&row, "probe_ms", out_json_ms(report->probe_ns));
        out_json_append(&backends, row);
    }
    return backends;
}

static bool print_doctor_json(cli_pool *pool, const doctor_findings *findings)
{
    const char *verdict = doctor_verdict(&findings->problems, describe_readiness(pool, findings));
    json_t *root = json_object();
    json_t *cache = json_object();
    json_t *drivers = json_array();
    out_json_set(&cache, "on", json_boolean(findings->disk));
    out_json_set(&cache, "root", out_json_text(findings->root));
    out_json_set(&cache, "read_only", json_boolean(findings->reads_only));
    out_json_set(&cache, "reason", out_json_text(findings->reason));
    out_json_set(&cache, "entries", out_json_u64(findings->entries));
    out_json_set(&cache, "bytes", out_json_u64(findings->bytes));
    out_json_set(&cache, "temporaries", out_json_u64(findings->temporaries));
    out_json_set(&cache, "temporary_bytes", out_json_u64(findings->temporary_bytes));
    if (findings->blocked) {
        out_json_set(&cache, "blocked", out_json_text(findings->trouble.what));
    }
    out_json_set(&cache, "bypassed", out_json_u64(findings->counters[KILN_COUNTER_BYPASSED]));
    out_json_set(&cache, "bypass_ms", out_json_ms(findings->counters[KILN_COUNTER_BYPASS_NS]));
    out_json_set(
        &cache, "bypass_reason",
        out_json_text(findings->bypasses.count > 0 ? findings->bypasses.items[0].reason : ""));
    for (size_t i = 0; i < findings->cache_count; i++) {
        const driver_cache *driver = &findings->caches[i];
        json_t *row = json_object();
        out_json_set(&row, "name", out_json_text(driver->name));
        out_json_set(&row, "path",
                     driver->path != NULL ? out_json_text(driver->path) : json_null());
        out_json_set(&row, "state", driver->state != NULL ? out_json_text(driver->state) : NULL);
        out_json_set(&row, "present", json_boolean(driver->present));
        out_json_set(&row, "bytes", out_json_u64(driver->bytes));
        out_json_set(&row, "files", out_json_u64(driver->files));
        out_json_append(&drivers, row);
    }
    out_json_set(&root, "backends", backends_json(findings));
    out_json_set(&root, "cache", cache);
    out_json_set(&root, "packs", doctor_packs_json(&findings->packs));
    out_json_set(&root, "driver_caches", drivers);
    out_json_set(&root, "remotes", doctor_remotes_json(&findings->remotes));
    out_json_set(&root, "troubles", doctor_program_troubles_json(pool));
    out_json_set(&root, "problems", doctor_problems_json(&findings->problems));
    out_json_set(&root, "verdict", verdict != NULL ? out_json_text(verdict) : NULL);
    return out_json(stdout, root);
}

static bool print_doctor_text(cli_pool *pool, const doctor_findings *findings)
{
    print_backends(findings);
    if (!print_cache(pool, findings) || !doctor_packs_print(&findings->packs, pool)) {
        return false;
    }
    doctor_remotes_print(&findings->remotes);
    if (!print_drivers(pool, findings)) {
        return false;
    }
    doctor_program_print_troubles(pool);
    print_python(pool);
    doctor_settings_print(&findings->settings);
    return doctor_problems_print(&findings->problems, describe_readiness(pool, findings));
}

/* What can be asked without a cache is asked first. */
static kiln_status examine_all(const cmd_context *context, const doctor_options *options,
                               kiln_cache **out_cache, doctor_findings *findings, kiln_diag *diag)
{
    doctor_problems *problems = &findings->problems;
    problems->pool = context->pool;
    kiln_status status = probe_backends(context, options, findings, diag);
    if (status != KILN_OK) {
        return status; /* a backend that nobody has */
    }
    doctor_settings_examine(problems, &findings->settings);
    doctor_remotes_examine(problems, &findings->remotes);
    status = session_try_cache(context, &options->session, out_cache, diag);
    if (status == KILN_OK) {
        status = examine_cache(context, *out_cache, findings, diag);
    }
    if (status == KILN_E_NOMEM) {
        return status;
    }
    if (status != KILN_OK) {
        doctor_problem_add(problems, EXIT_CACHE, diag->what, diag->why, diag->fix);
        kiln_diag_clear(diag);
    }
    judge_backends(findings);
    judge_cache(findings);
    doctor_program_judge(problems);
    examine_drivers(context, findings);
    return KILN_OK;
}

static exit_code run_doctor(const cmd_context *context, void *fields, const opt_list *arguments)
{
    const doctor_options *options = fields;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    doctor_findings *findings =
        pool_alloc(context->pool, sizeof(*findings)); /* large for a stack */
    if (findings == NULL) {
        return cmd_no_memory(context);
    }
    if (arguments->count > 0) {
        return doctor_program_run(context, arguments, options->session.json);
    }
    exit_code code = EXIT_FINE;
    if (examine_all(context, options, &cache, findings, &diag) != KILN_OK) {
        code = cmd_fail(context, &diag);
    } else {
        const bool good = options->session.json ? print_doctor_json(context->pool, findings)
                                                : print_doctor_text(context->pool, findings);
        code = good ? doctor_problems_code(&findings->problems) : cmd_no_memory(context);
    }
    kiln_cache_destroy(cache);
    return code;
}

const cli_command cmd_doctor = {
    .name = "doctor",
    .usage = "[-- PROGRAM [ARGUMENTS]]",
    .summary = "Examines backends, the cache and the drivers' own caches, and says what to fix",
    .details =
        "Each backend is probed in a process of its own with a time limit, so that a broken\n"
        "driver can neither crash nor hang the examination. Each remote is asked, keys and packs\n"
        "are opened, and the values of variables are checked. The last line is the verdict.\n"
        "Exits 3 if no backend works, 4 if the cache, a pack or a remote cannot be used, 2 if a\n"
        "variable is misspelled or malformed.\n\n"
        "With a program, runs it as kiln exec does, and says which compilers it used, which of "
        "them\n"
        "kiln answered for, and what to do about the others. Exits 0, whatever the program's exit\n"
        "code.",
    .options = specs,
    .options_size = sizeof(doctor_options),
    .max_arguments = SIZE_MAX,
    .run = run_doctor,
};
