/* Binaries that are read after the first launches (PoCL compiles all kernels of a program to give
 * one): when they are read, and what threads, processes and errors see of it. On a fake driver that
 * counts: S a build from source, B a load from a binary, G a binary read. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "core/build/program.h"
#include "kiln/kiln.h"
#include "support/counters.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "sys/thread.h"
#include "unit/backends/opencl/rig.h"

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

static bool client_open(client *c, int kernels, const char *mark)
{
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
    return rig_open_runtime(&c->source, &c->runtime, &c->device) == KILN_OK;
}

static void client_close(client *c)
{
    kiln_runtime_destroy(c->runtime);
    kn_strbuf_deinit(&c->text);
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
        while (!atomic_load(&awaited) && child_count_calls('S') < 2 && kn_clock_now() < limit) {
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
    while (child_count_calls('G') == before && kn_clock_now() < limit) {
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
        info = *kiln_program_get_info(program);
    }
    const unsigned reads =
        child_count_calls('G'); /* a moment after the launch there may be one more */
    if (status == KILN_OK && (strcmp(word, "launch") == 0 || strcmp(word, "quiet") == 0)) {
        status = rig_launch_once(c.device, program);
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
    (void)printf("reads=%u\n", child_count_calls('G'));
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static void start(void **state, const char *word, const char *kernels, const char *mark)
{
    char tsan[4200];
    const char *options = getenv("TSAN_OPTIONS");
    /* One of them leaves with threads that run. */
    (void)snprintf(tsan, sizeof(tsan), "TSAN_OPTIONS=%s:report_thread_leaks=0",
                   options != NULL ? options : "");
    const char *argv[] = {NULL, word, kernels, mark, NULL};
    const char *const settings[] = {tsan, "KILN_LOG=info", NULL};
    assert_int_equal(child_run((const char *)*state, argv, settings), 0);
}

static void expect(void **state, const char *word, const char *kernels, const char *whole)
{
    start(state, word, kernels, "-");
    assert_string_equal(child_last.output, whole);
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
    if (strcmp(child_last.output, COMPILED "reads=1\n") != 0) {
        assert_string_equal(child_last.output, COMPILED "reads=0\n");
        assert_non_null(strstr(child_last.errors, "kiln warm"));
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
        assert_string_equal(child_last.output, COMPILED "reads=1\n");
        assert_non_null(strstr(child_last.errors, "CL_OUT_OF_RESOURCES"));
    }
}

static void a_process_that_leaves_before_leaves_nothing_behind(void **state)
{
    expect(state, "abandon", "2", COMPILED);
    expect(state, "launch", "2", COMPILED "reads=1\n");
    expect(state, "launch", "2", FOUND "reads=0\n");
}

#define TEST(name) kt_dir_test(name)

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
    child_variant = "pocl";
    if (argc == 4) {
        return child(argv[1], (int)strtol(argv[2], NULL, 10), argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
