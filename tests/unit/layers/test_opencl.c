/* The OpenCL layer on a driver that knows which of its handles are alive: what threads, several
 * devices, IL, callbacks and a cache at fault make of it. The driver has lost nothing, and was
 * never called with a handle that it had not given or no longer knew. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/dropin/kept.h"
#include "apis/opencl/layer/build.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "support/cmocka.h"
#include "support/counters.h"
#include "support/strictcl/session.h"
#include "support/strictcl/strictcl.h"
#include "support/tmpdir.h"
#include "support/unended.h"
#include "sys/thread.h"

enum { THREADS = 8, ROUNDS = 25 };

static const kn_cl_calls *cl;
static const char text[] = "__kernel add(int *out) {}\n__kernel scale(int *out) {}\n";

const kn_cl_calls *kn_interpose_opencl(const cl_icd_dispatch *target);

static void begin(const strictcl_manner *manner)
{
    strictcl_open(manner);
    session_open(NULL);
    cl = kn_interpose_opencl(strictcl_dispatch());
    assert_non_null(cl);
}

static void end(void)
{
    strictcl_settle();
    const strictcl_counts counts = strictcl_count();
    assert_int_equal(counts.alive, 0);
    assert_int_equal(counts.strangers, 0);
    assert_null(kn_handles_next(NULL));
    session_close();
}

static cl_program create(const char *source)
{
    cl_int code = CL_INVALID_VALUE;
    cl_program program = cl->clCreateProgramWithSource(strictcl_context(), 1, &source, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return program;
}

static cl_int build(cl_program program, const char *options)
{
    return cl->clBuildProgram(program, 0, NULL, options, NULL, NULL);
}

static void text_of_build(cl_program program, unsigned device, cl_program_build_info name,
                          char out[64])
{
    assert_int_equal(
        cl->clGetProgramBuildInfo(program, strictcl_device(device), name, 64, out, NULL),
        CL_SUCCESS);
}

/* --- threads ---------------------------------------------------------------------------------- */

typedef struct crowd {
    cl_program shared; /* all threads have a reference */
    atomic_uint failures;
} crowd;

static void expect(crowd *all, bool holds)
{
    atomic_fetch_add(&all->failures, !holds);
}

static void use_kernel(crowd *all, cl_program program, const char *name)
{
    char words[64] = "";
    cl_program of = NULL;
    cl_int code = CL_SUCCESS;
    cl_uint count = 0;
    cl_kernel kernel = cl->clCreateKernel(program, name, &code);
    expect(all, kernel != NULL && code == CL_SUCCESS);
    expect(all, cl->clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &of, NULL) ==
                        CL_SUCCESS &&
                    of == program);
    expect(all, cl->clGetKernelInfo(kernel, CL_KERNEL_ATTRIBUTES, sizeof(words), words, NULL) ==
                        CL_SUCCESS &&
                    words[0] == 'r');
    expect(all, cl->clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(count), &count,
                                     NULL) == CL_SUCCESS &&
                    count > 0);
    expect(all, cl->clRetainKernel(kernel) == CL_SUCCESS);
    expect(all, cl->clReleaseKernel(kernel) == CL_SUCCESS);
    cl_kernel clone = cl->clCloneKernel(kernel, &code);
    expect(all, clone != NULL && cl->clReleaseKernel(clone) == CL_SUCCESS);
    expect(all, cl->clReleaseKernel(kernel) == CL_SUCCESS);
}

static void build_own(crowd *all, int round)
{
    const char *source = text;
    char options[32], log[64] = "";
    cl_int code = CL_SUCCESS;
    (void)snprintf(options, sizeof(options), "-DROUND=%d", round % 3);
    cl_program program = cl->clCreateProgramWithSource(strictcl_context(), 1, &source, NULL, &code);
    expect(all, cl->clBuildProgram(program, 0, NULL, options, NULL, NULL) == CL_SUCCESS);
    expect(all, cl->clGetProgramBuildInfo(program, strictcl_device(0), CL_PROGRAM_BUILD_LOG,
                                          sizeof(log), log, NULL) == CL_SUCCESS &&
                    strcmp(log, "built\n") == 0);
    cl_kernel kernel = cl->clCreateKernel(program, "add", &code);
    use_kernel(all, program, "scale");
    expect(all, cl->clReleaseProgram(program) == CL_SUCCESS);
    expect(all, cl->clReleaseKernel(kernel) == CL_SUCCESS);
}

static void link_own(crowd *all)
{
    const char *source = text;
    cl_int code = CL_SUCCESS;
    cl_program unit = cl->clCreateProgramWithSource(strictcl_context(), 1, &source, NULL, &code);
    expect(all, cl->clCompileProgram(unit, 0, NULL, "", 0, NULL, NULL, NULL, NULL) == CL_SUCCESS);
    cl_program linked =
        cl->clLinkProgram(strictcl_context(), 0, NULL, "", 1, &unit, NULL, NULL, &code);
    expect(all, linked != NULL && cl->clReleaseProgram(unit) == CL_SUCCESS);
    use_kernel(all, linked, "add");
    expect(all, cl->clReleaseProgram(linked) == CL_SUCCESS);
}

static void work_in_crowd(void *user)
{
    crowd *all = (crowd *)user;
    for (int i = 0; i < ROUNDS; i++) {
        build_own(all, i);
        link_own(all);
        use_kernel(all, all->shared, "add");
    }
    expect(all, cl->clReleaseProgram(all->shared) == CL_SUCCESS);
}

/* 8 threads create, build, ask and release; one program is all threads'. */
static void run_crowd(const strictcl_manner *manner)
{
    crowd all = {0};
    kn_thread *threads[THREADS];
    begin(manner);
    for (int shared = 0; shared < 2; shared++) { /* built by the driver, and from the cache */
        all.shared = create(text);
        assert_int_equal(build(all.shared, "-DSHARED"), CL_SUCCESS);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(cl->clRetainProgram(all.shared), CL_SUCCESS);
            assert_int_equal(kn_thread_start(work_in_crowd, &all, &threads[i], NULL), KILN_OK);
        }
        for (int i = 0; i < THREADS; i++) {
            kn_thread_join(threads[i]);
        }
        assert_int_equal(cl->clReleaseProgram(all.shared), CL_SUCCESS);
    }
    assert_int_equal(atomic_load(&all.failures), 0);
    end();
}

static void threads_create_build_and_release(void **state)
{
    run_crowd(&(strictcl_manner){.devices = 1, .counts_kernels = true});
    run_crowd(&(strictcl_manner){.devices = 2});
    run_crowd(&(strictcl_manner){.devices = 1, .is_pocl = true, .counts_kernels = true});
}

/* --- machine code of NVIDIA's PTX ------------------------------------------------------------- */

static const char nvidia_text[] = "// .version 9.0 .target sm_90, .entry add( .entry scale(\n"
                                  "__kernel add(int *out) {}\n__kernel scale(int *out) {}\n";

static void install_ptxas(const char *dir, const char *before)
{
    char command[1200];
    (void)snprintf(command, sizeof(command),
                   "mkdir -p %s/bin && printf '#!/bin/sh\\n%sprintf \"\\\\177ELF\"\\nexec cat\\n' "
                   ">%s/bin/ptxas && chmod 700 %s/bin/ptxas",
                   dir, before, dir, dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(setenv("CUDA_PATH", dir, 1), 0);
}

typedef struct toolkit {
    char *dir, *root;
} toolkit;

/* NVIDIA's driver with a cache, and a ptxas that does `before` first. */
static toolkit begin_toolkit(void **state, const char *before, unsigned build_ms)
{
    const toolkit all = {kt_path((const char *)*state, "toolkit"),
                         kt_path((const char *)*state, "cache")};
    install_ptxas(all.dir, before);
    begin(&(strictcl_manner){.devices = 1, .is_nvidia = true, .build_ms = build_ms});
    session_open(all.root);
    return all;
}

static void end_toolkit(toolkit all)
{
    end();
    assert_int_equal(unsetenv("CUDA_PATH"), 0);
    free(all.root);
    free(all.dir);
}

/* What the application gets of a build's binary. */
static size_t read_binary_of(cl_program program, unsigned char out[1024])
{
    size_t size = 0, used = 0;
    unsigned char *list[1] = {out};
    assert_int_equal(
        cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, &used),
        CL_SUCCESS);
    assert_int_equal(used, sizeof(size));
    assert_between(size, 1, 1024);
    assert_int_equal(
        cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(list), (void *)list, &used),
        CL_SUCCESS);
    assert_int_equal(used, sizeof(list));
    return size;
}

static void code_is_loaded_and_PTX_is_given(void **state)
{
    unsigned char first[1024] = {0}, later[1024] = {0};
    const toolkit all = begin_toolkit(state, "", 0);
    cl_program program = create(nvidia_text);
    assert_int_equal(build(program, ""), CL_SUCCESS);
    const size_t size = read_binary_of(program, first);
    assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
    for (size_t i = 0; i < 3; i++) { /* a hit of PTX has the code made; those after it load it */
        program = create(nvidia_text);
        assert_int_equal(build(program, ""), CL_SUCCESS);
        assert_int_equal(strictcl_count().code, i);
        assert_int_equal(strictcl_count().loaded, i + 1);
        assert_int_equal(read_binary_of(program, later), size);
        assert_memory_equal(first, later, size);
        assert_int_equal(cl->clGetProgramInfo(program, CL_PROGRAM_BINARIES, 1, later, NULL),
                         CL_INVALID_VALUE);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
        kn_opencl_kept_finish(kn_session_cache());
    }
    assert_int_equal(strictcl_count().compiled, 1);
    end_toolkit(all);
}

/* NVIDIA's driver writes past its memory when it is asked for a list of long names. Compiled, as
 * PTX from the cache and as machine code: it has its kernel, and nobody asks for a list. */
static void NVIDIA_is_not_asked_for_a_list_of_long_names(void **state)
{
    char name[301] = "", long_text[1024];
    memset(name, 'k', sizeof(name) - 1);
    (void)snprintf(long_text, sizeof(long_text),
                   "// .version 9.0 .target sm_90, .entry %s(\n__kernel %s(int *out) {}\n", name,
                   name);
    const toolkit all = begin_toolkit(state, "", 0);
    for (size_t i = 0; i < 4; i++) {
        cl_int code = CL_SUCCESS;
        cl_program program = create(long_text);
        assert_int_equal(build(program, ""), CL_SUCCESS);
        cl_kernel kernel = cl->clCreateKernel(program, name, &code);
        assert_int_equal(code, CL_SUCCESS);
        assert_int_equal(strictcl_count().code, i > 1 ? i - 1 : 0);
        assert_int_equal(cl->clReleaseKernel(kernel), CL_SUCCESS);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
        kn_opencl_kept_finish(kn_session_cache());
    }
    assert_int_equal(strictcl_count().compiled, 1);
    end_toolkit(all);
}

/* A program may end long before its code is made. The end of one that has loaded the text waits as
 * long as that took: otherwise each start would begin to make it, and none would have it. */
static void the_end_waits_as_long_as_it_is_worth(void **state)
{
    const toolkit all = begin_toolkit(state, "sleep 1\\n", 1500);
    for (size_t i = 0; i < 3; i++) {
        cl_program program = create(nvidia_text);
        assert_int_equal(build(program, ""), CL_SUCCESS);
        assert_int_equal(strictcl_count().code, i == 2);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
        kn_opencl_kept_finish(kn_session_cache());
    }
    assert_int_equal(strictcl_count().compiled, 1);
    end_toolkit(all);
}

/* --- several devices -------------------------------------------------------------------------- */

static void builds_for_each_set_of_devices(void **state)
{
    begin(&(strictcl_manner){.devices = 2});
    const cl_device_id both[2] = {strictcl_device(0), strictcl_device(1)};
    for (int run = 0; run < 2; run++) {
        for (cl_uint first = 0; first < 2; first++) {
            for (cl_uint count = 1; count + first <= 2; count++) {
                char log[64];
                size_t sizes[2] = {1, 1};
                cl_program program = create(text);
                assert_int_equal(cl->clBuildProgram(program, count, both + first, "-w", NULL, NULL),
                                 CL_SUCCESS);
                for (unsigned i = 0; i < 2; i++) {
                    cl_build_status status = 1;
                    const bool meant = i >= first && i < first + count;
                    assert_int_equal(cl->clGetProgramBuildInfo(program, both[i],
                                                               CL_PROGRAM_BUILD_STATUS,
                                                               sizeof(status), &status, NULL),
                                     CL_SUCCESS);
                    assert_int_equal(status, meant ? CL_BUILD_SUCCESS : CL_BUILD_NONE);
                    text_of_build(program, i, CL_PROGRAM_BUILD_LOG, log);
                    assert_string_equal(log, meant ? "built\n" : "");
                    text_of_build(program, i, CL_PROGRAM_BUILD_OPTIONS, log);
                    assert_string_equal(log, meant ? "-w" : "");
                }
                assert_int_equal(cl->clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES,
                                                      sizeof(sizes), sizes, NULL),
                                 CL_SUCCESS);
                assert_int_equal(sizes[0] > 0, first == 0);
                assert_int_equal(sizes[1] > 0, first + count == 2);
                assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
            }
        }
        assert_int_equal(session_count("compiled"), 3);
        assert_int_equal(session_count("memory"), run == 0 ? 0 : 3);
    }
    end();
}

/* --- IL --------------------------------------------------------------------------------------- */

static void il_is_the_drivers(void **state)
{
    begin(&(strictcl_manner){.devices = 1});
    for (size_t run = 1; run <= 2; run++) {
        cl_int code = CL_INVALID_VALUE;
        size_t size = 0;
        cl_program program =
            cl->clCreateProgramWithIL(strictcl_context(), text, sizeof(text) - 1, &code);
        assert_int_equal(code, CL_SUCCESS);
        assert_int_equal(build(program, ""), CL_SUCCESS);
        assert_int_equal(strictcl_count().il, run);
        assert_int_equal(strictcl_count().compiled, run);
        assert_int_equal(session_count("bypassed"), run);
        assert_int_equal(cl->clGetProgramInfo(program, CL_PROGRAM_IL, 0, NULL, &size), CL_SUCCESS);
        assert_int_equal(size, sizeof(text) - 1);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
    }
    end();
}

/* --- callbacks -------------------------------------------------------------------------------- */

typedef struct heard {
    cl_program program;
    atomic_uint calls;
} heard;

static void CL_CALLBACK hear(cl_program program, void *user)
{
    heard *ear = (heard *)user;
    if (ear->program == NULL || program == ear->program) {
        atomic_fetch_add(&ear->calls, 1);
    }
}

static void hear_each_build_once(const strictcl_manner *manner)
{
    static const char *const sources[] = {text, "broken __kernel add(int *out) {}"};
    begin(manner);
    for (int run = 0; run < 4; run++) {
        const bool broken = run % 2 != 0;
        heard ear = {.program = create(sources[run % 2])};
        const cl_int code = cl->clBuildProgram(ear.program, 0, NULL, "", hear, &ear);
        assert_int_equal(code, broken ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS);
        strictcl_settle();
        assert_int_equal(atomic_load(&ear.calls), 1);
        assert_int_equal(cl->clReleaseProgram(ear.program), CL_SUCCESS);
    }
    for (int run = 0; run < 2; run++) {
        cl_int code = CL_SUCCESS;
        heard ear = {.program = create(text)}, linked = {0};
        assert_int_equal(cl->clCompileProgram(ear.program, 0, NULL, "", 0, NULL, NULL, hear, &ear),
                         CL_SUCCESS);
        cl_program program = cl->clLinkProgram(strictcl_context(), 0, NULL, "", 1, &ear.program,
                                               hear, &linked, &code);
        assert_int_equal(code, CL_SUCCESS);
        strictcl_settle();
        assert_int_equal(atomic_load(&ear.calls), 1);
        assert_int_equal(atomic_load(&linked.calls), 1);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
        assert_int_equal(cl->clReleaseProgram(ear.program), CL_SUCCESS);
    }
    end();
}

static void each_build_is_heard_once(void **state)
{
    hear_each_build_once(&(strictcl_manner){.devices = 1});
    hear_each_build_once(&(strictcl_manner){.devices = 1, .calls_back_late = true});
    hear_each_build_once(
        &(strictcl_manner){.devices = 1, .calls_back_late = true, .fails_late = true});
}

/* --- trouble ---------------------------------------------------------------------------------- */

static void builds_as_the_driver_does(void)
{
    cl_program program = create(text);
    assert_int_equal(build(program, "-w"), CL_SUCCESS);
    assert_int_equal(build(program, "-bad"), CL_INVALID_BUILD_OPTIONS);
    cl_kernel kernel = cl->clCreateKernel(program, "add", NULL);
    assert_non_null(kernel);
    assert_int_equal(build(program, "-w"), CL_INVALID_OPERATION);
    assert_int_equal(cl->clReleaseKernel(kernel), CL_SUCCESS);
    assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
}

static void a_cache_at_fault_is_not_there(void **state)
{
    char *root = kt_tmpdir_create();
    char *file = kt_at(root, "file");
    kt_file_write(file, "", 0);
    begin(&(strictcl_manner){.devices = 1});
    session_close(); /* none */
    builds_as_the_driver_does();
    session_open(file); /* a file where a directory should be */
    builds_as_the_driver_does();
    session_open("/proc/nowhere");
    builds_as_the_driver_does();
    builds_as_the_driver_does();
    end();
    begin(&(strictcl_manner){.devices = 1, .refuses_binaries = true});
    for (size_t run = 1; run <= 3; run++) {
        builds_as_the_driver_does();
        assert_int_equal(session_count("compiled"), run);
    }
    end();
    kt_tmpdir_remove(root);
}

/* One build of one program, as a process does it: what has to be stored is, and the session's cache
 * is a new one then. */
static kt_counters build_alone(const char *root)
{
    kt_counters own;
    session_open(root);
    cl_program program = create(text);
    assert_int_equal(build(program, ""), CL_SUCCESS);
    cl_kernel kernel = cl->clCreateKernel(program, "add", NULL);
    assert_non_null(kernel);
    assert_int_equal(cl->clReleaseKernel(kernel), CL_SUCCESS);
    assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
    kn_opencl_kept_finish(kn_session_cache());
    kt_counters_own(kn_session_cache(), &own);
    return own;
}

/* Two processes did not live to see the end of loading a binary: it is built, and the entry stays.
 */
static void a_binary_that_two_processes_died_of_stays_and_is_not_loaded(void **state)
{
    char *root = kt_tmpdir_create();
    begin(&(strictcl_manner){.devices = 1});
    (void)build_alone(root);
    assert_int_equal(strictcl_count().compiled, 1);
    kt_end_in_load(root, NULL);
    kt_end_in_load(root, NULL);
    for (size_t run = 2; run <= 3; run++) {
        const kt_counters own = build_alone(root);
        assert_int_equal(strictcl_count().compiled, run);
        assert_int_equal(strictcl_count().loaded, 0);
        assert_int_equal(own.unended, 1);
        assert_int_equal(own.rejected, 0);
        assert_true(kt_has_entry(root, NULL));
    }
    end();
    kt_tmpdir_remove(root);
}

/* What something else has put under a program's key is not a refusal by the driver. */
static void answers_that_are_not_sound_are_made_again(void **state)
{
    char *root = kt_tmpdir_create();
    kiln_key key = {{0}};
    kiln_blob *stored = NULL, *junk = NULL;
    char target[KN_NAME_SIZE];
    begin(&(strictcl_manner){.devices = 1});
    (void)build_alone(root);
    session_open(root);
    assert_int_equal(kiln_cache_walk(kn_session_cache(), NULL, kt_take_key, &key, NULL), KILN_OK);
    assert_int_equal(kiln_cache_get(kn_session_cache(), &key, &stored, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_blob_create("a", 1, "junk", 4, &junk, NULL), KILN_OK);
    kn_recipe_target_in(stored->recipe, target);
    kn_stack_put(
        &kn_session_cache()->stack,
        &(kn_tier_put){.key = &key, .target = target, .recipe = stored->recipe, .blob = junk},
        true);
    kiln_blob_release(junk);
    kiln_blob_release(stored);
    kt_counters own = build_alone(root);
    assert_int_equal(strictcl_count().compiled, 2);
    assert_int_equal(own.rejected, 0);
    assert_int_equal(own.puts, 1);
    own = build_alone(root);
    assert_int_equal(own.rejected, 0);
    assert_int_equal(strictcl_count().compiled, 2);
    assert_int_equal(strictcl_count().loaded, 1);
    end();
    kt_tmpdir_remove(root);
}

/* PoCL compiles all kernels of a program that is read. */
static void nothing_is_read_that_nobody_keeps(void **state)
{
    static const char *const off[] = {"KILN_READONLY", "KILN_NO_CACHE", NULL};
    char *root = kt_tmpdir_create();
    begin(&(strictcl_manner){.devices = 1, .is_pocl = true});
    for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++) {
        if (off[i] != NULL) {
            (void)setenv(off[i], "1", 1);
        }
        session_open(off[i] != NULL ? root : NULL); /* and a cache in memory */
        builds_as_the_driver_does();
        assert_int_equal(session_count("compiled"), 1);
        assert_int_equal(strictcl_count().read, 0);
        if (off[i] != NULL) {
            (void)unsetenv(off[i]);
        }
    }
    end();
    kt_tmpdir_remove(root);
}

/* A loader is closed, and comes again: what was left behind is not looked at. */
static void a_loader_leaves_and_comes_again(void **state)
{
    begin(&(strictcl_manner){.devices = 1});
    for (int run = 0; run < 3; run++) {
        cl_program program = create(text);
        assert_int_equal(build(program, ""), CL_SUCCESS);
        cl_kernel kernel = cl->clCreateKernel(program, "add", NULL);
        assert_int_equal(cl->clReleaseProgram(program), CL_SUCCESS);
        assert_non_null(kernel);
        cl->leave();
        assert_null(kn_handles_next(NULL));
        strictcl_open(&(strictcl_manner){.devices = 1});
        cl = kn_interpose_opencl(strictcl_dispatch());
        assert_non_null(cl);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_create_build_and_release),
        kt_dir_test(code_is_loaded_and_PTX_is_given),
        kt_dir_test(NVIDIA_is_not_asked_for_a_list_of_long_names),
        kt_dir_test(the_end_waits_as_long_as_it_is_worth),
        cmocka_unit_test(builds_for_each_set_of_devices),
        cmocka_unit_test(il_is_the_drivers),
        cmocka_unit_test(each_build_is_heard_once),
        cmocka_unit_test(a_cache_at_fault_is_not_there),
        cmocka_unit_test(a_binary_that_two_processes_died_of_stays_and_is_not_loaded),
        cmocka_unit_test(answers_that_are_not_sound_are_made_again),
        cmocka_unit_test(nothing_is_read_that_nobody_keeps),
        cmocka_unit_test(a_loader_leaves_and_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
