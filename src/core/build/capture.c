/* Captures: one worker a runtime, started with the first; a pending capture holds its program.
 *
 * The first capture of a program that the cache has nothing of yet may take long: the driver
 * compiles every kernel for it, those included that nobody launches. So it waits until no new
 * launch has come for a moment. Where the runtime ends first, a program of a few kernels is
 * captured then, and others are left out: the next process compiles them again, as fast as the
 * driver does. So is a program that launches nothing: nobody knows that its kernels are worth
 * compiling. */
#include "core/build/capture.h"

#include "base/log.h"
#include "core/build/program.h"
#include "core/build/program_kernels.h"
#include "engine/late.h"
#include "sys/clock.h"

#define FINISH_LIMIT_NS (10ull * 1000000000ull)
#define QUIET_NS (300ull * 1000000ull)
#define ROUNDS_MAX 8

static kiln_status capture_program(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_program *program = (kiln_program *)user;
    kiln_device *device = program->device;
    kn_artifact artifact;
    kn_artifact_init(&artifact);
    kiln_status status = kn_hal_program_capture(&device->driver->in, device->handle,
                                                program->handle, &artifact.base, diag);
    if (status == KILN_OK && artifact.base.size == 0) {
        status = KILN_MISS;
    }
    /* The log and the list of kernels that a hit gives back are the compile's, whichever program
     * made the bytes. */
    if (status == KILN_OK && program->log != NULL) {
        status = kn_host.artifact_set_log(&artifact.base, program->log, SIZE_MAX);
    }
    if (status == KILN_OK) {
        status = kn_kernels_keep(program->kernels, program->kernels_size, &artifact.base);
    }
    if (status == KILN_OK) {
        status = kn_artifact_to_blob(&artifact, program->label, out_blob, diag);
    }
    kn_artifact_deinit(&artifact);
    return status;
}

static void capture_once(kiln_program *program)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kn_request request = {.cache = program->device->runtime->cache,
                                .recipe = program->recipe,
                                .name = "a launched program"};
    const kiln_status status =
        kn_late_publish(&request, program->compile_ns, capture_program, program, &diag);
    atomic_store(&program->later, false); /* one that failed is not tried again */
    if (status != KILN_OK && status != KILN_MISS) {
        kn_log_diag(KILN_LOG_INFO, "capturing a program after its launch", &diag);
    }
    kiln_diag_clear(&diag);
}

/* Waits until no launch has wanted a capture for QUIET_NS. False when the runtime ends first. */
static bool wait_for_quiet(kiln_runtime *runtime)
{
    kn_mutex_lock(&runtime->mutex);
    uint64_t until = atomic_load(&runtime->grew_at) + QUIET_NS;
    while (!runtime->capture_ends && kn_clock_now() < until) {
        (void)kn_cond_wait_until(&runtime->capture_hurry, &runtime->mutex, until);
        until = atomic_load(&runtime->grew_at) + QUIET_NS;
    }
    const bool quiet = !runtime->capture_ends;
    kn_mutex_unlock(&runtime->mutex);
    return quiet;
}

static bool has_few_kernels(const kiln_program *program)
{
    const kn_instance *in = &program->device->driver->in;
    return !kn_instance_can(in, KILN_CAP_REFLECT) ||
           kn_hal_program_entry(in, program->device->handle, program->handle, KN_CAPTURE_AT_END) ==
               NULL;
}

/* Whether a program is left out because its first capture would hold up the end of the process. */
static bool is_left_out(const kiln_program *program)
{
    if (!atomic_load(&program->later) || wait_for_quiet(program->device->runtime) ||
        has_few_kernels(program)) {
        return false;
    }
    kn_log(KILN_LOG_INFO,
           "a program of more than %d kernels is left out of the cache: the process ends, and the "
           "driver would compile all of them first (`kiln compile` or `kiln warm` stores it)",
           KN_CAPTURE_AT_END);
    return true;
}

static void capture_run(void *user)
{
    kiln_program *program = (kiln_program *)user;
    const kn_instance *in = &program->device->driver->in;
    kiln_runtime *runtime = program->device->runtime;
    const bool left_out = is_left_out(program);
    /* From here on a launch may queue the next one: this task's memory is free again. */
    atomic_store(&program->capture_queued, false);
    for (int round = 0; !left_out && round < ROUNDS_MAX && !atomic_load(&runtime->capture_stop);
         round++) {
        if (!kn_hal_program_grew(in, program->device->handle, program->handle)) {
            break;
        }
        capture_once(program);
    }
    kiln_program_release(program);
}

void kn_capture_consider(kiln_program *program)
{
    kiln_runtime *runtime = program->device->runtime;
    if (program->recipe == NULL || !kn_cache_stores(runtime->cache) ||
        !kn_hal_program_grew(&program->device->driver->in, program->device->handle,
                             program->handle)) {
        return;
    }
    atomic_store(&runtime->grew_at, kn_clock_now());
    if (atomic_exchange(&program->capture_queued, true)) {
        return;
    }
    kn_mutex_lock(&runtime->mutex);
    if (runtime->capture_worker == NULL) {
        (void)kn_worker_create(&runtime->capture_worker,
                               NULL); /* without one nothing is captured */
        runtime->finish_captures = kn_capture_finish;
    }
    kn_worker *worker = runtime->capture_worker;
    kn_mutex_unlock(&runtime->mutex);
    if (worker == NULL) {
        atomic_store(&program->capture_queued, false);
        return;
    }
    program->capture_task.run = capture_run;
    program->capture_task.user = kiln_program_retain(program);
    kn_worker_post(worker, &program->capture_task);
}

void kn_capture_finish(kiln_runtime *runtime)
{
    kn_mutex_lock(&runtime->mutex);
    kn_worker *worker = runtime->capture_worker;
    runtime->capture_worker = NULL;
    runtime->capture_ends = true;
    kn_cond_broadcast(&runtime->capture_hurry);
    kn_mutex_unlock(&runtime->mutex);
    if (worker != NULL) {
        if (!kn_worker_drain(worker, kn_clock_now() + FINISH_LIMIT_NS)) {
            kn_log(KILN_LOG_WARN, "fetching binaries from the driver takes too long: those still "
                                  "waiting are left out "
                                  "of the cache");
            atomic_store(&runtime->capture_stop, true);
        }
        kn_worker_destroy(worker);
    }
    kn_mutex_lock(&runtime->mutex);
    runtime->capture_ends = false;
    kn_mutex_unlock(&runtime->mutex);
}
