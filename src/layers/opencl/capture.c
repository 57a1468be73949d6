/* See build.h, and docs/decisions/0012: reading what PoCL has of a program, when the application
 * has no more use for it: all of its references are released, or the process exits. The program is
 * the application's own, and nothing is retained for it. */
#include "layers/opencl/build.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "dropin/opencl_budget.h"
#include "dropin/opencl_kept.h"
#include "dropin/opencl_make.h"
#include "dropin/opencl_worth.h"
#include "interpose/session.h"
#include "interpose/uncancelled.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

/* As the budget sees it: time in which nobody worked is not a process's time. */
static uint64_t now_of_process(void)
{
    const uint64_t now = kn_clock_now(), busy = kn_clock_busy();
    const uint64_t began = kn_opencl_budget_began();
    return now > began && now - began > busy ? began + busy : now;
}

static size_t count_kernels_of(const kn_layer_program *program)
{
    size_t kernels = 0;
    return kn_layer_target()->clGetProgramInfo(program->handle, CL_PROGRAM_NUM_KERNELS,
                                               sizeof(kernels), &kernels, NULL) == CL_SUCCESS
               ? kernels
               : 1;
}

/* Nobody in this program has asked for a cache. So its first start pays next to nothing, and a
 * later one no more than the builds have cost so far; of large programs it reads one. */
static bool may_read(const kn_layer_build *build, bool large, uint64_t expected)
{
    static atomic_flag large_read = ATOMIC_FLAG_INIT;
    const uint64_t now = now_of_process();
    if (!build->repeats) {
        return !large && kn_opencl_budget_allows_unasked(expected, now);
    }
    if (build->built_ns < expected) {
        return false;
    }
    return large ? !atomic_flag_test_and_set(&large_read) : kn_opencl_budget_allows(expected, now);
}

static kiln_status read_finished(const kn_layer_program *program, kiln_blob **out_blob,
                                 kiln_diag *diag)
{
    const kn_layer_build *build = program->build;
    const kn_opencl_wish *wish = build->wish;
    const kn_opencl_site site = {kn_layer_api(), wish->context, wish->devices[0]};
    kiln_status status = kn_pocl_check_linker(build->takes_linker, diag);
    return status == KILN_OK
               ? kn_opencl_make_answered(&site, wish, true, program->handle, out_blob, diag)
               : status;
}

/* PoCL may abort on a kernel that the application never launches. */
static kiln_status read_marked(const kn_layer_program *program, kiln_cache *cache,
                               kiln_blob **out_blob, kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(program->build->recipe);
    kn_cache_work work;
    if (!kn_cache_work_begin(cache, &key, "an OpenCL program", &work)) {
        return KILN_MISS;
    }
    const kiln_status status = read_finished(program, out_blob, diag);
    kn_cache_work_end(cache, &work);
    return status;
}

static void store_finished(const kn_layer_program *program, kiln_cache *cache, uint64_t expected)
{
    const uint64_t start = kn_clock_now();
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *blob = NULL;
    const kiln_status status = read_marked(program, cache, &blob, &diag);
    if (status == KILN_OK) {
        /* The store logs its own errors. */
        kn_ignore(
            kiln_cache_put(cache, program->build->recipe, blob, program->build->compile_ns, NULL));
    } else if (status != KILN_MISS) {
        kn_log_diag(KILN_LOG_INFO, "reading an OpenCL binary", &diag);
    }
    kiln_diag_clear(&diag);
    kiln_blob_release(blob);
    kn_opencl_budget_spend(expected, kn_clock_now() - start);
}

void kn_layer_capture_program(kn_layer_program *program)
{
    kn_layer_build *build = program->build;
    kiln_cache *cache = kn_session_cache();
    bool stored = false;
    if (build == NULL || build->recipe == NULL || cache == NULL) {
        return;
    }
    const kiln_key key = kiln_recipe_key(build->recipe);
    kiln_cache_contains(cache, &key, 1, &stored);
    const size_t kernels = stored ? 0 : count_kernels_of(program);
    const bool large = kernels > KN_OPENCL_READ_AT_END;
    const uint64_t expected =
        stored ? 0 : kn_opencl_worth_cost(kn_layer_api(), program->handle, kernels);
    if (expected > 0 && may_read(build, large, expected)) {
        if (large) {
            kn_opencl_worth_note(cache, build->recipe,
                                 0); /* if it is lost, the count begins again */
        }
        store_finished(program, cache, expected);
    } else if (expected > 0) {
        kn_log(
            KILN_LOG_DEBUG,
            "opencl: a program of %zu kernels is not stored yet: PoCL would compile them for %.0f "
            "ms, and its builds have cost %.0f ms (a later start stores it)",
            kernels, (double)expected / 1e6, (double)build->built_ns / 1e6);
        kn_opencl_worth_note(cache, build->recipe, build->built_ns);
    }
    kiln_recipe_destroy(build->recipe);
    build->recipe = NULL;
}

/* --- at exit ---------------------------------------------------------------------------------- */

static atomic_bool capture_unread; /* something waits for a read, and no driver comes down yet */
static atomic_uint capture_waits;  /* how often the application has waited for launches since */

static void capture_all(void)
{
    kn_layer_program *program = kn_handles_next(NULL);
    while (program != NULL) {
        /* A build that another thread is in goes down with the process. */
        if (kn_mutex_try(&program->lock)) {
            kn_layer_capture_program(program);
            kn_mutex_unlock(&program->lock);
        }
        program = kn_handles_next(program);
    }
    if (kn_session_cache() != NULL) {
        kn_cache_flush(kn_session_cache());
    }
}

/* Programs that the application leaves to the end of the process. */
static void capture_at_exit(void)
{
    capture_all();
    atomic_store(&capture_unread, false);
}

void kn_layer_capture_expect(void)
{
    atomic_store(&capture_unread, true);
}

/* What PoCL's compiler has opened while it compiled for a launch ends before what was registered
 * earlier, and a read would find it destroyed. So the handler is registered when a launch has been
 * waited for, and again after twice as many of them; what nobody waited for is not read at exit. */
void kn_layer_capture_waited(void)
{
    KN_UNCANCELLED;
    if (atomic_load_explicit(&capture_unread, memory_order_relaxed)) {
        const unsigned waits = atomic_fetch_add(&capture_waits, 1) + 1;
        if ((waits & (waits - 1)) == 0) {
            (void)atexit(capture_at_exit); /* where it fails nothing is read at exit */
        }
    }
}

/* Calls no driver. */
static void finish_assembling(void)
{
    if (kn_session_cache() != NULL) {
        kn_opencl_kept_finish(kn_session_cache());
        kn_cache_flush(kn_session_cache());
    }
}

void kn_layer_capture_assembles(void)
{
    static atomic_flag listed = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&listed)) {
        (void)atexit(finish_assembling); /* where it fails nobody waits */
    }
}

void kn_layer_capture_rest(void)
{
    if (atomic_load(&capture_unread)) {
        capture_all();
    }
}
