/* Finds the compiler and keeps what is known about it while that still holds. */
#include "apis/cpu/backend/toolchain.h"

#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/object.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/paths.h"

/* Whatever leads the compiler to other programs, libraries or headers. */
static const char *const guiding_variables[] = {
    "PATH",    "LD_LIBRARY_PATH",    "LD_PRELOAD",          "GCC_EXEC_PREFIX",
    "CPATH",   "COMPILER_PATH",      "C_INCLUDE_PATH",      "GCC_SPECS",
    "SDKROOT", "NIX_CFLAGS_COMPILE", "CCC_OVERRIDE_OPTIONS"};

/* One walk of $PATH: the compiler, where it is not given by its path, and what compilers start by
 * name. */
typedef struct path_walk {
    kn_program programs[3];
    size_t count;
} path_walk;

static void path_walk_init(path_walk *walk, const char *compiler, bool compiler_alone)
{
    *walk =
        (path_walk){{{.name = compiler}, {.name = "as"}, {.name = "ld"}}, compiler_alone ? 1 : 3};
    kn_paths_find_programs(walk->programs, walk->count);
}

static void path_walk_deinit(path_walk *walk)
{
    for (size_t i = 0; i < walk->count; i++) {
        free(walk->programs[i].path);
    }
}

static const char *find_usual(const path_walk *walk, char **out_other)
{
    static const char *const others[] = {"gcc", "clang"};
    *out_other = NULL;
    for (size_t i = 0; walk->programs[0].path == NULL && *out_other == NULL &&
                       i < sizeof(others) / sizeof(others[0]);
         i++) {
        *out_other = kn_paths_find_program(others[i]);
    }
    return *out_other != NULL ? *out_other : walk->programs[0].path;
}

static bool is_executable(const char *path)
{
    kn_file_facts facts;
    return kn_file_stat(path, true, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_REGULAR &&
           (facts.mode & 0111u) != 0;
}

/* kn_cpu_compiler_find, and the walk that it took: path_walk_deinit in any case. */
static kiln_status find_compiler(bool compiler_alone, path_walk *walk, char **out_path,
                                 kiln_diag *diag)
{
    const char *asked = kn_env_get("KILN_CC");
    const bool named = asked != NULL && asked[0] != '\0';
    const bool placed = named && kn_path_is_absolute(asked);
    char *other = NULL;
    *out_path = NULL;
    path_walk_init(walk, placed ? "" : named ? asked : "cc", compiler_alone);
    const char *found = placed && is_executable(asked) ? asked
                        : named                        ? walk->programs[0].path
                                                       : find_usual(walk, &other);
    if (found == NULL) {
        return named ? kiln_diag_set(
                           diag, KILN_E_UNAVAILABLE,
                           "set KILN_CC to a name in PATH or an absolute path, without options",
                           "finding the C compiler",
                           "KILN_CC names \"%.200s\", which is not an executable or not found in "
                           "PATH",
                           asked)
                     : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install gcc or set KILN_CC",
                                     "finding the C compiler",
                                     "no C compiler: neither cc, gcc nor clang is in PATH");
    }
    *out_path = kn_text_copy(found);
    free(other);
    return *out_path != NULL ? KILN_OK : kn_no_memory(diag, "finding the C compiler");
}

kiln_status kn_cpu_compiler_find(char **out_path, kiln_diag *diag)
{
    path_walk walk;
    kiln_status status = find_compiler(true, &walk, out_path, diag);
    path_walk_deinit(&walk);
    return status;
}

cpu_toolchain *kn_cpu_toolchain_create(const char *question)
{
    cpu_toolchain *made = (cpu_toolchain *)calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->question = kn_text_copy(question);
    if (made->question == NULL) {
        free(made);
        return NULL;
    }
    return made;
}

void kn_cpu_toolchain_destroy(cpu_toolchain *toolchain)
{
    if (toolchain == NULL) {
        return;
    }
    for (size_t i = 0; i < toolchain->tool_count; i++) {
        free(toolchain->tools[i].name);
        free(toolchain->tools[i].path);
    }
    for (size_t i = 0; i < toolchain->dir_count; i++) {
        free(toolchain->dirs[i]);
    }
    for (size_t i = 0; i < toolchain->absent_count; i++) {
        free(toolchain->absent[i]);
    }
    free(toolchain->version);
    free(toolchain->machine);
    free(toolchain->question);
    free(toolchain);
}

bool kn_cpu_toolchain_add(cpu_toolchain *toolchain, const char *name, const char *path,
                          bool on_path, bool *out_dynamic)
{
    *out_dynamic = false;
    for (size_t i = 0; i < toolchain->tool_count; i++) {
        if (strcmp(toolchain->tools[i].path, path) == 0) {
            return true;
        }
    }
    if (toolchain->tool_count == CPU_TOOL_LIMIT) {
        return false;
    }
    cpu_tool *tool = &toolchain->tools[toolchain->tool_count];
    *tool = (cpu_tool){.on_path = on_path};
    tool->name = kn_text_copy(name);
    tool->path = kn_text_copy(path);
    /* Facts first: a file replaced in between differs from them later. */
    if (tool->name == NULL || tool->path == NULL ||
        kn_file_stat(path, true, &tool->facts, NULL) != KILN_OK ||
        !kn_cpu_object_identify(path, tool->id, sizeof(tool->id), out_dynamic)) {
        free(tool->name);
        free(tool->path);
        return false;
    }
    toolchain->tool_count++;
    return true;
}

bool kn_cpu_list_add(char **list, size_t *count, size_t limit, const char *text)
{
    char *copy = *count < limit ? kn_text_copy(text) : NULL;
    if (copy != NULL) {
        list[(*count)++] = copy;
    }
    return copy != NULL;
}

bool kn_cpu_same_file(const kn_file_facts *a, const kn_file_facts *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->inode == b->inode && a->device == b->device;
}

/* What the walk saw of it; a file that it did not look at is looked at now. */
static bool tool_holds(const cpu_tool *tool, const path_walk *walk)
{
    kn_file_facts facts;
    for (size_t i = 0; i < walk->count; i++) {
        const kn_program *program = &walk->programs[i];
        const bool same_path = program->path != NULL && strcmp(program->path, tool->path) == 0;
        if (tool->on_path ? strcmp(program->name, tool->name) == 0 : same_path) {
            return same_path && kn_cpu_same_file(&program->facts, &tool->facts);
        }
    }
    if (!tool->on_path) {
        return kn_file_stat(tool->path, true, &facts, NULL) == KILN_OK &&
               kn_cpu_same_file(&facts, &tool->facts);
    }
    kn_program program = {.name = tool->name};
    kn_paths_find_programs(&program, 1);
    const bool same = program.path != NULL && strcmp(program.path, tool->path) == 0 &&
                      kn_cpu_same_file(&program.facts, &tool->facts);
    free(program.path);
    return same;
}

/* The path of what is another now than it was; NULL: all is the same. The walk is of this moment.
 */
static const char *find_toolchain_change(const cpu_toolchain *toolchain, const path_walk *walk)
{
    for (size_t i = 0; i < toolchain->tool_count; i++) {
        const cpu_tool *tool = &toolchain->tools[i];
        if (!tool_holds(tool, walk)) {
            return tool->path;
        }
    }
    for (size_t i = 0; i < toolchain->absent_count; i++) {
        kn_file_facts facts;
        if (kn_file_stat(toolchain->absent[i], true, &facts, NULL) != KILN_MISS) {
            return toolchain->absent[i];
        }
    }
    return NULL;
}

const char *kn_cpu_toolchain_change(const cpu_toolchain *toolchain)
{
    path_walk walk;
    path_walk_init(&walk, "", false);
    const char *changed = find_toolchain_change(toolchain, &walk);
    path_walk_deinit(&walk);
    return changed;
}

void kn_cpu_tools_init(cpu_tools *tools, const kiln_host *host)
{
    *tools = (cpu_tools){.host = host};
    kn_mutex_init(&tools->mutex);
}

void kn_cpu_tools_deinit(cpu_tools *tools)
{
    while (tools->current != NULL) {
        cpu_toolchain *older = tools->current->older;
        kn_cpu_toolchain_destroy(tools->current);
        tools->current = older;
    }
    kn_mutex_deinit(&tools->mutex);
}

/* Where lists of directories depend on the current one, what they come to. */
static bool append_search_lists(kn_strbuf *text)
{
    char *lists[CPU_SEARCH_LISTS];
    const bool known = kn_cpu_search_lists(lists) == KILN_OK;
    for (size_t i = 0; i < CPU_SEARCH_LISTS; i++) {
        if (lists[i] != NULL) {
            kn_strbuf_append_text(text, lists[i]);
            kn_strbuf_append_char(text, '\n');
        }
    }
    kn_cpu_search_lists_free(lists);
    return known;
}

/* The memo's name: what was asked, framed by lines, unset distinct from empty. */
static bool make_question(const char *path, kn_strbuf *text)
{
    kn_strbuf_append_text(text, "cpu.toolchain 2\n");
    kn_strbuf_append_text(text, path);
    kn_strbuf_append_char(text, '\n');
    for (size_t i = 0; i < sizeof(guiding_variables) / sizeof(guiding_variables[0]); i++) {
        const char *value = kn_env_get(guiding_variables[i]);
        kn_strbuf_append_text(text, guiding_variables[i]);
        if (value != NULL) {
            kn_strbuf_append_char(text, '=');
            kn_strbuf_append_text(text, value);
        }
        kn_strbuf_append_char(text, '\n');
    }
    return append_search_lists(text) && kn_strbuf_ok(text);
}

static cpu_toolchain *remembered_toolchain(const kiln_host *host, const char *question,
                                           const path_walk *walk)
{
    void *data = NULL;
    size_t size = 0;
    cpu_toolchain *found = NULL;
    if (host->memo_get == NULL || host->memo_get(host->memo, question, &data, &size) != KILN_OK) {
        return NULL;
    }
    found = kn_cpu_toolchain_decode(question, (const char *)data, size);
    free(data);
    if (found != NULL && find_toolchain_change(found, walk) != NULL) {
        kn_cpu_toolchain_destroy(found);
        found = NULL;
    }
    return found;
}

static void remember_toolchain(const kiln_host *host, const cpu_toolchain *toolchain)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 1 << 20);
    if (host->memo_put != NULL && kn_cpu_toolchain_encode(toolchain, &text)) {
        host->memo_put(host->memo, toolchain->question, kn_strbuf_text(&text), text.length);
    }
    kn_strbuf_deinit(&text);
}

static kiln_status ask_toolchain(cpu_tools *tools, const char *path, const char *question,
                                 cpu_toolchain **out_found, kiln_diag *diag)
{
    cpu_toolchain *found = kn_cpu_toolchain_create(question);
    if (found == NULL) {
        return kn_no_memory(diag, "finding the C compiler");
    }
    tools->asked++;
    kiln_status status = kn_cpu_toolchain_probe(path, found, diag);
    if (status != KILN_OK) {
        kn_cpu_toolchain_destroy(found);
        return status;
    }
    remember_toolchain(tools->host, found);
    *out_found = found;
    return KILN_OK;
}

/* Under the mutex: makes `current` an answer to `question`. Of processes that need one at the same
 * time one asks the compiler. */
static kiln_status renew_tools(cpu_tools *tools, const char *path, const char *question,
                               const path_walk *walk, kiln_diag *diag)
{
    const kiln_host *host = tools->host;
    void *turn = NULL;
    kiln_status status = KILN_OK;
    cpu_toolchain *found = remembered_toolchain(host, question, walk);
    const bool shared = found == NULL && host->memo_enter != NULL;
    if (shared && host->memo_enter(host->memo, question, &turn) == KILN_MISS) {
        path_walk again; /* the other one is from before the wait */
        path_walk_init(&again, walk->programs[0].name, walk->count == 1);
        found = remembered_toolchain(host, question, &again);
        path_walk_deinit(&again);
    }
    if (found == NULL) {
        status = ask_toolchain(tools, path, question, &found, diag);
    }
    if (turn != NULL) {
        host->memo_leave(host->memo, turn);
    }
    if (status == KILN_OK) {
        found->older = tools->current;
        tools->current = found;
    }
    return status;
}

/* The compiler of this moment, and what is asked about it; asked_deinit in any case. */
typedef struct asked {
    char *path;
    kn_strbuf question;
    path_walk walk;
} asked;

static kiln_status asked_init(asked *a, kiln_diag *diag)
{
    kn_strbuf_init(&a->question, 0);
    const kiln_status status = find_compiler(false, &a->walk, &a->path, diag);
    if (status == KILN_OK && !make_question(a->path, &a->question)) {
        return kn_no_memory(diag, "finding the C compiler");
    }
    return status;
}

static void asked_deinit(asked *a)
{
    kn_strbuf_deinit(&a->question);
    path_walk_deinit(&a->walk);
    free(a->path);
}

void kn_cpu_toolchain_recall(cpu_tools *tools)
{
    asked a;
    if (asked_init(&a, NULL) == KILN_OK) {
        kn_mutex_lock(&tools->mutex);
        if (tools->current == NULL) {
            tools->current =
                remembered_toolchain(tools->host, kn_strbuf_text(&a.question), &a.walk);
        }
        kn_mutex_unlock(&tools->mutex);
    }
    asked_deinit(&a);
}

kiln_status kn_cpu_toolchain_get(cpu_tools *tools, const cpu_toolchain **out_toolchain,
                                 kiln_diag *diag)
{
    asked a;
    kiln_status status = asked_init(&a, diag);
    const char *question = kn_strbuf_text(&a.question);
    *out_toolchain = NULL;
    if (status == KILN_OK) {
        kn_mutex_lock(&tools->mutex);
        if (tools->current == NULL || strcmp(tools->current->question, question) != 0 ||
            find_toolchain_change(tools->current, &a.walk) != NULL) {
            status = renew_tools(tools, a.path, question, &a.walk, diag);
        }
        *out_toolchain = status == KILN_OK ? tools->current : NULL;
        kn_mutex_unlock(&tools->mutex);
    }
    asked_deinit(&a);
    return status;
}
