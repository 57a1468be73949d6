/* Options, selection, the summary line, strictness. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/probe.h>

#include "unit/core/rig.h"

/* A discrete device, in addition to the fake's two software ones. */
static kiln_backend quick;

static kiln_status quick_info(void *instance, uint32_t index, kiln_device_info *out_info,
                              kiln_diag *diag)
{
    kiln_status status = kn_fake_device_info(instance, index, out_info, diag);
    out_info->device_class = KILN_DEVICE_DISCRETE;
    memcpy(out_info->name, "Quick", 6);
    return status;
}

static kiln_device_ops quick_ops;

static const kiln_stage *quick_stages(void *instance, const kiln_target *target,
                                      kiln_language language, size_t *out_count)
{
    const kiln_stage *stages = kn_fake_stages(instance, target, KILN_LANG_FAKE, out_count);
    return language == KILN_LANG_GLSL ? stages : NULL;
}

static kiln_compiler_ops quick_compiler;

static int register_quick(void **state)
{
    (void)state;
    quick = kn_backend_fake;
    quick.name = "quick";
    quick.caps &= ~(uint32_t)KILN_CAP_ON_REQUEST;
    quick_ops = *kn_backend_fake.device;
    quick_ops.device_info = quick_info;
    quick.device = &quick_ops;
    quick_compiler = *kn_backend_fake.compiler;
    quick_compiler.stages = quick_stages;
    quick.compiler = &quick_compiler;
    return kiln_backend_register(&quick, NULL) == KILN_OK ? 0 : -1;
}

static kiln_status create(rig *r, const char *backend, const char *device, bool strict,
                          kiln_diag *why)
{
    kiln_runtime_options options;
    kiln_status status = kiln_runtime_options_init(&options, why);
    if (status != KILN_OK) {
        return status;
    }
    options.backend = backend != NULL ? backend : options.backend;
    options.device = device != NULL ? device : options.device;
    options.strict = strict || options.strict;
    return rig_create(r, KILN_CACHE_NO_DISK, &options, why);
}

static const kiln_device_info *selected(rig *r, const kiln_source *source)
{
    kiln_device *device = NULL;
    RIG_OK(kiln_runtime_select(r->runtime, source, source != NULL ? 1 : 0, &device, &diag));
    return kiln_device_get_info(device);
}

static void the_fastest_class_that_takes_the_source(void **state)
{
    rig *r = *state;
    kiln_source fake = rig_source(rig_saxpy);
    kiln_source glsl = fake;
    kiln_source cuda = fake;
    glsl.language = KILN_LANG_GLSL;
    cuda.language = KILN_LANG_CUBIN;
    assert_int_equal(setenv("KILN_FAKE", "1", 1), 0); /* hidden backends as well */
    RIG_OK(create(r, "fake,quick", NULL, false, &diag));
    /* The order asked for goes before the class. */
    assert_string_equal(selected(r, NULL)->backend, "fake");
    assert_string_equal(selected(r, &glsl)->backend, "quick");
    RIG_OK(create(r, NULL, NULL, false, &diag));
    assert_string_equal(selected(r, NULL)->name, "Quick");
    assert_string_equal(selected(r, &fake)->backend, "fake");
    kiln_device *device = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    assert_int_equal(kiln_runtime_select(r->runtime, &cuda, 1, &device, &why), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(why.why, "cubin"));
    kiln_diag_clear(&why);
}

static void hidden_backends_show_on_request_only(void **state)
{
    rig *r = *state;
    RIG_OK(create(r, NULL, NULL, false, &diag));
    assert_null(strstr(kiln_runtime_summary(r->runtime), "fake:"));
    for (size_t i = 0; i < kiln_runtime_report_count(r->runtime); i++) {
        assert_string_not_equal(kiln_runtime_get_report(r->runtime, i)->backend, "fake");
    }
    assert_null(kiln_runtime_get_report(r->runtime, kiln_runtime_report_count(r->runtime)));
    assert_null(kiln_runtime_device(r->runtime, kiln_runtime_device_count(r->runtime)));
}

static void devices_are_asked_for_by_index_and_name(void **state)
{
    rig *r = *state;
    RIG_OK(create(r, "fake", "1", true, &diag));
    assert_int_equal(selected(r, NULL)->index, 1);
    RIG_OK(create(r, "fake", "fake:1", true, &diag));
    assert_int_equal(selected(r, NULL)->index, 1);
    RIG_OK(create(r, "fake", "PROCESSOR 1", true, &diag));
    assert_int_equal(selected(r, NULL)->index, 1);
    assert_string_equal(kiln_runtime_summary(r->runtime),
                        "requested=fake/\"PROCESSOR 1\" detected=[fake:1 \"Fake Processor 1\" "
                        "software, fake:0 \"Fake Processor 0\" software] selected=fake:1");
    assert_int_equal(setenv("KILN_BACKEND", "fake", 1), 0);
    assert_int_equal(setenv("KILN_DEVICE", "1", 1), 0);
    RIG_OK(create(r, NULL, NULL, true, &diag));
    assert_int_equal(selected(r, NULL)->index, 1);
}

static void an_unmet_request_is_an_error_when_strict(void **state)
{
    static const struct {
        const char *backend, *device, *named;
        kiln_status status;
    } rows[] = {
        {"nothing", NULL, "nothing", KILN_E_INVALID},
        {"fake", "7", "\"7\"", KILN_E_UNAVAILABLE},
        {"fake", "Voodoo", "Voodoo", KILN_E_UNAVAILABLE},
        {"fake", "quick:0", "quick:0", KILN_E_UNAVAILABLE},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_diag why = KILN_DIAG_INIT;
        assert_int_equal(create(r, rows[i].backend, rows[i].device, true, &why), rows[i].status);
        assert_null(r->runtime);
        assert_non_null(strstr(why.why, rows[i].named));
        kiln_diag_clear(&why);
        /* Else it is a warning, and something else is used. */
        rig_log_start();
        RIG_OK(create(r, rows[i].backend, rows[i].device, false, &diag));
        assert_non_null(strstr(rig_log_stop(), "continuing with what is available"));
        assert_true(kiln_runtime_device_count(r->runtime) > 0);
        (void)selected(r, NULL);
    }
}

/* Of a list, too, of which another can be had: it is a slip, and nobody else would notice it. */
static void a_name_that_no_backend_has_is_named_with_the_nearest(void **state)
{
    static const char *const lists[] = {"vulcan", "fake,vulcan", "vulcan,fake"};
    rig *r = *state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        kiln_diag why = KILN_DIAG_INIT;
        assert_int_equal(create(r, lists[i], NULL, true, &why), KILN_E_INVALID);
        assert_null(r->runtime);
        assert_string_equal(why.why, "there is no backend \"vulcan\"");
        assert_non_null(strstr(why.fix, "did you mean vulkan? the backends are "));
        kiln_diag_clear(&why);
    }
    rig_log_start();
    RIG_OK(create(r, "vulcan", NULL, false, &diag));
    assert_non_null(strstr(rig_log_stop(), "did you mean vulkan?"));
}

static void what_failed_is_in_the_strict_message(void **state)
{
    rig *r = *state;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(setenv("KILN_FAKE_PROBE", "driver too old", 1), 0);
    assert_int_equal(setenv("KILN_STRICT", "1", 1), 0);
    assert_int_equal(create(r, "fake", NULL, false, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "KILN_FAKE_PROBE says so"));
    kiln_diag_clear(&diag);
}

static void malformed_values_name_their_variable(void **state)
{
    static const struct {
        const char *variable, *value;
    } rows[] = {
        {"KILN_STRICT", "perhaps"}, {"KILN_BACKEND", "a,,b"},      {"KILN_BACKEND", "Up"},
        {"KILN_FAKE", "maybe"},     {"KILN_BACKEND_PATH", "x.so"},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        char line[2048];
        assert_int_equal(setenv(rows[i].variable, rows[i].value, 1), 0);
        assert_int_equal(create(r, NULL, NULL, false, &diag), KILN_E_INVALID);
        (void)kiln_diag_format(&diag, line, sizeof(line));
        assert_non_null(strstr(line, rows[i].variable));
        assert_null(strchr(line, '\n'));
        kiln_diag_clear(&diag);
        assert_int_equal(unsetenv(rows[i].variable), 0);
    }
}

static void a_missing_backend_file_is_reported(void **state)
{
    rig *r = *state;
    bool found = false;
    char *path = kt_at(r->dir, "nothing.so");
    assert_int_equal(setenv("KILN_BACKEND_PATH", path, 1), 0);
    RIG_OK(create(r, "fake", NULL, true, &diag));
    for (size_t i = 0; i < kiln_runtime_report_count(r->runtime); i++) {
        const kiln_probe_report *report = kiln_runtime_get_report(r->runtime, i);
        if (strcmp(report->backend, "nothing.so") == 0) {
            found = true;
            assert_int_equal(report->outcome, KILN_PROBE_LIBRARY_MISSING);
            assert_string_equal(report->library, path);
        }
    }
    assert_true(found);
}

static void the_summary_is_logged_at_start(void **state)
{
    rig *r = *state;
    rig_log_start();
    RIG_OK(create(r, "fake", NULL, true, &diag));
    const char *log = rig_log_stop();
    assert_non_null(strstr(log, "requested=fake detected=[fake:0 \"Fake Processor 0\" software, "
                                "fake:1 \"Fake Processor 1\" software] selected=fake:0"));
}

static void targets_are_found_by_name(void **state)
{
    static const struct {
        const char *target;
        kiln_status status;
    } rows[] = {
        {"fake", KILN_OK},
        {"fake:1", KILN_OK},
        {"fake:native", KILN_OK},
        {"fake:pentium", KILN_E_INVALID},
        {"fake:7", KILN_E_INVALID},
        {"", KILN_E_INVALID},
        {":0", KILN_E_INVALID},
        {"nothing:0", KILN_E_INVALID},
        {"a-name-much-longer-than-any-backend-may-have:0", KILN_E_INVALID},
    };
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    RIG_OK(create(r, "fake", NULL, true, &diag));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_blob *blob = NULL;
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_status status = kiln_compile(r->runtime, rows[i].target, &source, &blob, NULL, &diag);
        assert_int_equal(status, rows[i].status);
        assert_true((status == KILN_OK) == (blob != NULL));
        kiln_blob_release(blob);
        kiln_diag_clear(&diag);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_class_that_takes_the_source),
        TEST(hidden_backends_show_on_request_only),
        TEST(devices_are_asked_for_by_index_and_name),
        TEST(an_unmet_request_is_an_error_when_strict),
        TEST(a_name_that_no_backend_has_is_named_with_the_nearest),
        TEST(what_failed_is_in_the_strict_message),
        TEST(malformed_values_name_their_variable),
        TEST(a_missing_backend_file_is_reported),
        TEST(the_summary_is_logged_at_start),
        TEST(targets_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, register_quick, NULL);
}
