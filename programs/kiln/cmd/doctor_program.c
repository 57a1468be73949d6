/* See doctor_program.h. */
#include "cmd/doctor_program.h"

#include <stdio.h>
#include <string.h>

#include "cli/out.h"
#include "compilers/libraries.h"
#include "exec/audit.h"
#include "exec/child.h"
#include "exec/environment.h"
#include "exec/python.h"
#include "exec/report.h"
#include "exec/trouble.h"

typedef struct program_findings {
    exec_environment environment;
    exec_audit audit;
    exec_report report;
    exit_code ended;
} program_findings;

/* What is known of a compiler by the name of its file. */
typedef struct compiler_kind {
    const char *file; /* the start of the name */
    const char *name;
    const char *what; /* in reports; NULL: kiln has no library for it */
    const char *why;  /* kiln does not stand under it */
    const char *fix;
} compiler_kind;

#define NOT_INTERPOSED "kiln exec does not stand under it"
#define OWN_CACHE "rely on the program's own cache"

#define KN_KNOWN_LIBRARY(...) {__VA_ARGS__},
#define KN_KNOWN_PROGRAM(...) {__VA_ARGS__},
#define KN_KNOWN_LAYER(id, file, name, why, fix)                                                   \
    {file, name, #id, "kiln's layer for it is not installed", "install the whole package kiln"},
static const compiler_kind kinds[] = {
#include "compilers/known.def"
};
#undef KN_KNOWN_LIBRARY
#undef KN_KNOWN_PROGRAM
#undef KN_KNOWN_LAYER

/* A layer is installed, and the loader has not opened it. */
#define KN_KNOWN_LIBRARY(...)
#define KN_KNOWN_PROGRAM(...)
#define KN_KNOWN_LAYER(id, file, name, why, fix) {file, name, #id, why, fix},
static const compiler_kind unlayered[] = {
#include "compilers/known.def"
};

static const compiler_kind other = {"", "compiler", NULL, NOT_INTERPOSED, OWN_CACHE};

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static compiler_kind find_kind(const compiler_kind *rows, size_t count, const char *file)
{
    for (size_t i = 0; i < count; i++) {
        if (starts_with(file, rows[i].file)) {
            return rows[i];
        }
    }
    return other;
}

static bool is_library(const char *file, const char *stem)
{
    return starts_with(file, stem) && starts_with(file + strlen(stem), ".so");
}

/* An interposed library, or kiln's before one that keeps its own name. */
static bool find_interposed(const char *file, compiler_kind *out)
{
    for (int i = 0; i < KN_LIBRARIES; i++) {
        const kn_library *row = &kn_libraries[i];
        *out = (compiler_kind){row->stem, row->name, row->api, "it is opened by its absolute path",
                               "start the program with kiln exec --audit"};
        if (!kn_library_keeps_name(row)) {
            out->why = "kiln stands before its hipRTC alone, for programs linked with it";
            out->fix = "where no compile is counted, have the program load libhiprtc.so";
        }
        if (is_library(file, row->stem)) {
            return true;
        }
        if (is_library(file, row->shim)) {
            *out = (compiler_kind){row->shim, kn_library_find(row->api)->name, row->api, "", ""};
            return true;
        }
    }
    return false;
}

static compiler_kind library_kind(const program_findings *findings, const exec_compiler *compiler)
{
    const char *file = file_of(compiler->path);
    compiler_kind kind;
    if (find_interposed(file, &kind)) {
        return kind;
    }
    kind = find_kind(kinds, sizeof(kinds) / sizeof(*kinds), file);
    const bool has_layer =
        (findings->environment.opencl_layer != NULL && strcmp(kind.name, "OpenCL") == 0) ||
        (findings->environment.vulkan_layer != NULL && strcmp(kind.name, "Vulkan") == 0);
    return has_layer ? find_kind(unlayered, sizeof(unlayered) / sizeof(*unlayered), file) : kind;
}

/* Who answered, and if it was not kiln, why and what to do. */
typedef struct verdict {
    const char *answers;
    const char *why, *fix; /* "" where kiln did */
} verdict;

/* A library of kiln's that is preloaded and was not called: nothing is said of it. */
static bool is_idle(const program_findings *findings, const exec_compiler *row)
{
    const char *own = findings->environment.libraries;
    const char *what = library_kind(findings, row).what;
    return strncmp(row->path, own, strlen(own)) == 0 && row->path[strlen(own)] == '/' &&
           (what == NULL || exec_report_frontend(&findings->report, what) == NULL);
}

/* A real ptxas has no requester: each call of kiln's starts one at most. */
static bool is_behind(const exec_compiler *row, const exec_frontend *frontend)
{
    return row->is_requested ||
           (row->is_process && row->count <= frontend->answered + frontend->bypassed);
}

static const exec_trouble *find_trouble(const exec_report *report)
{
    for (size_t i = 0; i < report->trouble_count; i++) {
        if (!report->troubles[i].reads) {
            return &report->troubles[i];
        }
    }
    return NULL;
}

static verdict judge_row(const program_findings *findings, const exec_compiler *row)
{
    const compiler_kind kind = library_kind(findings, row);
    const exec_report *report = &findings->report;
    const exec_frontend *frontend =
        kind.what != NULL ? exec_report_frontend(report, kind.what) : NULL;
    const exec_trouble *trouble = kind.what != NULL ? find_trouble(report) : NULL;
    if (frontend != NULL && row->is_ours) {
        return (verdict){frontend->answered > 0 ? "kiln" : "bypassed", "", ""};
    }
    if (frontend != NULL && is_behind(row, frontend)) {
        return (verdict){"behind kiln", "", ""};
    }
    if (trouble != NULL) {
        return (verdict){"not kiln", trouble->reason, exec_trouble_fix(trouble)};
    }
    if (row->is_ours || row->is_requested) {
        return (verdict){"not asked", "", ""};
    }
    return (verdict){"not kiln", kind.why, kind.fix};
}

/* --- printing --------------------------------------------------------------------------------- */

static bool print_program_text(cli_pool *pool, const program_findings *findings)
{
    const exec_audit *audit = &findings->audit;
    out_table table = out_table_make(pool, "  compiler|answers|>processes|path");
    size_t shown = 0;
    for (size_t i = 0; i < audit->count; i++) {
        const exec_compiler *row = &audit->compilers[i];
        const char *cells[] = {pool_format(pool, "  %s", library_kind(findings, row).name),
                               judge_row(findings, row).answers,
                               pool_format(pool, "%zu", row->count), row->path};
        if (!is_idle(findings, row)) {
            out_table_add(&table, cells);
            shown++;
        }
    }
    (void)puts("Compilers of this program");
    if (shown > 0 && !out_table_print(&table, stdout)) {
        return false;
    }
    for (size_t i = 0; i < audit->count; i++) {
        const exec_compiler *row = &audit->compilers[i];
        const verdict judged = judge_row(findings, row);
        if (judged.why[0] != '\0' && !is_idle(findings, row)) {
            out_print(stdout, "  %s: %s%s%s\n            fix: %s\n", row->path, judged.why,
                      row->requester[0] != '\0' ? ", by " : "", row->requester, judged.fix);
        }
    }
    if (audit->processes == 0) {
        (void)puts("  none was seen: the program is static, setuid, or linked with another C "
                   "library than glibc");
    } else if (shown == 0) {
        (void)puts("  none was used");
    }
    const char *trouble = exec_python_bytecode(pool, findings->environment.program);
    if (trouble != NULL) {
        out_print(stdout, "Python\n  slow: %s\n", trouble);
    }
    out_print(stdout, "the program ended with exit code %d\n", (int)findings->ended);
    exec_report_print(&findings->report, pool, NULL, stdout);
    return true;
}

static bool print_program_json(cli_pool *pool, const program_findings *findings)
{
    const char *conclusion = exec_report_verdict(&findings->report, pool);
    json_t *root = json_object();
    json_t *rows = json_array();
    for (size_t i = 0; i < findings->audit.count; i++) {
        const exec_compiler *compiler = &findings->audit.compilers[i];
        const verdict judged = judge_row(findings, compiler);
        if (is_idle(findings, compiler)) {
            continue;
        }
        json_t *row = json_object();
        out_json_set(&row, "compiler", out_json_text(library_kind(findings, compiler).name));
        out_json_set(&row, "path", out_json_text(compiler->path));
        out_json_set(&row, "requested_by", out_json_text(compiler->requester));
        out_json_set(&row, "answers", out_json_text(judged.answers));
        out_json_set(&row, "processes", out_json_u64(compiler->count));
        out_json_set(&row, "why", out_json_text(judged.why));
        out_json_set(&row, "fix", out_json_text(judged.fix));
        out_json_append(&rows, row);
    }
    out_json_set(&root, "compilers", rows);
    out_json_set(&root, "processes", out_json_u64(findings->audit.processes));
    out_json_set(&root, "hits", out_json_u64(findings->report.hits));
    out_json_set(&root, "compiled", out_json_u64(findings->report.compiled));
    out_json_set(&root, "bypassed", out_json_u64(findings->report.bypassed));
    out_json_set(&root, "troubles", exec_report_troubles_json(&findings->report));
    out_json_set(&root, "exit_code", out_json_u64((uint64_t)findings->ended));
    out_json_set(&root, "verdict", conclusion != NULL ? out_json_text(conclusion) : NULL);
    return out_json(stdout, root);
}

/* --- running ---------------------------------------------------------------------------------- */

static exit_code examine_program(const cmd_context *context, const opt_list *arguments, bool json,
                                 const char *audit_path, const char *report_path)
{
    program_findings *findings = pool_alloc(context->pool, sizeof(*findings));
    kiln_diag diag = KILN_DIAG_INIT;
    if (findings == NULL) {
        return cmd_no_memory(context);
    }
    exec_environment *environment = &findings->environment;
    kiln_status status =
        exec_environment_make(context->pool, arguments->items[0], environment, &diag);
    if (status == KILN_OK) {
        status = exec_audit_add(context->pool, environment, audit_path, false, &diag);
    }
    exec_environment_add(environment, "KILN_EXEC_REPORT", report_path);
    if (status != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    /* With --json what the program prints goes to standard error, so that JSON stands alone. */
    findings->ended = exec_child_run(context, environment, arguments, json);
    status = exec_audit_read(context->pool, environment, audit_path, &findings->audit, &diag);
    if (status == KILN_OK) {
        status = exec_report_read(report_path, &findings->report, &diag);
    }
    if (status != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    exec_trouble_find(environment, &diag, &findings->report);
    const bool good = json ? print_program_json(context->pool, findings)
                           : print_program_text(context->pool, findings);
    return good ? EXIT_FINE : cmd_no_memory(context);
}

exit_code doctor_program_run(const cmd_context *context, const opt_list *arguments, bool json)
{
    char *audit_path = exec_child_report(context);
    char *report_path = audit_path != NULL ? exec_child_report(context) : NULL;
    exit_code code = EXIT_TROUBLE;
    if (report_path != NULL) {
        code = examine_program(context, arguments, json, audit_path, report_path);
        (void)remove(report_path);
    }
    if (audit_path != NULL) {
        (void)remove(audit_path);
    }
    return code;
}

/* --- any program ------------------------------------------------------------------------------ */

/* A build that has no libraries for programs misses none. */
static void examine_core(cli_pool *pool, exec_report *report)
{
    memset(report, 0, sizeof(*report));
#ifdef KILN_HAS_INTERPOSE
    exec_environment environment;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)exec_environment_make(pool, NULL, &environment, &diag);
    exec_trouble_find_core(&environment, &diag, report);
    kiln_diag_clear(&diag);
#else
    (void)pool;
#endif
}

void doctor_program_judge(doctor_problems *problems)
{
    exec_report report;
    examine_core(problems->pool, &report);
    for (size_t i = 0; i < report.trouble_count; i++) {
        const exec_trouble *trouble = &report.troubles[i];
        doctor_problem_add(problems,
                           strcmp(trouble->what, "core") == 0 ? EXIT_UNAVAILABLE : EXIT_FINE,
                           "programs under kiln exec", trouble->reason, exec_trouble_fix(trouble));
    }
}

void doctor_program_print_troubles(cli_pool *pool)
{
    exec_report report;
    examine_core(pool, &report);
    for (size_t i = 0; i < report.trouble_count; i++) {
        const exec_trouble *trouble = &report.troubles[i];
        out_print(stdout, "\nPrograms under kiln exec\n  off       %s\n            fix: %s\n",
                  trouble->reason, exec_trouble_fix(trouble));
    }
}

json_t *doctor_program_troubles_json(cli_pool *pool)
{
    exec_report report;
    examine_core(pool, &report);
    return exec_report_troubles_json(&report);
}
