/* Asks a compiler what it is: its -v output, where its programs lie, and which libraries those
 * load. Runs a dozen short child processes, only when nothing that is remembered still holds. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/toolchain.h"
#include "backends/cpu/workdir.h"
#include "base/text.h"
#include "sys/paths.h"
#include "sys/process.h"

#define ASK_LIMIT_NS ((uint64_t)10 * 1000000000u)

typedef struct question {
    const char *compiler;
    cpu_toolchain *toolchain;
    char *folder; /* where the children run: programs may leave files */
} question;

static kiln_status ask_compiler(const question *q, const char *const *argv,
                                const char *extra_environment, kn_process_result *out_result,
                                kiln_diag *diag)
{
    const char *const environment[] = {"LC_ALL=C", "LANGUAGE=C", extra_environment, NULL};
    const kn_process_request request = {
        .argv = argv, .environment = environment, .folder = q->folder, .limit_ns = ASK_LIMIT_NS};
    return kn_process_run(&request, out_result, diag);
}

char *kn_cpu_next_line(char **text)
{
    char *line = *text;
    if (line == NULL || *line == '\0') {
        return NULL;
    }
    char *end = strchr(line, '\n');
    *text = end != NULL ? end + 1 : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    return line;
}

static void trim_line(char *line)
{
    for (size_t n = strlen(line); n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\r');) {
        line[--n] = '\0';
    }
}

static bool add_folder(char **list, size_t *count, const char *path)
{
    if (*count == CPU_FOLDER_LIMIT) {
        return false;
    }
    list[*count] = kn_text_copy(path);
    if (list[*count] == NULL) {
        return false;
    }
    (*count)++;
    return true;
}

/* A file that takes part, with the libraries it loads. */
static bool add_file(const question *q, const char *name, const char *path, bool on_path);
/* A program by the name or path under which the compiler would start it; fine if there is none. */
static bool add_program(const question *q, const char *name, const char *path);

/* One line of -v before the search list. */
static bool read_fact(const question *q, char *line)
{
    static const char absent[] = "ignoring nonexistent directory \"";
    /* Files with options: clang's, which some distributions install, and gcc's. */
    static const char *const files[] = {"Configuration file: ", "Reading specs from "};
    cpu_toolchain *toolchain = q->toolchain;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char *path = line + strlen(files[i]);
        if (kn_text_starts(line, files[i]) && kn_path_is_absolute(path)) {
            return add_file(q, "configuration", path, false);
        }
    }
    if (kn_text_starts(line, "Target: ") && toolchain->machine == NULL) {
        toolchain->machine = kn_text_copy(line + strlen("Target: "));
        return toolchain->machine != NULL;
    }
    if (kn_text_starts(line, "COLLECT_GCC=")) {
        return add_program(q, "collect-gcc", line + strlen("COLLECT_GCC="));
    }
    if (kn_text_starts(line, absent)) {
        char *path = line + strlen(absent);
        char *quote = strrchr(path, '"');
        if (quote == NULL) {
            return false;
        }
        *quote = '\0';
        return !kn_path_is_absolute(path) ||
               add_folder(toolchain->absent, &toolchain->absent_count, path);
    }
    if (toolchain->version == NULL && line[0] != ' ' && strstr(line, " version ") != NULL) {
        toolchain->version = kn_text_copy(line);
        return toolchain->version != NULL;
    }
    return true;
}

/* Reads -v: facts, then two lists of directories, of which the second is for <headers>. A directory
 * given relative to the current one cannot be followed from elsewhere. */
static bool read_answer(const question *q, char *text)
{
    char *line = NULL;
    bool listing = false;
    bool ended = false;
    while ((line = kn_cpu_next_line(&text)) != NULL) {
        trim_line(line);
        if (strcmp(line, "#include <...> search starts here:") == 0) {
            listing = true;
        } else if (strcmp(line, "End of search list.") == 0) {
            listing = false;
            ended = true;
        } else if (listing && line[0] == ' ') {
            if (!kn_path_is_absolute(line + 1) ||
                !add_folder(q->toolchain->folders, &q->toolchain->folder_count, line + 1)) {
                return false;
            }
        } else if (!read_fact(q, line)) {
            return false;
        }
    }
    return ended && q->toolchain->version != NULL && q->toolchain->machine != NULL;
}

static bool add_file(const question *q, const char *name, const char *path, bool on_path)
{
    const size_t before = q->toolchain->tool_count;
    bool dynamic = false;
    if (!kn_cpu_toolchain_add(q->toolchain, name, path, on_path, &dynamic)) {
        return false;
    }
    return q->toolchain->tool_count == before || !dynamic ||
           kn_cpu_libraries_add(q->toolchain, path, q->folder);
}

static bool add_program(const question *q, const char *name, const char *path)
{
    if (kn_path_is_absolute(path)) {
        kn_file_facts facts;
        return kn_file_stat(path, true, &facts, NULL) != KILN_OK || add_file(q, name, path, false);
    }
    char *found = strchr(path, '/') == NULL ? kn_paths_find_program(path) : NULL;
    /* Checked by `path` later: that is the name which is looked up. */
    const bool ok = found == NULL || add_file(q, path, found, true);
    free(found);
    return ok;
}

/* Where the compiler finds one of its programs. */
static bool ask_program(const question *q, const char *name)
{
    char option[64];
    kn_text_putf(option, sizeof(option), "-print-prog-name=%s", name);
    const char *const argv[] = {q->compiler, option, NULL};
    kn_process_result result = {0};
    bool ok = ask_compiler(q, argv, NULL, &result, NULL) == KILN_OK;
    char *text = result.out;
    char *line = kn_cpu_next_line(&text);
    if (ok && result.exit_code == 0 && line != NULL) {
        trim_line(line);
        ok = add_program(q, name, line);
    }
    kn_process_result_deinit(&result);
    return ok;
}

static kiln_status no_answer(const char *compiler, const kn_process_result *result, kiln_diag *diag)
{
    static const char fix[] = "set KILN_CC to a working gcc or clang";
    if (result->timed_out) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "identifying the C compiler",
                             "%s did not answer in time", compiler);
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "identifying the C compiler",
                         "%s -v does not print what gcc and clang print", compiler);
}

kiln_status kn_cpu_toolchain_probe(const char *path, cpu_toolchain *toolchain, kiln_diag *diag)
{
    static const char *const programs[] = {"cc1", "collect2", "as", "ld"};
    const char *const argv[] = {
        path, "-v", "-E", "-x", "c", kn_cpu_null_device, "-o", kn_cpu_null_device, NULL};
    question q = {path, toolchain, NULL};
    kn_process_result result = {0};
    kiln_status status = kn_cpu_workdir_create(&q.folder, diag);
    bool ok = false;

    if (status != KILN_OK) {
        return status;
    }
    if (!add_file(&q, "driver", path, false)) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_CC to a compiler",
                               "identifying the C compiler", "%s cannot be read", path);
        goto cleanup;
    }
    status = ask_compiler(&q, argv, NULL, &result, diag);
    if (status != KILN_OK) {
        goto cleanup;
    }
    ok = result.exit_code == 0 && read_answer(&q, result.err);
    for (size_t i = 0; ok && i < sizeof(programs) / sizeof(programs[0]); i++) {
        ok = ask_program(&q, programs[i]);
    }
    if (!ok) {
        status = no_answer(path, &result, diag);
    }
cleanup:
    kn_process_result_deinit(&result);
    kn_cpu_workdir_remove(q.folder);
    return status;
}
