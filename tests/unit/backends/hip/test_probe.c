/* What the probe says of HIP installations, each a directory for $ROCM_PATH. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/instance.h"
#include "hal/artifact.h"
#include "support/cmocka.h"

extern const kiln_backend kn_backend_hip;

static void probe(const char *variant, bool compile_only, kiln_probe_report *out_report,
                  void **out_instance)
{
    static kiln_host host;
    char path[600];
    kiln_diag diag = KILN_DIAG_INIT;
    host = kn_host;
    host.compile_only = compile_only;
    memset(out_report, 0, sizeof(*out_report));
    (void)snprintf(path, sizeof(path), "%s/%s", KILN_FAKEHIP_DIR, variant);
    assert_int_equal(setenv("ROCM_PATH", path, 1), 0);
    assert_int_equal(kn_backend_hip.open(&host, out_instance, out_report, &diag), KILN_OK);
    kiln_diag_clear(&diag);
}

static void expect(const char *variant, kiln_probe_outcome outcome, uint32_t devices,
                   const char *why, const char *version)
{
    kiln_probe_report report;
    void *instance = NULL;
    probe(variant, false, &report, &instance);
    if (report.outcome != outcome || report.device_count != devices ||
        strstr(report.why, why) == NULL || strcmp(report.version, version) != 0) {
        fail_msg("%s: %s, %u devices, %s, %s", variant, kiln_probe_outcome_name(report.outcome),
                 report.device_count, report.why, report.version);
    }
    kn_backend_hip.close(instance);
}

static void what_is_missing_is_named(void **state)
{
    expect("good", KILN_PROBE_READY, 2, "never tried on hardware", "HIP 7.0");
    expect("five", KILN_PROBE_READY, 2, "never tried on hardware", "HIP 5.2");
    expect("no_device", KILN_PROBE_NO_DEVICE, 0, "hipErrorNoDevice (100)", "HIP 7.0");
    expect("no_symbol", KILN_PROBE_SYMBOL_MISSING, 0, "hipModuleLaunchKernel", "");
}

static void devices_are_described(void **state)
{
    static const char *const variants[] = {"good", "five"};
    for (size_t i = 0; i < 2; i++) {
        kiln_probe_report report;
        kiln_device_info info;
        void *instance = NULL;
        probe(variants[i], false, &report, &instance);
        for (uint32_t device = 0; device < 2; device++) {
            const kn_hip *hip = (const kn_hip *)instance;
            memset(&info, 0, sizeof(info));
            assert_int_equal(kn_backend_hip.device->device_info(instance, device, &info, NULL),
                             KILN_OK);
            assert_string_equal(info.name, device == 0 ? "Fake Instinct 1" : "Fake Instinct 2");
            /* Found in the struct of either release, whatever stands before it. */
            assert_string_equal(hip->devices[device].arch,
                                device == 0 ? "gfx90a:sramecc+:xnack-" : "gfx1030");
            assert_int_equal(info.subgroup_size, device == 0 ? 64 : 32);
            assert_int_equal(info.compute_units, 104);
            assert_int_equal(info.local_bytes, 65536);
            assert_int_equal(info.max_group_dim[2], 1024);
            assert_non_null(strstr(info.driver, "not tried on hardware"));
        }
        assert_int_equal(kn_backend_hip.device->device_info(instance, 2, &info, NULL),
                         KILN_E_INVALID);
        kn_backend_hip.close(instance);
    }
}

static void a_compile_opens_no_runtime(void **state)
{
    kiln_probe_report report;
    void *instance = NULL;
    probe("good", true, &report, &instance);
    assert_int_equal(report.outcome, KILN_PROBE_SKIPPED);
    assert_null(((const kn_hip *)instance)->runtime_lib);
    kn_backend_hip.close(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(a_compile_opens_no_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
