/* What the probe says of broken CUDA installations. Libraries are found through LD_LIBRARY_PATH,
 * which a process reads when it starts: each case is a child of this program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apis/cuda/backend/instance.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/process.h"

#include "hal/artifact.h"

extern const kiln_backend kn_backend_cuda;

/* In the child: prints what open says. */
static int print_report(void)
{
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    void *instance = NULL;
    memset(&report, 0, sizeof(report));
    kiln_status status = kn_backend_cuda.open(&kn_host, &instance, &report, &diag);
    (void)printf("status=%s\noutcome=%s\nwhy=%s\nfix=%s\nlibrary=%s\nversion=%s\ndevices=%u\n",
                 kiln_status_name(status), kiln_probe_outcome_name(report.outcome), report.why,
                 report.fix, report.library, report.version, report.device_count);
    if (instance != NULL) {
        kn_backend_cuda.close(instance);
    }
    kiln_diag_clear(&diag);
    return 0;
}

static char *probe(const char *driver, const char *toolkit)
{
    char self[512];
    char path[600];
    char cuda[600];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(length > 0);
    self[length] = '\0';
    (void)snprintf(path, sizeof(path), "LD_LIBRARY_PATH=%s/%s", KILN_FAKECUDA_DIR, driver);
    (void)snprintf(cuda, sizeof(cuda), "CUDA_PATH=%s/%s", KILN_FAKECUDA_DIR, toolkit);
    const char *argv[] = {self, "report", NULL};
    const char *environment[] = {path, cuda, NULL};
    const kn_process_request request = {
        .argv = argv, .environment = environment, .limit_ns = UINT64_C(30000000000)};
    kn_process_result result;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_process_run(&request, &result, &diag), KILN_OK);
    if (result.exit_code != 0) {
        print_error("it ended with %d: %s\n", result.exit_code,
                    result.err != NULL ? result.err : "");
    }
    assert_int_equal(result.exit_code, 0);
    char *out = result.out;
    result.out = NULL;
    kn_process_result_deinit(&result);
    assert_non_null(out);
    return out;
}

static void expect(const char *driver, const char *toolkit, const char *const *words)
{
    char *text = probe(driver, toolkit);
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strstr(text, words[i]) == NULL) {
            print_error("\"%s\" is not in:\n%s", words[i], text);
            fail();
        }
    }
    free(text);
}

#define EXPECT(driver, toolkit, ...)                                                               \
    do {                                                                                           \
        const char *const words[] = {__VA_ARGS__, NULL};                                           \
        expect(driver, toolkit, words);                                                            \
    } while (0)

static void a_good_installation_is_ready(void **state)
{
    EXPECT("good", "toolkit", "status=KILN_OK", "outcome=ready", "devices=2", "NVRTC 13.0",
           "version=CUDA 13.0", "/good/libcuda.so.1");
}

static void P3_the_toolkits_stub_is_no_driver(void **state)
{
    /* It can still compile: NVRTC is there. */
    EXPECT("stub", "toolkit", "status=KILN_OK", "stub of libcuda, not the driver",
           "stubs directory");
    EXPECT("stub", "none", "library unusable", "stub of libcuda");
}

static void P4_the_dirs_of_WSL_and_others_are_searched(void **state)
{
    static const char *const wanted[] = {"/usr/lib/wsl/lib/libcuda.so.1",
                                         "/run/opengl-driver/lib/libcuda.so.1",
                                         "/usr/local/nvidia/lib64/libcuda.so.1"};
    const char *const *names = kn_cuda_driver_names();
    assert_string_equal(names[0], "libcuda.so.1"); /* what the loader's own path has comes first */
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        bool found = false;
        for (size_t j = 0; names[j] != NULL; j++) {
            found = found || strcmp(names[j], wanted[i]) == 0;
        }
        assert_true(found);
    }
}

static void P5_an_old_driver_and_a_missing_symbol_differ(void **state)
{
    EXPECT("too_old", "none", "driver too old", "CUDA 11.0 or newer", "version=CUDA 10.2",
           "/too_old/libcuda.so.1");
    EXPECT("no_symbol", "none", "symbol missing", "cuLaunchKernel", "/no_symbol/libcuda.so.1");
    EXPECT("eleven", "toolkit", "outcome=ready", "version=CUDA 11.0");
}

static void no_device_and_a_mismatched_driver_differ(void **state)
{
    EXPECT("no_device", "none", "outcome=no device", "CUDA_ERROR_NO_DEVICE",
           "CUDA_VISIBLE_DEVICES");
    EXPECT("mismatch", "none", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "reboot");
}

static void P6_NVRTC_without_its_builtins_is_told(void **state)
{
    EXPECT("good", "toolkit_bare", "outcome=ready", "not its libnvrtc-builtins");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_installation_is_ready),
        cmocka_unit_test(P3_the_toolkits_stub_is_no_driver),
        cmocka_unit_test(P4_the_dirs_of_WSL_and_others_are_searched),
        cmocka_unit_test(P5_an_old_driver_and_a_missing_symbol_differ),
        cmocka_unit_test(no_device_and_a_mismatched_driver_differ),
        cmocka_unit_test(P6_NVRTC_without_its_builtins_is_told),
    };
    if (argc == 2 && strcmp(argv[1], "report") == 0) {
        return print_report();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
