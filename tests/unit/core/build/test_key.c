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
    char *header = kt_at(r->dir, name);
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    header = kt_at(dir, "scale.inc");
    kt_file_write(header, "#define SCALE 3\n", 16);
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

static void edit_header(const request *q)
{
    char *path = kt_at(q->dirs[0], "scale.inc");
    kt_file_write(path, "#define SCALE 5\n", 16);
}

#define CHANGES(X)                                                                                 \
    X("the operator", q->text[strlen(q->text) - 2] = '+')                                          \
    X("a blank in the text", q->text[strlen(q->text) - 1] = ' ')                                   \
    X("value of a define", q->defines[0].value = "8")                                              \
    X("name of a define", q->defines[1].name = "OTHER_")                                           \
    X("a define gets a value", q->defines[1].value = "2")                                          \
    X("a define becomes empty", q->defines[1].value = "")                                          \
    X("order of defines", kiln_define first = q->defines[0]; q->defines[0] = q->defines[1];        \
      q->defines[1] = first)                                                                       \
    X("one define less", q->source.define_count = 1)                                               \
    X("an option", q->options[1] = "-level=3")                                                     \
    X("order of options", q->options[0] = "-level=2"; q->options[1] = "-fast")                     \
    X("one option more", q->options[2] = "-more"; q->source.option_count = 3)                      \
    X("an empty option more", q->options[2] = ""; q->source.option_count = 3)                      \
    X("the same letters framed otherwise", q->options[0] = "-fas"; q->options[1] = "t-level=2")    \
    X("options joined", q->options[0] = "-fast -level=2"; q->source.option_count = 1)              \
    X("an option becomes a define", q->defines[2] = (kiln_define){"-level" COMMA "2"};             \
      q->source.define_count = 3; q->source.option_count = 1)                                      \
    X("an entry", q->entries[0] = "other")                                                         \
    X("one entry more", q->entries[1] = "other"; q->source.entry_count = 2)                        \
    X("no entries", q->source.entry_count = 0)                                                     \
    X("a header in memory",                                                                        \
      q->headers[0] = (kiln_header){"scale.inc" COMMA "#define SCALE 4\n" COMMA 16};               \
      q->source.header_count = 1)                                                                  \
    X("a header on disk", edit_header(q))
#define COMMA ,

static const char *const changes[] = {"nothing",
#define NAME(name, ...) name,
                                      CHANGES(NAME)
#undef NAME
};
enum { CHANGE_COUNT = sizeof(changes) / sizeof(changes[0]) };

static void change_request(request *q, size_t number)
{
    size_t at = 0;
#define APPLY(name, ...)                                                                           \
    if (++at == number) {                                                                          \
        __VA_ARGS__;                                                                               \
    }
    CHANGES(APPLY)
#undef APPLY
}

static void K3_every_part_of_a_request_is_in_the_key(void **state)
{
    rig *r = *state;
    request q;
    kiln_key keys[CHANGE_COUNT];
    rig_open(r, NULL);
    make_request(r, &q, "include");
    /* kiln_compile gives the first stage's key through its blob only; the first stage is portable
     * and names all of this, so the number of compiles is asked as well. */
    for (size_t i = 0; i < CHANGE_COUNT; i++) {
        kn_build build;
        free_request(&q);
        make_request(r, &q, "include");
        change_request(&q, i);
        RIG_OK(kn_build_init(&build, r->cache, r->device->driver, &r->device->target, NULL,
                             &q.source, NULL, &diag));
        RIG_OK(kn_stage_key(&build, 0, &diag));
        keys[i] = build.runs[0].key;
        for (size_t k = 0; k < i; k++) {
            if (equal(keys[k], keys[i])) {
                fail_msg("%s: same key as %s", changes[i], changes[k]);
            }
        }
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
    char *from = kt_at(r->dir, "cache");
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
    edit_header(&q); /* the same size, within the same second */
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
