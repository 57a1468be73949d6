/* kiln/opencl.h with PoCL's way of giving binaries: read after the launches, in calls that the
 * program makes. On a fake driver that counts: S a build from source, B a load from a binary, G a
 * binary read. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/dropin/kept.h"
#include "base/strbuf.h"
#include "kiln/unstable/admin.h"
#include "kiln/unstable/pocl.h"
#include "kiln/unstable/probe.h"
#include "support/counters.h"
#include "support/tmpdir.h"
#include "sys/thread.h"
#include "unit/dropin/opencl_rig.h"

/* --- in the child: WORD KERNELS MARK ---------------------------------------------------------- */

typedef struct client {
    rig_client rig; /* first */
    kn_strbuf text;
} client;

static bool client_open(client *c, int kernels, const char *mark)
{
    kn_strbuf_init(&c->text, 0);
    kn_strbuf_printf(&c->text, "// %s\n", mark);
    for (int i = 0; i < kernels; i++) {
        kn_strbuf_printf(&c->text, "__kernel void k%d(void) {}\n", i);
    }
    return rig_open(&c->rig);
}

static kiln_status build_in(client *c, kiln_cache *cache, cl_program *out_program)
{
    return kiln_opencl_build_program(cache, c->rig.context, c->rig.devices[0],
                                     kn_strbuf_text(&c->text), "-DA", out_program, NULL);
}

static kiln_status build(client *c, cl_program *out_program)
{
    return build_in(c, c->rig.cache, out_program);
}

static kiln_status build_in_thread(rig_client *rig, const char *options, cl_program *out_program)
{
    (void)options;
    return build((client *)rig, out_program);
}

static void say(const client *c, kiln_status status)
{
    kt_counters stats;
    kt_counters_own(c->rig.cache, &stats);
    (void)printf("%s disk=%llu compiles=%llu failures=%llu bypassed=%llu reads=%u\n",
                 kiln_status_name(status), (unsigned long long)stats.hits_disk,
                 (unsigned long long)stats.compiles, (unsigned long long)stats.compile_failures,
                 (unsigned long long)stats.bypassed, child_count_calls('G'));
}

/* --- the clock of the budget, which can be set forward ---------------------------------------- */

uint64_t __real_kn_opencl_budget_now(void);
uint64_t __wrap_kn_opencl_budget_now(void);

static uint64_t later_by_ns;

uint64_t __wrap_kn_opencl_budget_now(void)
{
    return __real_kn_opencl_budget_now() + later_by_ns;
}

/* --- another thread's whole build after a build has looked for kept programs ------------------ */

bool __real_kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key);
bool __wrap_kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key);

static _Atomic(client *) overtaken; /* whose next build is overtaken by another of the same */
static bool overtaker_captures;

typedef struct overtaker {
    client *c;
    cl_program program;
} overtaker;

static void build_and_maybe_capture(void *user)
{
    overtaker *b = (overtaker *)user;
    if (build(b->c, &b->program) == KILN_OK && overtaker_captures) {
        (void)!kiln_opencl_capture_program(b->c->rig.cache, b->program, NULL);
    }
}

bool __wrap_kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key)
{
    const bool waits = __real_kn_opencl_kept_waits(cache, key);
    overtaker other = {atomic_exchange(&overtaken, NULL), NULL};
    kn_thread *thread = NULL;
    if (other.c == NULL) {
        return waits;
    }
    if (kn_thread_start(build_and_maybe_capture, &other, &thread, NULL) == KILN_OK) {
        kn_thread_join(thread);
    }
    if (other.program != NULL) {
        (void)other.c->rig.api.clReleaseProgram(other.program);
    }
    return waits;
}

static kiln_status build_overtaken(client *c, bool captured, cl_program *out_program)
{
    overtaker_captures = captured;
    atomic_store(&overtaken, c);
    return build(c, out_program);
}

static unsigned references(const client *c, cl_program program)
{
    cl_uint count = 0;
    (void)c->rig.api.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(count), &count,
                                      NULL);
    return count;
}

static void capture_twice(client *c, cl_program program)
{
    for (int i = 0; i < 2; i++) {
        kiln_status status = kiln_opencl_capture_program(c->rig.cache, program, NULL);
        (void)printf("%s reads=%u\n", kiln_status_name(status), child_count_calls('G'));
    }
}

/* What is stored and released is dropped with the next build; what is not stored waits. */
static void release_and_build(client *c, cl_program *program, bool stored)
{
    cl_program old = *program;
    (void)c->rig.api.clRetainProgram(old);
    if (stored && kiln_opencl_capture_program(c->rig.cache, old, NULL) != KILN_OK) {
        return;
    }
    (void)c->rig.api.clReleaseProgram(old);
    (void)c->rig.api.clReleaseProgram(old); /* kiln's own is left */
    kn_strbuf_append_text(&c->text, "// another\n");
    if (build(c, program) == KILN_OK) {
        (void)printf("%s\n", kiln_opencl_capture_program(c->rig.cache, old, NULL) == KILN_MISS
                                 ? "dropped"
                                 : "kept");
    }
}

/* Two more, each with a kernel more than the one before. */
static kiln_status build_larger(client *c, int kernels)
{
    kiln_status status = KILN_OK;
    for (int i = 0; status == KILN_OK && i < 2; i++) {
        cl_program program = NULL;
        kn_strbuf_printf(&c->text, "__kernel void k%d(void) {}\n", kernels + i);
        status = build(c, &program);
        if (program != NULL) {
            (void)c->rig.api.clReleaseProgram(program);
        }
    }
    return status;
}

static int child(const char *word, int kernels, const char *mark)
{
    client c;
    cl_program program = NULL;
    if (!client_open(&c, kernels, mark)) {
        return 1;
    }
    kiln_status status = KILN_OK;
    if (strcmp(word, "threads") == 0) {
        status = rig_build_in_threads(&c.rig, build_in_thread, "");
    } else if (strncmp(word, "overtaken", 9) == 0) {
        status = build_overtaken(&c, strcmp(word, "overtaken-captured") == 0, &program);
    } else {
        status = build_in(&c, strcmp(word, "default") == 0 ? NULL : c.rig.cache, &program);
    }
    /* "after-MS": the cache goes so long after several builds. */
    later_by_ns = strncmp(word, "after-", 6) == 0 ? strtoull(word + 6, NULL, 10) * 1000000 : 0;
    if (status == KILN_OK && later_by_ns > 0) {
        status = build_larger(&c, kernels);
    }
    say(&c, status);
    if (strcmp(word, "capture") == 0) {
        capture_twice(&c, program);
    } else if (strcmp(word, "count") == 0) {
        (void)printf("references=%u\n", references(&c, program));
    } else if (strcmp(word, "waits") == 0 || strcmp(word, "stored") == 0) {
        release_and_build(&c, &program, strcmp(word, "stored") == 0);
    }
    if (program != NULL) {
        (void)c.rig.api.clReleaseProgram(program);
    }
    kn_strbuf_deinit(&c.text);
    if (strcmp(word, "abandon") != 0) {
        kiln_cache_destroy(c.rig.cache);
    }
    kn_dylib_retire(c.rig.lib);
    (void)printf("reads=%u\n", child_count_calls('G'));
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static const char *setting = "KILN_LOG=info";

static void start(void **state, const char *word, const char *kernels, const char *mark)
{
    char tsan[4200];
    const char *options = getenv("TSAN_OPTIONS");
    /* One of them leaves with threads that run, and a cache that nobody frees. */
    (void)snprintf(tsan, sizeof(tsan), "TSAN_OPTIONS=%s:report_thread_leaks=0",
                   options != NULL ? options : "");
    const char *argv[] = {NULL, word, kernels, mark, NULL};
    const char *const settings[] = {tsan, "KILN_LOG=info", setting, "ASAN_OPTIONS=detect_leaks=0",
                                    NULL};
    assert_int_equal(child_run((const char *)*state, argv, settings), 0);
}

static void expect(void **state, const char *word, const char *kernels, const char *whole)
{
    start(state, word, kernels, "-");
    assert_string_equal(child_last.output, whole);
}

#define COMPILED "KILN_OK disk=0 compiles=1 failures=0 bypassed=0 reads=0\n"
#define FOUND "KILN_OK disk=1 compiles=0 failures=0 bypassed=0 reads=0\n"

static void capture_at_end(bool wanted)
{
    assert_int_equal(wanted ? setenv("KILN_CAPTURE", "1", 1) : unsetenv("KILN_CAPTURE"), 0);
}

/* K13: PoCL would compile all its kernels, at the second start and the third as at the first. */
static void what_takes_long_is_read_for_who_asks_for_it(void **state)
{
    for (int i = 0; i < 3; i++) {
        expect(state, "build", "8", COMPILED "reads=0\n");
        assert_non_null(strstr(child_last.errors, "not stored: 1."));
        assert_non_null(strstr(child_last.errors, "KILN_CAPTURE=1"));
    }
    capture_at_end(true);
    expect(state, "build", "8", COMPILED "reads=1\n");
    assert_null(strstr(child_last.errors, "not stored"));
    capture_at_end(false);
    expect(state, "build", "8", FOUND "reads=0\n");
}

/* However many kernels it has. */
static void a_large_program_is_read_on_request(void **state)
{
    expect(state, "build", "9", COMPILED "reads=0\n");
    assert_non_null(strstr(child_last.errors, "kiln_opencl_capture_program"));
    expect(state, "capture", "9", COMPILED "KILN_OK reads=1\nKILN_OK reads=2\nreads=2\n");
    expect(state, "build", "9", FOUND "reads=0\n");
    capture_at_end(true);
    expect(state, "build", "20", COMPILED "reads=1\n");
    capture_at_end(false);
}

/* Three programs of one, two and three kernels, each of which is taken for a quarter of a second:
 * a fiftieth of the time is for the smallest first. What a read of this driver really takes is next
 * to nothing, so that the others are let in by what the first has shown. */
static void the_end_reads_what_the_time_is_worth(void **state)
{
    expect(state, "after-12000", "1",
           "KILN_OK disk=0 compiles=3 failures=0 bypassed=0 reads=0\nreads=0\n");
    expect(state, "after-13000", "1",
           "KILN_OK disk=0 compiles=3 failures=0 bypassed=0 reads=0\nreads=3\n");
    expect(state, "after-1", "1",
           "KILN_OK disk=3 compiles=0 failures=0 bypassed=0 reads=0\nreads=0\n");
}

/* Half a second each, twice what was expected: one is all that 13 s are worth. */
static void a_read_that_took_longer_ends_the_reads(void **state)
{
    static const unsigned reads[] = {1, 0, 0};
    for (unsigned i = 0; i < 3; i++) {
        char whole[128];
        (void)snprintf(whole, sizeof(whole),
                       "KILN_OK disk=%u compiles=%u failures=0 bypassed=0 reads=0\nreads=%u\n",
                       i > 0 ? 1 : 0, i > 0 ? 2 : 3, reads[i]);
        start(state, "after-13000", "1", "slowly read");
        assert_string_equal(child_last.output, whole);
        assert_non_null(strstr(child_last.errors, "not stored: 2."));
    }
}

static void a_program_from_the_cache_can_be_captured(void **state)
{
    expect(state, "capture", "2", COMPILED "KILN_OK reads=1\nKILN_OK reads=2\nreads=2\n");
    expect(state, "capture", "2", FOUND "KILN_OK reads=1\nKILN_OK reads=2\nreads=2\n");
}

static void with_the_default_cache_a_program_is_read_for_who_asks_for_it(void **state)
{
    static const char none[] = "KILN_OK disk=0 compiles=0 failures=0 bypassed=0 reads=0\nreads=0\n";
    expect(state, "default", "8", none);
    expect(state, "default", "8", none);
    capture_at_end(true);
    expect(state, "default", "8",
           "KILN_OK disk=0 compiles=0 failures=0 bypassed=0 reads=1\nreads=1\n");
    capture_at_end(false);
    expect(state, "build", "8", FOUND "reads=0\n");
}

static void threads_count_one_compile_and_no_bypass(void **state)
{
    expect(state, "threads", "3", COMPILED "reads=0\n");
    capture_at_end(true);
    expect(state, "threads", "3", COMPILED "reads=1\n");
    capture_at_end(false);
    expect(state, "threads", "20", COMPILED "reads=0\n");
}

/* The one that looked before the other had compiled asks for the same again before it compiles:
 * it finds the kept program, or what has been stored of it. */
static void a_build_that_another_overtakes_is_no_second_compile(void **state)
{
    expect(state, "overtaken", "3", COMPILED "reads=0\n");
    expect(state, "overtaken", "20", COMPILED "reads=0\n");
    expect(state, "overtaken-captured", "21",
           "KILN_OK disk=0 compiles=1 failures=0 bypassed=0 reads=1\nreads=1\n");
}

static void D11_a_binary_that_cannot_be_read_fails_nothing(void **state)
{
    capture_at_end(true);
    for (int i = 0; i < 2; i++) {
        start(state, "build", "2", "unreadable");
        assert_string_equal(child_last.output, COMPILED "reads=1\n");
        assert_non_null(strstr(child_last.errors, "CL_OUT_OF_RESOURCES"));
    }
    capture_at_end(false);
    start(state, "capture", "20", "unreadable");
    assert_string_equal(child_last.output,
                        COMPILED "KILN_E_NOMEM reads=1\nKILN_E_NOMEM reads=2\nreads=2\n");
}

static void a_process_that_does_not_destroy_its_cache_stores_nothing(void **state)
{
    capture_at_end(true);
    expect(state, "abandon", "2", COMPILED "reads=0\n");
    expect(state, "build", "2", COMPILED "reads=1\n");
    expect(state, "abandon", "2", FOUND "reads=0\n");
    capture_at_end(false);
}

static void a_program_is_held_until_it_is_stored_and_released(void **state)
{
    expect(state, "count", "2", COMPILED "references=2\nreads=0\n");
    start(state, "waits", "3", "-");
    assert_non_null(strstr(child_last.output, "kept\n"));
    start(state, "stored", "4", "-");
    assert_non_null(strstr(child_last.output, "dropped\n"));
}

/* A cache that is only read, or off: PoCL would compile all kernels for nobody. */
static void nothing_is_read_that_nobody_keeps(void **state)
{
    static const char *const settings[] = {"KILN_READONLY=1", "KILN_NO_CACHE=1"};
    capture_at_end(true);
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        setting = settings[i];
        expect(state, "build", "8", COMPILED "reads=0\n");
        /* A cache that is off brings no threads together: each may compile. */
        start(state, "threads", "8", "-");
        assert_non_null(strstr(child_last.output, " failures=0 bypassed=0 reads=0\nreads=0\n"));
        assert_memory_equal(child_last.output, "KILN_OK disk=0 compiles=", 24);
        expect(state, "default", "8",
               "KILN_OK disk=0 compiles=0 failures=0 bypassed=0 reads=0\nreads=0\n");
    }
    setting = "KILN_READONLY=1";
    expect(state, "threads", "8", COMPILED "reads=0\n");
    expect(state, "capture", "8", COMPILED "KILN_MISS reads=0\nKILN_MISS reads=0\nreads=0\n");
    setting = "KILN_LOG=info";
    expect(state, "build", "8", COMPILED "reads=1\n");
    setting = "KILN_READONLY=1";
    expect(state, "build", "8", FOUND "reads=0\n");
    setting = "KILN_LOG=info";
    capture_at_end(false);
}

static void other_drivers_are_read_at_the_build(void **state)
{
    child_variant = "good";
    start(state, "capture", "1", "-");
    assert_string_equal(child_last.output,
                        "KILN_OK disk=0 compiles=1 failures=0 bypassed=0 reads=1\n"
                        "KILN_MISS reads=1\nKILN_MISS reads=1\nreads=1\n");
    start(state, "count", "1", "-");
    assert_non_null(strstr(child_last.output, "references=1\n"));
    child_variant = "pocl";
}

#define TEST(name) kt_dir_test(name)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(what_takes_long_is_read_for_who_asks_for_it),
        TEST(a_large_program_is_read_on_request),
        TEST(the_end_reads_what_the_time_is_worth),
        TEST(a_read_that_took_longer_ends_the_reads),
        TEST(a_program_from_the_cache_can_be_captured),
        TEST(with_the_default_cache_a_program_is_read_for_who_asks_for_it),
        TEST(threads_count_one_compile_and_no_bypass),
        TEST(a_build_that_another_overtakes_is_no_second_compile),
        TEST(D11_a_binary_that_cannot_be_read_fails_nothing),
        TEST(a_process_that_does_not_destroy_its_cache_stores_nothing),
        TEST(a_program_is_held_until_it_is_stored_and_released),
        TEST(nothing_is_read_that_nobody_keeps),
        TEST(other_drivers_are_read_at_the_build),
    };
    if (argc == 4) {
        return child(argv[1], (int)strtol(argv[2], NULL, 10), argv[3]);
    }
    child_variant = "pocl";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
