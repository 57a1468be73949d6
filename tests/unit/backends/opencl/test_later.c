/* Binaries that are read after the first launches (PoCL compiles all kernels of a program to give
 * one): when they are read, and what threads, processes and errors see of it. On a fake driver that
 * counts: S a build from source, B a load from a binary, G a binary read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "core/build/program.h"
#include "kiln/kiln.h"
#include "support/counters.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "sys/thread.h"

#define THREADS 4
#define QUIET_LIMIT (20ull * 1000000000ull)

static char program_path[4096];

/* --- in the child: WORD KERNELS MARK ---------------------------------------------------------- */

typedef struct client {
    kiln_runtime *runtime;
    kiln_device *device;
    kn_strbuf text;
    kiln_source source;
} client;

/* How often the driver was called so. */
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
    kiln_runtime_options options;
    *c = (client){0};
    kn_strbuf_init(&c->text, 0);
    kn_strbuf_printf(&c->text, "// %s\n", mark);
    for (int i = 0; i < kernels; i++) {
        kn_strbuf_printf(&c->text, "__kernel void k%d(void) {}\n", i);
    }
    c->source = (kiln_source)KILN_SOURCE_INIT;
    c->source.language = KILN_LANG_OPENCL_C;
    c->source.text = kn_strbuf_text(&c->text);
    c->source.length = c->text.length;
    if (kiln_runtime_options_init(&options, NULL) != KILN_OK) {
        return false;
    }
    options.backend = "opencl";
    options.strict = true;
    return kiln_runtime_create(&options, &c->runtime, NULL) == KILN_OK &&
           kiln_runtime_select(c->runtime, &c->source, 1, &c->device, NULL) == KILN_OK;
}

static void client_close(client *c)
{
    kiln_runtime_destroy(c->runtime);
    kn_strbuf_deinit(&c->text);
}

static kiln_status launch(client *c, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_launch request = {
        .struct_size = sizeof(request), .dims = 1, .global = {64, 1, 1}, .local = {8, 1, 1}};
    kiln_status status = kiln_queue_create(c->device, &queue, NULL);
    if (status == KILN_OK) {
        status = kiln_queue_launch(queue, program, "k", &request, NULL, NULL);
    }
    if (status == KILN_OK) {
        status = kiln_queue_finish(queue, NULL);
    }
    kiln_queue_destroy(queue);
    return status;
}

static void say(const client *c, kiln_status status, const kiln_build_info *info, unsigned reads)
{
    kt_counters stats;
    kt_counters_own(kiln_runtime_cache(c->runtime), &stats);
    (void)printf("%s %s compiles=%llu failures=%llu bypassed=%llu reads=%u\n",
                 kiln_status_name(status), kiln_origin_name(info->origin),
                 (unsigned long long)stats.compiles, (unsigned long long)stats.compile_failures,
                 (unsigned long long)stats.bypassed, reads);
    (void)fflush(stdout);
}

typedef struct builder {
    client *c;
    kiln_program *program;
    kiln_status status;
} builder;

static void build_in_thread(void *user)
{
    builder *b = (builder *)user;
    b->status = kiln_program_build(b->c->device, &b->c->source, 1, NULL, &b->program, NULL);
}

/* All get one and the same program, of one compile. */
static kiln_status build_in_threads(client *c, kiln_program **out_program)
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
        status = builders[i].program != builders[0].program ? KILN_E_INTERNAL : status;
    }
    for (int i = 1; i < THREADS; i++) {
        kiln_program_release(builders[i].program);
    }
    *out_program = builders[0].program;
    return status;
}

/* --- another thread's build at a chosen moment of this one's ---------------------------------- */

kiln_program *__real_kn_program_find(kiln_device *device, const kn_build *build);
kiln_program *__wrap_kn_program_find(kiln_device *device, const kn_build *build);
kiln_status __real_kn_program_adopt(kiln_device *device, kn_build *build, void *handle,
                                    kiln_program **out_program, kiln_diag *diag);
kiln_status __wrap_kn_program_adopt(kiln_device *device, kn_build *build, void *handle,
                                    kiln_program **out_program, kiln_diag *diag);
kiln_program *__real_kn_program_await(const kn_build *build);
kiln_program *__wrap_kn_program_await(const kn_build *build);

static builder other;                 /* its program is held until the first one is there */
static kn_thread *other_thread;       /* NULL: not started */
static bool other_comes_after_look;   /* it compiles after this one found no program */
static bool other_comes_before_adopt; /* it begins while this one has a program nobody sees */
static atomic_bool awaited;

kiln_program *__wrap_kn_program_find(kiln_device *device, const kn_build *build)
{
    kiln_program *program = __real_kn_program_find(device, build);
    if (other_comes_after_look) {
        other_comes_after_look = false;
        if (kn_thread_start(build_in_thread, &other, &other_thread, NULL) == KILN_OK) {
            kn_thread_join(other_thread);
            other_thread = NULL;
        }
    }
    return program;
}

/* Goes on when the other waits for this one's program (or compiles it, which it must not). */
kiln_status __wrap_kn_program_adopt(kiln_device *device, kn_build *build, void *handle,
                                    kiln_program **out_program, kiln_diag *diag)
{
    if (other_comes_before_adopt) {
        const uint64_t limit = kn_clock_now() + QUIET_LIMIT;
        other_comes_before_adopt = false;
        if (kn_thread_start(build_in_thread, &other, &other_thread, NULL) != KILN_OK) {
            return KILN_E_INTERNAL;
        }
        while (!atomic_load(&awaited) && calls('S') < 2 && kn_clock_now() < limit) {
            kn_clock_sleep(1000000);
        }
    }
    return __real_kn_program_adopt(device, build, handle, out_program, diag);
}

kiln_program *__wrap_kn_program_await(const kn_build *build)
{
    atomic_store(&awaited, true);
    return __real_kn_program_await(build);
}

static kiln_status build_beside(client *c, const char *word, kiln_program **out_program)
{
    other = (builder){c, NULL, KILN_E_INTERNAL};
    other_comes_after_look = strcmp(word, "overtaken") == 0;
    other_comes_before_adopt = strcmp(word, "adopting") == 0;
    kiln_status status = kiln_program_build(c->device, &c->source, 1, NULL, out_program, NULL);
    if (other_thread != NULL) {
        kn_thread_join(other_thread);
    }
    status = status == KILN_OK ? other.status : status;
    status = other.program != *out_program ? KILN_E_INTERNAL : status;
    kiln_program_release(other.program);
    return status;
}

/* The same program in another process, while this one has it without its binary. */
static void build_elsewhere(void)
{
    kn_process_result result = {0};
    const char *const argv[] = {program_path, "build", "20", "-", NULL};
    kn_process_request request = {.argv = argv};
    request.limit_ns = QUIET_LIMIT;
    if (kn_process_run(&request, &result, NULL) == KILN_OK && result.out != NULL) {
        (void)printf("elsewhere %d: %s", result.exit_code, result.out);
    }
    kn_process_result_deinit(&result);
}

static void wait_for_a_read(unsigned before)
{
    const uint64_t limit = kn_clock_now() + QUIET_LIMIT;
    while (calls('G') == before && kn_clock_now() < limit) {
        kn_clock_sleep(10000000);
    }
}

static int child(const char *word, int kernels, const char *mark)
{
    client c;
    kiln_program *program = NULL;
    kiln_build_info info = {.struct_size = sizeof(info)};
    if (!client_open(&c, kernels, mark)) {
        return 1;
    }
    kiln_status status = KILN_OK;
    if (strcmp(word, "threads") == 0) {
        status = build_in_threads(&c, &program);
    } else if (strcmp(word, "overtaken") == 0 || strcmp(word, "adopting") == 0) {
        status = build_beside(&c, word, &program);
    } else {
        status = kiln_program_build(c.device, &c.source, 1, NULL, &program, NULL);
    }
    if (status == KILN_OK) {
        info = *kiln_program_info(program);
    }
    const unsigned reads = calls('G'); /* a moment after the launch there may be one more */
    if (status == KILN_OK && (strcmp(word, "launch") == 0 || strcmp(word, "quiet") == 0)) {
        status = launch(&c, program);
    }
    say(&c, status, &info, reads);
    if (strcmp(word, "beside") == 0) {
        build_elsewhere();
    } else if (strcmp(word, "quiet") == 0) {
        wait_for_a_read(0);
    } else if (strcmp(word, "abandon") == 0) {
        _exit(0);
    }
    kiln_program_release(program);
    client_close(&c);
    (void)printf("reads=%u\n", calls('G'));
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static char output[8192];
static char errors[8192];

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
    (void)snprintf(variables[2], sizeof(variables[2]), "LD_LIBRARY_PATH=%s/pocl", KILN_FAKECL_DIR);
    /* One of them leaves with threads that run. */
    (void)snprintf(variables[3], sizeof(variables[3]), "TSAN_OPTIONS=%s:report_thread_leaks=0",
                   tsan != NULL ? tsan : "");
    const char *const argv[] = {program_path, word, kernels, mark, NULL};
    const char *const environment[] = {variables[0], variables[1],    variables[2],
                                       variables[3], "KILN_LOG=info", NULL};
    kn_process_request request = {.argv = argv, .environment = environment};
    request.limit_ns = 3 * QUIET_LIMIT;
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

#define COMPILED "KILN_OK compiled compiles=1 failures=0 bypassed=0 reads=0\n"
#define FOUND "KILN_OK disk compiles=0 failures=0 bypassed=0 reads=0\n"

static void the_binary_is_read_after_the_launch(void **state)
{
    expect(state, "launch", "3", COMPILED "reads=1\n");
    expect(state, "launch", "3", FOUND "reads=0\n");
}

static void a_program_that_nobody_launched_is_never_read(void **state)
{
    expect(state, "build", "1", COMPILED "reads=0\n");
    expect(state, "build", "1", COMPILED "reads=0\n");
    expect(state, "launch", "1", COMPILED "reads=1\n");
    expect(state, "build", "1", FOUND "reads=0\n");
}

static void a_large_program_does_not_hold_up_the_end(void **state)
{
    start(state, "launch", "20", "-");
    /* On a busy machine the moment of quiet may pass before the end. */
    if (strcmp(output, COMPILED "reads=1\n") != 0) {
        assert_string_equal(output, COMPILED "reads=0\n");
        assert_non_null(strstr(errors, "kiln warm"));
    }
}

static void a_large_program_is_read_when_nothing_has_been_launched_for_a_moment(void **state)
{
    expect(state, "quiet", "20", COMPILED "reads=1\n");
    expect(state, "launch", "20", FOUND "reads=0\n");
}

static void threads_share_the_program_that_has_no_binary(void **state)
{
    expect(state, "threads", "20", COMPILED "reads=0\n");
}

static void a_build_that_another_overtakes_is_no_second_compile(void **state)
{
    expect(state, "overtaken", "20", COMPILED "reads=0\n");
    expect(state, "adopting", "21", COMPILED "reads=0\n");
}

static void another_process_does_not_wait_for_a_binary_that_comes_later(void **state)
{
    expect(state, "beside", "20", COMPILED "elsewhere 0: " COMPILED "reads=0\nreads=0\n");
}

static void D11_a_binary_that_cannot_be_read_fails_nothing(void **state)
{
    for (int i = 0; i < 2; i++) {
        start(state, "launch", "2", "unreadable");
        assert_string_equal(output, COMPILED "reads=1\n");
        assert_non_null(strstr(errors, "CL_OUT_OF_RESOURCES"));
    }
}

static void a_process_that_leaves_before_leaves_nothing_behind(void **state)
{
    expect(state, "abandon", "2", COMPILED);
    expect(state, "launch", "2", COMPILED "reads=1\n");
    expect(state, "launch", "2", FOUND "reads=0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, kt_tmpdir_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_binary_is_read_after_the_launch),
        TEST(a_program_that_nobody_launched_is_never_read),
        TEST(a_large_program_does_not_hold_up_the_end),
        TEST(a_large_program_is_read_when_nothing_has_been_launched_for_a_moment),
        TEST(threads_share_the_program_that_has_no_binary),
        TEST(a_build_that_another_overtakes_is_no_second_compile),
        TEST(another_process_does_not_wait_for_a_binary_that_comes_later),
        TEST(D11_a_binary_that_cannot_be_read_fails_nothing),
        TEST(a_process_that_leaves_before_leaves_nothing_behind),
    };
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    if (argc == 4) {
        return child(argv[1], (int)strtol(argv[2], NULL, 10), argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
