/* The differential test of keys: random trees and options; the compiler itself says which files it
 * opened (support/openlog.c), never kiln's scanner. Each of them is edited in turn: the key must
 * change, or the compile bypass the cache. Files that it did not open are edited, too, to count how
 * often a key changes for nothing; and files are made where the compiler looked without success.
 *
 *     differential [--compiler NAME] [--seed N] [--cases N] [--seconds S] [--verbose]
 *
 * A failure names its seed and its case; the same seed gives the same cases. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "core/build/plan.h"
#include "core/runtime/runtime.h"
#include "differential/options.h"
#include "support/tmpdir.h"
#include "sys/paths.h"

typedef struct compiler {
    const char *name, *backend, *target;
    kiln_language language;
    tree_language tree;
    const char *command; /* KILN_CC */
} compiler;

static const compiler compilers[] = {
    {"gcc", "cpu", "cpu:native", KILN_LANG_C, TREE_C, "gcc"},
    {"clang", "cpu", "cpu:native", KILN_LANG_C, TREE_C, "clang"},
    {"nvrtc", "cuda", "cuda:compute_90", KILN_LANG_CUDA, TREE_CUDA, NULL},
    {"hiprtc", "hip", "hip:gfx90a", KILN_LANG_HIP, TREE_CUDA, NULL},
    {"pocl", "opencl", "opencl:0", KILN_LANG_OPENCL_C, TREE_OPENCL, NULL},
    {"shaderc", "vulkan", "vulkan:spirv", KILN_LANG_GLSL, TREE_GLSL, NULL},
};

typedef struct counts {
    size_t cases, bypassed, failed, compiled;
    size_t opened, opened_changed;     /* edits of files that the compiler opened */
    size_t unopened, unopened_changed; /* edits of files that it did not */
    size_t created, created_changed, created_unread;
    size_t stale;
} counts;

typedef struct world {
    const compiler *with;
    kiln_runtime *runtime;
    kiln_cache *cache;
    option_names names;
    char *dir, *log;
    unsigned long seed;
    size_t number; /* of the case */
    bool verbose;
    bool unavailable; /* there is no such compiler here */
    tree tree;
    option_set options;
    kiln_source source;
    counts counts;
} world;

/* --- kiln ------------------------------------------------------------------------------------- */

/* The key of the case as it is now. */
typedef struct answer {
    bool bypass, good;
    char reason[256];
    kiln_key key;
} answer;

static kiln_status compile_directly(kn_plan *plan, kiln_diag *diag)
{
    kn_build *build = &plan->build;
    const kn_instance *in = &build->driver->in;
    kn_artifact artifact;
    void *live = NULL;
    kn_artifact_init(&artifact);
    kiln_compile_request request = {
        .stage = &build->stages[0], .target = build->target, .source = &build->source.source};
    kiln_status status = KILN_OK;
    if (plan->device != NULL) {
        status = kn_device_handle(plan->device, &request.device, diag);
    }
    if (status == KILN_OK) {
        status = kn_hal_compile(in, in->handle, &request, &artifact.base, &live, diag);
    }
    kn_artifact_deinit(&artifact);
    return status;
}

static void begin_log(const world *w)
{
    (void)unlink(w->log);
    assert_int_equal(setenv("KILN_OPENLOG", w->log, 1), 0);
}

static void end_log(void)
{
    assert_int_equal(unsetenv("KILN_OPENLOG"), 0);
}

/* With `out_compiled` the compiler runs, too, and what it opens is written down. */
static answer ask(world *w, bool *out_compiled)
{
    kn_plan plan;
    kiln_diag diag = KILN_DIAG_INIT;
    answer a = {0};
    kiln_status status = kn_plan_open(w->runtime, w->with->target, &w->source, NULL, &plan, &diag);
    if (status == KILN_OK) {
        status = kn_stage_key(&plan.build, 0, &diag);
    }
    if (status == KILN_OK) {
        const kn_stage_run *run = &plan.build.runs[0];
        a.good = true;
        a.key = run->key;
        a.bypass = run->bypass[0] != '\0';
        (void)snprintf(a.reason, sizeof(a.reason), "%s", run->bypass);
    } else {
        print_error("%s: %s\n", kiln_status_name(status), diag.why);
    }
    if (a.good && !a.bypass && out_compiled != NULL) {
        kiln_diag trouble = KILN_DIAG_INIT;
        begin_log(w);
        status = compile_directly(&plan, &trouble);
        *out_compiled = status == KILN_OK;
        w->unavailable = w->unavailable || status == KILN_E_UNAVAILABLE;
        end_log();
        if (w->verbose && !*out_compiled) {
            print_message("case %zu: %s: %s\n", w->number, trouble.why,
                          trouble.log != NULL ? trouble.log : "");
        }
        kiln_diag_clear(&trouble);
    }
    kn_plan_close(&plan);
    kiln_diag_clear(&diag);
    return a;
}

static bool differs(const answer *a, const answer *b)
{
    return b->bypass || memcmp(a->key.bytes, b->key.bytes, sizeof(a->key.bytes)) != 0;
}

/* --- one case --------------------------------------------------------------------------------- */

/* Whether the compiler's log has a line. */
static bool log_has(const char *log, char sign, const char *path)
{
    const size_t length = strlen(path);
    for (const char *at = log; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (at[0] == sign && strncmp(at + 2, path, length) == 0 && at[2 + length] == '\n') {
            return true;
        }
        if (*at == '\0') {
            break;
        }
    }
    return false;
}

static void describe_case(const world *w, const char *what, const char *path)
{
    print_error("%s: seed %lu, case %zu: %s %s\n", w->with->name, w->seed, w->number, what, path);
    for (size_t i = 0; i < w->options.count; i++) {
        print_error("  option [%s]\n", w->options.list[i]);
    }
    for (size_t i = 0; i < w->tree.dir_count; i++) {
        print_error("  include directory %s\n", w->tree.dirs[i]);
    }
    print_error("  source %s:\n%s", w->tree.name, w->tree.source);
    for (size_t i = 0; i < w->tree.file_count; i++) {
        print_error("--- %s\n%s", w->tree.files[i].path, w->tree.files[i].text);
    }
}

static void edit_files(world *w, const answer *before, const char *log)
{
    for (size_t i = 0; i < w->tree.file_count; i++) {
        const tree_file *file = &w->tree.files[i];
        const bool opened = log_has(log, '+', file->path);
        tree_edit(file);
        const answer after = ask(w, NULL);
        tree_restore(file);
        const bool changed = after.good && differs(before, &after);
        if (opened) {
            w->counts.opened++;
            w->counts.opened_changed += changed;
        } else {
            w->counts.unopened++;
            w->counts.unopened_changed += changed;
        }
        if (opened && !changed) {
            w->counts.stale++;
            describe_case(w, "the compiler opened it, and an edit would hit:", file->path);
        }
    }
}

/* Makes the file of one line "- PATH": true if it could be made. */
static bool create_missing(const char *path)
{
    FILE *file = fopen(path, "wbx");
    return file != NULL && fputs("#define CREATED 1\n", file) >= 0 && fclose(file) == 0;
}

static void create_files(world *w, const answer *before, const char *log)
{
    size_t tried = 0;
    for (const char *at = log; at != NULL && *at != '\0' && tried < 6; at = strchr(at, '\n')) {
        char path[4200];
        at += *at == '\n';
        (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(at, "\n") - 2,
                       *at == '-' ? at + 2 : "");
        /* gcc looks for the source by its name, to quote lines in warnings. */
        if (path[0] == '\0' || strcmp(path, w->tree.name) == 0 || !create_missing(path)) {
            continue;
        }
        tried++;
        w->counts.created++;
        bool compiled = false;
        answer after = ask(w, NULL);
        const bool changed = after.good && differs(before, &after);
        w->counts.created_changed += changed;
        if (!changed) { /* does the compiler read it now? */
            char *real = realpath(path, NULL);
            (void)ask(w, &compiled);
            char *now = kt_file_read(w->log, NULL);
            if (now != NULL && real != NULL && log_has(now, '+', real)) {
                w->counts.stale++;
                describe_case(w, "it was made, the compiler opens it, and a hit stays:", path);
            } else {
                w->counts.created_unread++;
            }
            free(now);
            free(real);
        }
        (void)unlink(path);
    }
}

static void start_case(world *w, tree_random *random)
{
    static const kiln_source empty = KILN_SOURCE_INIT;
    char root[160];
    char *real = realpath(w->dir, NULL);
    assert_non_null(real);
    (void)snprintf(root, sizeof(root), "%.140s/t%zu", real, w->number % 1000);
    free(real);
    tree_create(&w->tree, root, w->with->tree, random);
    option_set_draw(&w->options, w->with->name, &w->names, &w->tree, random);
    assert_int_equal(setenv("KILN_OPENLOG_UNDER", root, 1), 0);
    w->source = empty;
    w->source.language = w->with->language;
    w->source.name = w->tree.name;
    w->source.text = w->tree.source;
    w->source.length = strlen(w->tree.source);
    w->source.include_dirs = w->tree.dir_list;
    w->source.include_dir_count = w->tree.dir_count;
    w->source.options = w->options.list;
    w->source.option_count = w->options.count;
}

static void play_case(world *w)
{
    tree_random random = {w->seed * 1000003u + w->number};
    start_case(w, &random);
    w->counts.cases++;
    bool compiled = false;
    const answer before = ask(w, &compiled);
    assert_true(before.good);
    if (before.bypass) {
        w->counts.bypassed++;
        if (w->verbose) {
            print_message("case %zu: %s\n", w->number, before.reason);
        }
    } else if (!compiled) {
        w->counts.failed++; /* nothing is stored */
    } else {
        char *log = kt_file_read(w->log, NULL);
        w->counts.compiled++;
        edit_files(w, &before, log != NULL ? log : "");
        create_files(w, &before, log != NULL ? log : "");
        free(log);
    }
    tree_destroy(&w->tree);
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool open_world(world *w, const compiler *with)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    w->with = with;
    w->dir = kt_tmpdir_create();
    w->log = kt_path(w->dir, "opened");
    char *root = kt_path(w->dir, "cache");
    assert_int_equal(kiln_cache_options_init(&cache_options, NULL), KILN_OK);
    cache_options.root = root;
    assert_int_equal(kiln_cache_create(&cache_options, &w->cache, NULL), KILN_OK);
    assert_int_equal(kiln_runtime_options_init(&options, NULL), KILN_OK);
    options.cache = w->cache;
    options.backend = with->backend;
    options.strict = true;
    options.compile_only = with->tree != TREE_OPENCL;
    if (with->command != NULL) {
        assert_int_equal(setenv("KILN_CC", with->command, 1), 0);
        char *found = kn_paths_find_program(with->command);
        w->unavailable = found == NULL;
        free(found);
    }
    const kiln_status status = kiln_runtime_create(&options, &w->runtime, &diag);
    if (status != KILN_OK) {
        print_message("%s is left out: %s\n", with->name, diag.why);
    }
    free(root);
    kiln_diag_clear(&diag);
    return status == KILN_OK;
}

static void close_world(world *w)
{
    option_names_free(&w->names);
    kiln_runtime_destroy(w->runtime);
    kiln_cache_destroy(w->cache);
    free(w->log);
    kt_tmpdir_remove(w->dir);
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

typedef struct settings {
    const char *compiler;
    unsigned long seed;
    size_t cases, first;
    double seconds;
    bool verbose;
} settings;

/* Without the recorder every key would do. */
static void check_recorder(const world *w)
{
    char *path = kt_at(w->dir, "probe");
    char *real = realpath(w->dir, NULL);
    assert_non_null(real);
    kt_file_write(path, "x", 1);
    assert_int_equal(setenv("KILN_OPENLOG_UNDER", real, 1), 0);
    begin_log(w);
    free(kt_file_read(path, NULL));
    end_log();
    if (!kt_file_exists(w->log)) {
        print_error("opened files are not recorded: preload libkiln_openlog.so\n");
        exit(2);
    }
    free(real);
}

/* The number of stale hits; *out_played is set if the compiler is here. */
static size_t play(const settings *s, const compiler *with, bool *out_played)
{
    world w = {.seed = s->seed, .verbose = s->verbose};
    const double start = seconds_now();
    if (!open_world(&w, with)) {
        close_world(&w);
        return 0;
    }
    check_recorder(&w);
    if (w.unavailable) {
        close_world(&w);
        return 0;
    }
    option_names_read(&w.names, with->name);
    for (size_t i = 0; i < s->cases && !w.unavailable && seconds_now() - start < s->seconds; i++) {
        w.number = s->first + i;
        play_case(&w);
    }
    const counts *c = &w.counts;
    print_message("%s: seed %lu, %zu cases: %zu past the cache, %zu refused by the compiler, %zu "
                  "compiled; opened files edited %zu, key changed %zu; others edited %zu, key "
                  "changed %zu; files made %zu, key changed %zu, not read %zu; STALE %zu\n",
                  with->name, w.seed, c->cases, c->bypassed, c->failed, c->compiled, c->opened,
                  c->opened_changed, c->unopened, c->unopened_changed, c->created,
                  c->created_changed, c->created_unread, c->stale);
    *out_played = *out_played || !w.unavailable;
    const size_t stale = c->stale + (c->cases > 50 && c->compiled == 0);
    close_world(&w);
    return stale;
}

static unsigned long number_of(const char *text)
{
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0') {
        print_error("%s is not a number\n", text);
        exit(2);
    }
    return value;
}

static void read_arguments(int argc, char **argv, settings *s)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--verbose") == 0) {
            s->verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--compiler") == 0) {
            s->compiler = value;
        } else if (strcmp(argv[i], "--seed") == 0) {
            s->seed = number_of(value);
        } else if (strcmp(argv[i], "--cases") == 0) {
            s->cases = number_of(value);
        } else if (strcmp(argv[i], "--first") == 0) {
            s->first = number_of(value);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            s->seconds = (double)number_of(value);
        } else {
            print_error("%s is not an option of this test\n", argv[i]);
            exit(2);
        }
        i++;
    }
}

int main(int argc, char **argv)
{
    const char *seed = getenv("KILN_TEST_SEED");
    settings s = {.cases = 1000000, .seconds = 1000000, .seed = (unsigned long)time(NULL)};
    size_t stale = 0;
    bool played = false;
    if (seed != NULL) {
        s.seed = number_of(seed);
    }
    read_arguments(argc, argv, &s);
    for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
        if (s.compiler == NULL || strcmp(s.compiler, compilers[i].name) == 0) {
            stale += play(&s, &compilers[i], &played);
        }
    }
    if (stale == 0 && !played) {
        print_message("the compiler is not available here\n");
        return 77; /* skipped */
    }
    return stale == 0 ? 0 : 1;
}
