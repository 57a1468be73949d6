/* See ptxas.h. The real ptxas compiles from one file in memory into another, so that what is stored
 * is made of the very bytes that are in the key, and whatever writes to the caller's files
 * meanwhile cannot get into an entry. Its messages name the file in memory; each caller's name is
 * put there for him. */
#include "apis/cuda/shim/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apis/cuda/options/ptxas_options.h"
#include "apis/cuda/shim/ptx_files.h"
#include "base/checked.h"
#include "base/label.h"
#include "base/stages.h"
#include "base/text.h"
#include "compilers/variables.h"
#include "interpose/parts.h"
#include "interpose/session.h"
#include "interpose/tool.h"
#include "key/recipe.h"
#include "sys/env.h"
#include "sys/file.h"

enum { INPUT_LIMIT = 256 << 20 };
enum { PART_CODE, PART_OUT, PART_ERRORS, PART_NAME, PART_TIMES, PARTS };

typedef struct ptxas_call {
    int argc;
    char **argv;
    const char *tool;
    kn_ptxas_line line;
    char *input;
    size_t input_length;
    kn_ptx_files files;
    kiln_cache *cache;
    kiln_recipe *recipe;
    /* of a compile that ran here */
    bool ran;
    int code;
    char *errors;
    size_t errors_length;
    char name[32], output[64]; /* of the input and the output in memory */
    char identity[256];        /* of the tool, as in the key */
    const char *reason;        /* of a bypass, or of what is not stored; NULL: none */
} ptxas_call;

static const char *name_of_call(const ptxas_call *call)
{
    return call->line.input_at > 0 ? call->argv[call->line.input_at] : "ptxas";
}

/* --- the real one ----------------------------------------------------------------------------- */

static int become_real(const ptxas_call *call)
{
    call->argv[0] = (char *)(uintptr_t)call->tool;
    kn_tool_become(call->tool, call->argv);
    return -1;
}

/* Only a compile is worth a line; a question for help is not. */
static int bypass_cache(const ptxas_call *call, const char *reason)
{
    kiln_cache *cache = call->line.input_at > 0 ? kn_session_cache() : NULL;
    if (cache != NULL) {
        kn_session_bypass("ptxas", name_of_call(call), reason, 0);
        kiln_cache_destroy(cache);
    }
    return become_real(call);
}

/* The command line with files in memory in place of the caller's. NULL when out of memory. */
static char **make_argv(ptxas_call *call)
{
    const kn_ptxas_line *line = &call->line;
    char **argv = (char **)calloc((size_t)call->argc + 3, sizeof(*argv));
    if (argv == NULL) {
        return NULL;
    }
    memcpy((void *)argv, (void *)call->argv, (size_t)call->argc * sizeof(*argv));
    argv[0] = (char *)(uintptr_t)call->tool;
    if (line->input_at > 0) {
        argv[line->input_at] = call->name;
    }
    if (line->output_at > 0) {
        char name[32];
        kn_text_put(name, sizeof(name), call->output);
        kn_text_putf(call->output, sizeof(call->output), "%.*s%s", (int)line->output_skip,
                     call->argv[line->output_at], name);
        argv[line->output_at] = call->output;
    } else if (!line->asks_version) {
        static char option[] = "-o";
        argv[call->argc] = option;
        argv[call->argc + 1] = call->output;
    }
    return argv;
}

/* In memory, for the tool. */
enum { FILE_INPUT, FILE_OUTPUT, FILE_OUT, FILE_ERRORS, FILES };

static bool open_files(const ptxas_call *call, int files[FILES])
{
    bool opened = true;
    for (int i = 0; i < FILES; i++) {
        files[i] = kn_tool_memory_file(i == FILE_INPUT ? kn_span_of(call->input, call->input_length)
                                                       : kn_span_of(NULL, 0));
        opened = opened && files[i] >= 0;
    }
    return opened;
}

static void close_files(const int files[FILES])
{
    for (int i = 0; i < FILES; i++) {
        if (files[i] >= 0) {
            (void)close(files[i]);
        }
    }
}

static bool run_real(ptxas_call *call, const int files[FILES])
{
    kn_tool_memory_name(files[FILE_INPUT], call->name);
    kn_tool_memory_name(files[FILE_OUTPUT], call->output);
    char **argv = make_argv(call);
    bool ran = argv != NULL;
    if (ran) {
        ran = kn_tool_run(call->tool, argv, files[FILE_OUT], files[FILE_ERRORS], &call->code);
        call->errors = kn_tool_memory_read(files[FILE_ERRORS], &call->errors_length);
    }
    free((void *)argv);
    call->ran = ran && call->errors != NULL;
    return call->ran;
}

static bool holds_name(kn_span bytes, const char *name)
{
    return memmem(bytes.data, bytes.length, name, strlen(name)) != NULL;
}

static kiln_blob *create_labelled(const ptxas_call *call, kn_span payload, kiln_diag *diag)
{
    char label[KN_LABEL_SIZE];
    kiln_blob *blob = NULL;
    kn_strbuf facts;
    kn_strbuf_init(&facts, 0);
    kn_label_make(label, NULL, kn_span_of(call->input, call->input_length));
    if (label[0] == '\0') { /* the name is a temporary file's, mostly */
        kn_label_make(label, call->argv[call->line.input_at], kn_span_of(NULL, 0));
    }
    kn_label_append(&facts, label);
    kn_ignore(
        kiln_blob_create(payload.data, payload.length, facts.data, facts.length, &blob, diag));
    kn_strbuf_deinit(&facts);
    return blob;
}

/* What is stored: NULL, with a reason, for what is not to be. */
static kiln_blob *make_blob(ptxas_call *call, kn_span code, kn_span out, kiln_diag *diag)
{
    kn_strbuf payload;
    kn_strbuf times;
    kiln_blob *blob = NULL;
    kn_strbuf_init(&payload, (size_t)1 << 30);
    kn_strbuf_init(&times, 0);
    if (call->line.asks_version ? out.length == 0 : code.length == 0 || out.length > 0) {
        call->reason = "ptxas: an output of another form";
    } else if (holds_name(code, "/proc/self/fd/")) {
        call->reason = "ptxas: the code names its input";
    } else if (!kn_ptx_files_locate_times(&call->files, code, &times)) {
        call->reason = "ptxas: the time of a source file in a place that kiln does not know";
    } else {
        const kn_span parts[PARTS] = {code, out, kn_span_of(call->errors, call->errors_length),
                                      kn_span_of_text(call->name),
                                      kn_span_of(times.data, times.length)};
        for (uint32_t i = 0; i < PARTS; i++) {
            kn_parts_append(&payload, i, 0, parts[i]);
        }
        if (kn_strbuf_ok(&payload)) {
            blob = create_labelled(call, kn_span_of(payload.data, payload.length), diag);
        }
    }
    kn_strbuf_deinit(&times);
    kn_strbuf_deinit(&payload);
    return blob;
}

static void compile_ptx(void *user, kn_output *output, kiln_diag *diag)
{
    ptxas_call *call = (ptxas_call *)user;
    int files[FILES];
    char *code = NULL;
    char *out = NULL;
    size_t code_length = 0;
    size_t out_length = 0;
    if (open_files(call, files) && run_real(call, files) && call->code == 0) {
        code = kn_tool_memory_read(files[FILE_OUTPUT], &code_length);
        out = kn_tool_memory_read(files[FILE_OUT], &out_length);
        if (code != NULL && out != NULL) {
            output->blob =
                make_blob(call, kn_span_of(code, code_length), kn_span_of(out, out_length), diag);
        }
    }
    close_files(files);
    free(code);
    free(out);
    if (output->blob != NULL) {
        output->outcome = KN_OUTCOME_STORED;
    } else if (call->reason != NULL) {
        output->outcome = KN_OUTCOME_PRIVATE;
        output->reason = call->reason;
    } else {
        output->outcome = KN_OUTCOME_FAILED;
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, name_of_call(call), "ptxas gave %d",
                            call->code);
    }
}

/* An upgrade may replace the tool after its identity was read and before it ran. */
static kn_change find_change(void *user)
{
    const ptxas_call *call = (const ptxas_call *)user;
    char now[sizeof(call->identity)];
    if (!kn_ptx_files_hold(&call->files)) {
        return KN_CHANGED_HEADER;
    }
    return kn_tool_identify(call->cache, call->tool, now, sizeof(now)) &&
                   strcmp(now, call->identity) == 0
               ? KN_UNCHANGED
               : KN_CHANGED_COMPILER;
}

/* --- the answer ------------------------------------------------------------------------------- */

static bool write_all(int file, kn_span bytes)
{
    size_t written = 0;
    while (written < bytes.length) {
        const ssize_t part = write(file, bytes.data + written, bytes.length - written);
        if (part < 0 && errno != EINTR) {
            return false;
        }
        written += part > 0 ? (size_t)part : 0;
    }
    return true;
}

/* As ptxas itself opens and writes it. */
static bool write_output(const char *path, kn_span code)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return false;
    }
    const bool written = write_all(file, code);
    return close(file) == 0 && written;
}

/* Messages with the caller's name of the input. */
static bool write_errors(const ptxas_call *call, kn_span errors, kn_span name)
{
    const char *own = name_of_call(call);
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    while (errors.length > 0) {
        const char *at =
            name.length > 0 ? memmem(errors.data, errors.length, name.data, name.length) : NULL;
        const size_t before = at != NULL ? (size_t)(at - errors.data) : errors.length;
        const size_t used = at != NULL ? before + name.length : before;
        kn_strbuf_append(&text, errors.data, before);
        kn_strbuf_append_text(&text, at != NULL ? own : "");
        errors = kn_span_of(errors.data + used, errors.length - used);
    }
    const bool written =
        kn_strbuf_ok(&text) && write_all(STDERR_FILENO, kn_span_of(text.data, text.length));
    kn_strbuf_deinit(&text);
    return written;
}

static kn_loaded give_answer(void *user, kiln_blob *blob, kiln_diag *diag)
{
    const ptxas_call *call = (const ptxas_call *)user;
    const kn_span payload = kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob));
    kn_span parts[PARTS];
    bool whole = kn_parts_are_whole(payload);
    for (uint32_t i = 0; whole && i < PARTS; i++) {
        whole = kn_parts_get(payload, i, NULL, &parts[i]);
    }
    if (!whole) {
        return KN_LOAD_UNSOUND;
    }
    const kn_span code = parts[PART_CODE];
    const kn_span errors = parts[PART_ERRORS];
    const kn_span name = parts[PART_NAME];
    bool given = false;
    if (call->line.asks_version) {
        given = write_all(STDOUT_FILENO, parts[PART_OUT]) && write_errors(call, errors, name);
    } else {
        char *own = (char *)kn_bytes_copy(code.data, code.length);
        given = own != NULL && code.length > 0 &&
                kn_ptx_files_set_times(&call->files, parts[PART_TIMES], own, code.length) &&
                write_output(call->line.output, kn_span_of(own, code.length)) &&
                write_errors(call, errors, name);
        free(own);
    }
    if (!given) {
        (void)kiln_diag_set(diag, KILN_E_IO, NULL, name_of_call(call), "the output is not written");
    }
    return given ? KN_LOADED : KN_LOAD_FAILED;
}

/* --- one call --------------------------------------------------------------------------------- */

static bool read_input(ptxas_call *call)
{
    void *data = NULL;
    kn_file_facts facts;
    const char *path = call->argv[call->line.input_at];
    if (kn_file_read(path, INPUT_LIMIT, false, &data, &call->input_length, &facts, NULL) !=
        KILN_OK) {
        call->reason = "ptxas: the input is not a file that can be read";
        return false;
    }
    call->input = (char *)data;
    if (!call->line.no_lines &&
        !kn_ptx_files_find(kn_span_of(call->input, call->input_length), &call->files)) {
        call->reason = "ptxas: a .file directive that kiln does not follow";
        return false;
    }
    return true;
}

static void add_arguments(const ptxas_call *call)
{
    const kn_ptxas_line *line = &call->line;
    for (int i = 1; i < call->argc; i++) {
        if (i == line->input_at) {
            kiln_recipe_add_bytes(call->recipe, "input", call->input, call->input_length);
        } else if (i == line->output_at) {
            kiln_recipe_add_text(call->recipe, "output", call->argv[i], line->output_skip);
        } else {
            kn_recipe_add_string(call->recipe, "argument", call->argv[i]);
        }
    }
}

static bool make_recipe(ptxas_call *call, kiln_cache *cache)
{
    call->cache = cache;
    if (!kn_tool_identify(cache, call->tool, call->identity, sizeof(call->identity))) {
        call->reason = "ptxas: the real one is not an ELF program";
        return false;
    }
    if (kiln_recipe_create(KN_STAGE_AT(ptxas_cubin), &call->recipe, NULL) != KILN_OK) {
        return false;
    }
    kiln_recipe_set_target(call->recipe, call->line.target);
    kn_recipe_add_string(call->recipe, "ptxas", call->identity);
    kn_recipe_add_string(call->recipe, "name", kn_path_name(call->tool));
    add_arguments(call);
    kn_ptx_files_add_to(&call->files, call->recipe);
    return kn_recipe_end(&call->recipe, NULL) == KILN_OK;
}

/* The compile failed here, and said so: as the real one would have. */
static bool give_failure(const ptxas_call *call)
{
    return call->ran && call->code > 0 &&
           !holds_name(kn_span_of(call->errors, call->errors_length),
                       call->output + call->line.output_skip) &&
           write_errors(call, kn_span_of(call->errors, call->errors_length),
                        kn_span_of_text(call->name));
}

static const kn_frontend compiles = {.compile = compile_ptx,
                                     .still_true = find_change,
                                     .load = give_answer,
                                     .report = kn_session_report_job,
                                     .loads_output = true,
                                     .own_failures = true};

/* The same, and no compile of the caller's. */
static const kn_frontend tells_version = {.compile = compile_ptx,
                                          .still_true = find_change,
                                          .load = give_answer,
                                          .loads_output = true,
                                          .own_failures = true};

/* The exit code, or -1: the real one is to do it. */
static int answer_call(ptxas_call *call, kiln_cache *cache)
{
    const kn_request request = {
        .cache = cache, .recipe = call->recipe, .what = "ptxas", .name = name_of_call(call)};
    kn_job job;
    const kn_outcome outcome =
        kn_job_run(&job, call->line.asks_version ? &tells_version : &compiles, &request, call);
    kn_job_deinit(&job);
    if (outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED) {
        return 0;
    }
    return outcome == KN_OUTCOME_FAILED && give_failure(call) ? call->code : -1;
}

static int run_call(ptxas_call *call)
{
    const char *variable = kn_variables_reason(KN_COMPILER_PTXAS);
    if (call->line.bypass[0] != '\0') {
        return bypass_cache(call, call->line.bypass);
    }
    if (variable != NULL) {
        return bypass_cache(call, variable);
    }
    if (!call->line.asks_version && !read_input(call)) {
        return bypass_cache(call, call->reason);
    }
    kiln_cache *cache = kn_session_cache();
    if (cache == NULL || !make_recipe(call, cache)) {
        return call->reason != NULL ? bypass_cache(call, call->reason) : become_real(call);
    }
    const int code = answer_call(call, cache);
    kiln_cache_destroy(cache);
    return code >= 0 ? code : become_real(call);
}

KILN_API kn_interpose_ptxas_fn kn_interpose_ptxas;
int kn_interpose_ptxas(const char *tool, int argc, char **argv)
{
    ptxas_call call = {.argc = argc, .argv = argv, .tool = tool};
    kn_ptxas_line_read(argc, argv, &call.line);
    const int code = run_call(&call);
    kn_ptx_files_deinit(&call.files);
    kiln_recipe_destroy(call.recipe);
    free(call.errors);
    free(call.input);
    return code;
}
