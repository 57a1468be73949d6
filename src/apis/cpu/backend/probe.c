/* Asks a compiler what it is: its -v output, where its programs lie, and which libraries those
 * load. Runs a dozen short child processes, those at once that need nothing of one another, only
 * when nothing that is remembered still holds. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/object.h"
#include "apis/cpu/backend/toolchain.h"
#include "apis/cpu/backend/workdir.h"
#include "base/text.h"
#include "sys/paths.h"

/* The programs of a compiler, in the order in which the key names them. */
enum { CC1, COLLECT2, AS, LD, PROGRAMS };
static const char *const program_names[PROGRAMS] = {"cc1", "collect2", "as", "ld"};

/* A program that the loader was asked about before it was added. */
typedef struct load {
    char *path; /* malloc'ed; NULL: none */
    kn_file_facts facts;
    cpu_ask ask;
} load;

typedef struct question {
    const char *compiler;
    cpu_toolchain *toolchain;
    char *dir;                /* where the children run: programs may leave files */
    char *programs[PROGRAMS]; /* what the compiler calls them by, malloc'ed; NULL: no answer */
    load loads[PROGRAMS];
    bool named; /* the file that was started says of itself that it is the compiler */
    bool lost;  /* an answer, to another part of this program that waits for all children */
} question;

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

/* A file that takes part, with the libraries it loads. */
static bool add_file(question *q, const char *name, const char *path, bool on_path);
/* A program by the name or path under which the compiler would start it; fine if there is none. */
static bool add_program(question *q, const char *name, const char *called);

/* A path by which the compiler calls itself. Another one is of what a wrapper has started. */
static void note_driver(question *q, const char *path)
{
    kn_file_facts facts;
    q->named = q->named ||
               (kn_path_is_absolute(path) && kn_file_stat(path, true, &facts, NULL) == KILN_OK &&
                kn_cpu_same_file(&facts, &q->toolchain->tools[0].facts));
}

/* " "/usr/lib/llvm-14/bin/clang" -cc1 -triple ...": clang runs itself. */
static bool note_clang(question *q, const char *line)
{
    static const char after[] = "\" -cc1 ";
    const char *end = line[0] == ' ' && line[1] == '"' ? strstr(line, after) : NULL;
    char *path = end != NULL ? kn_text_copy_n(line + 2, (size_t)(end - line) - 2) : NULL;
    if (path != NULL) {
        note_driver(q, path);
    }
    free(path);
    return true;
}

/* " /usr/lib/gcc/x86_64-linux-gnu/12/cc1 -E -quiet ...": gcc prints what it runs. */
static bool read_command(question *q, const char *line)
{
    static const char name[] = "/cc1";
    const size_t length = strcspn(line + 1, " ");
    if (q->programs[CC1] != NULL || line[0] != ' ' || line[1] != '/' || length < sizeof(name) ||
        memcmp(line + 1 + length - (sizeof(name) - 1), name, sizeof(name) - 1) != 0) {
        return true;
    }
    q->programs[CC1] = kn_text_copy_n(line + 1, length);
    return q->programs[CC1] != NULL;
}

/* One line of -v before the search list. */
static bool read_fact(question *q, char *line)
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
        /* The name by which it was called: of a program that hands that on, the text is not. */
        if (kn_cpu_object_holds(q->compiler, "COLLECT_GCC_OPTIONS")) {
            note_driver(q, line + strlen("COLLECT_GCC="));
        }
        return add_program(q, "collect-gcc", line + strlen("COLLECT_GCC="));
    }
    if (kn_text_starts(line, absent)) {
        char *path = line + strlen(absent);
        char *quote = strrchr(path, '"');
        if (quote == NULL) {
            return false;
        }
        /* A file of that name is none to clang: with a "/" it is missing to a stat, too. */
        quote[0] = '/';
        quote[1] = '\0';
        return !kn_path_is_absolute(path) || kn_cpu_toolchain_miss(toolchain, path);
    }
    if (toolchain->version == NULL && line[0] != ' ' && strstr(line, " version ") != NULL) {
        toolchain->version = kn_text_copy(line);
        return toolchain->version != NULL;
    }
    return note_clang(q, line) && read_command(q, line);
}

/* Reads -v: facts, then two lists of directories, of which the second is for <headers>. A directory
 * given relative to the current one cannot be followed from elsewhere. */
static bool read_answer(question *q, char *text)
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
                !kn_cpu_list_add(q->toolchain->dirs, &q->toolchain->dir_count, CPU_DIR_LIMIT,
                                 line + 1)) {
                return false;
            }
        } else if (!read_fact(q, line)) {
            return false;
        }
    }
    return ended && q->toolchain->version != NULL && q->toolchain->machine != NULL;
}

/* The loader's answer is of the file that was added, and of no other at its path. */
static bool add_libraries(question *q, const cpu_tool *tool)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        load *asked = &q->loads[i];
        if (asked->path != NULL && strcmp(asked->path, tool->path) == 0 &&
            kn_cpu_same_file(&asked->facts, &tool->facts)) {
            q->lost = q->lost || asked->ask.result.lost;
            return kn_cpu_libraries_take(q->toolchain, &asked->ask);
        }
    }
    return kn_cpu_libraries_add(q->toolchain, tool->path, q->dir, &q->lost);
}

static bool add_file(question *q, const char *name, const char *path, bool on_path)
{
    const size_t before = q->toolchain->tool_count;
    bool dynamic = false;
    if (!kn_cpu_toolchain_add(q->toolchain, name, path, on_path, &dynamic)) {
        return false;
    }
    return q->toolchain->tool_count == before || !dynamic ||
           add_libraries(q, &q->toolchain->tools[before]);
}

/* The path of a program that is called by `name`, malloc'ed; NULL: it is not there. One found by
 * its name is checked by that later: it is the name which is looked up. */
static char *find_program(const char *name, bool *out_on_path)
{
    kn_file_facts facts;
    *out_on_path = !kn_path_is_absolute(name);
    if (!*out_on_path) {
        return kn_file_stat(name, true, &facts, NULL) == KILN_OK ? kn_text_copy(name) : NULL;
    }
    return strchr(name, '/') == NULL ? kn_paths_find_program(name) : NULL;
}

static bool add_program(question *q, const char *name, const char *called)
{
    bool on_path = false;
    char *path = find_program(called, &on_path);
    q->toolchain->indirect =
        q->toolchain->indirect || (path != NULL && kn_cpu_object_begins(path, "#!"));
    const bool ok = path == NULL || add_file(q, on_path ? called : name, path, on_path);
    free(path);
    return ok;
}

/* --- programs --------------------------------------------------------------------------------- */

enum { OPTION_SIZE = 64 };

/* Where the compiler finds one of its programs. */
static void ask_for_program(const question *q, int program, char option[OPTION_SIZE], cpu_ask *out)
{
    kn_text_putf(option, OPTION_SIZE, "-print-prog-name=%s", program_names[program]);
    *out = (cpu_ask){.argv = {q->compiler, option, NULL}};
}

/* False where it could not be asked. */
static bool take_program(question *q, int program, const cpu_ask *ask)
{
    q->lost = q->lost || ask->result.lost;
    char *text = ask->result.out;
    char *line = kn_cpu_next_line(&text);
    if (ask->status == KILN_OK && ask->result.exit_code == 0 && line != NULL) {
        trim_line(line);
        q->programs[program] = kn_text_copy(line);
        return q->programs[program] != NULL;
    }
    return ask->status == KILN_OK;
}

/* Who does not say what it runs is asked. */
static bool find_cc1(question *q)
{
    char option[OPTION_SIZE];
    cpu_ask ask;
    if (q->programs[CC1] != NULL) {
        return true;
    }
    ask_for_program(q, CC1, option, &ask);
    kn_cpu_ask_together(q->dir, &ask, 1);
    const bool ok = take_program(q, CC1, &ask);
    kn_cpu_asks_deinit(&ask, 1);
    return ok;
}

/* What the programs load, asked for all of them at once. */
static void ask_for_libraries(question *q)
{
    cpu_ask asks[PROGRAMS];
    size_t whose[PROGRAMS];
    size_t count = 0;
    for (size_t i = 0; i < PROGRAMS; i++) {
        bool on_path = false;
        load *asked = &q->loads[i];
        char *path = q->programs[i] != NULL ? find_program(q->programs[i], &on_path) : NULL;
        /* Facts first, as of every file. */
        if (path != NULL && kn_file_stat(path, true, &asked->facts, NULL) == KILN_OK &&
            kn_cpu_libraries_question(path, &asks[count])) {
            asked->path = path;
            whose[count++] = i;
        } else {
            free(path);
        }
    }
    kn_cpu_ask_together(q->dir, asks, count);
    for (size_t i = 0; i < count; i++) {
        q->loads[whose[i]].ask = asks[i];
    }
}

static bool add_programs(question *q)
{
    bool ok = find_cc1(q);
    if (ok) {
        ask_for_libraries(q);
    }
    for (size_t i = 0; ok && i < PROGRAMS; i++) {
        ok = q->programs[i] == NULL || add_program(q, program_names[i], q->programs[i]);
    }
    return ok;
}

static void question_deinit(question *q)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        if (q->loads[i].path != NULL) {
            kn_cpu_asks_deinit(&q->loads[i].ask, 1);
        }
        free(q->loads[i].path);
        free(q->programs[i]);
    }
    kn_cpu_workdir_remove(q->dir);
}

/* --- the whole -------------------------------------------------------------------------------- */

static kiln_status no_answer(const question *q, const kn_process_result *result, kiln_diag *diag)
{
    static const char fix[] = "set KILN_CC to a working gcc or clang";
    const char *compiler = q->compiler;
    if (q->lost) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "do not ignore SIGCHLD, nor wait for children that are not yours",
                             "identifying the C compiler",
                             "the exit status of %s, or of what it starts, was taken by another "
                             "part of this program",
                             compiler);
    }
    if (result->timed_out) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "identifying the C compiler",
                             "%s did not answer in time", compiler);
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "identifying the C compiler",
                         "%s -v does not print what gcc and clang print", compiler);
}

/* Who does not say where it looks is not asked again. */
static bool take_places(question *q, cpu_ask *ask)
{
    cpu_toolchain *toolchain = q->toolchain;
    q->lost = q->lost || ask->result.lost;
    toolchain->indirect = toolchain->indirect || (kn_cpu_object_names_driver && !q->named) ||
                          kn_cpu_object_begins(q->compiler, "#!");
    return (ask->result.out == NULL || kn_cpu_places_watch(toolchain, ask->result.out)) &&
           kn_cpu_places_watch_driver(toolchain, q->compiler);
}

/* What it is, and all that needs no answer to that. */
enum { VERSION, PLACES, FIRST_PROGRAM, DRIVER = FIRST_PROGRAM + PROGRAMS - COLLECT2, ASKS };

static kiln_status ask_compiler(question *q, bool driver_is_dynamic, kiln_diag *diag)
{
    char options[PROGRAMS][OPTION_SIZE];
    cpu_ask asks[ASKS];
    asks[VERSION] = (cpu_ask){.argv = {q->compiler, "-v", "-E", "-x", "c", kn_cpu_null_device, "-o",
                                       kn_cpu_null_device, NULL},
                              .diag = diag};
    asks[PLACES] = (cpu_ask){.argv = {q->compiler, "-print-search-dirs", NULL}};
    for (int i = COLLECT2; i < PROGRAMS; i++) {
        ask_for_program(q, i, options[i], &asks[FIRST_PROGRAM + i - COLLECT2]);
    }
    const bool loads = driver_is_dynamic && kn_cpu_libraries_question(q->compiler, &asks[DRIVER]);
    const size_t count = loads ? ASKS : DRIVER;
    kn_cpu_ask_together(q->dir, asks, count);
    kiln_status status = asks[VERSION].status;
    if (status == KILN_OK) {
        q->lost = loads && asks[DRIVER].result.lost;
        bool ok = !loads || kn_cpu_libraries_take(q->toolchain, &asks[DRIVER]);
        ok = ok && asks[VERSION].result.exit_code == 0 && read_answer(q, asks[VERSION].result.err);
        for (int i = COLLECT2; ok && i < PROGRAMS; i++) {
            ok = take_program(q, i, &asks[FIRST_PROGRAM + i - COLLECT2]);
        }
        if (!ok || !add_programs(q) || !take_places(q, &asks[PLACES])) {
            status = no_answer(q, &asks[VERSION].result, diag);
        }
    }
    kn_cpu_asks_deinit(asks, count);
    return status;
}

kiln_status kn_cpu_toolchain_probe(const char *path, cpu_toolchain *toolchain, kiln_diag *diag)
{
    question q = {.compiler = path, .toolchain = toolchain};
    bool dynamic = false;
    kiln_status status = kn_cpu_workdir_create(&q.dir, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!kn_cpu_toolchain_add(toolchain, "driver", path, false, &dynamic)) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_CC to a compiler",
                               "identifying the C compiler", "%s cannot be read", path);
    } else {
        status = ask_compiler(&q, dynamic, diag);
    }
    question_deinit(&q);
    return status;
}
