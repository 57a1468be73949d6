/* The compile: C text to a shared object, by a child process with bounded time and output, in a
 * private directory that is gone afterwards. Nothing is taken on trust: success means an object of
 * the target's machine that exports a kernel, made by the compiler that was identified. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/compiler.h"
#include "apis/cpu/backend/object.h"
#include "apis/cpu/backend/workdir.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/process.h"

static const char compiling[] = "compiling a C kernel"; /* what fails without memory */

#define DEFAULT_LIMIT_S 600u
#define MAX_LIMIT_S 86400u
#define OBJECT_LIMIT ((size_t)256 << 20)
#define LOG_LIMIT ((size_t)1 << 20)

typedef struct job {
    cpu_instance *cpu;
    const cpu_target *target;
    const kiln_source *source;
    const cpu_toolchain *toolchain;
    char *dir;           /* private, temporary */
    char *source_path;   /* directory/source/kernel.c */
    char *headers;       /* directory/headers */
    char *own;           /* directory/kiln: the kernel header */
    char *object_path;   /* directory/kernel.so */
    kn_strbuf arguments; /* one after the other, each with a NUL after it */
    const char **argv;
    uint64_t limit_ns;
} job;

static const char *name_of(const kiln_source *source)
{
    return source->name != NULL && source->name[0] != '\0' ? source->name : "<source>";
}

/* The text, after a line that makes messages carry the source's own name. Before it stands a token:
 * once there is one, gcc looks for no "part.h.gch" in the place of a "part.h". */
static kiln_status write_source(job *j, kiln_diag *diag)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    kn_strbuf_append_text(&text, "typedef int kiln_first_token;\n#line 1 \"");
    for (const char *c = name_of(j->source); *c != '\0'; c++) {
        if (*c == '\\' || *c == '"') {
            kn_strbuf_append_char(&text, '\\');
        }
        kn_strbuf_append_char(&text, *c == '\n' ? ' ' : *c);
    }
    kn_strbuf_append_text(&text, "\"\n");
    kn_strbuf_append(&text, j->source->text, j->source->length);
    kn_strbuf_append_char(&text, '\n');
    kiln_status status = KILN_OK;
    if (!kn_strbuf_ok(&text)) {
        status = kn_no_memory(diag, compiling);
    } else {
        status = kn_cpu_workdir_write(j->dir, "source/kernel.c", kn_strbuf_text(&text), text.length,
                                      &j->source_path, diag);
    }
    kn_strbuf_deinit(&text);
    return status;
}

static kiln_status write_inputs(job *j, kiln_diag *diag)
{
    kiln_status status = kn_cpu_workdir_create(&j->dir, diag);
    if (status != KILN_OK) {
        return status;
    }
    j->headers = kn_path_join(j->dir, "headers");
    j->own = kn_path_join(j->dir, "kiln");
    j->object_path = kn_path_join(j->dir, "kernel.so");
    if (j->headers == NULL || j->own == NULL || j->object_path == NULL) {
        return kn_no_memory(diag, compiling);
    }
    status = write_source(j, diag);
    if (status == KILN_OK) {
        status = kn_cpu_workdir_write(j->own, CPU_HEADER_NAME, kn_cpu_header, kn_cpu_header_size,
                                      NULL, diag);
    }
    for (size_t i = 0; status == KILN_OK && i < j->source->header_count; i++) {
        const kiln_header *header = &j->source->headers[i];
        status = kn_cpu_workdir_write(j->headers, header->name, header->text, header->length, NULL,
                                      diag);
    }
    return status;
}

/* --- the command line ------------------------------------------------------------------------- */

static void add_argument(job *j, const char *prefix, const char *text)
{
    kn_strbuf_append_text(&j->arguments, prefix);
    kn_strbuf_append(&j->arguments, text, strlen(text) + 1);
}

/* No directory of this machine stays in the object, not even through __FILE__. */
static void add_mapping(job *j, const char *dir)
{
    if (dir[0] != '\0' && strchr(dir, '=') == NULL) {
        kn_strbuf_printf(&j->arguments, "-ffile-prefix-map=%s%s=", dir,
                         kn_text_ends(dir, "/") ? "" : "/");
        kn_strbuf_append_char(&j->arguments, '\0');
    }
}

static bool keeps_symbols(const kiln_source *source)
{
    for (size_t i = 0; i < source->option_count; i++) {
        if (kn_text_starts(source->options[i], "-g") && strcmp(source->options[i], "-g0") != 0) {
            return true;
        }
    }
    return false;
}

/* Debug information names the current directory. Where several mappings fit gcc takes the last:
 * those of directories that the current one is below come before its own. clang takes the shortest,
 * but has an option of its own. */
static void add_current_mapping(job *j, const char *current)
{
    if (strchr(current, '=') == NULL) {
        kn_strbuf_printf(&j->arguments, "-fdebug-prefix-map=%s=.", current);
        kn_strbuf_append_char(&j->arguments, '\0');
    }
    if (strstr(j->toolchain->version, "clang") != NULL) {
        add_argument(j, "", "-fdebug-compilation-dir=.");
    }
}

/* What of `current` is below the directory, with a separator in front; NULL: it is not below it. */
static const char *rest_below(const char *current, const char *dir)
{
    size_t length = strlen(dir);
    length -= length > 0 && dir[length - 1] == '/';
    return current != NULL && length > 0 && strncmp(current, dir, length) == 0 &&
                   current[length] == '/' && current[length + 1] != '\0'
               ? current + length
               : NULL;
}

typedef enum mapping_turn {
    BEFORE_CURRENT, /* directories that the current one is below */
    AFTER_CURRENT,  /* their files below the current one, which are called as from elsewhere */
    OTHERS,
} mapping_turn;

static void add_mapping_in_turn(job *j, const char *dir, const char *current, mapping_turn turn)
{
    const char *rest = rest_below(current, dir);
    if (rest == NULL) {
        if (turn == OTHERS) {
            add_mapping(j, dir);
        }
    } else if (turn == BEFORE_CURRENT) {
        add_mapping(j, dir);
    } else if (turn == AFTER_CURRENT && strchr(current, '=') == NULL) {
        kn_strbuf_printf(&j->arguments, "-ffile-prefix-map=%s/=%s/", current, rest + 1);
        kn_strbuf_append_char(&j->arguments, '\0');
    }
}

static void add_mappings_in_turn(job *j, const char *dir, const char *current, mapping_turn turn)
{
    const char *const own[] = {j->dir, j->headers, j->own};
    if (strcmp(dir, ".") != 0) {
        add_mapping_in_turn(j, dir, current, turn);
    }
    for (size_t i = 0; i < j->source->include_dir_count; i++) {
        add_mapping_in_turn(j, j->source->include_dirs[i], current, turn);
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        add_mapping_in_turn(j, own[i], current, turn);
    }
}

static bool add_mappings(job *j)
{
    const bool debug = keeps_symbols(j->source);
    char *current = debug ? kn_path_resolve(".") : NULL;
    char *dir = kn_path_dir(name_of(j->source));
    const bool ok = dir != NULL && (!debug || current != NULL);
    if (ok && debug) {
        add_mappings_in_turn(j, dir, current, BEFORE_CURRENT);
        add_current_mapping(j, current);
        add_mappings_in_turn(j, dir, current, AFTER_CURRENT);
    }
    if (ok) {
        add_mappings_in_turn(j, dir, current, OTHERS);
    }
    free(dir);
    free(current);
    return ok;
}

static bool add_arguments(job *j)
{
    const kiln_source *source = j->source;
    add_argument(j, "", j->toolchain->tools[0].path);
    kn_cpu_flags_fixed(j->toolchain->version, &j->arguments);
    kn_cpu_target_flags(j->target, &j->arguments);
    if (!add_mappings(j)) {
        return false;
    }
    if (!keeps_symbols(source)) {
        add_argument(j, "", "-s");
    }
    for (size_t i = 0; i < source->define_count; i++) {
        kn_strbuf_printf(&j->arguments, "-D%s", source->defines[i].name);
        if (source->defines[i].value != NULL) {
            kn_strbuf_printf(&j->arguments, "=%s", source->defines[i].value);
        }
        kn_strbuf_append_char(&j->arguments, '\0');
    }
    for (size_t i = 0; i < source->option_count; i++) {
        add_argument(j, "", source->options[i]);
    }
    if (source->header_count > 0) {
        add_argument(j, "-I", j->headers);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        add_argument(j, "-I", source->include_dirs[i]);
    }
    add_argument(j, "-isystem", j->own);
    add_argument(j, "", "-o");
    add_argument(j, "", j->object_path);
    add_argument(j, "", j->source_path);
    add_argument(j, "", "-lm");
    return kn_strbuf_ok(&j->arguments);
}

static kiln_status make_arguments(job *j, kiln_diag *diag)
{
    size_t count = 1;
    if (!add_arguments(j)) {
        return kn_no_memory(diag, compiling);
    }
    const char *text = kn_strbuf_text(&j->arguments);
    for (size_t at = 0; at < j->arguments.length; at += strlen(text + at) + 1) {
        count++;
    }
    j->argv = (const char **)calloc(count, sizeof(*j->argv));
    if (j->argv == NULL) {
        return kn_no_memory(diag, compiling);
    }
    count = 0;
    for (size_t at = 0; at < j->arguments.length; at += strlen(text + at) + 1) {
        j->argv[count++] = text + at;
    }
    return KILN_OK;
}

/* --- running it ------------------------------------------------------------------------------- */

/* Messages name the user's files, not ours: drops the temporary directories from the log. */
static char *clean_log(const job *j, const kn_process_result *result, size_t *out_length)
{
    const char *const own[] = {j->headers, j->own, j->dir};
    kn_strbuf log;
    kn_strbuf_init(&log, LOG_LIMIT);
    for (const char *at = result->err; at != NULL && *at != '\0';) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && skip == 0; i++) {
            const size_t length = strlen(own[i]);
            if (strncmp(at, own[i], length) == 0 && at[length] == '/') {
                skip = length + 1;
            }
        }
        if (skip > 0) {
            at += skip;
        } else {
            kn_strbuf_append_char(&log, *at++);
        }
    }
    return kn_strbuf_detach(&log, out_length);
}

/* The first line that says what is wrong, for the diag's one line. */
static void first_error(const char *log, char *line, size_t size)
{
    const char *at = log != NULL ? strstr(log, "error: ") : NULL;
    if (at == NULL) {
        at = log;
    }
    while (at != NULL && at > log && at[-1] != '\n') {
        at--;
    }
    kn_text_putf(line, size, "%.*s", at != NULL ? (int)strcspn(at, "\n") : 0, at != NULL ? at : "");
}

static kiln_status fail_compile(const job *j, const kn_process_result *result, const char *log,
                                size_t log_length, kiln_diag *diag)
{
    const char *compiler = j->toolchain->tools[0].path;
    char what[256];
    kiln_status status = KILN_E_COMPILE;
    kn_text_putf(what, sizeof(what), "compiling %s", name_of(j->source));
    if (result->timed_out) {
        status = kiln_diag_set(diag, KILN_E_TIMEOUT, "raise KILN_CC_TIMEOUT (seconds)", what,
                               "killed %s after %llu s (timeout)", compiler,
                               (unsigned long long)(j->limit_ns / 1000000000u));
    } else if (result->signal != 0) {
        status = kiln_diag_set(diag, KILN_E_COMPILE, "try another compiler through KILN_CC", what,
                               "%s crashed (%s)", compiler, kn_process_signal_name(result->signal));
    } else {
        char line[512];
        first_error(log, line, sizeof(line));
        if (line[0] == '\0') {
            kn_text_putf(line, sizeof(line), "the compiler exited with %d and printed nothing",
                         result->exit_code);
        }
        status = kiln_diag_set(diag, KILN_E_COMPILE, NULL, what, "%s", line);
    }
    if (log != NULL) {
        kiln_diag_set_log(diag, log, log_length);
    }
    return status;
}

/* Exit status 0 is not taken for an object. */
static kiln_status check_object(const job *j, const void *data, size_t size, kiln_diag *diag)
{
    const char *why = "it is not there";
    char what[256];
    kn_text_putf(what, sizeof(what), "compiling %s", name_of(j->source));
    if (data == NULL || !kn_cpu_object_check(data, size, j->target->architecture, &why)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_CC to a working gcc or clang",
                             what, "%s reported success, but its output is unusable: %s",
                             j->toolchain->tools[0].path, why);
    }
    if (kn_cpu_object_kernel(data, size, 0) == NULL) {
        return kiln_diag_set(diag, KILN_E_COMPILE,
                             "include <kiln_kernel.h> and define one with KILN_KERNEL(name, ...)",
                             what, "the source has no kernel");
    }
    const char *changed = kn_cpu_toolchain_change(j->toolchain);
    if (changed != NULL) {
        return kiln_diag_set(diag, KILN_E_BUSY, "build again", what,
                             "the C compiler was replaced during the compile, or does not see the "
                             "files that this process sees: %s",
                             changed);
    }
    return KILN_OK;
}

static kiln_status keep_names(const job *j, const void *data, size_t size, kiln_artifact *artifact)
{
    kn_strbuf names;
    const char *name = NULL;
    kn_strbuf_init(&names, 0);
    for (size_t i = 0; (name = kn_cpu_object_kernel(data, size, i)) != NULL; i++) {
        kn_strbuf_printf(&names, "%s\n", name);
    }
    kiln_status status = kn_strbuf_ok(&names)
                             ? j->cpu->host->artifact_set_fact(artifact, KILN_FACT_ENTRIES,
                                                               kn_strbuf_text(&names), names.length)
                             : KILN_E_NOMEM;
    kn_strbuf_deinit(&names);
    return status;
}

static kiln_status take_object(const job *j, const char *log, size_t log_length,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kiln_status status = kn_file_read(j->object_path, OBJECT_LIMIT, true, &data, &size, NULL, diag);
    if (status == KILN_OK || status == KILN_MISS) {
        status = check_object(j, data, size, diag);
    }
    if (status == KILN_OK) {
        status = j->cpu->host->artifact_set(artifact, KILN_LANG_NONE, data, size);
    }
    if (status == KILN_OK) {
        status = keep_names(j, data, size, artifact);
    }
    if (status == KILN_OK && log != NULL && log_length > 0) {
        status = j->cpu->host->artifact_set_log(artifact, log, log_length);
    }
    if (status == KILN_E_NOMEM) {
        (void)kn_no_memory(diag, compiling);
    }
    free(data);
    return status;
}

static kiln_status run_compiler(job *j, kiln_artifact *artifact, kiln_diag *diag)
{
    kn_strbuf temporary;
    kn_strbuf tmp_too;
    kn_process_result result = {0};
    char *log = NULL;
    size_t log_length = 0;
    kiln_status status = KILN_OK;

    kn_strbuf_init(&temporary, 0);
    kn_strbuf_printf(&temporary, "TMPDIR=%s", j->dir);
    /* "TMP" is Windows' name for it. */
    const char *const tmp = kn_strbuf_text(&temporary);
    kn_strbuf_init(&tmp_too, 0);
    kn_strbuf_printf(&tmp_too, "TMP=%s", j->dir);
    const char *const environment[] = {"LC_ALL=C", "LANGUAGE=C", tmp, kn_strbuf_text(&tmp_too),
                                       NULL};
    const kn_process_request request = {.argv = j->argv,
                                        .environment = environment,
                                        .output_limit = LOG_LIMIT,
                                        .limit_ns = j->limit_ns};
    status = kn_strbuf_ok(&temporary) && kn_strbuf_ok(&tmp_too)
                 ? kn_process_run(&request, &result, diag)
                 : kn_no_memory(diag, compiling);
    if (status == KILN_OK) {
        log = clean_log(j, &result, &log_length);
        status = result.exit_code == 0 && !result.timed_out
                     ? take_object(j, log, log_length, artifact, diag)
                     : fail_compile(j, &result, log, log_length, diag);
    }
    free(log);
    kn_process_result_deinit(&result);
    kn_strbuf_deinit(&tmp_too);
    kn_strbuf_deinit(&temporary);
    return status;
}

static kiln_status check_machine(const job *j, kiln_diag *diag)
{
    if (kn_cpu_architecture_of_machine(j->toolchain->machine) == j->target->architecture) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "set KILN_CC to a cross compiler for it",
                         "compiling a C kernel", "%s makes code for %s, not for %s",
                         j->toolchain->tools[0].path, j->toolchain->machine,
                         kn_cpu_architecture_name(j->target->architecture));
}

kiln_status kn_cpu_compile(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    job j = {.cpu = (cpu_instance *)instance,
             .target = kn_cpu_target_of(request->target),
             .source = request->source};
    uint64_t limit_s = DEFAULT_LIMIT_S;
    (void)out_live;

    kn_strbuf_init(&j.arguments, 0);
    kiln_status status = kn_env_u64("KILN_CC_TIMEOUT", 1, MAX_LIMIT_S, &limit_s, diag);
    j.limit_ns = limit_s * 1000000000u;
    if (status == KILN_OK) {
        status = kn_cpu_toolchain_get(&j.cpu->tools, &j.toolchain, diag);
    }
    if (status == KILN_OK) {
        status = check_machine(&j, diag);
    }
    if (status == KILN_OK) {
        status = write_inputs(&j, diag);
    }
    if (status == KILN_OK) {
        status = make_arguments(&j, diag);
    }
    if (status == KILN_OK) {
        status = run_compiler(&j, artifact, diag);
    }
    kn_cpu_workdir_remove(j.dir);
    free(j.source_path);
    free(j.headers);
    free(j.own);
    free(j.object_path);
    free(j.argv);
    kn_strbuf_deinit(&j.arguments);
    return status;
}
