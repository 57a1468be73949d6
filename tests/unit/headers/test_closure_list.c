/* The header half of the key over several starts: what a header list spares, and what it must
 * notice. Keys are compared, and counters; never times. */
#include "closure_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "headers/header_list.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"

/* A source with headers in every kind of place, none of them younger than the record. */
static void make_tree(world *w)
{
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_add_system(w, "sys");
    cw_set_source(w, "#include \"a.h\"\n#include <b.h>\n#include <c.h>\n"
                     "#if __has_include(<gone.h>)\n#endif\n");
    cw_write_text(w, "src/a.h", "#include \"deep/d.h\"\n");
    cw_write_text(w, "src/deep/d.h", "1");
    cw_write_text(w, "inc2/b.h", "1");
    cw_write_text(w, "sys/c.h", "1");
}

static const char *const tree[] = {"src/a.h", "src/deep/d.h", "inc2/b.h", "sys/c.h"};

static void let_stamps_settle(world *w)
{
    for (size_t i = 0; i < 4; i++) {
        cw_set_mtime(w, tree[i], LONG_AGO);
    }
    cw_let_settle();
}

static void K6_a_warm_start_reads_nothing(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    assert_false(cold.facts.from_list);
    assert_int_equal(cold.facts.files_read, 4);
    answer young = cw_find_good(w); /* too new to be trusted by its times */
    assert_true(young.facts.from_list);
    assert_int_equal(young.facts.files_read, 4);
    assert_true(cw_same(cold, young));

    let_stamps_settle(w);
    answer touched = cw_find_good(w);
    assert_true(touched.facts.from_list);
    assert_int_equal(touched.facts.files_read, 4);
    assert_true(touched.facts.save_pays);
    assert_true(cw_same(cold, touched));
    answer warm = cw_find_good(w);
    assert_true(warm.facts.from_list);
    assert_int_equal(warm.facts.files_read, 0);
    assert_false(warm.facts.save_pays);
    assert_int_equal(warm.facts.headers, 4);
    assert_true(cw_same(cold, warm));

    /* No handle is left to open a directory with: its names are looked at by their paths. */
    struct rlimit handles;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &handles), 0);
    const struct rlimit none = {0, handles.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    answer without = cw_find_good(w);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &handles), 0);
    assert_true(without.facts.from_list);
    assert_int_equal(without.facts.files_read, 0);
    assert_int_equal(without.facts.files_statted, warm.facts.files_statted);
    assert_true(cw_same(cold, without));

    /* mtime put back, size kept: ctime tells. */
    cw_write_text(w, "inc2/b.h", "2");
    cw_set_mtime(w, "inc2/b.h", LONG_AGO);
    answer changed = cw_find_good(w);
    assert_false(changed.facts.from_list);
    assert_false(cw_same(cold, changed));

    /* And so it does when another file of that size and time takes its place. */
    cw_write_text(w, "inc2/other.h", "1");
    cw_set_mtime(w, "inc2/other.h", LONG_AGO);
    char *from = kt_at(w->root, "inc2/other.h"), *to = kt_at(w->root, "inc2/b.h");
    assert_int_equal(rename(from, to), 0);
    assert_true(cw_same(cold, cw_find_good(w)));
}

static void K6_a_touch_changes_no_key(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    const time_t times[] = {0, 1, LONG_AGO, 2000000000, 4000000000};
    for (size_t t = 0; t < sizeof times / sizeof times[0]; t++) {
        for (size_t i = 0; i < 4; i++) {
            cw_set_mtime(w, tree[i], times[t]);
        }
        answer touched = cw_find_good(w);
        assert_true(touched.facts.from_list);
        assert_int_equal(touched.facts.files_read, 4);
        assert_true(cw_same(cold, touched));
    }
    /* One tick for all files, as packagers do: content decides. */
    cw_write_text(w, "src/deep/d.h", "2");
    cw_set_mtime(w, "src/deep/d.h", 1);
    assert_false(cw_same(cold, cw_find_good(w)));
}

static void K1_a_shadowing_file_is_noticed(void **state)
{
    static const char *const shadows[] = {"inc/b.h", "inc/c.h", "inc2/c.h", "inc/gone.h",
                                          "sys/gone.h"};
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    for (size_t i = 0; i < sizeof shadows / sizeof shadows[0]; i++) {
        cw_write_text(w, shadows[i], "1\n");
        answer shadowed = cw_find_good(w);
        assert_false(shadowed.facts.from_list);
        assert_false(cw_same(cold, shadowed));
        cw_remove_file(w, shadows[i]);
        assert_true(cw_same(cold, cw_find_good(w)));
        assert_true(cw_find_good(w).facts.from_list);
    }
    cw_remove_file(w, "inc2/b.h");
    w->rules.complete = true;
    assert_false(cw_same(cold, cw_find_good(w)));
}

static void K1_a_dir_that_appears_is_noticed(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_set_source(w, "#include <sub/deep/b.h>\n#include <sub/deep/c.h>\n#include <sub/d.h>\n");
    cw_write_text(w, "inc2/sub/deep/b.h", "1");
    cw_write_text(w, "inc2/sub/deep/c.h", "1");
    cw_write_text(w, "inc2/sub/d.h", "1");
    answer cold = cw_find_good(w);
    answer warm = cw_find_good(w);
    assert_true(warm.facts.from_list);
    assert_int_equal(warm.facts.files_statted, 3 + 1); /* and inc/sub, where nothing is, once */

    /* A directory without the header changes nothing; with it, it comes first. */
    cw_write_text(w, "inc/sub/other.h", "1");
    answer empty = cw_find_good(w);
    assert_true(empty.facts.from_list);
    assert_true(cw_same(cold, empty));
    cw_write_text(w, "inc/sub/deep/c.h", "2");
    answer shadowed = cw_find_good(w);
    assert_false(shadowed.facts.from_list);
    assert_false(cw_same(cold, shadowed));
    cw_remove_file(w, "inc/sub/deep/c.h");
    assert_true(cw_same(cold, cw_find_good(w)));
    assert_true(cw_find_good(w).facts.from_list);

    /* So does a link that begins to lead somewhere. */
    char *from = kt_at(w->root, "inc/sub/deep"), *to = kt_at(w->root, "far");
    assert_int_equal(rmdir(from), 0);
    cw_make_link(to, from);
    answer dangling = cw_find_good(w);
    assert_true(dangling.facts.from_list);
    assert_true(cw_same(cold, dangling));
    cw_write_text(w, "far/b.h", "2");
    answer led = cw_find_good(w);
    assert_false(led.facts.from_list);
    assert_false(cw_same(cold, led));
    assert_int_equal(unlink(from), 0);
    assert_true(cw_same(cold, cw_find_good(w)));

    /* And a directory of found headers that goes. */
    from = kt_at(w->root, "inc2/sub/deep");
    to = kt_at(w->root, "inc2/sub/gone");
    assert_int_equal(rename(from, to), 0);
    w->rules.complete = true;
    assert_false(cw_same(cold, cw_find_good(w)));
}

static void K1_a_shadowing_header_in_memory_is_noticed(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    kiln_header headers[] = {{"unused.h", "1", 1}, {"b.h", "1", 1}};
    w->source.headers = headers;
    w->source.header_count = 1;
    answer cold = cw_find_good(w);
    assert_true(cw_find_good(w).facts.from_list);
    headers[0].text = "2";
    answer unused = cw_find_good(w);
    assert_true(unused.facts.from_list);
    assert_true(cw_same(cold, unused));
    w->source.header_count = 2;
    answer shadowed = cw_find_good(w);
    assert_false(shadowed.facts.from_list);
    assert_false(cw_find_good(w).facts.files_read == 0);
    headers[1].text = "2";
    answer changed = cw_find_good(w);
    assert_false(changed.facts.from_list);
    assert_false(cw_same(shadowed, changed));
    w->source.header_count = 0;
    assert_true(cw_same(cold, cw_find_good(w)));
}

static void K5_a_moved_tree_keeps_its_key(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer before = cw_find_good(w);

    /* Renamed: the header list still holds. */
    static const char *const parts[] = {"src", "inc", "inc2", "sys"};
    cw_write_text(w, "elsewhere/far/x", "");
    for (size_t i = 0; i < 4; i++) {
        char *from = kt_at(w->root, parts[i]);
        char name[64];
        (void)snprintf(name, sizeof name, "elsewhere/far/%s", parts[i]);
        char *to = kt_path(w->root, name);
        assert_int_equal(rename(from, to), 0);
        free(i == 0 ? w->dir : i == 3 ? w->system[0] : w->dirs[i - 1]);
        *(i == 0 ? &w->dir : i == 3 ? &w->system[0] : &w->dirs[i - 1]) = to;
    }
    w->request.dir = w->dir;
    answer moved = cw_find_good(w);
    assert_true(moved.facts.from_list);
    assert_true(cw_same(before, moved));

    /* Found again there: the same key. */
    w->request.cache = NULL;
    answer anew = cw_find_good(w);
    assert_false(anew.facts.from_list);
    assert_true(cw_same(before, anew));
}

static void the_shape_of_the_search_names_the_header_list(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    cw_add_dir(w, "inc3");
    answer wider = cw_find_good(w);
    assert_false(wider.facts.from_list);
    assert_true(cw_same(cold, wider));
    assert_true(cw_find_good(w).facts.from_list);
}

static kiln_recipe *list_recipe(const world *w, const char *stage)
{
    return cw_list_recipe(w, stage, "memory:0 folder:1 beside:1 complete:0 system:1 dirs:++");
}

static void plant_list(world *w, const void *data, size_t size)
{
    kiln_recipe *recipe = list_recipe(w, "kiln.manifest");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob;
    assert_int_equal(kiln_cache_get(w->cache, &key, &blob, NULL, NULL), KILN_OK);
    kiln_blob_release(blob);
    assert_int_equal(kiln_blob_create(data, size, NULL, 0, &blob, NULL), KILN_OK);
    assert_int_equal(kiln_cache_put(w->cache, recipe, blob, 0, NULL), KILN_OK);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* As on another machine: what it has is what travels. */
static void forget_own_list(world *w)
{
    kiln_recipe *recipe = list_recipe(w, "kiln.manifest");
    kiln_key key = kiln_recipe_key(recipe);
    kiln_status status = kiln_cache_remove(w->cache, &key, NULL);
    assert_true(status == KILN_OK || status == KILN_MISS); /* young stamps are not worth keeping */
    kiln_recipe_destroy(recipe);
}

static void a_list_of_another_machine_spares_the_walk(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    let_stamps_settle(w);
    forget_own_list(w);
    answer first = cw_find_good(w);
    assert_true(first.facts.from_list);
    assert_int_equal(first.facts.files_read, 4); /* compared, whatever their times say */
    assert_true(first.facts.save_pays);
    assert_true(cw_same(cold, first));
    answer second = cw_find_good(w);
    assert_int_equal(second.facts.files_read, 0);
    assert_true(cw_same(cold, second));
}

/* Sources that share headers have a list each; what one of them read serves the others. */
static void a_header_is_read_once_in_a_process(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    kn_header_memo *memo = kn_header_memo_create();
    assert_non_null(memo);
    w->request.memo = memo;
    answer cold = cw_find_good(w);
    forget_own_list(w);
    assert_int_equal(cw_find_good(w).facts.files_read, 4); /* too young to be believed again */
    let_stamps_settle(w);
    forget_own_list(w);
    assert_int_equal(cw_find_good(w).facts.files_read, 4);
    forget_own_list(w);
    answer known = cw_find_good(w);
    assert_true(known.facts.from_list);
    assert_int_equal(known.facts.files_read, 0);
    assert_true(known.facts.save_pays); /* the stamps are those of now, and kept */
    assert_true(cw_same(cold, known));
    assert_int_equal(cw_find_good(w).facts.files_read, 0);

    /* Size and mtime as before: ctime tells, and the header is read again. */
    cw_write_text(w, "inc2/b.h", "2");
    cw_set_mtime(w, "inc2/b.h", LONG_AGO);
    forget_own_list(w);
    answer changed = cw_find_good(w);
    assert_false(changed.facts.from_list);
    assert_false(cw_same(cold, changed));
    w->request.memo = NULL;
    kn_header_memo_destroy(memo);
}

/* Enough headers for several threads. */
static void K1_an_edit_of_one_header_among_many_is_seen(void **state)
{
    enum { MANY = 300 };
    world *w = *state;
    char text[MANY * 24];
    char name[32];
    size_t length = 0;
    cw_add_cache(w);
    cw_add_dir(w, "inc");
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "inc/h%d.h", i);
        cw_write_text(w, name, "1");
        cw_set_mtime(w, name, 1); /* a time that is never believed, however long the rest takes */
        length += (size_t)snprintf(text + length, sizeof text - length, "#include <h%d.h>\n", i);
    }
    cw_set_source(w, text);
    answer cold = cw_find_good(w);
    answer young = cw_find_good(w);
    assert_true(young.facts.from_list);
    assert_int_equal(young.facts.files_read, MANY);
    assert_true(cw_same(cold, young));
    for (int i = 0; i < MANY; i += 59) {
        (void)snprintf(name, sizeof name, "inc/h%d.h", i);
        cw_write_text(w, name, "2");
        assert_false(cw_same(cold, cw_find_good(w)));
        cw_write_text(w, name, "1");
        assert_true(cw_same(cold, cw_find_good(w)));
    }
}

static void K1_an_edit_is_seen_through_a_list_of_another_machine(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    for (size_t i = 0; i < 4; i++) {
        forget_own_list(w);
        char *path = kt_at(w->root, tree[i]);
        size_t size = 0;
        char *text = kt_file_read(path, &size);
        cw_write_text(w, tree[i], i == 0 ? "#include \"deep/d.H\"\n" : "2");
        answer edited = cw_find(w);
        assert_false(edited.facts.from_list);
        assert_false(cw_same(cold, edited));
        kt_file_write(path, text, size);
        free(text);
        assert_true(cw_same(cold, cw_find_good(w)));
    }
    forget_own_list(w);
    cw_write_text(w, "inc/b.h", "1\n"); /* shadows inc2/b.h */
    answer shadowed = cw_find_good(w);
    assert_false(shadowed.facts.from_list);
    assert_false(cw_same(cold, shadowed));
}

static void K5_what_travels_names_no_file_of_this_machine(void **state)
{
    world *w = *state;
    kiln_blob *before = NULL, *after = NULL;
    cw_add_cache(w);
    make_tree(w);
    (void)cw_find_good(w);
    kiln_recipe *recipe = list_recipe(w, "headers");
    kiln_key key = kiln_recipe_key(recipe);
    assert_int_equal(kiln_cache_get(w->cache, &key, &before, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_cache_remove(w->cache, &key, NULL), KILN_OK);
    forget_own_list(w);
    for (size_t i = 0; i < 4; i++) { /* the same content in other files */
        char *path = kt_at(w->root, tree[i]);
        size_t size = 0;
        char *text = kt_file_read(path, &size);
        cw_remove_file(w, tree[i]);
        kt_file_write(path, text, size);
        cw_set_mtime(w, tree[i], LONG_AGO + (time_t)i);
        free(text);
    }
    (void)cw_find_good(w);
    assert_int_equal(kiln_cache_get(w->cache, &key, &after, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_blob_size(before), kiln_blob_size(after));
    assert_memory_equal(kiln_blob_data(before), kiln_blob_data(after), kiln_blob_size(after));
    kiln_blob_release(before);
    kiln_blob_release(after);
    kiln_recipe_destroy(recipe);
}

static void K1_a_header_list_that_is_none_or_names_no_place_is_replaced(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    answer cold = cw_find_good(w);
    for (uint32_t base = KN_PLACE_MEMORY; base < KN_PLACE_BASES; base++) {
        plant_list(w, "garbage", 7);
        assert_true(cw_same(cold, cw_find_good(w)));
        assert_true(cw_find_good(w).facts.from_list);

        kn_header_list list;
        kn_header_list_init(&list);
        kn_header_list_header row = {
            .place = {.base = (kn_place_base)base, .index = 1000, .name_length = 3},
            .written_length = 3};
        assert_true(kn_header_list_add_name(&list, kn_span_of_text("a.h"), &row.place.name));
        if (base == KN_PLACE_SHIPS) {
            assert_true(kn_header_list_add_absent(&list, &row.place));
        } else {
            assert_true(kn_header_list_add_header(&list, &row));
        }
        kn_strbuf bytes;
        kn_strbuf_init(&bytes, 0);
        kn_header_list_write(&list, true, &bytes);
        plant_list(w, bytes.data, bytes.length);
        kn_strbuf_deinit(&bytes);
        kn_header_list_deinit(&list);
        answer anew = cw_find_good(w);
        assert_false(anew.facts.from_list);
        assert_true(cw_same(cold, anew));
    }
}

static void K1_an_edit_during_the_compile_is_seen(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    kiln_recipe *recipe = cw_first_recipe(w);
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
    cw_write_text(w, "sys/c.h", "2");
    assert_false(kn_closure_still_true(closure));
    assert_false(closure->save_pays);
    kn_closure_save(closure);
    kn_closure_destroy(closure);
    kiln_recipe_destroy(recipe);
    assert_false(cw_find_good(w).facts.from_list);
}

/* A branch is switched and switched back while the compiler runs: what it read is not known. */
static void K1_an_edit_that_is_taken_back_during_the_compile_is_seen(void **state)
{
    static const char *const names[] = {"src/a.h", "sys/c.h"};
    world *w = *state;
    cw_add_cache(w);
    make_tree(w);
    for (size_t i = 0; i < 4; i++) {
        kiln_recipe *recipe = cw_first_recipe(w);
        w->request.first = recipe;
        kn_closure *closure;
        assert_int_equal(kn_closure_find(&w->request, &closure, NULL), KILN_OK);
        assert_true(kn_closure_still_true(closure));
        char *path = kt_at(w->root, names[i % 2]);
        size_t size = 0;
        char *text = kt_file_read(path, &size);
        cw_write_text(w, names[i % 2], "other");
        kt_file_write(path, text, size);
        cw_set_mtime(w, names[i % 2], 1600000000 + (time_t)i);
        free(text);
        assert_false(kn_closure_still_true(closure));
        assert_false(closure->save_pays);
        kn_closure_destroy(closure);
        kiln_recipe_destroy(recipe);
        (void)cw_find_good(w); /* the next time around begins with a header list */
    }
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
    cw_write_text(w, "src/a.h", "#include \"../src/deep/d.h\"\n#include \"deep/d.h\"\n");
    assert_true(kt_failalloc_each(find_without_memory, w) > 20);
    cw_add_cache(w);
    assert_true(kt_failalloc_each(find_without_memory, w) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(K6_a_warm_start_reads_nothing),
        cw_test(K6_a_touch_changes_no_key),
        cw_test(K1_an_edit_that_is_taken_back_during_the_compile_is_seen),
        cw_test(K1_a_shadowing_file_is_noticed),
        cw_test(K1_a_dir_that_appears_is_noticed),
        cw_test(K1_a_shadowing_header_in_memory_is_noticed),
        cw_test(K5_a_moved_tree_keeps_its_key),
        cw_test(the_shape_of_the_search_names_the_header_list),
        cw_test(K1_a_header_list_that_is_none_or_names_no_place_is_replaced),
        cw_test(a_list_of_another_machine_spares_the_walk),
        cw_test(a_header_is_read_once_in_a_process),
        cw_test(K1_an_edit_of_one_header_among_many_is_seen),
        cw_test(K1_an_edit_is_seen_through_a_list_of_another_machine),
        cw_test(K5_what_travels_names_no_file_of_this_machine),
        cw_test(K1_an_edit_during_the_compile_is_seen),
        cw_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
