/* The header half of the key, on real files: what is found, what changes the key and what does not,
 * and what a warm start reads. Keys are compared, and counters; never times. */
#include "core/closure.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/failalloc.h"
#include "support/tmpdir.h"

#define MAX_DIRS 8

/* One source in a folder of its own. Tests fill the request and call find(). */
typedef struct world {
    char *root;
    char *folder; /* root/src */
    char *dirs[MAX_DIRS];
    char *system[MAX_DIRS];
    kiln_source source;
    kn_closure_request request;
    kiln_cache *cache;
} world;

/* What one kn_closure_find gave. */
typedef struct answer {
    kn_closure facts;
    kiln_key key;
} answer;

static void write_text(world *w, const char *name, const char *text)
{
    char *path = kt_path(w->root, name);
    for (char *p = path + strlen(w->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *p = '/';
    }
    kt_file_write(path, text, strlen(text));
    free(path);
}

/* Sets a file's mtime, and waits for nothing: ctime becomes now. */
static void set_mtime(world *w, const char *name, time_t seconds)
{
    char *path = kt_path(w->root, name);
    struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    free(path);
}

static void remove_file(world *w, const char *name)
{
    char *path = kt_path(w->root, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static int setup(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->root = kt_tmpdir_create();
    w->folder = kt_path(w->root, "src");
    assert_int_equal(mkdir(w->folder, 0700), 0);
    w->source = (kiln_source)KILN_SOURCE_INIT;
    w->source.language = KILN_LANG_C;
    w->source.name = "kernel.c";
    w->request.source = &w->source;
    w->request.folder = w->folder;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    kiln_cache_destroy(w->cache);
    for (size_t i = 0; i < MAX_DIRS; i++) {
        free(w->dirs[i]);
        free(w->system[i]);
    }
    free(w->folder);
    kt_tmpdir_remove(w->root);
    free(w);
    return 0;
}

static void set_source(world *w, const char *text)
{
    w->source.text = text;
    w->source.length = strlen(text);
}

static void add_dir(world *w, const char *name)
{
    size_t n = w->source.include_dir_count++;
    w->dirs[n] = kt_path(w->root, name);
    (void)mkdir(w->dirs[n], 0700);
    w->source.include_dirs = (const char *const *)w->dirs;
}

static void add_system(world *w, const char *name)
{
    size_t n = w->request.system_dir_count++;
    w->system[n] = kt_path(w->root, name);
    (void)mkdir(w->system[n], 0700);
    w->request.system_dirs = (const char *const *)w->system;
}

static void add_cache(world *w)
{
    kiln_cache_options options;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    char *root = kt_path(w->root, "cache");
    options.root = root;
    options.flags = 0;
    options.no_fsync = true;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    free(root);
    w->request.cache = w->cache;
}

static kiln_recipe *first_recipe(const world *w)
{
    kiln_recipe *recipe;
    assert_int_equal(kiln_recipe_create("test.stage", 1, &recipe, NULL), KILN_OK);
    assert_int_equal(kiln_recipe_add_text(recipe, "source", w->source.text, w->source.length, NULL),
                     KILN_OK);
    return recipe;
}

static answer find(world *w)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_recipe *recipe = first_recipe(w);
    w->request.first = recipe;
    kn_closure *closure;
    assert_int_equal(kn_closure_find(&w->request, &closure, &diag), KILN_OK);
    answer result = {*closure, {{0}}};
    if (!closure->bypass) {
        assert_int_equal(kn_closure_add_to(closure, recipe, &diag), KILN_OK);
        assert_null(strstr(kiln_recipe_text(recipe), w->root));
        result.key = kiln_recipe_key(recipe);
        assert_true(kn_closure_still_true(closure));
        kn_closure_save(closure);
    } else {
        assert_int_equal(kn_closure_add_to(closure, recipe, &diag), KILN_E_INVALID);
    }
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    kiln_diag_clear(&diag);
    return result;
}

/* Finds, and demands that it is no bypass. */
static answer find_good(world *w)
{
    answer result = find(w);
    assert_string_equal(result.facts.reason, "");
    assert_false(result.facts.bypass);
    return result;
}

static bool same(answer a, answer b)
{
    return memcmp(&a.key, &b.key, sizeof a.key) == 0;
}

static void expect_bypass(world *w, const char *reason)
{
    answer result = find(w);
    assert_true(result.facts.bypass);
    assert_string_equal(result.facts.reason, reason);
}

/* --- what is found ------------------------------------------------------------------------------
 */

static void no_include_costs_nothing(void **state)
{
    world *w = *state;
    set_source(w, "// #include \"a.h\"\nint f(void) { return 1; }\n");
    kiln_recipe *recipe = first_recipe(w);
    kiln_key before = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    answer a = find_good(w);
    assert_int_equal(a.facts.headers, 0);
    assert_int_equal(a.facts.files_statted, 0);
    assert_memory_equal(&a.key, &before, sizeof before);
    w->source.language = KILN_LANG_SPIRV;
    set_source(w, "#include MACRO");
    assert_int_equal(find_good(w).facts.headers, 0);
}

static void K1_a_header_three_levels_down_changes_the_key(void **state)
{
    static const char *const deep[] = {"src/sub/three.h", "inc/three.h", "inc2/three.h"};
    static const char *const lines[] = {"#include \"three.h\"\n", "#include <three.h>\n",
                                        "#include <three.h>\n"};
    world *w = *state;
    add_dir(w, "inc");
    add_dir(w, "inc2");
    set_source(w, "#include \"sub/one.h\"\n");
    write_text(w, "src/sub/one.h", "#include <two.h>\n#include \"two_b.h\"");
    write_text(w, "inc2/two.h", "int two;\n");
    for (size_t i = 0; i < 3; i++) {
        write_text(w, "src/sub/two_b.h", lines[i]);
        write_text(w, deep[i], "int a = 1;\n");
        answer before = find_good(w);
        assert_int_equal(before.facts.headers, 4);
        write_text(w, deep[i], "int a = 2;\n");
        answer after = find_good(w);
        assert_int_equal(after.facts.headers, 4);
        assert_false(same(before, after));
        write_text(w, deep[i], "int a = 1;\n");
        assert_true(same(before, find_good(w)));
        remove_file(w, deep[i]);
    }
}

static void K1_branches_not_taken_count(void **state)
{
    world *w = *state;
    set_source(w, "#if 0\r\n#include \"a.h\"\r\n#endif");
    write_text(w, "src/a.h", "1");
    answer before = find_good(w);
    write_text(w, "src/a.h", "2");
    assert_false(same(before, find_good(w)));
}

static void K1_an_unrelated_file_changes_nothing(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    set_source(w, "/* #include \"b.h\" */ #include <a.h>\nchar *s = \"#include <b.h>\";\n");
    write_text(w, "inc/a.h", "1");
    write_text(w, "inc/b.h", "1");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 1);
    write_text(w, "inc/b.h", "2");
    write_text(w, "inc/c.h", "2");
    assert_true(same(before, find_good(w)));
}

static void K1_which_copy_is_reached_is_part_of_the_key(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    /* Two equal x.h beside different y.h: c.h moves from one to the other. */
    set_source(w, "#include <p/a.h>\n#include <q/b.h>\n#include <c.h>\n");
    write_text(w, "inc/p/a.h", "#include \"x.h\"\n");
    write_text(w, "inc/q/b.h", "#include \"x.h\"\n");
    write_text(w, "inc/p/x.h", "#include \"y.h\"\n");
    write_text(w, "inc/q/x.h", "#include \"y.h\"\n");
    write_text(w, "inc/p/y.h", "1");
    write_text(w, "inc/q/y.h", "2");
    write_text(w, "inc/c.h", "#include \"p/x.h\"\n");
    answer before = find_good(w);
    write_text(w, "inc/c.h", "#include \"q/x.h\"\n");
    assert_false(same(before, find_good(w)));
}

static void a_header_that_includes_itself_is_read_once(void **state)
{
    world *w = *state;
    set_source(w, "#include \"../src/a.h\"\n#include \"a.h\"\n#include \"a.h\"\n");
    write_text(w, "src/a.h", "#include \"a.h\"\n#include \"../src/a.h\"\n#include \"./b.h\"");
    write_text(w, "src/b.h", "#include \"b.h\"\n");
    answer a = find_good(w);
    assert_true(a.facts.headers <= 8);
    assert_true(a.facts.files_read <= 4);
}

static void includes_nested_for_ever_bypass(void **state)
{
    world *w = *state;
    set_source(w, "#include \"a.h\"\n");
    write_text(w, "src/a.h", "#include \"self/a.h\"\n");
    char *link = kt_path(w->root, "src/self");
    assert_int_equal(symlink(".", link), 0);
    free(link);
    assert_true(find(w).facts.bypass); /* the system gives up first, at 40 links */

    char name[32], text[64];
    for (int i = 0; i < 201; i++) {
        (void)snprintf(name, sizeof name, "src/n%d.h", i);
        (void)snprintf(text, sizeof text, "%s \"n%d.h\"\n", i < 200 ? "#include" : "//", i + 1);
        write_text(w, name, text);
    }
    set_source(w, "#include \"n1.h\"\n");
    assert_int_equal(find_good(w).facts.headers, 200);
    set_source(w, "#include \"n0.h\"\n");
    expect_bypass(w, "n199.h: includes nested more than 200 deep");
}

static void an_empty_header_and_a_folder_of_that_name(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    add_dir(w, "inc2");
    set_source(w, "#include <a.h>");
    write_text(w, "inc/a.h/b", "a.h is a folder here");
    write_text(w, "inc2/a.h", "");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 1);
    write_text(w, "inc2/a.h", "1");
    assert_false(same(before, find_good(w)));
}

static void absolute_names_are_followed(void **state)
{
    world *w = *state;
    char *path = kt_path(w->root, "else/a.h");
    write_text(w, "else/a.h", "#include \"b.h\"\n");
    write_text(w, "else/b.h", "1");
    char text[4096];
    (void)snprintf(text, sizeof text, "#include \"%s\"\n", path);
    free(path);
    set_source(w, text);
    kn_closure *closure;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
    assert_false(closure->bypass);
    assert_int_equal(closure->headers, 2);
    kn_closure_destroy(closure);
}

static void K1_include_next_counts_every_dir_that_has_it(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    add_dir(w, "inc2");
    add_system(w, "sys");
    set_source(w, "#include <a.h>\n");
    write_text(w, "inc/a.h", "#include_next <a.h>\n");
    write_text(w, "sys/a.h", "1");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 2);
    write_text(w, "sys/a.h", "2");
    answer after = find_good(w);
    assert_false(same(before, after));
    write_text(w, "inc2/a.h", "1");
    assert_false(same(after, find_good(w)));
    remove_file(w, "inc2/a.h");
    remove_file(w, "sys/a.h");
    expect_bypass(w, "a.h: a.h is in no include dir and not known to ship with the compiler");
}

static void an_include_dir_that_is_a_system_dir_comes_last(void **state)
{
    world *w = *state;
    add_dir(w, "sys");
    add_dir(w, "inc");
    add_system(w, "sys");
    set_source(w, "#include <a.h>\n");
    write_text(w, "sys/a.h", "1");
    write_text(w, "inc/a.h", "1");
    answer before = find_good(w);
    write_text(w, "sys/a.h", "2"); /* gcc and clang take inc/a.h */
    assert_true(same(before, find_good(w)));
}

/* --- headers in memory --------------------------------------------------------------------------
 */

static void K1_headers_in_memory_change_the_key(void **state)
{
    world *w = *state;
    kiln_header headers[] = {{"lib/a.h", "#include \"b.h\"\n#include <c.h>\n", 29},
                             {"lib/b.h", "1", 1},
                             {"c.h", "1", 1},
                             {"unused.h", "1", 1}};
    w->source.headers = headers;
    w->source.header_count = 4;
    set_source(w, "#include \"lib/a.h\"\n");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 3);
    assert_int_equal(before.facts.files_read, 0);
    headers[1].text = "2";
    answer changed = find_good(w);
    assert_false(same(before, changed));
    headers[1].text = "1";
    headers[3].text = "2";
    assert_true(same(before, find_good(w)));
    headers[2].text = "2";
    assert_false(same(before, find_good(w)));
    headers[2].text = "__TIME__";
    headers[2].length = 8;
    expect_bypass(w, "c.h:1: __TIME__");
}

static void K1_a_header_in_memory_and_a_file_of_its_name_both_count(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    kiln_header header = {"a.h", "1", 1};
    w->source.headers = &header;
    w->source.header_count = 1;
    set_source(w, "#include \"a.h\"\n");
    write_text(w, "src/a.h", "1");
    write_text(w, "inc/a.h", "1");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 2);
    write_text(w, "src/a.h", "2");
    assert_false(same(before, find_good(w)));
    write_text(w, "src/a.h", "1");
    write_text(w, "inc/a.h", "2"); /* comes after both */
    assert_true(same(before, find_good(w)));
    header.text = "2";
    assert_false(same(before, find_good(w)));
}

/* --- what cannot be known -----------------------------------------------------------------------
 */

static bool ships_std(void *user, const char *name)
{
    return *(bool *)user && strncmp(name, "std", 3) == 0;
}

static void K1_what_cannot_be_known_bypasses(void **state)
{
    world *w = *state;
    set_source(w, "int x;\n#include CONFIG\n");
    expect_bypass(w, "kernel.c:2: computed #include");
    set_source(w, "int x = __TIME__;\n");
    expect_bypass(w, "kernel.c:1: __TIME__");
    set_source(w, "#include \"a.h\"\n");
    expect_bypass(w, "kernel.c: a.h is in no include dir and not known to ship with the compiler");
    write_text(w, "src/a.h", "\n\n#include X\n");
    expect_bypass(w, "a.h:3: computed #include");
    write_text(w, "src/a.h", "const char *when = __DATE__;");
    expect_bypass(w, "a.h:1: __DATE__");
    write_text(w, "src/a.h", "1");
    (void)find_good(w);
    kiln_define define = {"STAMP", "__TIMESTAMP__"};
    w->source.defines = &define;
    w->source.define_count = 1;
    expect_bypass(w, "__TIMESTAMP__ in a define or an option");
    define.value = NULL;
    (void)find_good(w);
}

static void K1_headers_of_the_toolchain_are_its_identitys_business(void **state)
{
    world *w = *state;
    bool has = true;
    w->request.ships_header = ships_std;
    w->request.user = &has;
    set_source(w, "#include <stdint.h>\n#include <stdint.h>\n");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 0);
    add_dir(w, "inc");
    write_text(w, "inc/stdint.h", "1"); /* shadows it */
    assert_false(same(before, find_good(w)));
    remove_file(w, "inc/stdint.h");
    has = false;
    expect_bypass(
        w, "kernel.c: stdint.h is in no include dir and not known to ship with the compiler");
}

static void K1_with_the_whole_path_known_an_absent_header_is_recorded(void **state)
{
    world *w = *state;
    add_dir(w, "inc");
    w->request.search_path_complete = true;
    set_source(w, "#ifdef _WIN32\n#include <windows.h>\n#endif\n");
    answer before = find_good(w);
    assert_int_equal(before.facts.headers, 0);
    assert_true(same(before, find_good(w)));
    write_text(w, "inc/windows.h", "");
    assert_false(same(before, find_good(w)));
}

static void K1_has_include_sees_a_file_come_and_go(void **state)
{
    world *w = *state;
    set_source(w, "#if __has_include(\"a.h\")\n#endif\n");
    answer absent = find_good(w);
    write_text(w, "src/a.h", "1");
    answer present = find_good(w);
    assert_false(same(absent, present));
    write_text(w, "src/a.h", "2");
    assert_false(same(present, find_good(w)));
    remove_file(w, "src/a.h");
    assert_true(same(absent, find_good(w)));
}

static void what_is_no_file_or_too_large_bypasses(void **state)
{
    world *w = *state;
    set_source(w, "#include \"a.h\"\n");
    char *path = kt_path(w->root, "src/a.h");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_bypass(w, "kernel.c: a.h cannot be looked at");
    assert_int_equal(unlink(path), 0);
    kt_file_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)KN_CLOSURE_MAX_FILE_SIZE + 1), 0);
    expect_bypass(w, "a.h: cannot be read, or is larger than 16 MiB");
    free(path);
}

static void wrong_requests_are_refused(void **state)
{
    world *w = *state;
    kn_closure *closure;
    w->source.length = 5;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    assert_null(closure);
    set_source(w, "x");
    const char *const dirs[] = {NULL};
    w->source.include_dirs = dirs;
    w->source.include_dir_count = 1;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    w->request.source = NULL;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    kn_closure_destroy(NULL);
}

/* --- manifests ----------------------------------------------------------------------------------
 */

#define LONG_AGO 1500000000

/* A source with headers in every kind of place, none of them younger than the record. */
static void make_tree(world *w)
{
    add_dir(w, "inc");
    add_dir(w, "inc2");
    add_system(w, "sys");
    set_source(w, "#include \"a.h\"\n#include <b.h>\n#include <c.h>\n"
                  "#if __has_include(<gone.h>)\n#endif\n");
    write_text(w, "src/a.h", "#include \"deep/d.h\"\n");
    write_text(w, "src/deep/d.h", "1");
    write_text(w, "inc2/b.h", "1");
    write_text(w, "sys/c.h", "1");
}

static const char *const tree[] = {"src/a.h", "src/deep/d.h", "inc2/b.h", "sys/c.h"};

/* ctime cannot be set by hand, and a young one is not trusted: wait it out, once a test. */
static void let_stamps_settle(world *w)
{
    for (size_t i = 0; i < 4; i++) {
        set_mtime(w, tree[i], LONG_AGO);
    }
    struct timespec pause = {2, 100000000};
    (void)nanosleep(&pause, NULL);
}

static void K6_a_warm_start_reads_nothing(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    answer cold = find_good(w);
    assert_false(cold.facts.from_manifest);
    assert_int_equal(cold.facts.files_read, 4);
    answer young = find_good(w); /* too new to be trusted by its times */
    assert_true(young.facts.from_manifest);
    assert_int_equal(young.facts.files_read, 4);
    assert_true(same(cold, young));

    let_stamps_settle(w);
    answer touched = find_good(w);
    assert_true(touched.facts.from_manifest);
    assert_int_equal(touched.facts.files_read, 4);
    assert_true(touched.facts.save_pays);
    assert_true(same(cold, touched));
    answer warm = find_good(w);
    assert_true(warm.facts.from_manifest);
    assert_int_equal(warm.facts.files_read, 0);
    assert_false(warm.facts.save_pays);
    assert_int_equal(warm.facts.headers, 4);
    assert_true(same(cold, warm));

    /* mtime put back, size kept: ctime tells. */
    write_text(w, "inc2/b.h", "2");
    set_mtime(w, "inc2/b.h", LONG_AGO);
    answer changed = find_good(w);
    assert_false(changed.facts.from_manifest);
    assert_false(same(cold, changed));

    /* And so it does when another file of that size and time takes its place. */
    write_text(w, "inc2/other.h", "1");
    set_mtime(w, "inc2/other.h", LONG_AGO);
    char *from = kt_path(w->root, "inc2/other.h"), *to = kt_path(w->root, "inc2/b.h");
    assert_int_equal(rename(from, to), 0);
    free(from);
    free(to);
    assert_true(same(cold, find_good(w)));
}

static void K6_a_touch_changes_no_key(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    answer cold = find_good(w);
    const time_t times[] = {0, 1, LONG_AGO, 2000000000, 4000000000};
    for (size_t t = 0; t < sizeof times / sizeof times[0]; t++) {
        for (size_t i = 0; i < 4; i++) {
            set_mtime(w, tree[i], times[t]);
        }
        answer touched = find_good(w);
        assert_true(touched.facts.from_manifest);
        assert_int_equal(touched.facts.files_read, 4);
        assert_true(same(cold, touched));
    }
    /* One tick for all files, as packagers do: content decides. */
    write_text(w, "src/deep/d.h", "2");
    set_mtime(w, "src/deep/d.h", 1);
    assert_false(same(cold, find_good(w)));
}

static void K1_a_shadowing_file_is_noticed(void **state)
{
    static const char *const shadows[] = {"inc/b.h", "inc/c.h", "inc2/c.h", "inc/gone.h",
                                          "sys/gone.h"};
    world *w = *state;
    add_cache(w);
    make_tree(w);
    answer cold = find_good(w);
    for (size_t i = 0; i < sizeof shadows / sizeof shadows[0]; i++) {
        write_text(w, shadows[i], "1\n");
        answer shadowed = find_good(w);
        assert_false(shadowed.facts.from_manifest);
        assert_false(same(cold, shadowed));
        remove_file(w, shadows[i]);
        assert_true(same(cold, find_good(w)));
        assert_true(find_good(w).facts.from_manifest);
    }
    remove_file(w, "inc2/b.h");
    w->request.search_path_complete = true;
    assert_false(same(cold, find_good(w)));
}

static void K1_a_shadowing_header_in_memory_is_noticed(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    kiln_header headers[] = {{"unused.h", "1", 1}, {"b.h", "1", 1}};
    w->source.headers = headers;
    w->source.header_count = 1;
    answer cold = find_good(w);
    assert_true(find_good(w).facts.from_manifest);
    headers[0].text = "2";
    answer unused = find_good(w);
    assert_true(unused.facts.from_manifest);
    assert_true(same(cold, unused));
    w->source.header_count = 2;
    answer shadowed = find_good(w);
    assert_false(shadowed.facts.from_manifest);
    assert_false(find_good(w).facts.files_read == 0);
    headers[1].text = "2";
    answer changed = find_good(w);
    assert_false(changed.facts.from_manifest);
    assert_false(same(shadowed, changed));
    w->source.header_count = 0;
    assert_true(same(cold, find_good(w)));
}

static void K5_a_moved_tree_keeps_its_key(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    answer before = find_good(w);

    /* Renamed: the manifest still holds. */
    static const char *const parts[] = {"src", "inc", "inc2", "sys"};
    write_text(w, "elsewhere/far/x", "");
    for (size_t i = 0; i < 4; i++) {
        char *from = kt_path(w->root, parts[i]);
        char name[64];
        (void)snprintf(name, sizeof name, "elsewhere/far/%s", parts[i]);
        char *to = kt_path(w->root, name);
        assert_int_equal(rename(from, to), 0);
        free(from);
        free(i == 0 ? w->folder : i == 3 ? w->system[0] : w->dirs[i - 1]);
        *(i == 0 ? &w->folder : i == 3 ? &w->system[0] : &w->dirs[i - 1]) = to;
    }
    w->request.folder = w->folder;
    answer moved = find_good(w);
    assert_true(moved.facts.from_manifest);
    assert_true(same(before, moved));

    /* Found anew there: the same key. */
    w->request.cache = NULL;
    answer anew = find_good(w);
    assert_false(anew.facts.from_manifest);
    assert_true(same(before, anew));
}

static void K6_a_manifest_that_is_not_one_is_replaced(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    answer cold = find_good(w);
    /* The shape of the search is part of the manifest's name. */
    add_dir(w, "inc3");
    answer wider = find_good(w);
    assert_false(wider.facts.from_manifest);
    assert_true(same(cold, wider));
    assert_true(find_good(w).facts.from_manifest);
}

static void K1_an_edit_during_the_compile_is_seen(void **state)
{
    world *w = *state;
    add_cache(w);
    make_tree(w);
    kiln_recipe *recipe = first_recipe(w);
    w->request.first = recipe;
    const char **short_lived = malloc(sizeof *short_lived);
    assert_non_null(short_lived);
    short_lived[0] = w->system[0];
    w->request.system_dirs = short_lived;
    kn_closure *closure;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
    w->request.system_dirs = (const char *const *)w->system;
    free(short_lived);
    assert_true(kn_closure_still_true(closure));
    assert_true(closure->save_pays);
    write_text(w, "sys/c.h", "2");
    assert_false(kn_closure_still_true(closure));
    assert_false(closure->save_pays);
    kn_closure_save(closure);
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    assert_false(find_good(w).facts.from_manifest);
}

static bool find_without_memory(void *user)
{
    world *w = user;
    kiln_recipe *recipe = NULL;
    kn_closure *closure = NULL;
    if (kiln_recipe_create("test.stage", 1, &recipe, NULL) != KILN_OK) {
        return false;
    }
    w->request.first = recipe;
    kiln_status status = kn_closure_find(&w->request, &closure, NULL);
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    bool good = status == KILN_OK && !closure->bypass;
    if (good) {
        good = kn_closure_add_to(closure, recipe, NULL) == KILN_OK;
        good = kn_closure_still_true(closure) && good;
        kn_closure_save(closure);
    }
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    return good;
}

static void every_allocation_may_fail(void **state)
{
    world *w = *state;
    make_tree(w);
    write_text(w, "src/a.h", "#include \"../src/deep/d.h\"\n#include \"deep/d.h\"\n");
    assert_true(kt_failalloc_each(find_without_memory, w) > 20);
    add_cache(w);
    assert_true(kt_failalloc_each(find_without_memory, w) > 20);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(no_include_costs_nothing),
        T(K1_a_header_three_levels_down_changes_the_key),
        T(K1_branches_not_taken_count),
        T(K1_an_unrelated_file_changes_nothing),
        T(K1_which_copy_is_reached_is_part_of_the_key),
        T(a_header_that_includes_itself_is_read_once),
        T(includes_nested_for_ever_bypass),
        T(an_empty_header_and_a_folder_of_that_name),
        T(absolute_names_are_followed),
        T(K1_include_next_counts_every_dir_that_has_it),
        T(an_include_dir_that_is_a_system_dir_comes_last),
        T(K1_headers_in_memory_change_the_key),
        T(K1_a_header_in_memory_and_a_file_of_its_name_both_count),
        T(K1_what_cannot_be_known_bypasses),
        T(K1_headers_of_the_toolchain_are_its_identitys_business),
        T(K1_with_the_whole_path_known_an_absent_header_is_recorded),
        T(K1_has_include_sees_a_file_come_and_go),
        T(what_is_no_file_or_too_large_bypasses),
        T(wrong_requests_are_refused),
        T(K6_a_warm_start_reads_nothing),
        T(K6_a_touch_changes_no_key),
        T(K1_a_shadowing_file_is_noticed),
        T(K1_a_shadowing_header_in_memory_is_noticed),
        T(K5_a_moved_tree_keeps_its_key),
        T(K6_a_manifest_that_is_not_one_is_replaced),
        T(K1_an_edit_during_the_compile_is_seen),
        T(every_allocation_may_fail),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
