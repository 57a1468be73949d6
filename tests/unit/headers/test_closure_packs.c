/* Header lists in packs: what the process knows of the headers spares a source its own list, and
 * hides no edit. Keys are compared, and counters; never times. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "kiln/unstable/counters.h"
#include "kiln/unstable/pack.h"
#include "support/tmpdir.h"

static const char first_text[] = "#include \"a.h\"\n#include <b.h>\n#include <c.h>\nint first;\n";
static const char second_text[] = "#include \"a.h\"\n#include <b.h>\n#include <c.h>\nint second;\n";
static const char *const headers[] = {"src/a.h", "src/deep/d.h", "inc2/b.h", "sys/c.h"};
enum { HEADERS = sizeof headers / sizeof headers[0] };

static void settle_headers(world *w)
{
    for (size_t i = 0; i < HEADERS; i++) {
        cw_set_mtime(w, headers[i], LONG_AGO);
    }
    cw_let_settle();
}

static void open_cache(world *w, const char *name, const char *packs)
{
    kiln_cache_options options;
    kiln_cache_destroy(w->cache);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    char *root = kt_path(w->root, name);
    options.root = root;
    options.packs = packs;
    options.flags = 0;
    options.no_fsync = true;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    free(root);
    w->request.cache = w->cache;
}

static answer find_of(world *w, const char *text)
{
    cw_set_source(w, text);
    return cw_find_good(w);
}

/* Two sources with the same headers, whose lists a pack has; the cache next to it is empty. */
static void make_packed_of(world *w, const char *one, const char *other)
{
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof copied};
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_add_system(w, "sys");
    cw_write_text(w, "src/a.h", "#include \"deep/d.h\"\n");
    cw_write_text(w, "src/deep/d.h", "1");
    cw_write_text(w, "inc2/b.h", "1");
    cw_write_text(w, "sys/c.h", "1");
    open_cache(w, "made", NULL);
    (void)find_of(w, one);
    (void)find_of(w, other);
    char *pack = kt_at(w->root, "all.kpack");
    assert_int_equal(kiln_pack_writer_create(pack, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, w->cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    open_cache(w, "next", pack);
    w->request.memo = kn_header_memo_create();
    assert_non_null(w->request.memo);
    settle_headers(w);
}

static void make_packed(world *w)
{
    make_packed_of(w, first_text, second_text);
}

static void forget_headers(world *w)
{
    kn_header_memo_destroy(w->request.memo);
    w->request.memo = NULL;
}

static uint64_t puts_of(const world *w)
{
    return kiln_cache_counter(w->cache, KILN_COUNTER_PUT_BYTES);
}

static void a_packed_list_will_do_where_its_headers_are_known(void **state)
{
    world *w = *state;
    make_packed(w);
    const answer first = find_of(w, first_text);
    assert_true(first.facts.from_list);
    assert_int_equal(first.facts.files_read, HEADERS);
    assert_false(
        first.facts.save_pays); /* to read these few again takes less than to write a list */

    const uint64_t written = puts_of(w);
    const answer second = find_of(w, second_text);
    assert_true(second.facts.from_list);
    assert_int_equal(second.facts.headers, HEADERS);
    assert_int_equal(second.facts.files_read, 0);
    assert_false(second.facts.save_pays);
    assert_int_equal(puts_of(w), written);
    assert_false(cw_same(first, second));

    /* Another process: one source reads the headers for all. */
    forget_headers(w);
    const answer alone = find_of(w, second_text);
    assert_int_equal(alone.facts.files_read, HEADERS);
    assert_true(cw_same(second, alone));
    w->request.memo = kn_header_memo_create();
    assert_int_equal(find_of(w, first_text).facts.files_read, HEADERS);
    assert_int_equal(find_of(w, second_text).facts.files_read, 0);
    assert_true(cw_same(second, find_of(w, second_text)));
    forget_headers(w);
}

/* What this machine's own list says of many headers does as well, and spares the next process
 * reading them. */
static void a_long_packed_list_is_kept(void **state)
{
    enum { MANY = 20 };
    world *w = *state;
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "inc2/many%d.h", i);
        cw_write_text(w, name, "1");
        kn_strbuf_printf(&text, "#include <many%d.h>\n", i);
    }
    make_packed_of(w, kn_strbuf_text(&text), second_text);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "inc2/many%d.h", i);
        cw_set_mtime(w, name, LONG_AGO);
    }
    cw_let_settle();
    const answer first = find_of(w, kn_strbuf_text(&text));
    assert_int_equal(first.facts.files_read, MANY);
    assert_true(first.facts.save_pays);
    forget_headers(w);
    w->request.memo = kn_header_memo_create();
    const answer next = find_of(w, kn_strbuf_text(&text));
    assert_int_equal(next.facts.files_read, 0);
    assert_true(cw_same(first, next));
    kn_strbuf_deinit(&text);
    forget_headers(w);
}

static void K1_an_edit_is_seen_through_a_packed_list(void **state)
{
    world *w = *state;
    make_packed(w);
    (void)find_of(w, first_text);
    const answer before = find_of(w, second_text);
    assert_int_equal(before.facts.files_read, 0);

    /* mtime put back, size kept. */
    cw_write_text(w, "inc2/b.h", "2");
    cw_set_mtime(w, "inc2/b.h", LONG_AGO);
    const answer edited = find_of(w, second_text);
    assert_false(edited.facts.from_list);
    assert_false(cw_same(before, edited));
    cw_write_text(w, "inc2/b.h", "1");
    assert_true(cw_same(before, find_of(w, second_text)));

    /* One that is found before it, and one that is not there. */
    cw_write_text(w, "inc/b.h", "3");
    const answer shadowed = find_of(w, second_text);
    assert_false(shadowed.facts.from_list);
    assert_false(cw_same(before, shadowed));
    cw_remove_file(w, "inc/b.h");
    assert_true(cw_same(before, find_of(w, second_text)));
    cw_remove_file(w, "src/deep/d.h");
    assert_true(cw_find(w).facts.bypass || !cw_same(before, cw_find(w)));
    forget_headers(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(a_packed_list_will_do_where_its_headers_are_known),
        cw_test(a_long_packed_list_is_kept),
        cw_test(K1_an_edit_is_seen_through_a_packed_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
