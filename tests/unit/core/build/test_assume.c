/* A source that reaches many headers: its program is read and loaded while they are looked at. What
 * they turn out to be decides, whatever was found first: keys, counters and results, never times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "headers/closure.h"
#include "support/unended.h"
#include "unit/core/rig.h"

enum { HEADERS = 120, TEXT = 8192 };

typedef struct tree {
    char text[TEXT];
    const char *dirs[1];
    kiln_source source;
} tree;

static void set_scale(rig *r, int scale)
{
    char text[64];
    char *path = kt_at(r->dir, "h0.inc");
    (void)snprintf(text, sizeof(text), "#define SCALE %d\n", scale);
    kt_file_write(path, text, strlen(text));
}

static void make_tree(rig *r, tree *t)
{
    size_t used = 0;
    for (int i = 0; i < HEADERS; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "h%d.inc", i);
        char *path = kt_at(r->dir, name);
        kt_file_write(path, "\n", 1);
        used += (size_t)snprintf(t->text + used, sizeof(t->text) - used, "#include \"%s\"\n", name);
    }
    (void)snprintf(t->text + used, sizeof(t->text) - used, "kernel value out:ints\nout = SCALE\n");
    set_scale(r, 3);
    t->dirs[0] = r->dir;
    t->source = rig_source(t->text);
    t->source.include_dirs = t->dirs;
    t->source.include_dir_count = 1;
}

/* What the program gives. */
static int value_of(rig *r, kiln_program *program)
{
    int32_t value = 0;
    rig_read_one(r, program, "value", &value, sizeof(value));
    return value;
}

/* Builds, runs, releases. */
static int build_value(rig *r, const tree *t, kiln_origin origin)
{
    kiln_program *program = rig_build(r, &t->source);
    const int value = value_of(r, program);
    assert_int_equal(kiln_program_get_info(program)->origin, origin);
    kiln_program_release(program);
    return value;
}

static void restart(rig *r)
{
    rig_close(r);
    rig_open(r, NULL);
}

static void a_warm_start_compiles_nothing(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    rig_open(r, NULL);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 3);
    for (int process = 0; process < 2; process++) {
        restart(r);
        assert_int_equal(build_value(r, &t, KILN_ORIGIN_DISK), 3);
        assert_int_equal(rig_stats(r).compiles, 0);
        assert_int_equal(rig_stats(r).misses, 0);
        assert_int_equal(rig_calls(r, FAKE_LOAD), 1);
    }
}

static void K1_a_header_that_changed_since_decides(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    rig_open(r, NULL);
    (void)build_value(r, &t, KILN_ORIGIN_COMPILED);
    restart(r);
    set_scale(r, 4);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 4);
    assert_int_equal(rig_calls(r, FAKE_LOAD), 1); /* of the old one, for nothing */
    assert_true(rig_calls(r, FAKE_UNLOAD) >= 1);
    restart(r);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_DISK), 4);
    set_scale(r, 3); /* both are kept */
    restart(r);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_DISK), 3);
    assert_int_equal(rig_stats(r).compiles, 0);
}

static void K1_a_header_that_appears_decides(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    char *before = kt_at(r->dir, "before");
    assert_int_equal(mkdir(before, 0700), 0);
    const char *dirs[] = {before, r->dir};
    t.source.include_dirs = dirs;
    t.source.include_dir_count = 2;
    rig_open(r, NULL);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 3);
    restart(r);
    char *path = kt_at(before, "h0.inc");
    kt_file_write(path, "#define SCALE 5\n", 16);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 5);
}

/* A program of this process is shared only if the headers still are those it was made of. */
static void K1_a_shared_program_is_checked_too(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    rig_open(r, NULL);
    kiln_program *first = rig_build(r, &t.source);
    kiln_program *same = rig_build(r, &t.source);
    assert_ptr_equal(first, same);
    set_scale(r, 4);
    kiln_program *other = rig_build(r, &t.source);
    assert_ptr_not_equal(first, other);
    assert_int_equal(value_of(r, other), 4);
    assert_int_equal(value_of(r, first), 3);
    kiln_program_release(first);
    kiln_program_release(same);
    kiln_program_release(other);
}

/* The entry is gone, its list of headers is not, and one of them changed: what is compiled must not
 * come under the key of what was. */
static void K1_nothing_is_compiled_on_an_assumption(void **state)
{
    rig *r = *state;
    tree t;
    bool there = true;
    make_tree(r, &t);
    rig_open(r, NULL);
    const kiln_key old = rig_key(r, &t.source, NULL);
    assert_int_equal(kiln_cache_remove(r->cache, &old, NULL), KILN_OK);
    restart(r);
    set_scale(r, 4);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 4);
    kiln_cache_contains(r->cache, &old, 1, &there);
    assert_false(there);
    restart(r);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_DISK), 4);
}

static void D4_a_refusal_of_what_was_assumed_is_made_again(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    rig_open(r, NULL);
    (void)build_value(r, &t, KILN_ORIGIN_COMPILED);
    rig_close(r);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject@1", 1), 0);
    set_scale(r, 4);
    rig_open(r, NULL);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 4);
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    restart(r);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_DISK), 4);
}

/* The entry that was assumed is barred, and another one is right. Of that one the driver's refusal
 * counts as one, and it goes. */
static void a_bar_on_what_was_assumed_is_on_nothing_else(void **state)
{
    rig *r = *state;
    tree t;
    make_tree(r, &t);
    rig_open(r, NULL);
    (void)build_value(r, &t, KILN_ORIGIN_COMPILED);
    rig_close(r);
    char *root = kt_at(r->dir, "cache");
    for (int loads = 0; loads < 2; loads++) {
        kt_end_in_load(root, "fake-0");
    }
    rig_open(r, NULL);
    set_scale(r, 4);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 4);
    set_scale(r, 3); /* the list of headers leads to the barred one again */
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 3);
    rig_close(r);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject@1", 1), 0);
    set_scale(r, 4);
    rig_open(r, NULL);
    assert_int_equal(build_value(r, &t, KILN_ORIGIN_COMPILED), 4);
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    assert_int_equal(rig_stats(r).rejected, 1);
    assert_int_equal(rig_stats(r).compiles, 1);
}

static void a_failed_build_leaves_no_thread(void **state)
{
    rig *r = *state;
    tree t;
    kiln_diag diag = KILN_DIAG_INIT;
    make_tree(r, &t);
    rig_open(r, NULL);
    (void)build_value(r, &t, KILN_ORIGIN_COMPILED);
    rig_close(r);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=nomem", 1), 0);
    rig_open(r, NULL);
    assert_int_equal(rig_try(r, &t.source, &diag), KILN_E_NOMEM);
    kiln_diag_clear(&diag);
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_warm_start_compiles_nothing),
        TEST(K1_a_header_that_changed_since_decides),
        TEST(K1_a_header_that_appears_decides),
        TEST(K1_a_shared_program_is_checked_too),
        TEST(K1_nothing_is_compiled_on_an_assumption),
        TEST(D4_a_refusal_of_what_was_assumed_is_made_again),
        TEST(a_bar_on_what_was_assumed_is_on_nothing_else),
        TEST(a_failed_build_leaves_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
