/* Probing: every outcome distinguished, in this process and in a child that may crash or hang. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <kiln/unstable/probe.h>

#include "core/runtime/isolate.h"
#include "support/skip.h"
#include "sys/paths.h"
#include "unit/core/rig.h"

static kiln_probe_report probe_isolated(uint32_t limit_ms)
{
    kiln_probe_report report = {.struct_size = sizeof(report)};
    RIG_OK(kiln_backend_probe_isolated("fake", limit_ms, &report, &diag));
    assert_string_equal(report.backend, "fake");
    return report;
}

static void P5_outcomes_are_told_apart(void **state)
{
    (void)state;
    for (int i = KILN_PROBE_READY + 1; i < KILN_PROBE_SKIPPED; i++) {
        const char *name = kiln_probe_outcome_name((kiln_probe_outcome)i);
        kiln_probe_report here = {.struct_size = sizeof(here)};
        assert_int_equal(setenv("KILN_FAKE_PROBE", name, 1), 0);
        RIG_OK(kiln_backend_probe("fake", &here, &diag));
        kiln_probe_report child = probe_isolated(0);
        assert_int_equal(here.outcome, i);
        assert_int_equal(child.outcome, i);
        assert_string_equal(here.library, "libfake.so.1"); /* the file is named */
        assert_string_equal(child.library, here.library);
        assert_string_equal(child.why, here.why);
        assert_string_equal(child.fix, here.fix);
        assert_true(here.fix[0] != '\0');
    }
}

static void a_ready_backend_reports_all(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_FAKE_DRIVER", "12.5", 1), 0);
    kiln_probe_report report = probe_isolated(0);
    assert_int_equal(report.outcome, KILN_PROBE_READY);
    assert_string_equal(report.version, "12.5");
    assert_int_equal(report.device_count, 2);
    assert_true(report.probe_ns > 0);
    assert_string_equal(report.why, "");
}

static void P1_a_driver_that_crashes_is_a_report(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "open=crash", 1), 0);
    kiln_probe_report report = probe_isolated(0);
    assert_int_equal(report.outcome, KILN_PROBE_CRASHED);
    assert_non_null(strstr(report.why, "SIGABRT"));
    assert_true(report.fix[0] != '\0');
}

/* Whatever the code is: only kiln-probe's own word says that it has no backend of that name. */
static void P1_a_driver_that_ends_its_process_is_a_report(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "open=exit", 1), 0);
    kiln_probe_report report = probe_isolated(0);
    assert_int_equal(report.outcome, KILN_PROBE_CRASHED);
    assert_non_null(strstr(report.why, "with code 3"));
    assert_true(report.fix[0] != '\0');
}

static void P2_a_driver_that_hangs_is_a_report(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "open=hang", 1), 0);
    kiln_probe_report report = probe_isolated(200);
    assert_int_equal(report.outcome, KILN_PROBE_TIMED_OUT);
    assert_non_null(strstr(report.why, "fake"));
    assert_non_null(strstr(report.why, "200 ms"));
    assert_true(report.probe_ns >= 200000000ull && report.probe_ns < 20000000000ull);
}

/* Known to this process only, which is therefore where it is opened; by then the fault is gone. */
static kiln_status good_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                             kiln_diag *diag)
{
    (void)unsetenv("KILN_FAKE_FAULTS");
    return kn_fake_open(host, out_instance, report, diag);
}

/* One bad driver does not hide the others. */
static void P1_an_isolated_runtime_goes_on_without_the_bad_one(void **state)
{
    static kiln_backend good;
    rig *r = *state;
    kiln_runtime_options options;
    good = kn_backend_fake;
    good.name = "fake-good";
    good.open = good_open;
    RIG_OK(kiln_backend_register(&good, &diag));
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "fake,fake-good";
    options.isolate_probe = true;
    options.probe_ms = 5000;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "open=crash", 1), 0);
    RIG_OK(rig_create(r, KILN_CACHE_NO_DISK, &options, &diag));
    size_t seen = 0;
    for (size_t i = 0; i < kiln_runtime_report_count(r->runtime); i++) {
        const kiln_probe_report *report = kiln_runtime_get_report(r->runtime, i);
        if (strcmp(report->backend, "fake") == 0) {
            assert_int_equal(report->outcome, KILN_PROBE_CRASHED);
            seen++;
        } else if (strcmp(report->backend, "fake-good") == 0) {
            assert_int_equal(report->outcome, KILN_PROBE_READY);
            seen++;
        }
    }
    assert_int_equal(seen, 2);
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2);
}

/* The helper of this test waits until its sibling is there, too. */
static void children_are_asked_at_once(void **state)
{
    static kiln_backend other;
    static const char script[] =
        "#!/bin/sh\n"
        "here=${0%/*} turns=0\n"
        ": >\"$here/came-$1\"\n"
        "until [ -e \"$here/came-fake\" ] && [ -e \"$here/came-fake-other\" ]; do\n"
        "    sleep 0.02\n"
        "    turns=$((turns + 1))\n"
        "    [ $turns -lt 500 ] || exit 1\n"
        "done\n"
        "printf 'outcome=ready\\nbackend=%s\\ndevices=2\\nns=1\\nend\\n' \"$1\"\n";
    rig *r = *state;
    kiln_runtime_options options;
    char *helper = kt_at(r->dir, "kiln-probe"), *before = strdup(getenv("KILN_LIBEXEC"));
    kt_file_write(helper, script, sizeof(script) - 1);
    assert_int_equal(chmod(helper, 0700), 0);
    assert_int_equal(setenv("KILN_LIBEXEC", r->dir, 1), 0);
    other = kn_backend_fake;
    other.name = "fake-other";
    RIG_OK(kiln_backend_register(&other, &diag));
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "fake,fake-other";
    options.isolate_probe = true;
    options.probe_ms = 60000;
    RIG_OK(rig_create(r, KILN_CACHE_NO_DISK, &options, &diag));
    assert_int_equal(kiln_runtime_device_count(r->runtime), 4);
    assert_int_equal(setenv("KILN_LIBEXEC", before, 1), 0);
    free(before);
}

static void names_of_what_is_left_out_are_a_list(void **state)
{
    char names[KN_LEFT_OUT_SIZE] = "";
    char text[64];
    char longest[KN_LEFT_OUT_SIZE];
    (void)state;
    assert_false(kn_apart_is_left_out(names, "a.icd"));
    assert_true(kn_apart_leave_out(names, "a.icd"));
    assert_true(kn_apart_leave_out(names, "b.icd"));
    assert_true(kn_apart_is_left_out(names, "a.icd"));
    assert_true(kn_apart_is_left_out(names, "b.icd"));
    assert_false(kn_apart_is_left_out(names, "icd"));
    assert_false(kn_apart_is_left_out(names, "a.ic"));
    kn_apart_describe(names, text, sizeof(text));
    assert_string_equal(text, "a.icd, b.icd");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_false(kn_apart_leave_out(names, longest));
    assert_string_equal(names, "/a.icd/b.icd/");
}

static void reports_are_parsed_strictly(void **state)
{
    (void)state;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    assert_true(kn_isolate_parse("outcome=no device\nbackend=x\ndevices=3\nend\n", &report));
    assert_int_equal(report.outcome, KILN_PROBE_NO_DEVICE);
    assert_int_equal(report.device_count, 3);
    assert_false(kn_isolate_parse("outcome=no device\nbackend=x\n", &report)); /* cut off */
    assert_false(kn_isolate_parse("outcome=great\nend\n", &report));
    assert_false(kn_isolate_parse("end\n", &report));
    assert_false(kn_isolate_parse("", &report));
    assert_false(kn_isolate_parse(NULL, &report));
    char *line = malloc(5000);
    assert_non_null(line);
    memset(line, 'x', 4999);
    line[4999] = '\0';
    assert_false(kn_isolate_parse(line, &report));
    free(line);
    assert_true(kn_isolate_is_unknown("unknown\nend\n"));
    assert_true(kn_isolate_is_unknown("the driver's own\nunknown\nend\n"));
    assert_false(kn_isolate_is_unknown("unknown\n"));
    assert_false(kn_isolate_is_unknown(""));
    assert_false(kn_isolate_is_unknown(NULL));
}

static void names_are_checked(void **state)
{
    (void)state;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_backend_probe("nothing", &report, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "nothing"));
    assert_int_equal(kiln_backend_probe_isolated("nothing", 0, &report, NULL), KILN_E_INVALID);
    assert_int_equal(kiln_backend_probe(NULL, &report, NULL), KILN_E_INVALID);
    bool fake = false;
    const char *name = NULL;
    for (size_t i = 0; (name = kiln_backend_name(i)) != NULL; i++) {
        fake = fake || strcmp(name, "fake") == 0;
    }
    assert_true(fake);
    kiln_diag_clear(&diag);
}

static void without_the_helper_the_reason_is_given(void **state)
{
    (void)state;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    char *helper = kn_paths_helper("kiln-probe");
    assert_non_null(helper);
    free(helper);
    const char *set = getenv("KILN_LIBEXEC");
    assert_non_null(set);
    char *old = strdup(set);
    assert_non_null(old);
    assert_int_equal(setenv("KILN_LIBEXEC", "/nonexistent", 1), 0);
    helper = kn_paths_helper("kiln-probe");
    if (helper == NULL) { /* else it is next to this test, and is found there */
        assert_int_equal(kiln_backend_probe_isolated("fake", 0, &report, &diag),
                         KILN_E_UNAVAILABLE);
        assert_non_null(strstr(diag.why, "kiln-probe"));
    }
    free(helper);
    assert_int_equal(setenv("KILN_LIBEXEC", old, 1), 0);
    free(old);
    kiln_diag_clear(&diag);
}

/* A helper that the system cannot start says nothing of a driver. */
static void a_helper_that_does_not_start_is_not_a_driver(void **state)
{
    static const char script[] = "#!/bin/sh\necho 'kiln-probe: libkiln.so.0: cannot open' >&2\n"
                                 "exit 127\n";
    rig *r = *state;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    char *helper = kt_at(r->dir, "kiln-probe"), *before = strdup(getenv("KILN_LIBEXEC"));
    kt_file_write(helper, script, sizeof(script) - 1);
    assert_int_equal(chmod(helper, 0700), 0);
    assert_int_equal(setenv("KILN_LIBEXEC", r->dir, 1), 0);
    assert_int_equal(kiln_backend_probe_isolated("fake", 0, &report, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "did not start (exit code 127)"));
    assert_non_null(strstr(diag.why, "libkiln.so.0: cannot open"));
    assert_int_equal(setenv("KILN_LIBEXEC", before, 1), 0);
    free(before);
    kiln_diag_clear(&diag);
}

int main(void)
{
    if (getenv("KILN_LIBEXEC") == NULL) {
        kn_test_skip("probe", "KILN_LIBEXEC is not set to the folder of kiln-probe");
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(P5_outcomes_are_told_apart),
        TEST(a_ready_backend_reports_all),
        TEST(P1_a_driver_that_crashes_is_a_report),
        TEST(P1_a_driver_that_ends_its_process_is_a_report),
        TEST(P2_a_driver_that_hangs_is_a_report),
        TEST(P1_an_isolated_runtime_goes_on_without_the_bad_one),
        TEST(children_are_asked_at_once),
        TEST(names_of_what_is_left_out_are_a_list),
        TEST(reports_are_parsed_strictly),
        TEST(names_are_checked),
        TEST(without_the_helper_the_reason_is_given),
        TEST(a_helper_that_does_not_start_is_not_a_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
