/* conformance BACKEND: runs the suite on one backend. Exit 77 with the reason if it is not here;
 * KILN_REQUIRE=BACKEND,... turns that into a failure. */
#include "conformance/suite.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "support/skip.h"

#ifndef KILN_CONFORMANCE_EXPECT
#define KILN_CONFORMANCE_EXPECT KILN_CONFORMANCE_DIR "/expect"
#endif

/* A backend that this program carries itself. */
#ifdef KILN_CONFORMANCE_REGISTER
#include <kiln/sys/backend.h>

extern const kiln_backend KILN_CONFORMANCE_REGISTER;

static kiln_status register_own(void)
{
    return kiln_backend_register(&KILN_CONFORMANCE_REGISTER, NULL);
}
#else
static kiln_status register_own(void)
{
    return KILN_OK;
}
#endif

#define EXPECTED_MAX 64

typedef struct expected_row {
    char name[128];
    char reason[256];
    bool used;
} expected_row;

static suite the_suite;
static expected_row expected[EXPECTED_MAX];
static size_t expected_count;

static void read_expected(const char *backend)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s.txt", KILN_CONFORMANCE_EXPECT, backend);
    char *text = kt_file_read(path, NULL);
    char *save = NULL;
    for (char *line = text != NULL ? strtok_r(text, "\n", &save) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *colon = strchr(line, ':');
        if (line[0] == '#' || line[strspn(line, " \t")] == '\0') {
            continue;
        }
        if (colon == NULL || colon[1 + strspn(colon + 1, " ")] == '\0' ||
            expected_count == EXPECTED_MAX) {
            (void)printf("%s: a line without a reason: %s\n", path, line);
            exit(1);
        }
        *colon = '\0';
        expected_row *row = &expected[expected_count++];
        (void)snprintf(row->name, sizeof(row->name), "%s", line);
        (void)snprintf(row->reason, sizeof(row->reason), "%s", colon + 1 + strspn(colon + 1, " "));
    }
    free(text);
}

static const char *why_left_out(const char *name)
{
    for (size_t i = 0; i < expected_count; i++) {
        if (strcmp(expected[i].name, name) == 0) {
            expected[i].used = true;
            return expected[i].reason;
        }
    }
    return NULL;
}

#define DEFINE_TEST(name)                                                                          \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        name((suite *)*state);                                                                     \
    }
SUITE_TESTS(DEFINE_TEST)
#undef DEFINE_TEST

/* Clears what the caller's environment would change in the suite. */
static void clean_environment(const char *cache)
{
    static const char *const names[] = {"KILN_BACKEND",        "KILN_DEVICE",  "KILN_STRICT",
                                        "KILN_NO_CACHE",       "KILN_RECACHE", "KILN_READONLY",
                                        "KILN_PACKS",          "KILN_REMOTE",  "KILN_FSYNC",
                                        "KILN_CACHE_MAX_SIZE", "KILN_FAKE",    "KILN_FAKE_FAULTS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unsetenv(names[i]);
    }
    (void)setenv("KILN_CACHE_DIR", cache, 1);
}

static void open_suite(suite *s)
{
    kiln_diag why = KILN_DIAG_INIT;
    kiln_runtime_options options;
    kiln_cache_options cache_options;
    OK(kiln_cache_options_init(&cache_options, &diag));
    OK(kiln_cache_create(&cache_options, &s->cache, &diag));
    OK(kiln_runtime_options_init(&options, &diag));
    options.backend = s->backend;
    options.strict = true;
    options.cache = s->cache;
    if (kiln_runtime_create(&options, &s->runtime, &why) != KILN_OK) {
        char line[1024];
        (void)kiln_diag_format(&why, line, sizeof(line));
        kiln_diag_clear(&why);
        kiln_cache_destroy(s->cache);
        kt_tmpdir_remove(s->dir);
        kn_test_skip(s->backend, line);
    }
    s->device = kiln_runtime_device(s->runtime, 0);
    OK(kiln_queue_create(s->device, &s->queue, &diag));
    s->basics = suite_build(s->device, "basics", NULL, 0, NULL);
    if (suite_has_main(s->device)) {
        static const kiln_define shape = {"KERNEL_SHAPE", NULL};
        static const kiln_define reverse = {"KERNEL_REVERSE", NULL};
        s->shape = suite_build(s->device, "basics", &shape, 1, NULL);
        s->reverse = suite_build(s->device, "basics", &reverse, 1, NULL);
    }
    (void)printf("%s\n", kiln_runtime_summary(s->runtime));
}

static int set_up(void **state)
{
    *state = &the_suite;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest all[] = {
#define TEST_ROW(name) {#name, test_##name, NULL, NULL, NULL},
        SUITE_TESTS(TEST_ROW)
#undef TEST_ROW
    };
    const size_t count = sizeof(all) / sizeof(all[0]);
    struct CMUnitTest chosen[sizeof(all) / sizeof(all[0])];
    size_t chosen_count = 0;
    int failed = 0;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: conformance BACKEND\n");
        return 2;
    }
    suite *s = &the_suite;
    s->backend = argv[1];
    s->dir = kt_tmpdir_create();
    char *cache = kt_at(s->dir, "cache");
    clean_environment(cache);
    read_expected(s->backend);
    if (register_own() != KILN_OK) {
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        const char *reason = why_left_out(all[i].name);
        if (reason != NULL) {
            (void)printf("left out: %s: %s\n", all[i].name, reason);
        } else {
            chosen[chosen_count] = all[i];
            chosen[chosen_count++].setup_func = set_up;
        }
    }
    for (size_t i = 0; i < expected_count; i++) {
        if (!expected[i].used) {
            (void)printf("expect/%s.txt names no test: %s\n", s->backend, expected[i].name);
            failed = 1;
        }
    }
    open_suite(s);
    failed += _cmocka_run_group_tests(s->backend, chosen, chosen_count, NULL, NULL);
    kiln_program_release(s->reverse);
    kiln_program_release(s->shape);
    kiln_program_release(s->basics);
    kiln_queue_destroy(s->queue);
    kiln_runtime_destroy(s->runtime);
    kiln_cache_destroy(s->cache);
    kt_tmpdir_remove(s->dir);
    return failed != 0;
}
