/* kiln compile: compiles files for a device or a named target, through the cache. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/compile.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/out.h"
#include "cli/parallel.h"
#include "cli/session.h"
#include "cmd/compile_apart.h"
#include "cmd/depfile.h"
#include "cmd/glslc_options.h"
#include "kernel/source_file.h"
#include "warm/targets.h"

typedef struct compile_options {
    session_options session;
    const char *target;
    const char *arch;
    opt_number jobs;
    const char *output;
    bool drop_in;
    source_file_options file;
    glslc_options glslc;
} compile_options;

static const opt_spec specs[] = {
    {"target", 't', OPT_TEXT, offsetof(compile_options, target), "TARGET",
     "what to compile for: opencl:0, cpu:x86-64-v3, cuda:sm_90"},
    {"arch", 'a', OPT_TEXT, offsetof(compile_options, arch), "NAME",
     "with --backend: its target of this name (sm_90, x86-64-v3)"},
    {"jobs", 'j', OPT_COUNT, offsetof(compile_options, jobs), "N",
     "compile N files at once (default: one per processor, at most one per GiB of memory)"},
    {"output", 'o', OPT_TEXT, offsetof(compile_options, output), "PATH",
     "write the binary to PATH; a directory for several files"},
    {"drop-in", 0, OPT_FLAG, offsetof(compile_options, drop_in), NULL,
     "for a program that calls kiln's drop-in (OpenCL, CUDA, HIP)"},
    SOURCE_FILE_ROWS(compile_options, ""),
    GLSLC_ROWS(compile_options),
    SESSION_DEVICE_ROWS(compile_options),
    SESSION_CACHE_ROW(compile_options),
    SESSION_JSON_ROW(compile_options),
    OPT_END};

/* What became of one file. */
typedef struct compiled_file {
    const char *file;
    const char *output; /* NULL if nothing was written */
    kiln_status status;
    compile_facts made;
    char *reason;       /* NULL if it is good */
    kiln_diag *trouble; /* the same with the log, to be reported when all are done, in order */
} compiled_file;

typedef struct compile_job {
    const cmd_context *context;
    const compile_options *options;
    kiln_runtime *runtime;
    const char *target;
    const char *depfile; /* NULL: none is wanted */
    const kiln_define *defines;
    compiled_file *files;
    size_t count;
    compile_apart *apart; /* NULL: in this process */
    host_mutex *mutex;    /* pool, console and the fields below, while files compile side by side */
    size_t done;
    exit_code code; /* of the first failure */
} compile_job;

/* Where the binary of `path` goes. NULL with *out_good false: no memory. */
static const char *output_for(const compile_job *job, const char *path, bool *out_good)
{
    const char *output = job->options->output;
    cli_pool *pool = job->context->pool;
    *out_good = true;
    if (output == NULL || !host_is_dir(output)) {
        return output;
    }
    const char *name = pool_format(pool, "%s.bin", host_name_of(path));
    const char *whole = name != NULL ? host_join(pool, output, name) : NULL;
    *out_good = whole != NULL;
    return whole;
}

/* Who compiles a shader to a file mostly wants SPIR-V; for a device there is something else in it.
 */
static void say_what_it_is(const compile_job *job, const char *output)
{
    if (strncmp(job->target, "vulkan:", 7) == 0 && strcmp(job->target, "vulkan:spirv") != 0) {
        console_say(job->context->console,
                    "%s is the driver's pipeline cache for %s, not SPIR-V (for SPIR-V give "
                    "--target vulkan:spirv, or a name that ends in .spv)",
                    output, job->target);
    }
}

static kiln_status write_blob(const compile_job *job, compiled_file *file, const kiln_blob *blob,
                              kiln_diag *diag)
{
    bool good = false;
    host_mutex_lock(job->mutex);
    const char *output = output_for(job, file->file, &good);
    host_mutex_unlock(job->mutex);
    if (!good) {
        return diag_no_memory(diag, file->file);
    }
    if (output == NULL) {
        return KILN_OK;
    }
    file->output = output;
    kiln_status status = host_write_file(output, kiln_blob_data(blob), kiln_blob_size(blob), diag);
    if (status == KILN_OK) {
        say_what_it_is(job, output);
    }
    return status;
}

static kiln_status compile_file(const compile_job *job, compiled_file *file, kiln_diag *diag)
{
    kiln_source source;
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_blob *blob = NULL;
    char *text = NULL;
    char name[1024];
    kiln_status status =
        source_file_describe(&job->options->file, job->defines, file->file, &source, diag);
    source.name = host_spell(file->file, name, sizeof(name));
    if (status == KILN_OK) {
        status = source_file_read(file->file, &source, &text, diag);
    }
    uint64_t begin = host_now();
    if (status == KILN_OK) {
        status = (job->options->drop_in ? kiln_dropin_compile : kiln_compile_measured)(
            job->runtime, job->target, &source, &blob, &info, diag);
    }
    file->made.total_ns = host_now() - begin;
    if (status == KILN_OK && blob != NULL) {
        file->made.size = kiln_blob_size(blob);
        file->made.origin = info.origin;
        file->made.compile_ns = info.compile_ns;
        file->made.saved_ns = info.origin == KILN_ORIGIN_COMPILED ? 0 : kiln_blob_compile_ns(blob);
        status = write_blob(job, file, blob, diag);
    }
    if (status == KILN_OK && job->depfile != NULL) {
        const glslc_options *glslc = &job->options->glslc;
        const char *as = glslc->depfile_target != NULL ? glslc->depfile_target : file->output;
        status = depfile_write(job->depfile, as != NULL ? as : job->depfile, file->file,
                               job->runtime, job->target, &source, diag);
    }
    kiln_blob_release(blob);
    free(text);
    return status;
}

/* Compiles the file, unless a process before this one has, or has crashed on it. */
static compile_turn take_turn(const compile_job *job, size_t index, kiln_diag *diag)
{
    bool good = false;
    compiled_file *file = &job->files[index];
    const compile_turn turn = compile_apart_begin(job->apart, index, file->file, &file->made, diag);
    if (turn == COMPILE_CRASHED) {
        file->status = KILN_E_COMPILE;
    } else if (turn == COMPILE_DONE) {
        host_mutex_lock(job->mutex);
        file->output = output_for(job, file->file, &good);
        host_mutex_unlock(job->mutex);
    } else {
        file->status = compile_file(job, file, diag);
        compile_apart_end(job->apart, index, file->status == KILN_OK ? &file->made : NULL);
    }
    return turn;
}

/* One file, on any thread. */
static void compile_one(void *user, size_t index)
{
    compile_job *job = user;
    cli_console *console = job->context->console;
    compiled_file *file = &job->files[index];
    kiln_diag diag = KILN_DIAG_INIT;
    char line[1024];
    host_mutex_lock(job->mutex);
    console_progress(console, job->done, job->count, file->file, 0);
    host_mutex_unlock(job->mutex);
    const compile_turn turn = take_turn(job, index, &diag);
    host_mutex_lock(job->mutex);
    job->done++;
    if (file->status != KILN_OK) {
        (void)kiln_diag_format(&diag, line, sizeof(line));
        file->reason = pool_text(job->context->pool, line, strlen(line));
        file->trouble = pool_alloc(job->context->pool, sizeof(diag));
        if (file->trouble != NULL) {
            *file->trouble = diag;
        } else {
            kiln_diag_clear(&diag);
        }
    } else if (file->made.origin == KILN_ORIGIN_COMPILED && turn == COMPILE_NOW) {
        const char *time = out_time(job->context->pool, file->made.compile_ns);
        console_note(console, "compiled %s in %s", file->file, time != NULL ? time : "?");
    }
    host_mutex_unlock(job->mutex);
}

/* Of several files, a message says which one it is about. */
static void name_file(const compile_job *job, const compiled_file *file)
{
    char what[sizeof(file->trouble->what)];
    if (job->count > 1 && strstr(file->trouble->what, host_name_of(file->file)) == NULL) {
        (void)snprintf(what, sizeof(what), "%.120s: %.130s", file->file, file->trouble->what);
        memcpy(file->trouble->what, what, sizeof(what));
    }
}

/* What went wrong, in the order of the files. */
static void tell_failures(compile_job *job)
{
    for (size_t i = 0; i < job->count; i++) {
        compiled_file *file = &job->files[i];
        if (file->status == KILN_OK) {
            continue;
        }
        if (file->trouble != NULL) {
            name_file(job, file);
        }
        exit_code code =
            file->trouble != NULL ? cmd_fail(job->context, file->trouble) : exit_of(file->status);
        job->code = job->code == EXIT_FINE ? code : job->code;
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

typedef struct compile_totals {
    size_t hits, compiled, failed;
    uint64_t ns;
} compile_totals;

static compile_totals add_up(const compile_job *job)
{
    compile_totals totals = {0, 0, 0, 0};
    for (size_t i = 0; i < job->count; i++) {
        const compiled_file *file = &job->files[i];
        bool made =
            file->made.origin == KILN_ORIGIN_COMPILED || file->made.origin == KILN_ORIGIN_NONE;
        totals.failed += file->status != KILN_OK;
        totals.compiled += file->status == KILN_OK && made;
        totals.hits += file->status == KILN_OK && !made;
        totals.ns += file->made.total_ns;
    }
    return totals;
}

static bool print_compiles_table(const compile_job *job)
{
    cli_pool *pool = job->context->pool;
    compile_totals totals = add_up(job);
    out_table table = out_table_make(pool, "file|origin|>compile ms|>ms|>size");
    for (size_t i = 0; i < job->count; i++) {
        const compiled_file *file = &job->files[i];
        bool good = file->status == KILN_OK;
        const char *cells[] = {file->file, good ? kiln_origin_name(file->made.origin) : "failed",
                               good ? out_ms(pool, file->made.compile_ns) : "-",
                               out_ms(pool, file->made.total_ns),
                               good ? out_bytes(pool, file->made.size) : "-"};
        out_table_add(&table, cells);
    }
    const char *time = out_time(pool, totals.ns);
    if (time == NULL || !out_table_print(&table, stdout)) {
        return false;
    }
    (void)printf("%zu %s for %s: %zu %s, %zu compiled, %zu failed, %s\n", job->count,
                 job->count == 1 ? "file" : "files", job->target, totals.hits,
                 totals.hits == 1 ? "hit" : "hits", totals.compiled, totals.failed, time);
    return true;
}

static bool print_compiles_json(const compile_job *job)
{
    compile_totals totals = add_up(job);
    json_t *root = json_object();
    json_t *files = json_array();
    for (size_t i = 0; i < job->count; i++) {
        const compiled_file *file = &job->files[i];
        json_t *row = json_object();
        out_json_set(&row, "file", out_json_text(file->file));
        out_json_set(&row, "ok", json_boolean(file->status == KILN_OK));
        out_json_set(&row, "origin", out_json_text(kiln_origin_name(file->made.origin)));
        out_json_set(&row, "bytes", out_json_u64(file->made.size));
        out_json_set(&row, "compile_ms", out_json_ms(file->made.compile_ns));
        out_json_set(&row, "saved_ms", out_json_ms(file->made.saved_ns));
        out_json_set(&row, "total_ms", out_json_ms(file->made.total_ns));
        out_json_set(&row, "output",
                     file->output != NULL ? out_json_text(file->output) : json_null());
        out_json_set(&row, "status", out_json_text(kiln_status_name(file->status)));
        out_json_set(&row, "reason", out_json_text(file->reason != NULL ? file->reason : ""));
        out_json_append(&files, row);
    }
    out_json_set(&root, "target", out_json_text(job->target));
    out_json_set(&root, "files", files);
    out_json_set(&root, "hits", out_json_u64(totals.hits));
    out_json_set(&root, "compiled", out_json_u64(totals.compiled));
    out_json_set(&root, "failed", out_json_u64(totals.failed));
    out_json_set(&root, "total_ms", out_json_ms(totals.ns));
    return out_json(stdout, root);
}

/* --- starting --------------------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;
    return strcmp(host_name_of(*a), host_name_of(*b));
}

/* Files of one name, from several directories, would take each other's place in one. */
static kiln_status check_output_names(const opt_list *files, cli_pool *pool, kiln_diag *diag)
{
    const char **sorted = pool_array(pool, files->count, sizeof(*sorted));
    if (sorted == NULL) {
        return diag_no_memory(diag, "--output");
    }
    memcpy(sorted, files->items, files->count * sizeof(*sorted));
    qsort(sorted, files->count, sizeof(*sorted), compare_names);
    for (size_t i = 1; i < files->count; i++) {
        if (compare_names(&sorted[i - 1], &sorted[i]) == 0 &&
            strcmp(sorted[i - 1], sorted[i]) != 0) {
            return kiln_diag_set(diag, KILN_E_INVALID, "compile them into separate directories",
                                 "--output", "%.100s and %.100s would both become %.60s.bin",
                                 sorted[i - 1], sorted[i], host_name_of(sorted[i]));
        }
    }
    return KILN_OK;
}

static kiln_status check_compile_options(const compile_options *options, const opt_list *files,
                                         cli_pool *pool, kiln_diag *diag)
{
    const char *output = options->output;
    if (options->target != NULL &&
        (options->session.backend != NULL || options->session.device != NULL)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "remove the others", "--target",
                             "cannot be combined with --backend and --device");
    }
    if (options->arch != NULL && options->session.device != NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "remove one of them", "--arch",
                             "names a target, and so does --device");
    }
    if (options->arch != NULL && options->session.backend == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give --backend too, or --target BACKEND:NAME",
                             "--arch", "names a target, but no backend is given");
    }
    if (output != NULL && files->count > 1 && !host_is_dir(output)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give an existing directory", output,
                             "is not a directory, and there are %zu files", files->count);
    }
    return output != NULL && files->count > 1 ? check_output_names(files, pool, diag) : KILN_OK;
}

/* The target's name when it was not given: the best device for the first file's language. */
static kiln_status choose_compile_target(compile_job *job, kiln_diag *diag)
{
    kiln_source source;
    const compile_options *options = job->options;
    const targets_wish wish = {options->session.backend, options->session.device, options->arch};
    kiln_status status =
        source_file_describe(&options->file, job->defines, job->files[0].file, &source, diag);
    return status == KILN_OK ? targets_choose(job->runtime, &wish, &source, job->context->pool,
                                              &job->target, diag)
                             : status;
}

static exit_code compile_files(compile_job *job, const opt_list *arguments)
{
    kiln_diag diag = KILN_DIAG_INIT;
    job->files = pool_array(job->context->pool, arguments->count, sizeof(*job->files));
    if (job->files == NULL ||
        !source_file_defines(&job->options->file.defines, job->context->pool, &job->defines)) {
        return cmd_no_memory(job->context);
    }
    job->count = arguments->count;
    for (size_t i = 0; i < job->count; i++) {
        job->files[i].file = arguments->items[i];
    }
    size_t jobs = 1;
    if (parallel_choose(&job->options->jobs, &jobs, &diag) != KILN_OK ||
        (job->target == NULL && choose_compile_target(job, &diag) != KILN_OK)) {
        return cmd_fail(job->context, &diag);
    }
    job->mutex = host_mutex_create();
    if (job->mutex == NULL) {
        return cmd_no_memory(job->context);
    }
    parallel_each(job->count, compile_apart_is_slow(job->apart) ? 1 : jobs, compile_one, job);
    console_progress_end(job->context->console);
    tell_failures(job);
    host_mutex_destroy(job->mutex);
    /* A build system shows what a step prints; glslc prints nothing. */
    bool good = job->options->session.json             ? print_compiles_json(job)
                : glslc_is_meant(&job->options->glslc) ? true
                                                       : print_compiles_table(job);
    return good ? job->code : cmd_no_memory(job->context);
}

static bool ends_in_spv(const char *path)
{
    const size_t length = path != NULL ? strlen(path) : 0;
    return length > 4 && strcmp(path + length - 4, ".spv") == 0;
}

/* SPIR-V is made for no device: what a device's target gives is its driver's own. */
static kiln_status choose_spirv(compile_options *options, const opt_list *files, kiln_diag *diag)
{
    static const char spirv[] = "vulkan:spirv";
    const session_options *session = &options->session;
    const bool free = options->target == NULL && session->device == NULL && options->arch == NULL &&
                      (session->backend == NULL || strcmp(session->backend, "vulkan") == 0);
    kiln_language language = KILN_LANG_NONE;
    if (!ends_in_spv(options->output) && !glslc_is_meant(&options->glslc)) {
        return KILN_OK;
    }
    kiln_status status =
        source_file_language(options->file.language, files->items[0], &language, diag);
    if (status == KILN_OK && language == KILN_LANG_GLSL && free) {
        options->target = spirv;
        options->session.backend = NULL;
    } else if (status == KILN_OK && ends_in_spv(options->output) &&
               (options->target == NULL || strcmp(options->target, spirv) != 0)) {
        status = kiln_diag_set(diag, KILN_E_INVALID,
                               language == KILN_LANG_GLSL ? "give --target vulkan:spirv"
                                                          : "give GLSL, or another name after -o",
                               options->output, "would not be SPIR-V");
    }
    return status;
}

static kiln_status prepare_compile(compile_job *job, compile_options *options,
                                   const opt_list *files, kiln_diag *diag)
{
    cli_pool *pool = job->context->pool;
    bool good = true;
    kiln_status status =
        glslc_apply(&options->glslc, options->output, files, pool, &options->file, diag);
    if (status == KILN_OK) {
        status = choose_spirv(options, files, diag);
    }
    if (status == KILN_OK) {
        status = check_compile_options(options, files, pool, diag);
    }
    if (status == KILN_OK) {
        job->depfile = glslc_depfile(&options->glslc, options->output, pool, &good);
        job->target = options->target;
    }
    return good ? status : diag_no_memory(diag, "-MD");
}

/* A runtime that is opened for one named target opens no driver that the target needs not. */
static bool name_session_target(const compile_options *options, cli_pool *pool,
                                session_options *session)
{
    session->compile_only = true;
    if (options->target != NULL) {
        session->device = targets_named(options->target);
        session->backend = targets_backend(options->target, pool);
        return session->backend != NULL;
    }
    if (options->arch != NULL) { /* with a backend, and without a device */
        const char *target = pool_format(pool, "%s:%s", session->backend, options->arch);
        session->device = target != NULL ? targets_named(target) : NULL;
        return target != NULL;
    }
    return true;
}

/* Before anything is compiled that could not be written. */
static kiln_status check_output(const compile_job *job, kiln_diag *diag)
{
    const char *output = job->options->output;
    const char *dir = output != NULL ? host_dir_of(job->context->pool, output) : NULL;
    return dir == NULL || host_is_dir(dir)
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "make it, or name another", output,
                               "there is no directory %s", dir);
}

static exit_code run_compile_command(const cmd_context *context, void *fields,
                                     const opt_list *arguments)
{
    compile_options *options = fields;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    compile_job job = {.context = context, .options = options};
    if (prepare_compile(&job, options, arguments, &diag) != KILN_OK ||
        check_output(&job, &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    session_options session = options->session;
    if (!name_session_target(options, context->pool, &session)) {
        return cmd_no_memory(context);
    }
    exit_code code = EXIT_FINE;
    job.apart = arguments->count > 1 ? compile_apart_create(context->pool, arguments->count) : NULL;
    if (compile_apart_watch(job.apart, context, &code)) {
        return code;
    }
    code = session_open(context, &session, &cache, &job.runtime);
    if (code == EXIT_FINE) {
        code = compile_files(&job, arguments);
    }
    session_close(cache, job.runtime);
    return code;
}

const cli_command cmd_compile = {
    .name = "compile",
    .usage = "FILE...",
    .summary = "Compiles kernel files through the cache, for later or for -o",
    .details =
        "Without -o the binaries only go into the cache: to fill it when an image is built,\n"
        "or to see what compiles. A file that fails does not stop the others.\n\n"
        "For GLSL compute shaders it takes glslc's options, and its place in a build:\n\n"
        "  kiln compile -fshader-stage=comp --target-env=vulkan1.2 -O -MD -MF s.d -c s.comp -o "
        "s.spv\n\n"
        "With -MD, -c, -std= or -fshader-stage= it prints no table. -o FILE.spv is SPIR-V.",
    .options = specs,
    .options_size = sizeof(compile_options),
    .min_arguments = 1,
    .max_arguments = 100000,
    .run = run_compile_command,
};
