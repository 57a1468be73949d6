/* kiln/opencl.h with PoCL's way of giving binaries: read after the launches, in calls that the
 * program makes. On a fake driver that counts: S a build from source, B a load from a binary, G a
 * binary read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apis/opencl/backend/symbols.h"
#include "apis/opencl/dropin/kept.h"
#include "base/strbuf.h"
#include "kiln/opencl.h"
#include "kiln/unstable/admin.h"
#include "support/counters.h"
#include "support/tmpdir.h"
#include "sys/process.h"
#include "sys/thread.h"

#define THREADS 4
#define LIMIT (60ull * 1000000000ull)

static char program_path[4096];

/* --- in the child: WORD KERNELS MARK ---------------------------------------------------------- */

typedef struct client {
    kn_dylib *lib;
    kn_opencl_api api;
    cl_device_id device;
    cl_context context;
    kiln_cache *cache;
    kn_strbuf text;
} client;

static unsigned calls(char letter)
{
    char *log = kt_file_read(getenv("FAKECL_LOG"), NULL);
    unsigned found = 0;
    for (const char *at = log; at != NULL && *at != '\0'; at++) {
        found += *at == letter;
    }
    free(log);
    return found;
}

static bool client_open(client *c, int kernels, const char *mark)
{
    kiln_probe_outcome outcome;
    char path[512];
    cl_platform_id platform = NULL;
    cl_int code = CL_SUCCESS;
    memset(c, 0, sizeof(*c));
    if (kn_opencl_library_open(&c->lib, &c->api, path, sizeof(path), &outcome, NULL) != KILN_OK ||
        c->api.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        c->api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &c->device, NULL) != CL_SUCCESS) {
        return false;
    }
    c->context = c->api.clCreateContext(NULL, 1, &c->device, NULL, NULL, &code);
    kn_strbuf_init(&c->text, 0);
    kn_strbuf_printf(&c->text, "// %s\n", mark);
    for (int i = 0; i < kernels; i++) {
        kn_strbuf_printf(&c->text, "__kernel void k%d(void) {}\n", i);
    }
    return c->context != NULL && kiln_cache_create(NULL, &c->cache, NULL) == KILN_OK;
}

static kiln_status build(client *c, kiln_cache *cache, cl_program *out_program)
{
    return kiln_opencl_build_program(cache, c->context, c->device, kn_strbuf_text(&c->text), "-DA",
                                     out_program, NULL);
}

typedef struct builder {
    client *c;
    cl_program program;
    kiln_status status;
} builder;

static void build_in_thread(void *user)
{
    builder *b = (builder *)user;
    b->status = build(b->c, b->c->cache, &b->program);
}

static kiln_status build_in_threads(client *c)
{
    builder builders[THREADS];
    kn_thread *threads[THREADS] = {NULL};
    kiln_status status = KILN_OK;
    for (int i = 0; i < THREADS; i++) {
        builders[i] = (builder){c, NULL, KILN_OK};
        if (kn_thread_start(build_in_thread, &builders[i], &threads[i], NULL) != KILN_OK) {
            return KILN_E_INTERNAL;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        status = builders[i].status != KILN_OK ? builders[i].status : status;
    }
    for (int i = 0; i < THREADS; i++) {
        (void)c->api.clReleaseProgram(builders[i].program);
    }
    return status;
}

static void say(const client *c, kiln_status status)
{
    kt_counters stats;
    kt_counters_own(c->cache, &stats);
    (void)printf("%s disk=%llu compiles=%llu failures=%llu bypassed=%llu reads=%u\n",
                 kiln_status_name(status), (unsigned long long)stats.hits_disk,
                 (unsigned long long)stats.compiles, (unsigned long long)stats.compile_failures,
                 (unsigned long long)stats.bypassed, calls('G'));
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

static void build_and_maybe_capture(void *user)
{
    builder *b = (builder *)user;
    b->status = build(b->c, b->c->cache, &b->program);
    if (b->status == KILN_OK && overtaker_captures) {
        b->status = kiln_opencl_capture_program(b->c->cache, b->program, NULL);
    }
}

bool __wrap_kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key)
{
    const bool waits = __real_kn_opencl_kept_waits(cache, key);
    builder other = {atomic_exchange(&overtaken, NULL), NULL, KILN_OK};
    kn_thread *thread = NULL;
    if (other.c == NULL) {
        return waits;
    }
    if (kn_thread_start(build_and_maybe_capture, &other, &thread, NULL) == KILN_OK) {
        kn_thread_join(thread);
    }
    if (other.program != NULL) {
        (void)other.c->api.clReleaseProgram(other.program);
    }
    return waits;
}

static kiln_status build_overtaken(client *c, bool captured, cl_program *out_program)
{
    overtaker_captures = captured;
    atomic_store(&overtaken, c);
    return build(c, c->cache, out_program);
}

static unsigned references(const client *c, cl_program program)
{
    cl_uint count = 0;
    (void)c->api.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(count), &count, NULL);
    return count;
}

static void capture_twice(client *c, cl_program program)
{
    for (int i = 0; i < 2; i++) {
        kiln_status status = kiln_opencl_capture_program(c->cache, program, NULL);
        (void)printf("%s reads=%u\n", kiln_status_name(status), calls('G'));
    }
}

/* What is stored and released is dropped with the next build; what is not stored waits. */
static void release_and_build(client *c, cl_program *program, bool stored)
{
    cl_program old = *program;
    (void)c->api.clRetainProgram(old);
    if (stored && kiln_opencl_capture_program(c->cache, old, NULL) != KILN_OK) {
        return;
    }
    (void)c->api.clReleaseProgram(old);
    (void)c->api.clReleaseProgram(old); /* kiln's own is left */
    kn_strbuf_append_text(&c->text, "// another\n");
    if (build(c, c->cache, program) == KILN_OK) {
        (void)printf("%s\n", kiln_opencl_capture_program(c->cache, old, NULL) == KILN_MISS
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
        status = build(c, c->cache, &program);
        if (program != NULL) {
            (void)c->api.clReleaseProgram(program);
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
        status = build_in_threads(&c);
    } else if (strncmp(word, "overtaken", 9) == 0) {
        status = build_overtaken(&c, strcmp(word, "overtaken-captured") == 0, &program);
    } else {
        status = build(&c, strcmp(word, "default") == 0 ? NULL : c.cache, &program);
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
        (void)c.api.clReleaseProgram(program);
    }
    kn_strbuf_deinit(&c.text);
    if (strcmp(word, "abandon") != 0) {
        kiln_cache_destroy(c.cache);
    }
    kn_dylib_retire(c.lib);
    (void)printf("reads=%u\n", calls('G'));
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static char output[8192];
static char errors[8192];
static const char *variant = "pocl";
static const char *setting = "KILN_LOG=info";

static void start(void **state, const char *word, const char *kernels, const char *mark)
{
    kn_process_result result = {0};
    const char *dir = (const char *)*state;
    char variables[4][4200];
    const char *tsan = getenv("TSAN_OPTIONS");
    char *log = kt_path(dir, "log");
    kt_file_write(log, "", 0);
    (void)snprintf(variables[0], sizeof(variables[0]), "FAKECL_LOG=%s", log);
    (void)snprintf(variables[1], sizeof(variables[1]), "KILN_CACHE_DIR=%s/cache", dir);
    (void)snprintf(variables[2], sizeof(variables[2]), "LD_LIBRARY_PATH=%s/%s", KILN_FAKECL_DIR,
                   variant);
    /* One of them leaves with threads that run, and a cache that nobody frees. */
    (void)snprintf(variables[3], sizeof(variables[3]), "TSAN_OPTIONS=%s:report_thread_leaks=0",
                   tsan != NULL ? tsan : "");
    const char *const argv[] = {program_path, word, kernels, mark, NULL};
    const char *const environment[] = {variables[0],
                                       variables[1],
                                       variables[2],
                                       variables[3],
                                       "KILN_LOG=info",
                                       setting,
                                       "ASAN_OPTIONS=detect_leaks=0",
                                       NULL};
    kn_process_request request = {.argv = argv, .environment = environment};
    request.limit_ns = LIMIT;
    assert_int_equal(kn_process_run(&request, &result, NULL), KILN_OK);
    (void)snprintf(output, sizeof(output), "%s", result.out != NULL ? result.out : "");
    (void)snprintf(errors, sizeof(errors), "%s", result.err != NULL ? result.err : "");
    if (result.exit_code != 0) {
        print_error("%s\n", errors);
    }
    assert_int_equal(result.exit_code, 0);
    kn_process_result_deinit(&result);
    free(log);
}

static void expect(void **state, const char *word, const char *kernels, const char *whole)
{
    start(state, word, kernels, "-");
    assert_string_equal(output, whole);
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
        assert_non_null(strstr(errors, "not stored: 1."));
        assert_non_null(strstr(errors, "KILN_CAPTURE=1"));
    }
    capture_at_end(true);
    expect(state, "build", "8", COMPILED "reads=1\n");
    assert_null(strstr(errors, "not stored"));
    capture_at_end(false);
    expect(state, "build", "8", FOUND "reads=0\n");
}

/* However many kernels it has. */
static void a_large_program_is_read_on_request(void **state)
{
    expect(state, "build", "9", COMPILED "reads=0\n");
    assert_non_null(strstr(errors, "kiln_opencl_capture_program"));
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
        assert_string_equal(output, whole);
        assert_non_null(strstr(errors, "not stored: 2."));
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
        assert_string_equal(output, COMPILED "reads=1\n");
        assert_non_null(strstr(errors, "CL_OUT_OF_RESOURCES"));
    }
    capture_at_end(false);
    start(state, "capture", "20", "unreadable");
    assert_string_equal(output, COMPILED "KILN_E_NOMEM reads=1\nKILN_E_NOMEM reads=2\nreads=2\n");
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
    assert_non_null(strstr(output, "kept\n"));
    start(state, "stored", "4", "-");
    assert_non_null(strstr(output, "dropped\n"));
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
        assert_non_null(strstr(output, " failures=0 bypassed=0 reads=0\nreads=0\n"));
        assert_memory_equal(output, "KILN_OK disk=0 compiles=", 24);
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
    variant = "good";
    start(state, "capture", "1", "-");
    assert_string_equal(output, "KILN_OK disk=0 compiles=1 failures=0 bypassed=0 reads=1\n"
                                "KILN_MISS reads=1\nKILN_MISS reads=1\nreads=1\n");
    start(state, "count", "1", "-");
    assert_non_null(strstr(output, "references=1\n"));
    variant = "pocl";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, kt_tmpdir_teardown)

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
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    if (argc == 4) {
        return child(argv[1], (int)strtol(argv[2], NULL, 10), argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
