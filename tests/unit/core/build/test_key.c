/* What is in the key and what is not, one thing at a time (DESIGN section 4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file.h"
#include "unit/core/rig.h"

static const char scaled[] = "#include \"scale.inc\"\nkernel value out:ints\nout = VALUE SCALE *\n";

/* A request with something in every field, whose parts the tests change. */
typedef struct request {
    kiln_source source;
    char text[256];
    kiln_define defines[3];
    const char *options[3];
    const char *dirs[2];
    const char *entries[2];
    kiln_header headers[1];
} request;

static void make_request(rig *r, request *q, const char *name)
{
    char *dir = kt_path(r->dir, name);
    char *header = kt_path(r->dir, name);
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    free(header);
    header = kt_path(dir, "scale.inc");
    kt_file_write(header, "#define SCALE 3\n", 16);
    free(header);
    memset(q, 0, sizeof(*q));
    (void)snprintf(q->text, sizeof(q->text), "%s", scaled);
    q->source = rig_source(q->text);
    q->defines[0] = (kiln_define){"VALUE", "7"};
    q->defines[1] = (kiln_define){"OTHER", NULL};
    q->options[0] = "-fast";
    q->options[1] = "-level=2";
    q->dirs[0] = dir;
    q->entries[0] = "value";
    q->source.defines = q->defines;
    q->source.define_count = 2;
    q->source.options = q->options;
    q->source.option_count = 2;
    q->source.include_dirs = q->dirs;
    q->source.include_dir_count = 1;
    q->source.entries = q->entries;
    q->source.entry_count = 1;
    q->source.headers = q->headers;
}

static void free_request(request *q)
{
    free((void *)(uintptr_t)q->dirs[0]);
}

static bool equal(kiln_key a, kiln_key b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* --- what must change it ---------------------------------------------------------------------- */

typedef void change_fn(request *q);

static void change_text(request *q)
{
    q->text[strlen(q->text) - 2] = '+'; /* the operator */
}
static void change_text_by_a_blank(request *q)
{
    q->text[strlen(q->text) - 1] = ' ';
}
static void change_define_value(request *q)
{
    q->defines[0].value = "8";
}
static void change_define_name(request *q)
{
    q->defines[1].name = "OTHER_";
}
static void change_define_flag_to_value(request *q)
{
    q->defines[1].value = "2";
}
static void change_define_to_empty(request *q)
{
    q->defines[1].value = "";
}
static void change_define_order(request *q)
{
    kiln_define first = q->defines[0];
    q->defines[0] = q->defines[1];
    q->defines[1] = first;
}
static void change_define_count(request *q)
{
    q->source.define_count = 1;
}
static void change_option(request *q)
{
    q->options[1] = "-level=3";
}
static void change_option_order(request *q)
{
    q->options[0] = "-level=2";
    q->options[1] = "-fast";
}
static void change_option_count(request *q)
{
    q->options[2] = "-more";
    q->source.option_count = 3;
}
static void change_option_to_empty(request *q)
{
    q->options[2] = "";
    q->source.option_count = 3;
}
/* The same letters, framed otherwise. */
static void change_option_border(request *q)
{
    q->options[0] = "-fas";
    q->options[1] = "t-level=2";
}
static void change_options_joined(request *q)
{
    q->options[0] = "-fast -level=2";
    q->source.option_count = 1;
}
static void change_option_into_define(request *q)
{
    q->defines[2] = (kiln_define){"-level", "2"};
    q->source.define_count = 3;
    q->source.option_count = 1;
}
static void change_entry(request *q)
{
    q->entries[0] = "other";
}
static void change_entry_count(request *q)
{
    q->entries[1] = "other";
    q->source.entry_count = 2;
}
static void change_entries_to_none(request *q)
{
    q->source.entry_count = 0;
}
static void change_header_in_memory(request *q)
{
    q->headers[0] = (kiln_header){"scale.inc", "#define SCALE 4\n", 16};
    q->source.header_count = 1;
}
static void change_header_on_disk(request *q)
{
    char *path = kt_path(q->dirs[0], "scale.inc");
    kt_file_write(path, "#define SCALE 5\n", 16);
    free(path);
}

typedef struct change_row {
    const char *name;
    change_fn *change;
} change_row;

static void K3_every_part_of_a_request_is_in_the_key(void **state)
{
    static const change_row rows[] = {
#define ROW(name) {#name, name}
        ROW(change_text),
        ROW(change_text_by_a_blank),
        ROW(change_define_value),
        ROW(change_define_name),
        ROW(change_define_flag_to_value),
        ROW(change_define_to_empty),
        ROW(change_define_order),
        ROW(change_define_count),
        ROW(change_option),
        ROW(change_option_order),
        ROW(change_option_count),
        ROW(change_option_to_empty),
        ROW(change_option_border),
        ROW(change_options_joined),
        ROW(change_option_into_define),
        ROW(change_entry),
        ROW(change_entry_count),
        ROW(change_entries_to_none),
        ROW(change_header_in_memory),
        ROW(change_header_on_disk),
#undef ROW
    };
    rig *r = *state;
    request q;
    kiln_key keys[sizeof(rows) / sizeof(rows[0]) + 1];
    size_t count = 0;
    rig_open(r, NULL);
    make_request(r, &q, "include");
    /* kiln_compile gives the first stage's key through its blob only; the first stage is portable
     * and names all of this, so the number of compiles is asked as well. */
    for (size_t i = 0; i <= sizeof(rows) / sizeof(rows[0]); i++) {
        kn_build build;
        free_request(&q);
        make_request(r, &q, "include");
        if (i > 0) {
            rows[i - 1].change(&q);
        }
        RIG_OK(kn_build_init(&build, r->cache, r->device->driver, &r->device->target, NULL,
                             &q.source, NULL, &diag));
        RIG_OK(kn_stage_key(&build, 0, &diag));
        keys[count] = build.runs[0].key;
        for (size_t k = 0; k < count; k++) {
            if (equal(keys[k], keys[count])) {
                print_error("%s: same key as %s\n", i > 0 ? rows[i - 1].name : "base",
                            k > 0 ? rows[k - 1].name : "base");
                fail();
            }
        }
        count++;
        kn_build_deinit(&build);
    }
    free_request(&q);
}

/* K2, K7: identity of compiler, driver and device. */
typedef struct variable_row {
    const char *variable, *value;
    uint32_t compiles; /* stages that must be compiled again */
} variable_row;

static void K2_identity_is_in_the_key_of_the_stages_it_decides(void **state)
{
    static const variable_row rows[] = {
        {"KILN_FAKE_DRIVER", "1.1", 1},        /* a driver update redoes the driver's stage */
        {"KILN_FAKE_BUILD_ID", "0123abce", 2}, /* an upgrade with every version string equal */
        {"KILN_FAKE_CODEGEN", "fast", 2},
        {"KILN_FAKE_DEVICE", "Fake Processor II", 1},
    };
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    uint32_t compiles = 0;
    rig_open(r, NULL);
    kiln_key first = rig_key(r, &source, &compiles);
    assert_int_equal(compiles, 2);
    rig_close(r);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(setenv(rows[i].variable, rows[i].value, 1), 0);
        rig_open(r, NULL);
        assert_false(equal(first, rig_key(r, &source, &compiles)));
        assert_int_equal(compiles, rows[i].compiles);
        rig_close(r);
        assert_int_equal(unsetenv(rows[i].variable), 0);
    }
    /* And back: everything is still there. */
    rig_open(r, NULL);
    assert_true(equal(first, rig_key(r, &source, &compiles)));
    assert_int_equal(compiles, 0);
}

static void K7_devices_of_one_kind_are_told_apart(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    uint32_t compiles = 0;
    rig_open(r, NULL);
    kiln_key first = rig_key(r, &source, &compiles);
    r->device = kiln_runtime_device(r->runtime, 1);
    kiln_key second = rig_key(r, &source, &compiles);
    assert_false(equal(first, second));
    assert_int_equal(compiles, 1); /* the portable stage is shared */
}

static void K2_an_empty_variable_differs_from_none(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    rig_open(r, NULL);
    kiln_key first = rig_key(r, &source, NULL);
    assert_int_equal(setenv("KILN_FAKE_CODEGEN", "", 1), 0);
    assert_false(equal(first, rig_key(r, &source, NULL)));
}

/* --- what must not change it ------------------------------------------------------------------ */

static void K5_no_path_is_in_the_key(void **state)
{
    rig *r = *state;
    request q;
    request moved;
    uint32_t compiles = 0;
    rig_open(r, NULL);
    make_request(r, &q, "here");
    kiln_key key = rig_key(r, &q.source, &compiles);
    assert_int_equal(compiles, 2);
    rig_close(r);

    /* The tree, the source's own path and the working directory are others; so is the process. */
    char name[512];
    make_request(r, &moved, "there/deeper");
    (void)snprintf(name, sizeof(name), "%s/there/test.fake", r->dir);
    moved.source.name = name;
    rig_open(r, NULL);
    assert_true(equal(key, rig_key(r, &moved.source, &compiles)));
    assert_int_equal(compiles, 0);
    rig_close(r);

    /* The cache itself was moved. */
    char *from = kt_path(r->dir, "cache");
    char *to = kt_path(r->dir, "moved");
    assert_int_equal(rename(from, to), 0);
    kiln_cache_options options;
    RIG_OK(kiln_cache_options_init(&options, &diag));
    options.root = to;
    RIG_OK(kiln_cache_create(&options, &r->cache, &diag));
    kiln_runtime_options runtime_options;
    RIG_OK(kiln_runtime_options_init(&runtime_options, &diag));
    runtime_options.backend = "fake";
    runtime_options.cache = r->cache;
    RIG_OK(kiln_runtime_create(&runtime_options, &r->runtime, &diag));
    r->device = kiln_runtime_device(r->runtime, 0);
    assert_true(equal(key, rig_key(r, &moved.source, &compiles)));
    assert_int_equal(compiles, 0);
    free(from);
    free(to);
    free_request(&q);
    free_request(&moved);
}

static void irrelevant_things_are_not_in_the_key(void **state)
{
    rig *r = *state;
    request q;
    uint32_t compiles = 0;
    rig_open(r, NULL);
    make_request(r, &q, "include");
    kiln_key key = rig_key(r, &q.source, NULL);

    /* -DOTHER and -DOTHER=1 are one thing. */
    q.defines[1].value = "1";
    assert_true(equal(key, rig_key(r, &q.source, &compiles)));
    q.defines[1].value = NULL;
    /* An include dir in which nothing is found. */
    q.dirs[1] = r->dir;
    q.source.include_dir_count = 2;
    assert_true(equal(key, rig_key(r, &q.source, &compiles)));
    q.source.include_dir_count = 1;
    /* A name for messages. */
    q.source.name = "another name";
    assert_true(equal(key, rig_key(r, &q.source, &compiles)));
    /* A header in memory that nobody includes. */
    q.headers[0] = (kiln_header){"unused.inc", "x", 1};
    q.source.header_count = 1;
    assert_true(equal(key, rig_key(r, &q.source, &compiles)));
    q.source.header_count = 0;
    /* Variables that the backend does not name, options of the cache, strictness. */
    assert_int_equal(setenv("KILN_FAKE_OTHER", "x", 1), 0);
    assert_true(equal(key, rig_key(r, &q.source, &compiles)));
    assert_int_equal(compiles, 0);
    free_request(&q);
}

static void K1_a_changed_header_is_a_new_program(void **state)
{
    rig *r = *state;
    request q;
    uint32_t compiles = 0;
    rig_open(r, NULL);
    make_request(r, &q, "include");
    kiln_key first = rig_key(r, &q.source, NULL);
    change_header_on_disk(&q); /* the same size, within the same second */
    assert_false(equal(first, rig_key(r, &q.source, &compiles)));
    assert_int_equal(compiles, 2);
    free_request(&q);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(K3_every_part_of_a_request_is_in_the_key),
        TEST(K2_identity_is_in_the_key_of_the_stages_it_decides),
        TEST(K2_an_empty_variable_differs_from_none),
        TEST(K7_devices_of_one_kind_are_told_apart),
        TEST(K5_no_path_is_in_the_key),
        TEST(K1_a_changed_header_is_a_new_program),
        TEST(irrelevant_things_are_not_in_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
