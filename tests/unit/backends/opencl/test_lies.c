/* A driver that lies: each count, size and text that an OpenCL driver returns is replaced, one at a
 * time, by nothing, one, odd, huge and negative numbers, on the way from opening to loading. kiln
 * may fail, and says so; it damages no memory. One process a query, and a sanitizer where the build
 * has one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "unit/backends/opencl/rig.h"

/* Questions that the fake answers with a size, a number or a text. */
static const char *const queries[] = {
    "clGetPlatformIDs",
    "clGetDeviceIDs",
    "clCreateKernelsInProgram",
    "clGetPlatformInfo:901", /* CL_PLATFORM_VERSION */
    "clGetPlatformInfo:902", /* CL_PLATFORM_NAME */
    "clGetPlatformInfo:904", /* CL_PLATFORM_EXTENSIONS */
    "clGetDeviceInfo:1000",  /* CL_DEVICE_TYPE */
    "clGetDeviceInfo:1002",  /* CL_DEVICE_MAX_COMPUTE_UNITS */
    "clGetDeviceInfo:1004",  /* CL_DEVICE_MAX_WORK_GROUP_SIZE */
    "clGetDeviceInfo:1005",  /* CL_DEVICE_MAX_WORK_ITEM_SIZES */
    "clGetDeviceInfo:100d",  /* CL_DEVICE_ADDRESS_BITS */
    "clGetDeviceInfo:1010",  /* CL_DEVICE_MAX_MEM_ALLOC_SIZE */
    "clGetDeviceInfo:1019",  /* CL_DEVICE_MEM_BASE_ADDR_ALIGN */
    "clGetDeviceInfo:101f",  /* CL_DEVICE_GLOBAL_MEM_SIZE */
    "clGetDeviceInfo:1023",  /* CL_DEVICE_LOCAL_MEM_SIZE */
    "clGetDeviceInfo:102b",  /* CL_DEVICE_NAME */
    "clGetDeviceInfo:102c",  /* CL_DEVICE_VENDOR */
    "clGetDeviceInfo:102d",  /* CL_DRIVER_VERSION */
    "clGetDeviceInfo:102f",  /* CL_DEVICE_VERSION */
    "clGetDeviceInfo:1030",  /* CL_DEVICE_EXTENSIONS */
    "clGetDeviceInfo:1035",  /* CL_DEVICE_HOST_UNIFIED_MEMORY */
    "clGetDeviceInfo:105b",  /* CL_DEVICE_IL_VERSION */
    "clGetProgramInfo:1163", /* CL_PROGRAM_DEVICES */
    "clGetProgramInfo:1165", /* CL_PROGRAM_BINARY_SIZES */
    "clGetProgramInfo:1166", /* CL_PROGRAM_BINARIES */
    "clGetProgramBuildInfo:1183",
    "clGetKernelInfo:1190",    /* CL_KERNEL_FUNCTION_NAME */
    "clGetKernelInfo:1191",    /* CL_KERNEL_NUM_ARGS */
    "clGetKernelArgInfo:1196", /* CL_KERNEL_ARG_ADDRESS_QUALIFIER */
    "clGetKernelArgInfo:1198", /* CL_KERNEL_ARG_TYPE_NAME */
    "clGetKernelArgInfo:119a", /* CL_KERNEL_ARG_NAME */
    "clGetKernelWorkGroupInfo:11b0",
    "clGetKernelWorkGroupInfo:11b1",
    "clGetKernelWorkGroupInfo:11b2",
};

static const char *const kinds[] = {"length", "value", "error"};
static const uint64_t numbers[] = {
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    255,
    256,
    257,
    2400,
    4095,
    65536,
    UINT64_C(0x7fffffff),
    UINT64_C(0x80000000),
    UINT64_C(0xffffffff),
    UINT64_C(1) << 60,
    UINT64_MAX / 8 + 1,
    (UINT64_C(1) << 63) - 1,
    UINT64_MAX - 8,
    UINT64_MAX - 7,
    UINT64_MAX,
};

static const char text[] = "__kernel void k(__global float *a) {}";

/* The status of a compile for running, as it would be without a cache. */
static kiln_status go_through(bool *out_opened)
{
    rig r;
    kn_artifact artifact;
    void *live = NULL, *loaded = NULL;
    *out_opened = rig_open(&r, NULL);
    if (!*out_opened) {
        return KILN_E_UNAVAILABLE;
    }
    free(rig_identity(&r));
    const kiln_source source = rig_source(text);
    kiln_status status = rig_compile(&r, &source, &artifact, &live, NULL);
    if (artifact.base.size > 0) {
        (void)rig_load(&r, &source, &artifact, &loaded, NULL);
    }
    if (loaded != NULL) {
        kn_backend_opencl.device->program_unload(r.device, loaded);
    }
    if (live != NULL) {
        kn_backend_opencl.device->program_unload(r.device, live);
    }
    kn_artifact_deinit(&artifact);
    rig_close(&r);
    return status;
}

/* The last line says where it was. */
static int lie_about(const char *query)
{
    char lie[128];
    bool opened = false;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++) {
            (void)snprintf(lie, sizeof(lie), "%s %s %" PRIu64, query, kinds[k], numbers[n]);
            (void)printf("%s\n", lie);
            (void)fflush(stdout);
            if (setenv("FAKE_LIE", lie, 1) != 0) {
                return 1;
            }
            const kiln_status status = go_through(&opened);
            /* A binary that cannot be read back costs the cache, not the program. */
            if (strncmp(query, "clGetProgramInfo", strlen("clGetProgramInfo")) == 0 &&
                (!opened || status != KILN_OK)) {
                (void)printf("the build failed with %s\n", kiln_status_name(status));
                return 2;
            }
        }
    }
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static void no_lie_of_a_driver_damages_memory(void **state)
{
    int bad = 0;
    child_variant = "good";
    child_limit_ns = UINT64_C(120000000000);
    for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        const char *argv[] = {NULL, queries[i], NULL};
        if (child_run((const char *)*state, argv, NULL) != 0 || child_last.signal != 0) {
            const size_t length = strlen(child_last.output);
            print_error("%s: exit code %d, signal %d%s after ...%s\n", queries[i],
                        child_last.exit_code, child_last.signal,
                        child_last.timed_out ? ", too long" : "",
                        child_last.output + (length > 200 ? length - 200 : 0));
            bad++;
        }
    }
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        no_lie_of_a_driver_damages_memory, kt_tmpdir_setup, kt_tmpdir_teardown)};
    return argc == 2 ? lie_about(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
