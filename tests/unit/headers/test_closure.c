/* The header half of the key, on real files: what is found, and what changes the key and what does
 * not. Keys are compared, and counters; never times. */
#include "closure_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "support/tmpdir.h"

/* --- what is found ---------------------------------------------------------------------------- */

static void no_include_costs_nothing(void **state)
{
    world *w = *state;
    cw_set_source(w, "// #include \"a.h\"\nint f(void) { return 1; }\n");
    kiln_recipe *recipe = cw_first_recipe(w);
    kiln_key before = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    answer a = cw_find_good(w);
    assert_int_equal(a.facts.headers, 0);
    assert_int_equal(a.facts.files_statted, 0);
    assert_memory_equal(&a.key, &before, sizeof before);
    w->source.language = KILN_LANG_SPIRV;
    cw_set_source(w, "#include MACRO");
    assert_int_equal(cw_find_good(w).facts.headers, 0);
}

static void K1_a_header_three_levels_down_changes_the_key(void **state)
{
    static const char *const deep[] = {"src/sub/three.h", "inc/three.h", "inc2/three.h"};
    static const char *const lines[] = {"#include \"three.h\"\n", "#include <three.h>\n",
                                        "#include <three.h>\n"};
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_set_source(w, "#include \"sub/one.h\"\n");
    cw_write_text(w, "src/sub/one.h", "#include <two.h>\n#include \"two_b.h\"");
    cw_write_text(w, "inc2/two.h", "int two;\n");
    for (size_t i = 0; i < 3; i++) {
        cw_write_text(w, "src/sub/two_b.h", lines[i]);
        cw_write_text(w, deep[i], "int a = 1;\n");
        answer before = cw_find_good(w);
        assert_int_equal(before.facts.headers, 4);
        cw_write_text(w, deep[i], "int a = 2;\n");
        answer after = cw_find_good(w);
        assert_int_equal(after.facts.headers, 4);
        assert_false(cw_same(before, after));
        cw_write_text(w, deep[i], "int a = 1;\n");
        assert_true(cw_same(before, cw_find_good(w)));
        cw_remove_file(w, deep[i]);
    }
}

static void K1_branches_not_taken_count(void **state)
{
    world *w = *state;
    cw_set_source(w, "#if 0\r\n#include \"a.h\"\r\n#endif");
    cw_write_text(w, "src/a.h", "1");
    answer before = cw_find_good(w);
    cw_write_text(w, "src/a.h", "2");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void K1_an_unrelated_file_changes_nothing(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_set_source(w, "/* #include \"b.h\" */ #include <a.h>\nchar *s = \"#include <b.h>\";\n");
    cw_write_text(w, "inc/a.h", "1");
    cw_write_text(w, "inc/b.h", "1");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 1);
    cw_write_text(w, "inc/b.h", "2");
    cw_write_text(w, "inc/c.h", "2");
    assert_true(cw_same(before, cw_find_good(w)));
}

/* A compiler's own header, or what a header that it ships includes. */
static void K1_implied_includes_count(void **state)
{
    static const char *const implied[] = {"own.h", "nowhere.h"};
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_system(w, "sys");
    cw_set_source(w, "#include <a.h>\n");
    cw_write_text(w, "inc/a.h", "1");
    cw_write_text(w, "sys/own.h", "#include <deep.h>\n");
    cw_write_text(w, "sys/deep.h", "1");
    const answer without = cw_find_good(w);
    w->request.implied = implied;
    w->request.implied_count = 2;
    const answer before = cw_find_good(w);
    assert_false(cw_same(without, before));
    assert_int_equal(before.facts.headers, 3);
    cw_write_text(w, "inc/deep.h", "2"); /* in front of the system's */
    const answer shadowed = cw_find_good(w);
    assert_false(cw_same(before, shadowed));
    cw_remove_file(w, "inc/deep.h");
    assert_true(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "inc/nowhere.h", "3");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void K1_nothing_is_found_beside_where_an_option_says_so(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_set_source(w, "#include <sub/a.h>\n");
    cw_write_text(w, "inc/sub/a.h", "#include \"b.h\"\n");
    cw_write_text(w, "inc/sub/b.h", "1");
    cw_write_text(w, "inc2/b.h", "1");
    w->request.dir = NULL;
    w->request.effects = KILN_OPTION_NOT_BESIDE;
    const answer before = cw_find_good(w);
    cw_write_text(w, "inc/sub/b.h", "2");
    assert_true(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "inc2/b.h", "2");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void K5_names_count_where_a_text_can_see_them(void **state)
{
    static const char *const seeing[] = {"char *f = __FILE__;\n",
                                         "void f(int x) { assert(x); }\n",
                                         "int x = __builtin_FILE()[0];\n",
                                         "#define LOG __FILE__\n",
                                         "auto l = std::source_location::current();\n",
                                         "char *f = __FI\\\nLE__;\n"};
    static const char *const blind[] = {"char *f = \"__FILE__\";\n", "static_assert(1);\n",
                                        "/* assert __FILE__ */\n", "int assertion, FILE_;\n"};
    world *w = *state;
    w->names_root = true;
    cw_add_dir(w, "inc");
    cw_set_source(w, "#include <a.h>\n");
    for (size_t i = 0; i < sizeof(seeing) / sizeof(seeing[0]); i++) {
        cw_write_text(w, "inc/a.h", seeing[i]);
        w->source.name = "one.c";
        const answer one = cw_find_good(w);
        w->source.name = "two.c";
        assert_false(cw_same(one, cw_find_good(w)));
        w->source.name = "elsewhere/one.c";
        assert_true(cw_same(one, cw_find_good(w)));
    }
    for (size_t i = 0; i < sizeof(blind) / sizeof(blind[0]); i++) {
        cw_write_text(w, "inc/a.h", blind[i]);
        w->source.name = "one.c";
        const answer one = cw_find_good(w);
        w->source.name = "two.c";
        assert_true(cw_same(one, cw_find_good(w)));
        w->request.effects = KILN_OPTION_NAMES; /* line information */
        assert_false(cw_same(one, cw_find_good(w)));
        w->request.effects = 0;
    }
}

static void K1_which_copy_is_reached_is_part_of_the_key(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    /* Two equal x.h next to different y.h: c.h moves from one to the other. */
    cw_set_source(w, "#include <p/a.h>\n#include <q/b.h>\n#include <c.h>\n");
    cw_write_text(w, "inc/p/a.h", "#include \"x.h\"\n");
    cw_write_text(w, "inc/q/b.h", "#include \"x.h\"\n");
    cw_write_text(w, "inc/p/x.h", "#include \"y.h\"\n");
    cw_write_text(w, "inc/q/x.h", "#include \"y.h\"\n");
    cw_write_text(w, "inc/p/y.h", "1");
    cw_write_text(w, "inc/q/y.h", "2");
    cw_write_text(w, "inc/c.h", "#include \"p/x.h\"\n");
    answer before = cw_find_good(w);
    cw_write_text(w, "inc/c.h", "#include \"q/x.h\"\n");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void a_header_that_includes_itself_is_read_once(void **state)
{
    world *w = *state;
    cw_set_source(w, "#include \"../src/a.h\"\n#include \"a.h\"\n#include \"a.h\"\n");
    cw_write_text(w, "src/a.h", "#include \"a.h\"\n#include \"../src/a.h\"\n#include \"./b.h\"");
    cw_write_text(w, "src/b.h", "#include \"b.h\"\n");
    answer a = cw_find_good(w);
    assert_true(a.facts.headers <= 8);
    assert_true(a.facts.files_read <= 4);
}

static void includes_nested_for_ever_bypass(void **state)
{
    world *w = *state;
    cw_set_source(w, "#include \"a.h\"\n");
    cw_write_text(w, "src/a.h", "#include \"self/a.h\"\n");
    char *link = kt_at(w->root, "src/self");
    cw_make_link(".", link);
    assert_true(cw_find(w).facts.bypass); /* the system gives up first, at 40 links */

    char name[32], text[64];
    for (int i = 0; i < 201; i++) {
        (void)snprintf(name, sizeof name, "src/n%d.h", i);
        (void)snprintf(text, sizeof text, "%s \"n%d.h\"\n", i < 200 ? "#include" : "//", i + 1);
        cw_write_text(w, name, text);
    }
    cw_set_source(w, "#include \"n1.h\"\n");
    assert_int_equal(cw_find_good(w).facts.headers, 200);
    cw_set_source(w, "#include \"n0.h\"\n");
    cw_expect_bypass(w, "n199.h: includes nested more than 200 deep");
}

static void an_empty_header_and_a_dir_of_that_name(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_set_source(w, "#include <a.h>");
    cw_write_text(w, "inc/a.h/b", "a.h is a folder here");
    cw_write_text(w, "inc2/a.h", "");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 1);
    cw_write_text(w, "inc2/a.h", "1");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void absolute_names_are_followed(void **state)
{
    world *w = *state;
    char *path = kt_at(w->root, "else/a.h");
    cw_write_text(w, "else/a.h", "#include \"b.h\"\n");
    cw_write_text(w, "else/b.h", "1");
    char text[4096];
    (void)snprintf(text, sizeof text, "#include \"%s\"\n", path);
    cw_set_source(w, text);
    kn_closure *closure;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
    assert_false(closure->bypass);
    assert_int_equal(closure->headers, 2);
    kn_closure_destroy(closure);
}

static void K1_include_next_counts_every_dir_that_has_it(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_add_system(w, "sys");
    cw_set_source(w, "#include <a.h>\n");
    cw_write_text(w, "inc/a.h", "#include_next <a.h>\n");
    cw_write_text(w, "sys/a.h", "1");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 2);
    cw_write_text(w, "sys/a.h", "2");
    answer after = cw_find_good(w);
    assert_false(cw_same(before, after));
    cw_write_text(w, "inc2/a.h", "1");
    assert_false(cw_same(after, cw_find_good(w)));
    cw_remove_file(w, "inc2/a.h");
    cw_remove_file(w, "sys/a.h");
    cw_expect_bypass(
        w, "a.h: a.h is not in an include directory and not known to ship with the compiler");
}

static void an_include_dir_that_is_a_system_dir_comes_last(void **state)
{
    world *w = *state;
    cw_add_dir(w, "sys");
    cw_add_dir(w, "inc");
    cw_add_system(w, "sys");
    cw_set_source(w, "#include <a.h>\n");
    cw_write_text(w, "sys/a.h", "1");
    cw_write_text(w, "inc/a.h", "1");
    answer before = cw_find_good(w);
    cw_write_text(w, "sys/a.h", "2"); /* gcc and clang take inc/a.h */
    assert_true(cw_same(before, cw_find_good(w)));
}

/* NVRTC gets the system dirs as include dirs, and takes sys/a.h. */
static void K1_an_include_dir_keeps_its_place_where_the_compiler_says_so(void **state)
{
    world *w = *state;
    cw_add_dir(w, "sys");
    cw_add_dir(w, "inc");
    cw_add_system(w, "sys");
    w->rules.dirs_in_order = true;
    cw_add_cache(w);
    cw_set_source(w, "#include <a.h>\n");
    cw_write_text(w, "sys/a.h", "1");
    cw_write_text(w, "inc/a.h", "1");
    const answer before = cw_find_good(w);
    cw_write_text(w, "inc/a.h", "2"); /* nobody reads it */
    assert_true(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "sys/a.h", "2");
    assert_false(cw_same(before, cw_find_good(w)));
}

/* --- headers in memory ------------------------------------------------------------------------ */

static void K1_headers_in_memory_change_the_key(void **state)
{
    world *w = *state;
    kiln_header headers[] = {{"lib/a.h", "#include \"b.h\"\n#include <c.h>\n", 29},
                             {"lib/b.h", "1", 1},
                             {"c.h", "1", 1},
                             {"unused.h", "1", 1}};
    w->source.headers = headers;
    w->source.header_count = 4;
    cw_set_source(w, "#include \"lib/a.h\"\n");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 3);
    assert_int_equal(before.facts.files_read, 0);
    headers[1].text = "2";
    answer changed = cw_find_good(w);
    assert_false(cw_same(before, changed));
    headers[1].text = "1";
    headers[3].text = "2";
    assert_true(cw_same(before, cw_find_good(w)));
    headers[2].text = "2";
    assert_false(cw_same(before, cw_find_good(w)));
    headers[2].text = "__TIME__";
    headers[2].length = 8;
    cw_expect_bypass(w, "c.h:1: __TIME__");
}

/* NVRTC takes a header's name for a path below the current directory, and looks there and on the
 * search path before it asks for one in memory next to it. */
static void K1_whatever_a_header_in_memory_may_reach_counts(void **state)
{
    static const char *const names[] = {"lib/c.h", "inc/c.h"};
    world *w = *state;
    char *before = getcwd(NULL, 0);
    kiln_header headers[] = {{"lib/b.h", "#include \"c.h\"\n", 15}, {"lib/c.h", "1", 1}};
    w->source.headers = headers;
    w->request.dir = NULL;
    assert_non_null(before);
    assert_int_equal(chdir(w->root), 0);
    cw_add_dir(w, "inc");
    cw_add_cache(w);
    cw_set_source(w, "#include \"lib/b.h\"\n");
    for (size_t count = 1; count <= 2; count++) {
        w->source.header_count = count;
        for (size_t i = 0; i < 2; i++) {
            answer without = {0};
            if (count == 2) {
                without = cw_find_good(w);
            }
            cw_write_text(w, names[i], "1");
            answer first = cw_find_good(w);
            cw_write_text(w, names[i], "2");
            assert_false(cw_same(first, cw_find_good(w)));
            assert_false(cw_same(first, without));
            cw_write_text(w, names[i], "1");
            assert_true(cw_same(first, cw_find_good(w)));
            cw_remove_file(w, names[i]);
        }
    }
    answer last = cw_find_good(w);
    headers[1].text = "2";
    assert_false(cw_same(last, cw_find_good(w)));
    /* By its exact name it is the one in memory and no other. */
    headers[1].name = "c.h";
    last = cw_find_good(w);
    cw_write_text(w, "inc/c.h", "3");
    assert_true(cw_same(last, cw_find_good(w)));
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void K1_a_header_in_memory_and_a_file_of_its_name_both_count(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    kiln_header header = {"a.h", "1", 1};
    w->source.headers = &header;
    w->source.header_count = 1;
    cw_set_source(w, "#include \"a.h\"\n");
    cw_write_text(w, "src/a.h", "1");
    cw_write_text(w, "inc/a.h", "1");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 2);
    cw_write_text(w, "src/a.h", "2");
    assert_false(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "src/a.h", "1");
    cw_write_text(w, "inc/a.h", "2"); /* comes after both */
    assert_true(cw_same(before, cw_find_good(w)));
    header.text = "2";
    assert_false(cw_same(before, cw_find_good(w)));
}

/* --- what cannot be known --------------------------------------------------------------------- */

static bool ships_std(void *user, const char *name)
{
    return *(bool *)user && strncmp(name, "std", 3) == 0;
}

static void K1_what_cannot_be_known_bypasses(void **state)
{
    world *w = *state;
    cw_set_source(w, "int x;\n#include CONFIG\n");
    cw_expect_bypass(w, "kernel.c:2: computed #include CONFIG: CONFIG is not defined");
    cw_set_source(w, "int x = __TIME__;\n");
    cw_expect_bypass(w, "kernel.c:1: __TIME__");
    cw_set_source(w, "#include \"a.h\"\n");
    cw_expect_bypass(
        w, "kernel.c: a.h is not in an include directory and not known to ship with the compiler");
    cw_write_text(w, "src/a.h", "\n\n#include X\n");
    cw_expect_bypass(w, "a.h:3: computed #include X: X is not defined");
    cw_write_text(w, "src/a.h", "const char *when = __DATE__;");
    cw_expect_bypass(w, "a.h:1: __DATE__");
    cw_write_text(w, "src/a.h", "1");
    (void)cw_find_good(w);
    kiln_define define = {"STAMP", "__TIMESTAMP__"};
    w->source.defines = &define;
    w->source.define_count = 1;
    cw_expect_bypass(w, "__TIMESTAMP__ in a define or an option");
    /* What a compiler puts before the text line by line may go on with a directive. */
    define.value = "1\n#include <a.h>";
    cw_expect_bypass(w, "a line break in a define or an option");
    define.value = NULL;
    (void)cw_find_good(w);
}

static void K1_headers_of_the_toolchain_are_its_identitys_business(void **state)
{
    world *w = *state;
    bool has = true;
    w->request.ships_header = ships_std;
    w->request.user = &has;
    cw_set_source(w, "#include <stdint.h>\n#include <stdint.h>\n");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 0);
    cw_add_dir(w, "inc");
    cw_write_text(w, "inc/stdint.h", "1"); /* shadows it */
    assert_false(cw_same(before, cw_find_good(w)));
    cw_remove_file(w, "inc/stdint.h");
    has = false;
    cw_expect_bypass(w, "kernel.c: stdint.h is not in an include directory and not known to ship "
                        "with the compiler");
}

static void K1_with_the_whole_path_known_an_absent_header_is_recorded(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    w->rules.complete = true;
    cw_set_source(w, "#ifdef _WIN32\n#include <windows.h>\n#endif\n");
    answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 0);
    assert_true(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "inc/windows.h", "");
    assert_false(cw_same(before, cw_find_good(w)));
}

static void K1_has_include_sees_a_file_come_and_go(void **state)
{
    world *w = *state;
    cw_set_source(w, "#if __has_include(\"a.h\")\n#endif\n");
    answer absent = cw_find_good(w);
    cw_write_text(w, "src/a.h", "1");
    answer present = cw_find_good(w);
    assert_false(cw_same(absent, present));
    cw_write_text(w, "src/a.h", "2");
    assert_false(cw_same(present, cw_find_good(w)));
    cw_remove_file(w, "src/a.h");
    assert_true(cw_same(absent, cw_find_good(w)));
}

static void what_is_no_file_or_too_large_bypasses(void **state)
{
    world *w = *state;
    cw_set_source(w, "#include \"a.h\"\n");
    char *path = kt_at(w->root, "src/a.h");
    assert_int_equal(mkfifo(path, 0600), 0);
    cw_expect_bypass(w, "kernel.c: a.h cannot be looked at");
    assert_int_equal(unlink(path), 0);
    kt_file_write(path, "", 0);
    assert_int_equal(truncate(path, (off_t)KN_CLOSURE_MAX_FILE_SIZE + 1), 0);
    cw_expect_bypass(w, "a.h: cannot be read, or is larger than 16 MiB");
}

static void wrong_requests_are_refused(void **state)
{
    world *w = *state;
    kn_closure *closure;
    w->source.length = 5;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    assert_null(closure);
    cw_set_source(w, "x");
    const char *const dirs[] = {NULL};
    w->source.include_dirs = dirs;
    w->source.include_dir_count = 1;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    w->request.source = NULL;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_E_INVALID);
    kn_closure_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(no_include_costs_nothing),
        cw_test(K1_a_header_three_levels_down_changes_the_key),
        cw_test(K1_branches_not_taken_count),
        cw_test(K1_an_unrelated_file_changes_nothing),
        cw_test(K1_implied_includes_count),
        cw_test(K1_nothing_is_found_beside_where_an_option_says_so),
        cw_test(K5_names_count_where_a_text_can_see_them),
        cw_test(K1_which_copy_is_reached_is_part_of_the_key),
        cw_test(a_header_that_includes_itself_is_read_once),
        cw_test(includes_nested_for_ever_bypass),
        cw_test(an_empty_header_and_a_dir_of_that_name),
        cw_test(absolute_names_are_followed),
        cw_test(K1_include_next_counts_every_dir_that_has_it),
        cw_test(an_include_dir_that_is_a_system_dir_comes_last),
        cw_test(K1_an_include_dir_keeps_its_place_where_the_compiler_says_so),
        cw_test(K1_headers_in_memory_change_the_key),
        cw_test(K1_whatever_a_header_in_memory_may_reach_counts),
        cw_test(K1_a_header_in_memory_and_a_file_of_its_name_both_count),
        cw_test(K1_what_cannot_be_known_bypasses),
        cw_test(K1_headers_of_the_toolchain_are_its_identitys_business),
        cw_test(K1_with_the_whole_path_known_an_absent_header_is_recorded),
        cw_test(K1_has_include_sees_a_file_come_and_go),
        cw_test(what_is_no_file_or_too_large_bypasses),
        cw_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
