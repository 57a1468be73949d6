/* See build.h, and docs/decisions/0012: reading what PoCL has of a program, when the application
 * has no more use for it: all of its references are released, or the process exits. The program is
 * the application's own, and nothing is retained for it. */
#include "apis/opencl/layer/build.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "apis/opencl/dropin/budget.h"
#include "apis/opencl/dropin/kept.h"
#include "apis/opencl/dropin/make.h"
#include "base/log.h"
#include "interpose/session.h"
#include "interpose/uncancelled.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

/* PoCL may abort on a kernel that the application never launches. */
static kiln_status read_finished(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_layer_program *program = (const kn_layer_program *)user;
    const kn_layer_build *build = program->build;
    const kn_opencl_wish *wish = build->wish;
    const kn_opencl_site site = {kn_layer_api(), wish->context, wish->devices[0]};
    kiln_status status = kn_pocl_check_linker(build->takes_linker, diag);
    return status == KILN_OK
               ? kn_opencl_make_answered(&site, wish, true, program->handle, out_blob, diag)
               : status;
}

static void report_stored(const kiln_key *key, uint64_t took_ns)
{
    kn_session_report(&(kn_session_event){.what = "opencl",
                                          .name = "an OpenCL program",
                                          .origin = "stored",
                                          .took_ns = took_ns,
                                          .key = key});
}

/* 0: nothing of it was launched. */
static uint64_t expect_cost_of(const kn_layer_program *program)
{
    return kn_opencl_budget_cost(kn_layer_api(), program->handle, true);
}

/* What was not launched is stored for a user who has asked for it. */
static bool read_allowed(kn_layer_program *program, kiln_cache *cache)
{
    const uint64_t expected = expect_cost_of(program);
    const kn_request request = {
        .cache = cache, .recipe = program->build->recipe, .name = "an OpenCL program"};
    if (!kn_opencl_budget_is_lifted() &&
        (expected == 0 || !kn_opencl_budget_allows(expected, kn_opencl_budget_now()))) {
        kn_log(KILN_LOG_DEBUG,
               "opencl: a program is not stored: PoCL would compile its kernels for %.0f ms (run "
               "kiln exec --capture once)",
               (double)expected / 1e6);
        return false;
    }
    return kn_opencl_budget_publish(&request, program->build->compile_ns, read_finished, program,
                                    expected) == KILN_OK;
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
    const uint64_t start = kn_clock_now();
    kiln_cache_contains(cache, &key, 1, &stored);
    if (stored || read_allowed(program, cache)) {
        report_stored(&key, kn_clock_now() - start);
    }
    kiln_recipe_destroy(build->recipe);
    build->recipe = NULL;
}

/* --- at exit ---------------------------------------------------------------------------------- */

static atomic_bool capture_unread; /* something waits for a read, and no driver comes down yet */
static atomic_uint capture_waits;  /* how often the application has waited for launches since */

/* What PoCL's compiler has opened while it compiled for a launch ends before what was registered
 * earlier, and a read would find it destroyed: so launches that nobody waited for forbid one. */
static bool is_compiler_gone(void)
{
    bool launched = false;
    kn_layer_program *program = kn_handles_next(NULL);
    while (program != NULL) {
        launched = launched || expect_cost_of(program) > 0;
        program = kn_handles_next(program);
    }
    return launched && atomic_load(&capture_waits) == 0;
}

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
    if (atomic_exchange(&capture_unread, false) && !is_compiler_gone()) {
        capture_all();
    }
}

void kn_layer_capture_expect(void)
{
    if (!atomic_exchange(&capture_unread, true) && kn_opencl_budget_is_lifted()) {
        (void)atexit(capture_at_exit); /* where nothing will be launched */
    }
}

/* The handler is registered when a launch has been waited for, and again after twice as many of
 * them. */
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
