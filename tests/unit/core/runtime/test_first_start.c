/* First starts that name their backend: how many children are started, and that what a child does
 * wrong is an error here and nothing worse. The helper of these tests is a script, which notes that
 * it was started, and then does what the test wants. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/core/rig.h"

static const char *const variables[] = {"KILN_TEST_TURN", NULL};
static const char *const places[] = {NULL};
static const kiln_probe_basis foreign_basis = {variables, places, true};
static kiln_backend foreign;
static unsigned opens;
static bool opening_crashes;
static const char *skipped; /* whose probe the next starts skip */

static kiln_status foreign_open(const kiln_host *host, void **out_instance,
                                kiln_probe_report *report, kiln_diag *diag)
{
    opens++;
    if (opening_crashes) {
        (void)signal(SIGSEGV, SIG_DFL); /* whatever the test's runner has set */
        (void)raise(SIGSEGV);
    }
    return kn_fake_open(host, out_instance, report, diag);
}

static int register_foreign(void **state)
{
    (void)state;
    foreign = kn_backend_fake;
    foreign.name = "foreign";
    foreign.open = foreign_open;
    foreign.basis = &foreign_basis;
    foreign.caps &= ~(uint32_t)KILN_CAP_COMPILE_OFFLINE;
    return kiln_backend_register(&foreign, NULL) == KILN_OK ? 0 : -1;
}

#define READY "printf 'outcome=ready\\nbackend=foreign\\ndevices=2\\nns=1\\nend\\n'\n"

static void make_helper(const rig *r, const char *does)
{
    char script[1024];
    char *helper = kt_at(r->dir, "kiln-probe");
    const int length = snprintf(script, sizeof(script),
                                "#!/bin/sh\nhere=${0%%/*}\necho \"$1\" >>\"$here/started\"\n"
                                "echo probing\n%s",
                                does);
    assert_true(length > 0 && (size_t)length < sizeof(script));
    kt_file_write(helper, script, (size_t)length);
    assert_int_equal(chmod(helper, 0700), 0);
}

static unsigned children(const rig *r)
{
    char *path = kt_at(r->dir, "started");
    const unsigned count = kt_file_lines(path);
    return count;
}

static int setup(void **state)
{
    int result = rig_setup(state);
    rig *r = *state;
    (void)setenv("KILN_LIBEXEC", r->dir, 1);
    opens = 0;
    opening_crashes = false;
    skipped = NULL;
    return result;
}

/* One process as far as the disk knows: a cache object and a runtime of its own. */
static kiln_status start(rig *r, uint32_t probe_ms, bool fresh, char why[1024])
{
    kiln_runtime_options options;
    kiln_diag diag_of_start = KILN_DIAG_INIT;
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "foreign";
    options.strict = true;
    options.probe_ms = probe_ms;
    options.fresh_probe = fresh;
    options.skip_probe = skipped;
    const kiln_status status = rig_create(r, 0, &options, &diag_of_start);
    (void)snprintf(why, 1024, "%s", diag_of_start.why);
    kiln_diag_clear(&diag_of_start);
    rig_close(r);
    return status;
}

static kiln_status start_alone(rig *r, char why[1024])
{
    return start(r, 0, false, why);
}

static void a_named_start_asks_one_child_and_the_next_none(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, READY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(start_alone(r, why), KILN_OK);
        assert_int_equal(children(r), 1);
        assert_int_equal(opens, i + 1);
    }
}

/* The host never opens it, the first time no more than later. */
static void expect_refusal(rig *r, const char *does, uint32_t probe_ms, const char *expected)
{
    char why[1024];
    make_helper(r, does);
    assert_int_equal(start(r, probe_ms, true, why), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(why, expected));
    assert_int_equal(start(r, probe_ms, false, why), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(why, expected));
    assert_int_equal(opens, 0);
}

/* One that has said that all is well and crashes as its process ends would take the host along. */
static void P1_a_named_driver_that_crashes_is_an_error(void **state)
{
    expect_refusal(*state, "kill -SEGV $$\n", 0, "crashed its process with SIGSEGV");
    expect_refusal(*state, READY "kill -SEGV $$\n", 0, "crashed its process with SIGSEGV");
}

static void P2_a_named_driver_that_hangs_is_an_error(void **state)
{
    expect_refusal(*state, "exec sleep 600\n", 300, "did not answer within 300 ms");
}

/* What may be put right at any moment is not remembered. */
static void what_may_be_put_right_is_asked_again(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, "printf 'outcome=no permission\\nbackend=foreign\\nwhy=not yours\\nend\\n'\n");
    assert_int_equal(start_alone(r, why), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(why, "not yours"));
    const unsigned first = children(r);
    make_helper(r, READY);
    assert_int_equal(start_alone(r, why), KILN_OK);
    assert_true(children(r) > first);
}

static void a_fresh_probe_asks_a_child_of_its_own(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, READY);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(start(r, 0, true, why), KILN_OK);
        assert_int_equal(children(r), i);
    }
}

/* Other surroundings are another driver: the result that was just stored is not about it. */
static void a_result_holds_for_its_surroundings_alone(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, "[ -z \"$KILN_TEST_TURN\" ] || kill -SEGV $$\n" READY);
    assert_int_equal(start_alone(r, why), KILN_OK);
    assert_int_equal(setenv("KILN_TEST_TURN", "1", 1), 0);
    assert_int_equal(start_alone(r, why), KILN_E_UNAVAILABLE);
    assert_int_equal(children(r), 2);
}

static void a_skipped_probe_starts_no_child(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, "kill -SEGV $$\n");
    skipped = "cuda,foreign";
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(start_alone(r, why), KILN_OK);
        assert_int_equal(children(r), 0);
        assert_int_equal(opens, i);
    }
}

static void a_skipped_probe_of_another_is_not_this_one(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, READY);
    skipped = "cuda,vulkan";
    assert_int_equal(start_alone(r, why), KILN_OK);
    assert_int_equal(children(r), 1);
}

/* A process that skips the probe, and is taken along. */
static void crash_in_an_opening(rig *r)
{
    const pid_t child = fork();
    int status = 0;
    assert_true(child >= 0);
    if (child == 0) {
        char why[1024];
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        opening_crashes = true;
        (void)start_alone(r, why);
        _exit(9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* As it would by hand, and no more than that: the next start asks a child. */
static void P1_a_driver_whose_probe_is_skipped_takes_one_process_along(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, "kill -SEGV $$\n");
    skipped = "foreign";
    crash_in_an_opening(r);
    assert_int_equal(children(r), 0);
    for (unsigned i = 1; i <= 2; i++) { /* a strict request asks again before it fails */
        assert_int_equal(start_alone(r, why), KILN_E_UNAVAILABLE);
        assert_non_null(strstr(why, "crashed its process with SIGSEGV"));
        assert_int_equal(opens, 0);
        assert_int_equal(children(r), i);
    }
}

/* One that was killed for another reason needs no child again when it has been opened once. */
static void what_a_child_finds_good_is_skipped_again(void **state)
{
    rig *r = *state;
    char why[1024];
    make_helper(r, READY);
    skipped = "foreign";
    crash_in_an_opening(r);
    assert_int_equal(start_alone(r, why), KILN_OK);
    assert_int_equal(children(r), 1);
    assert_int_equal(opens, 1);
    char *root = kt_at(r->dir, "cache");
    char *probes = kt_path(root, "probes");
    kt_tmpdir_remove(probes); /* as if it had never been remembered */
    assert_int_equal(start_alone(r, why), KILN_OK);
    assert_int_equal(children(r), 1);
    assert_int_equal(opens, 2);
}

static void a_malformed_list_names_its_variable(void **state)
{
    kiln_runtime_options options;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)state;
    assert_int_equal(setenv("KILN_SKIP_PROBE", "cuda vulkan", 1), 0);
    assert_int_equal(kiln_runtime_options_init(&options, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.what, "KILN_SKIP_PROBE"));
    assert_null(options.skip_probe);
    kiln_diag_clear(&diag);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_named_start_asks_one_child_and_the_next_none),
        TEST(P1_a_named_driver_that_crashes_is_an_error),
        TEST(P2_a_named_driver_that_hangs_is_an_error),
        TEST(what_may_be_put_right_is_asked_again),
        TEST(a_fresh_probe_asks_a_child_of_its_own),
        TEST(a_result_holds_for_its_surroundings_alone),
        TEST(a_skipped_probe_starts_no_child),
        TEST(a_skipped_probe_of_another_is_not_this_one),
        TEST(P1_a_driver_whose_probe_is_skipped_takes_one_process_along),
        TEST(what_a_child_finds_good_is_skipped_again),
        TEST(a_malformed_list_names_its_variable),
    };
    return cmocka_run_group_tests(tests, register_foreign, NULL);
}
