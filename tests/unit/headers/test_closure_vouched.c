/* A source that is not scanned, since its list of headers vouches for it: what the list must be of,
 * and that no kind of change of a header is missed. Keys are compared, and facts; never times. */
#include "closure_world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "headers/header_list.h"
#include "key/digest.h"
#include "support/tmpdir.h"

/* inc is a link to real; a.h is in it, and would be found first in before. */
static void make_linked(world *w)
{
    cw_add_dir(w, "before");
    cw_write_text(w, "real/sub/a.h", "1");
    cw_write_text(w, "other/sub/a.h", "2");
    char *from = kt_at(w->root, "inc");
    char *to = kt_at(w->root, "real");
    cw_make_link(to, from);
    cw_add_dir(w, "inc");
    cw_add_cache(w);
    cw_set_source(w, "#include <sub/a.h>\nint x;\n");
}

static void touch_long_ago(world *w)
{
    cw_set_mtime(w, "real/sub/a.h", LONG_AGO);
    cw_set_mtime(w, "other/sub/a.h", LONG_AGO);
}

static void a_list_spares_the_scan(void **state)
{
    world *w = *state;
    make_linked(w);
    const answer cold = cw_find_good(w);
    assert_true(cold.facts.source_scanned);
    const answer warm = cw_find_good(w);
    assert_false(warm.facts.source_scanned);
    assert_true(warm.facts.from_list);
    assert_true(cw_same(cold, warm));
    /* Another text has another list, or none. */
    cw_set_source(w, "#include <sub/a.h>\nint y;\n");
    assert_true(cw_find_good(w).facts.source_scanned);
    cw_set_source(w, "#include <sub/a.h>\n#embed <sub/a.h>\n");
    cw_expect_bypass(w, "kernel.c:2: #embed");
    cw_expect_bypass(w, "kernel.c:2: #embed");
    /* The recipe may be of several texts: the list is, too. */
    cw_set_source(w, "#include <sub/a.h>\nint x;\n");
    w->request.list_vouches = false;
    const answer unsure = cw_find_good(w);
    assert_true(unsure.facts.source_scanned);
    assert_true(unsure.facts.from_list);
    assert_true(cw_same(cold, unsure));
}

static void options_are_looked_at_all_the_same(void **state)
{
    static const char *const stopping[] = {"-DWHEN=__TIME__"};
    world *w = *state;
    make_linked(w);
    const answer cold = cw_find_good(w);
    (void)cw_find_good(w);
    w->source.options = stopping;
    w->source.option_count = 1;
    cw_expect_bypass(w, "__TIME__ in a define or an option");
    w->source.option_count = 0;
    assert_true(cw_same(cold, cw_find_good(w)));
}

/* What looks like an include is one to the preprocessor only where that reads it. */
static void a_text_without_includes_has_no_list(void **state)
{
    static const char *const texts[] = {"/*\n#include <sub/a.h>\n*/\n", "int x;\n",
                                        "char *s = \"#include <sub/a.h>\";\n", "#  includes\n"};
    world *w = *state;
    make_linked(w);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int round = 0; round < 2; round++) {
            cw_set_source(w, texts[i]);
            const answer found = cw_find_good(w);
            assert_true(found.facts.source_scanned);
            assert_int_equal(found.facts.headers, 0);
            assert_int_equal(found.facts.files_statted, 0);
        }
    }
    /* Written in a way that the search does not know, it is scanned. */
    for (int round = 0; round < 2; round++) {
        cw_set_source(w, "#inc\\\nlude <sub/a.h>\n");
        const answer found = cw_find_good(w);
        assert_true(found.facts.source_scanned);
        assert_int_equal(found.facts.headers, 1);
        assert_int_equal(found.facts.from_list, round == 1);
    }
}

static bool source_names(world *w)
{
    kiln_recipe *recipe = cw_first_recipe(w);
    kn_closure *closure = NULL;
    w->request.first = recipe;
    assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
    assert_true(kn_closure_names_matter(closure));
    const bool own = kn_closure_source_names(closure);
    assert_int_equal(kn_closure_add_to(closure, recipe, NULL), KILN_OK);
    kn_closure_save(closure);
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    return own;
}

/* A list says that one of its texts mentions its own file, not which. */
static void K5_whose_name_is_mentioned_is_known_from_a_list(void **state)
{
    world *w = *state;
    w->names_root = true;
    make_linked(w);
    cw_write_text(w, "real/sub/a.h", "char *f = __FILE__;\n");
    for (int round = 0; round < 3; round++) {
        cw_set_source(w, "#include <sub/a.h>\n");
        assert_false(source_names(w));
        cw_set_source(w, "#include <sub/a.h>\nchar *g = __FILE__;\n");
        assert_true(source_names(w));
        w->source.name = "one.c";
        const answer one = cw_find_good(w);
        w->source.name = "two.c";
        assert_false(cw_same(one, cw_find_good(w)));
        w->source.name = "kernel.c";
    }
}

/* Puts a list of one header under the recipe of a text that has none, as a wrong hand would. */
static void plant_list(world *w)
{
    kiln_recipe *recipe = cw_list_recipe(w, "kiln.manifest",
                                         "memory:0 folder:1 beside:1 complete:0 system:0 dirs:++");
    kn_header_list list;
    kn_header_list_header row = {.place = {.base = KN_PLACE_INCLUDE, .index = 1}};
    kn_strbuf bytes;
    kiln_blob *blob = NULL;
    kn_header_list_init(&list);
    list.names_seen = true;
    row.place.name_length = row.written_length = 7;
    row.stamp.size = 1;
    assert_true(kn_header_list_add_name(&list, kn_span_of_text("sub/a.h"), &row.place.name));
    row.written = row.place.name;
    assert_true(kn_digest_of("1", 1, row.digest));
    assert_true(kn_header_list_add_header(&list, &row));
    kn_strbuf_init(&bytes, 0);
    kn_header_list_write(&list, true, &bytes);
    assert_int_equal(kiln_blob_create(bytes.data, bytes.length, NULL, 0, &blob, NULL), KILN_OK);
    assert_int_equal(kiln_cache_put(w->cache, recipe, blob, 0, NULL), KILN_OK);
    kiln_blob_release(blob);
    kn_strbuf_deinit(&bytes);
    kn_header_list_deinit(&list);
    kiln_recipe_destroy(recipe);
}

static void a_text_that_is_scanned_is_believed_before_its_list(void **state)
{
    world *w = *state;
    make_linked(w);
    cw_set_source(w, "/*\n#include <sub/a.h>\n*/ char *f = __FILE__;\n");
    const answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 0);
    plant_list(w);
    const answer after = cw_find_good(w);
    assert_true(after.facts.source_scanned);
    assert_false(after.facts.from_list);
    assert_true(cw_same(before, after));
    cw_set_source(w, "#include <sub/a.h>\n#embed <sub/a.h>\nchar *f = __FILE__;\n");
    plant_list(w);
    cw_expect_bypass(w, "kernel.c:2: #embed");
}

/* --- changes ---------------------------------------------------------------------------------- */

static void move_path(const world *w, const char *from, const char *to)
{
    char *a = kt_at(w->root, from), *b = kt_at(w->root, to);
    assert_int_equal(rename(a, b), 0);
}

static void shadow_it(world *w)
{
    cw_write_text(w, "before/sub/a.h", "2");
}

static void rename_a_directory(world *w)
{
    move_path(w, "real/sub", "real/gone");
    move_path(w, "other/sub", "real/sub");
}

static void exchange_the_link(world *w)
{
    char *target = kt_at(w->root, "other"), *link = kt_at(w->root, "inc.new");
    cw_make_link(target, link);
    move_path(w, "inc.new", "inc");
    link = kt_at(w->root, "inc");
    cw_let_age(link);
}

static void edit_and_set_back(world *w)
{
    cw_write_text(w, "real/sub/a.h", "2");
    cw_set_mtime(w, "real/sub/a.h", LONG_AGO);
}

static void edit_through_a_mapping(world *w)
{
    char *path = kt_at(w->root, "real/sub/a.h");
    const int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    char *bytes = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(bytes != MAP_FAILED);
    bytes[0] = '2';
    assert_int_equal(munmap(bytes, 1), 0);
    assert_int_equal(close(file), 0);
}

static void edit_through_another_name(world *w)
{
    char *path = kt_at(w->root, "real/sub/a.h"), *name = kt_at(w->root, "elsewhere.h");
    assert_int_equal(link(path, name), 0);
    cw_write_text(w, "elsewhere.h", "2");
}

static void K1_no_change_is_missed_without_a_scan(void **state)
{
    static void (*const changes[])(world *) = {
        shadow_it,         rename_a_directory,     exchange_the_link,
        edit_and_set_back, edit_through_a_mapping, edit_through_another_name};
    enum { CHANGES = sizeof changes / sizeof changes[0] };
    void *worlds[CHANGES];
    for (size_t i = 0; i < CHANGES; i++) {
        assert_int_equal(cw_setup(&worlds[i]), 0);
        make_linked(worlds[i]);
        touch_long_ago(worlds[i]);
    }
    cw_let_settle();
    for (size_t i = 0; i < CHANGES; i++) {
        world *w = worlds[i];
        const answer cold = cw_find_good(w);
        const answer warm = cw_find_good(w);
        assert_false(warm.facts.source_scanned);
        assert_int_equal(warm.facts.files_read, 0);
        changes[i](w);
        const answer changed = cw_find_good(w);
        assert_int_equal(changed.facts.headers, 1);
        if (cw_same(cold, changed)) {
            fail_msg("change %zu is not seen", i);
        }
        assert_int_equal(cw_teardown(&worlds[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(a_list_spares_the_scan),
        cw_test(options_are_looked_at_all_the_same),
        cw_test(a_text_without_includes_has_no_list),
        cw_test(K5_whose_name_is_mentioned_is_known_from_a_list),
        cw_test(a_text_that_is_scanned_is_believed_before_its_list),
        cmocka_unit_test(K1_no_change_is_missed_without_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
