/* What the sources of one process save each other: headers that one has read are not read for the
 * next. The key must be what it is without the memo; the oracle is that, and files_read. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "headers/scan_record.h"
#include "support/failalloc.h"

/* Headers with all that a scan reports: includes, probes, definitions, computed includes, pieces.
 */
static const char *const tree[][2] = {
    {"inc/a.h", "#pragma once\n#include \"deep/d.h\"\n#include <b.h>\n#define WHICH <chosen.h>\n"},
    {"inc/deep/d.h", "#include MORE(x)\n#define MORE(x) \"e.h\"\n#undef GONE\n"},
    {"inc/deep/e.h", "#define JOIN(a, b) a ## b\nint e;\n"},
    {"inc2/b.h", "#if __has_include(<gone.h>)\n#endif\n#include WHICH\n"},
    {"inc2/chosen.h", "#import \"twin.h\"\nconst char *here = __FILE__;\n"},
    {"inc2/twin.h", "int twin;\n"},
    {"inc/twin.h", "int twin;\n"},
    {"sys/c.h", "#include_next <c.h>\n#define EMPTY\n"},
};
enum { FILES = sizeof tree / sizeof tree[0] };

static void make_tree(world *w)
{
    cw_add_dir(w, "inc");
    cw_add_dir(w, "inc2");
    cw_add_system(w, "sys");
    for (size_t i = 0; i < FILES; i++) {
        cw_write_text(w, tree[i][0], tree[i][1]);
        cw_set_mtime(w, tree[i][0], LONG_AGO);
    }
    w->names_root = true; /* __FILE__ */
    w->rules.complete = true;
    cw_let_settle();
}

static const char *const sources[] = {
    "#include <a.h>\nint one;\n",
    "#include <a.h>\nint two;\n",
    "#include <c.h>\n#include <a.h>\n",
    "#include <deep/d.h>\n#define WHICH <twin.h>\n#include <b.h>\n",
    "#include <deep/d.h>\n#include <b.h>\n",
    "#define MORE(x) <deep/e.h>\n#include <a.h>\nint two;\n",
    "#include \"a.h\"\n#include \"a.h\"\nint JOIN(__FI, LE__);\n",
};
enum { SOURCES = sizeof sources / sizeof sources[0] };

static void the_next_source_reads_no_header_again(void **state)
{
    world *w = *state;
    make_tree(w);
    answer alone[SOURCES];
    for (size_t i = 0; i < SOURCES; i++) {
        cw_set_source(w, sources[i]);
        alone[i] = cw_find(w);
        assert_true(alone[i].facts.files_read > 0);
    }
    w->request.memo = kn_header_memo_create();
    assert_non_null(w->request.memo);
    size_t read = 0;
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < SOURCES; i++) {
            cw_set_source(w, sources[i]);
            const answer found = cw_find(w);
            assert_true(cw_same(found, alone[i]));
            assert_string_equal(found.facts.reason, alone[i].facts.reason);
            assert_int_equal(found.facts.headers, alone[i].facts.headers);
            read += found.facts.files_read;
        }
    }
    assert_int_equal(read, FILES); /* each once */
    kn_header_memo_destroy(w->request.memo);
}

static void K1_an_edit_between_two_sources_is_seen(void **state)
{
    world *w = *state;
    make_tree(w);
    w->request.memo = kn_header_memo_create();
    cw_set_source(w, sources[0]);
    const answer before = cw_find_good(w);
    cw_write_text(w, "inc2/chosen.h", "#import \"twin.h\"\nconst char *hers = __FILE__;\n");
    cw_set_mtime(w, "inc2/chosen.h", LONG_AGO); /* ctime tells */
    const answer after = cw_find_good(w);
    assert_int_equal(after.facts.files_read, 1);
    assert_false(after.facts.from_walk);
    assert_false(cw_same(before, after));
    cw_write_text(w, "inc/gone.h", "");
    const answer appeared = cw_find_good(w);
    assert_false(appeared.facts.from_walk);
    assert_false(cw_same(after, appeared));
    cw_remove_file(w, "inc/gone.h");
    assert_true(cw_same(cw_find_good(w), after));
    kn_header_memo_destroy(w->request.memo);
}

/* C has no raw strings for certain, CUDA has: one reading does not serve the other. */
static void languages_that_read_differently_share_nothing(void **state)
{
    world *w = *state;
    make_tree(w);
    w->request.memo = kn_header_memo_create();
    cw_set_source(w, sources[0]);
    w->source.language = KILN_LANG_C;
    const answer c = cw_find_good(w);
    w->source.language = KILN_LANG_CUDA;
    const answer cuda = cw_find_good(w);
    assert_int_equal(c.facts.files_read, cuda.facts.files_read);
    kn_header_memo_destroy(w->request.memo);
}

/* A shape is the includes in their order; definitions count where an include is computed. What is
 * shared must give the key that the source has alone. */
static void sources_of_one_shape_share_a_walk(void **state)
{
    static const struct {
        const char *text;
        bool shared;
    } rows[] = {
        {"#include <a.h>\nint x;\n", false},
        {"#include <a.h>\nint y;\n", true},
        {"#include <a.h>\nconst char *name = __FILE__;\n", true},
        {"#include <a.h>\nint __FI ## LE__;\n", true},
        {"#include <a.h>\nint __TI ## ME__;\n", false},      /* a bypass */
        {"#define WHICH <twin.h>\n#include <a.h>\n", false}, /* a.h leads to a computed include */
        {"#define WHICH <twin.h>\n#include <a.h>\nint z;\n", true},
        {"#include \"a.h\"\n", false},
        {"#include <a.h>\n#if __has_include(<twin.h>)\n#endif\n", false},
        {"#include <twin.h>\n", false},
        {"#define WHICH <b.h>\n#include <twin.h>\n", true}, /* twin.h has none */
        {"#import <twin.h>\n", false},
        {"#include <twin.h>\n#include <a.h>\n", false},
        {"#include <a.h>\n#include <twin.h>\n", false},
    };
    world *w = *state;
    make_tree(w);
    kn_header_memo *memo = kn_header_memo_create();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cw_set_source(w, rows[i].text);
        w->request.memo = NULL;
        const answer alone = cw_find(w);
        w->request.memo = memo;
        const answer found = cw_find(w);
        assert_int_equal(found.facts.from_walk, rows[i].shared);
        assert_true(cw_same(found, alone));
        assert_string_equal(found.facts.reason, alone.facts.reason);
    }
    kn_header_memo_destroy(memo);
}

static void a_shape_is_of_one_language_and_search(void **state)
{
    world *w = *state;
    make_tree(w);
    w->request.memo = kn_header_memo_create();
    cw_set_source(w, "#include <a.h>\n");
    assert_false(cw_find_good(w).facts.from_walk);
    assert_true(cw_find_good(w).facts.from_walk);
    w->source.language = KILN_LANG_CUDA;
    assert_false(cw_find_good(w).facts.from_walk);
    w->rules.complete = false;
    assert_false(cw_find(w).facts.from_walk);
    w->rules.complete = true;
    cw_add_dir(w, "inc3");
    assert_false(cw_find_good(w).facts.from_walk);
    const kiln_header memory = {.name = "a.h", .text = "", .length = 0};
    w->source.headers = &memory;
    w->source.header_count = 1;
    assert_false(cw_find_good(w).facts.from_walk);
    assert_false(cw_find_good(w).facts.from_walk); /* and with headers in memory there is none */
    kn_header_memo_destroy(w->request.memo);
}

/* --- what a replay says ----------------------------------------------------------------------- */

static kiln_status say_event(void *user, const kn_scan_event *event)
{
    static const char *const kinds[] = {"include", "computed", "define", "undefine"};
    assert_true(event->kind != KN_SCAN_INCLUDE || event->text.data[event->text.length] == '\0');
    kn_strbuf_printf(user, "%s %d%d%d %u %.*s [%.*s] %d\n", kinds[event->kind], event->quoted,
                     event->next, event->probe, event->line, (int)event->text.length,
                     event->text.data, (int)(event->rest.data != NULL ? event->rest.length : 0),
                     event->rest.data != NULL ? event->rest.data : "",
                     event->kind == KN_SCAN_DEFINE && event->rest.data == NULL);
    return KILN_OK;
}

static void expect_replay(const char *text, bool stops)
{
    kn_strbuf told, again, plain;
    kn_pieces pieces[3] = {{.marks = 0}};
    kn_scan_stop stop[2];
    kn_scan_record *record = NULL;
    kn_strbuf *const logs[] = {&plain, &told, &again};
    kn_scan_reader readers[3];
    for (size_t i = 0; i < 3; i++) {
        kn_strbuf_init(logs[i], 0);
        readers[i] = (kn_scan_reader){say_event, logs[i], true, true, &pieces[i]};
    }
    const kn_span span = kn_span_of_text(text);
    assert_int_equal(kn_include_scan(span, true, &readers[0], &stop[0]), KILN_OK);
    assert_int_equal(kn_scan_record_make(span, true, &readers[1], &stop[1], &record), KILN_OK);
    assert_string_equal(kn_strbuf_text(&told), kn_strbuf_text(&plain));
    assert_true((record == NULL) == stops);
    assert_true((stop[1].why != NULL) == stops);
    if (record != NULL) {
        assert_int_equal(kn_scan_record_replay(record, &readers[2]), KILN_OK);
        assert_string_equal(kn_strbuf_text(&again), kn_strbuf_text(&plain));
        assert_memory_equal(&pieces[2], &pieces[0], sizeof pieces[0]);
        assert_int_equal(record->stop.names, stop[0].names);
        assert_int_equal(record->stop.once, stop[0].once);
        assert_int_equal(record->stop.imports, stop[0].imports);
        assert_int_equal(record->text_length, span.length);
    }
    kn_scan_record_destroy(record);
    for (size_t i = 0; i < 3; i++) {
        kn_strbuf_deinit(logs[i]);
    }
}

static void a_replay_reports_what_the_scan_did(void **state)
{
    char wide[3000];
    const int length = snprintf(wide, sizeof wide, "#define WIDE %2000d\n#include <x>\n", 1);
    assert_true(length > 2000);
    expect_replay("", false);
    expect_replay(wide, false);
    expect_replay("int x; asm(\".inc\" \"lude\"); const char *f = __FILE__;\n", false);
    expect_replay("#define A_HAS_INCLUDE(x) __has_include(x)\nint a ## b;\n", false);
    expect_replay("#include_next <x.h>\n#include N(1)\n#if __has_include(M)\n#endif\n", false);
    expect_replay("#include <a>\nint t = __TIME__;\n#include <b>\n", true);
    for (size_t i = 0; i < FILES; i++) {
        expect_replay(tree[i][1], false);
    }
    for (size_t i = 0; i < SOURCES; i++) {
        expect_replay(sources[i], false);
    }
}

static bool find_twice(void *user)
{
    world *w = user;
    bool good = true;
    w->request.memo = kn_header_memo_create();
    for (size_t i = 0; i < 2 && good; i++) {
        kn_closure *closure = NULL;
        kn_closure_request request = w->request;
        good = w->request.memo != NULL && kn_closure_find(&request, &closure, NULL) == KILN_OK;
        kn_closure_destroy(closure);
    }
    kn_header_memo_destroy(w->request.memo);
    return good;
}

static void every_allocation_may_fail(void **state)
{
    world *w = *state;
    make_tree(w);
    cw_set_source(w, sources[0]);
    assert_true(kt_failalloc_each(find_twice, w) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(the_next_source_reads_no_header_again),
        cw_test(K1_an_edit_between_two_sources_is_seen),
        cw_test(languages_that_read_differently_share_nothing),
        cw_test(sources_of_one_shape_share_a_walk),
        cw_test(a_shape_is_of_one_language_and_search),
        cw_test(a_replay_reports_what_the_scan_did),
        cw_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
