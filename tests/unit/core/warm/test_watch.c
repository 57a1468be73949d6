/* Hot reload: an edited header gives another program; what does not compile keeps the old one and
 * is reported once; a file that comes to shadow another is noticed. */
#include "support/cmocka.h"
#include "unit/core/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <kiln/unstable/watch.h>

static void write_text(rig *r, const char *name, const char *text)
{
    char *path = kt_at(r->dir, name);
    char *dir = strdup(path);
    assert_non_null(dir);
    *strrchr(dir, '/') = '\0';
    (void)mkdir(dir, 0700);
    kt_file_write(path, text, strlen(text));
    free(dir);
}

static kiln_watch *open_watch(rig *r, char **out_path, char **out_dir)
{
    kiln_watch *watch = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    const char *dirs[1];
    *out_path = kt_path(r->dir, "src/main.fake");
    *out_dir = kt_path(r->dir, "inc");
    dirs[0] = *out_dir;
    source.language = KILN_LANG_FAKE;
    source.name = *out_path;
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    rig_open(r, NULL);
    RIG_OK(kiln_watch_create(r->device, &source, NULL, &watch, &diag));
    dirs[0] = "gone"; /* everything was copied */
    memset(&source, 0xFF, sizeof(source));
    return watch;
}

/* What kernel `f` of the watch's program puts into its buffer. */
static float result(rig *r, kiln_watch *watch)
{
    kiln_program *program = kiln_watch_program(watch);
    float value = -1;
    assert_non_null(program);
    rig_read_one(r, program, "f", &value, sizeof(value));
    kiln_program_release(program);
    return value;
}

static bool poll_fine(kiln_watch *watch)
{
    bool changed = false;
    RIG_OK(kiln_watch_poll(watch, &changed, &diag));
    return changed;
}

static void an_edited_header_gives_the_new_result(void **state)
{
    rig *r = *state;
    char *path = NULL;
    char *dir = NULL;
    write_text(r, "src/main.fake", "#include \"value.h\"\nkernel f y:floats\ny = V\n");
    write_text(r, "inc/value.h", "#define V 1\n");
    kiln_watch *watch = open_watch(r, &path, &dir);
    assert_null(kiln_watch_program(watch));
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 1);
    assert_true(kiln_watch_place_count(watch) >= 2);
    uint64_t compiles = rig_calls(r, FAKE_COMPILE);
    for (int i = 0; i < 3; i++) {
        assert_false(poll_fine(watch));
    }
    assert_int_equal(rig_calls(r, FAKE_COMPILE), compiles);
    write_text(r, "inc/value.h", "#define V 2\n"); /* of equal size */
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 2);
    write_text(r, "src/main.fake", "#include \"value.h\"\nkernel f y:floats\ny = V 10 *\n");
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 20);
    /* A header nearer to the source comes to shadow it. */
    write_text(r, "src/value.h", "#define V 7\n");
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 70);
    kiln_watch_destroy(watch);
    free(path);
    free(dir);
}

static void what_does_not_compile_keeps_the_old_program(void **state)
{
    rig *r = *state;
    char *path = NULL;
    char *dir = NULL;
    bool changed = true;
    kiln_diag diag = KILN_DIAG_INIT;
    write_text(r, "src/main.fake", "#include \"value.h\"\nkernel f y:floats\ny = V\n");
    write_text(r, "inc/value.h", "#define V nonsense\n");
    kiln_watch *watch = open_watch(r, &path, &dir);
    assert_int_equal(kiln_watch_poll(watch, &changed, &diag), KILN_E_COMPILE);
    assert_false(changed);
    assert_non_null(diag.log);
    assert_null(kiln_watch_program(watch));
    kiln_diag_clear(&diag);
    assert_false(poll_fine(watch)); /* reported once */
    write_text(r, "inc/value.h", "#define V 3\n");
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 3);

    write_text(r, "inc/value.h", "#define V other\n");
    assert_int_equal(kiln_watch_poll(watch, &changed, &diag), KILN_E_COMPILE);
    assert_non_null(strstr(diag.log, "other"));
    kiln_diag_clear(&diag);
    assert_true(result(r, watch) == 3);
    assert_false(poll_fine(watch));
    /* Back again: the old program, without a compile. */
    uint64_t compiles = rig_calls(r, FAKE_COMPILE);
    write_text(r, "inc/value.h", "#define V 3\n");
    assert_false(poll_fine(watch));
    assert_int_equal(rig_calls(r, FAKE_COMPILE), compiles);
    assert_true(result(r, watch) == 3);

    /* The source goes, as it does for a moment under some editors, and comes back. */
    assert_int_equal(remove(path), 0);
    assert_int_equal(kiln_watch_poll(watch, &changed, &diag), KILN_E_IO);
    kiln_diag_clear(&diag);
    assert_false(poll_fine(watch));
    assert_true(result(r, watch) == 3);
    write_text(r, "src/main.fake", "#include \"value.h\"\nkernel f y:floats\ny = V 1 +\n");
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 4);
    kiln_watch_destroy(watch);
    free(path);
    free(dir);
}

/* A source that bypasses the cache: each build is a compile and another program, so that polls
 * must not build while nothing changes. */
static void what_is_not_cached_is_not_compiled_at_every_poll(void **state)
{
    rig *r = *state;
    char *path = NULL;
    char *dir = NULL;
    write_text(r, "src/main.fake",
               "#include \"dated.h\"\n#include \"value.h\"\nkernel f y:floats\ny = V\n");
    write_text(r, "inc/dated.h", "#define WHEN __DATE__\n");
    write_text(r, "inc/value.h", "#define V 1\n"); /* not read: the walk ends before it */
    kiln_watch *watch = open_watch(r, &path, &dir);
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 1);
    const uint64_t compiles = rig_calls(r, FAKE_COMPILE);
    for (int i = 0; i < 20; i++) {
        (void)poll_fine(watch);
    }
    /* Once again at most: when the times of young files have become sure. */
    assert_between(rig_calls(r, FAKE_COMPILE), compiles, compiles + 1);
    write_text(r, "inc/value.h", "#define V 22\n");
    assert_true(poll_fine(watch));
    assert_true(result(r, watch) == 22);
    kiln_watch_destroy(watch);
    free(path);
    free(dir);
}

static void what_cannot_be_watched_is_refused(void **state)
{
    rig *r = *state;
    kiln_watch *watch = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    rig_open(r, NULL);
    source.language = KILN_LANG_FAKE;
    assert_int_equal(kiln_watch_create(r->device, &source, NULL, &watch, NULL), KILN_E_INVALID);
    source.name = "x.cu";
    source.language = KILN_LANG_CUDA;
    assert_int_equal(kiln_watch_create(r->device, &source, NULL, &watch, NULL), KILN_E_UNSUPPORTED);
    assert_null(watch);
    kiln_watch_destroy(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_edited_header_gives_the_new_result),
        TEST(what_does_not_compile_keeps_the_old_program),
        TEST(what_is_not_cached_is_not_compiled_at_every_poll),
        TEST(what_cannot_be_watched_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
