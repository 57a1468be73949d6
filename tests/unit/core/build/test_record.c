/* What a walk leaves in a recording: the program as its caller gave it, whether it was compiled or
 * found, once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/unstable/compile.h>

#include "record/recording.h"
#include "unit/core/rig.h"

/* A recording with its only use and the program of that. */
typedef struct only {
    kn_recording recording;
    kn_recorded program;
    char *bytes;
} only;

static char *recording_of(const rig *r)
{
    return kt_path(r->dir, "recorded");
}

static void rig_record(rig *r)
{
    char *path = recording_of(r);
    assert_int_equal(setenv("KILN_RECORD", path, 1), 0);
    free(path);
}

static size_t open_recording(const rig *r, only *out)
{
    char *path = recording_of(r);
    RIG_OK(kn_recording_open(path, &out->recording, &diag));
    free(path);
    assert_int_equal(out->recording.damaged, 0);
    assert_true(out->recording.use_count > 0);
    RIG_OK(kn_recording_program(&out->recording, out->recording.uses[0].program, &out->bytes,
                                &out->program, &diag));
    return out->recording.use_count;
}

static void close_recording(only *o)
{
    kn_recorded_deinit(&o->program);
    free(o->bytes);
    kn_recording_close(&o->recording);
}

static void expect_object(const only *o, const kn_object *object, const char *expected)
{
    char *text = NULL;
    RIG_OK(kn_object_get(o->recording.root, object, &text, &diag));
    assert_string_equal(text, expected);
    free(text);
}

static void expect_counters(const rig *r, uint64_t recorded, uint64_t unrecorded)
{
    assert_int_equal(rig_stats(r).recorded, recorded);
    assert_int_equal(rig_stats(r).unrecorded, unrecorded);
}

/* A source with everything that a caller may give, in a directory of its own. */
typedef struct given {
    char *name, *header, *dir;
    const char *dirs[1];
    kiln_define defines[1];
    kiln_header headers[1];
    kiln_source source;
} given;

static const char given_text[] =
    "#include \"beside.inc\"\n#include \"memory.inc\"\nkernel value out:ints\nout = SCALE\n";

static void make_given(rig *r, given *g)
{
    g->name = kt_path(r->dir, "a.fake");
    g->header = kt_path(r->dir, "beside.inc");
    g->dir = kt_path(r->dir, "nothing");
    kt_file_write(g->header, "#define SCALE 3\n", 16);
    g->dirs[0] = g->dir;
    g->defines[0] = (kiln_define){"UNUSED", "1"};
    g->headers[0] = (kiln_header){"memory.inc", "\n", 1};
    g->source = rig_source(given_text);
    g->source.name = g->name;
    g->source.include_dirs = g->dirs;
    g->source.include_dir_count = 1;
    g->source.defines = g->defines;
    g->source.define_count = 1;
    g->source.headers = g->headers;
    g->source.header_count = 1;
}

static void free_given(given *g)
{
    free(g->name);
    free(g->header);
    free(g->dir);
}

static void a_program_is_recorded_as_it_was_given(void **state)
{
    rig *r = *state;
    given g;
    only o;
    make_given(r, &g);
    rig_record(r);
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &g.source);
    kiln_program_release(program);
    expect_counters(r, 1, 0);
    assert_int_equal(open_recording(r, &o), 1);
    assert_string_equal(o.recording.uses[0].target, "fake:0");
    assert_true(o.recording.uses[0].compile_ns > 0);
    assert_int_equal(o.program.frontend, KN_FRONTEND_WALK);
    assert_int_equal(o.program.flags, 0);
    assert_int_equal(o.program.language, KILN_LANG_FAKE);
    assert_string_equal(o.program.name, g.name);
    assert_int_equal(o.program.text_count, 1);
    expect_object(&o, &o.program.texts[0].text, given_text);
    assert_int_equal(o.program.texts[0].header_count, 1);
    assert_string_equal(o.program.texts[0].headers[0].name, "memory.inc");
    expect_object(&o, &o.program.texts[0].headers[0].text, "\n");
    assert_int_equal(o.program.define_count, 1);
    assert_string_equal(o.program.defines[0].name, "UNUSED");
    assert_int_equal(o.program.include_dir_count, 1); /* not the source's own directory */
    assert_string_equal(o.program.include_dirs[0], g.dir);
    assert_int_equal(o.program.file_count, 1);
    assert_string_equal(o.program.files[0].path, g.header);
    expect_object(&o, &o.program.files[0].content, "#define SCALE 3\n");
    assert_string_equal(o.program.dir, ""); /* no path is relative */
    close_recording(&o);
    free_given(&g);
}

static void what_is_found_is_recorded_as_well(void **state)
{
    rig *r = *state;
    given g;
    only o;
    make_given(r, &g);
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &g.source));
    expect_counters(r, 0, 0);
    rig_close(r);
    rig_record(r);
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &g.source);
    assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_DISK);
    kiln_program_release(rig_build(r, &g.source)); /* it is loaded already */
    kiln_program_release(program);
    kiln_program_release(rig_build(r, &g.source)); /* from memory */
    expect_counters(r, 1, 0);
    rig_close(r);
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &g.source));
    expect_counters(r, 0, 0);
    assert_int_equal(open_recording(r, &o), 1);
    assert_true(o.recording.uses[0].compile_ns > 0); /* what it took when it was compiled */
    assert_int_equal(o.program.file_count, 1);
    close_recording(&o);
    free_given(&g);
}

/* With and without a device, through the same first stage: one use. */
static void a_compile_for_a_named_target_is_recorded(void **state)
{
    rig *r = *state;
    given g;
    only o;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    make_given(r, &g);
    rig_record(r);
    rig_open(r, NULL);
    RIG_OK(kiln_compile(r->runtime, "fake:native", &g.source, &blob, &origin, &diag));
    kiln_blob_release(blob);
    kiln_program_release(rig_build(r, &g.source));
    expect_counters(r, 1, 0);
    assert_int_equal(open_recording(r, &o), 1);
    assert_string_equal(o.recording.uses[0].target, "fake:0");
    close_recording(&o);
    free_given(&g);
}

static void relative_paths_are_recorded_with_the_current_directory(void **state)
{
    rig *r = *state;
    given g;
    only o;
    char before[4096];
    make_given(r, &g);
    g.dirs[0] = ".";
    g.source.name = "a.fake"; /* whose directory is not searched */
    rig_record(r);
    rig_open(r, NULL);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(r->dir), 0);
    char *dir = realpath(".", NULL);
    kiln_program *program = rig_build(r, &g.source);
    assert_int_equal(chdir(before), 0);
    kiln_program_release(program);
    assert_int_equal(open_recording(r, &o), 1);
    assert_string_equal(o.program.dir, dir);
    assert_string_equal(o.program.files[0].path, "./beside.inc");
    assert_string_equal(o.program.name, "a.fake");
    close_recording(&o);
    free(dir);
    free_given(&g);
}

/* A long list is looked at while the program is loaded: what is recorded is what it turned out to
 * be. */
static void an_optimistic_walk_is_recorded(void **state)
{
    enum { HEADERS = 120 };
    rig *r = *state;
    only o;
    char text[8192] = "";
    size_t used = 0;
    const char *dirs[] = {r->dir};
    for (int i = 0; i < HEADERS; i++) {
        char name[32], content[HEADERS];
        (void)snprintf(name, sizeof(name), "h%d.inc", i);
        memset(content, '\n', sizeof(content));
        char *path = kt_at(r->dir, name);
        kt_file_write(path, content, (size_t)i + 1);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "#include \"%s\"\n", name);
    }
    (void)snprintf(text + used, sizeof(text) - used, "kernel value out:ints\nout = 1\n");
    kiln_source source = rig_source(text);
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &source));
    rig_close(r);
    rig_record(r);
    rig_open(r, NULL);
    kiln_program_release(rig_build(r, &source));
    expect_counters(r, 1, 0);
    assert_int_equal(open_recording(r, &o), 1);
    assert_int_equal(o.program.file_count, HEADERS);
    expect_object(&o, &o.program.files[7].content, "\n\n\n\n\n\n\n\n");
    close_recording(&o);
}

/* Neither would be found again. */
static void what_has_no_entry_is_not_recorded(void **state)
{
    rig *r = *state;
    kiln_program *program = NULL;
    const kiln_build_options only_found = {.struct_size = sizeof(only_found), .cache_only = true};
    kiln_source source = rig_source("nonsense\n");
    char *path = recording_of(r);
    rig_record(r);
    rig_open(r, NULL);
    assert_int_equal(rig_try(r, &source, NULL), KILN_E_COMPILE);
    source = rig_source("#define WHEN __DATE__\nkernel value out:ints\nout = 1\n");
    (void)rig_try(r, &source, NULL);
    assert_int_equal(rig_stats(r).bypassed, 1);
    source = rig_source(rig_saxpy);
    assert_int_equal(kiln_program_build(r->device, &source, 1, &only_found, &program, NULL),
                     KILN_MISS);
    expect_counters(r, 0, 0);
    assert_false(kt_file_exists(path));
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_recorded_as_it_was_given),
        TEST(what_is_found_is_recorded_as_well),
        TEST(a_compile_for_a_named_target_is_recorded),
        TEST(relative_paths_are_recorded_with_the_current_directory),
        TEST(an_optimistic_walk_is_recorded),
        TEST(what_has_no_entry_is_not_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
