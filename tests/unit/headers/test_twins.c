/* Headers of equal content: which of them are one file decides what #pragma once does. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "support/tmpdir.h"

static const char once[] = "#pragma once\nstatic int count(void) { return 1; }\n";

/* Puts the second header where it is, as the first one, a link to it, or a copy of it. */
typedef enum twin { LINK, HARD_LINK, COPY } twin;

static void make_twin(world *w, twin what)
{
    char *first = kt_at(w->root, "inc/a/v.h"), *second = kt_at(w->root, "inc/b/v.h");
    (void)unlink(second);
    if (what == LINK) {
        cw_make_link("../a/v.h", second);
    } else if (what == HARD_LINK) {
        assert_int_equal(link(first, second), 0);
    } else {
        cw_write_text(w, "inc/b/v.h", once);
    }
    cw_set_mtime(w, "inc/a/v.h", 1000000);
    cw_set_mtime(w, "inc/b/v.h", 1000000);
}

static void begin(world *w, kiln_language language)
{
    cw_add_dir(w, "inc");
    cw_write_text(w, "inc/a/v.h", once);
    cw_write_text(w, "inc/b/v.h", once);
    cw_set_source(w, "#include <a/v.h>\n#include <b/v.h>\n");
    w->source.language = language;
}

static void expect_told_apart(world *w)
{
    make_twin(w, COPY);
    const answer copy = cw_find_good(w);
    assert_true(cw_same(copy, cw_find_good(w)));
    make_twin(w, LINK);
    const answer linked = cw_find_good(w);
    assert_false(cw_same(copy, linked));
    assert_true(cw_same(linked, cw_find_good(w)));
    make_twin(w, HARD_LINK);
    assert_true(cw_same(linked, cw_find_good(w)));
    make_twin(w, COPY);
    assert_true(cw_same(copy, cw_find_good(w)));
}

static void K2_links_and_copies_have_other_keys(void **state)
{
    begin(*state, KILN_LANG_CUDA);
    expect_told_apart(*state);
}

/* From the list of this machine as well as by a walk. */
static void K2_a_list_knows_twins(void **state)
{
    cw_add_cache(*state);
    begin(*state, KILN_LANG_OPENCL_C);
    expect_told_apart(*state);
}

/* gcc takes files of equal content and time for one. */
static void K2_times_of_copies_matter_to_c_alone(void **state)
{
    static const kiln_language languages[] = {KILN_LANG_C, KILN_LANG_CUDA};
    world *w = *state;
    begin(w, KILN_LANG_C);
    for (size_t i = 0; i < 2; i++) {
        w->source.language = languages[i];
        make_twin(w, COPY);
        const answer before = cw_find_good(w);
        cw_set_mtime(w, "inc/b/v.h", 1000001);
        assert_int_equal(cw_same(before, cw_find_good(w)), languages[i] != KILN_LANG_C);
        cw_set_mtime(w, "inc/a/v.h", 1000001); /* both are older than they were, and equal */
        assert_true(cw_same(before, cw_find_good(w)));
    }
}

/* Who reads headers of equal content twice in any case does not care. */
static void K2_other_spellings_of_once(void **state)
{
    static const struct {
        const char *text, *source;
        bool matters;
    } rows[] = {
        {"int a;\n", "#include <a/v.h>\n#include <b/v.h>\n", false},
        {"int a;\n", "#import <a/v.h>\n#import <b/v.h>\n", true},
        {"_Pragma(\"once\")\n", "#include <a/v.h>\n#include <b/v.h>\n", true},
        {"#ifndef A\n#define A\n#endif\n", "#include <a/v.h>\n#include <b/v.h>\n", false},
    };
    world *w = *state;
    begin(w, KILN_LANG_C);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cw_set_source(w, rows[i].source);
        make_twin(w, COPY);
        cw_write_text(w, "inc/a/v.h", rows[i].text);
        cw_write_text(w, "inc/b/v.h", rows[i].text);
        cw_set_mtime(w, "inc/a/v.h", 1000000);
        cw_set_mtime(w, "inc/b/v.h", 1000000);
        const answer before = cw_find_good(w);
        cw_set_mtime(w, "inc/b/v.h", 1000001);
        assert_int_equal(cw_same(before, cw_find_good(w)), !rows[i].matters);
    }
}

/* Where no content is there twice, nothing of this is in a key. */
static void K2_other_headers_may_be_touched_and_moved(void **state)
{
    world *w = *state;
    begin(w, KILN_LANG_C);
    cw_write_text(w, "inc/b/v.h", "int other;\n");
    const answer before = cw_find_good(w);
    cw_set_mtime(w, "inc/b/v.h", 1000001);
    assert_true(cw_same(before, cw_find_good(w)));
    cw_write_text(w, "inc/c.h", "int other;\n");
    cw_remove_file(w, "inc/b/v.h");
    char *second = kt_at(w->root, "inc/b/v.h");
    cw_make_link("../c.h", second);
    assert_true(cw_same(before, cw_find_good(w)));
}

/* Whether a closure still holds after links were changed as if in the middle of a compile. */
static bool holds_after(world *w, const char *const *targets, const char *path)
{
    kn_closure *closure = NULL;
    kiln_recipe *recipe = cw_first_recipe(w);
    w->request.first = recipe;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
    assert_false(closure->bypass);
    for (; *targets != NULL; targets++) {
        assert_int_equal(unlink(path), 0);
        cw_make_link(*targets, path);
    }
    const bool holds = kn_closure_still_true(closure);
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    return holds;
}

/* The same file is there before and after, and another one was in between. */
static void E9_a_link_that_leads_back_is_seen(void **state)
{
    static const char *const to_and_fro[] = {"b", "a", NULL}, *const file_to_and_fro[] = {
                                                                  "b/v.h", "a/v.h", NULL};
    static const char *const none[] = {NULL};
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_write_text(w, "inc/a/v.h", "int v = 1;\n");
    cw_write_text(w, "inc/b/v.h", "int v = 2;\n");
    char *dir = kt_at(w->root, "inc/now"), *file = kt_at(w->root, "inc/now.h");
    cw_make_link("a", dir);
    cw_make_link("a/v.h", file);
    cw_set_source(w, "#include <now/v.h>\n");
    assert_true(holds_after(w, none, dir));
    assert_false(holds_after(w, to_and_fro, dir));
    assert_true(holds_after(w, none, dir));
    cw_set_source(w, "#include <now.h>\n");
    assert_true(holds_after(w, none, file));
    assert_false(holds_after(w, file_to_and_fro, file));
    /* A place where nothing was is reached by a link, too. */
    cw_set_source(w, "#if __has_include(<now/w.h>)\n#endif\n");
    assert_true(holds_after(w, none, dir));
    assert_false(holds_after(w, to_and_fro, dir));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, cw_setup, cw_teardown)
    const struct CMUnitTest tests[] = {
        TEST(K2_links_and_copies_have_other_keys),  TEST(K2_a_list_knows_twins),
        TEST(K2_times_of_copies_matter_to_c_alone), TEST(K2_other_spellings_of_once),
        TEST(E9_a_link_that_leads_back_is_seen),    TEST(K2_other_headers_may_be_touched_and_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
