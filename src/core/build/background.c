/* Building in the background: the cache first, then something that can run at once, then the
 * compile as a task of the runtime's thread pool. */
#include "core/build/background.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/background.h"

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/build/build.h"

void kn_background_release(kn_background *background)
{
    if (background == NULL ||
        atomic_fetch_sub_explicit(&background->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    kiln_program_release(atomic_load(&background->fast));
    kiln_program_release(background->fallback);
    kn_source_copy_deinit(&background->copy);
    kiln_diag_clear(&background->diag);
    kn_cond_deinit(&background->ended);
    kn_mutex_deinit(&background->mutex);
    free(background->fallback_entry);
    free(background);
}

const kiln_key *kn_background_key(const kn_background *background)
{
    return &background->first_key;
}

/* --- the compile ------------------------------------------------------------------------------ */

static void end_background(kn_background *background, kiln_status status, kiln_diag *diag)
{
    kn_mutex_lock(&background->mutex);
    background->status = status;
    kn_diag_move(&background->diag, diag);
    background->done = true;
    kn_cond_broadcast(&background->ended);
    kn_mutex_unlock(&background->mutex);
}

static void compile_in_background(void *user, bool called_off)
{
    kn_background *background = (kn_background *)user;
    kn_trace *trace = background->device->runtime->trace;
    const char *name = background->copy.source.name;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    const uint64_t start = kn_trace_begin(trace);
    kiln_status status = KILN_E_CANCELLED;
    name = name != NULL ? name : "a kernel";
    /* Nobody else is left: the program was released before its compile began. */
    const bool wanted = atomic_load(&background->references) > 1;
    if (called_off || !wanted) {
        (void)kiln_diag_set(&diag, status, NULL, name, "it was cancelled before its compile began");
    } else {
        status = kn_build_program(background->device, &background->copy.source, NULL, NULL,
                                  &program, &diag);
        kn_trace_end(trace, start, "background compile",
                     &(kn_trace_about){.what = name,
                                       .detail = status == KILN_OK ? "switches" : "fallback stays",
                                       .device = background->device});
    }
    if (status == KILN_OK) {
        atomic_store_explicit(&background->fast, program, memory_order_release);
    } else if (status != KILN_E_CANCELLED) {
        kn_log_diag(KILN_LOG_WARN, "compiling in the background failed, the fallback stays", &diag);
    }
    end_background(background, status, &diag);
    kn_background_release(background);
}

/* --- the program ------------------------------------------------------------------------------ */

static void take_first_key(void *user, const kn_build *build)
{
    if (build->stage_count > 0 && build->runs[0].bypass[0] == '\0') {
        *(kiln_key *)user = build->runs[0].key;
    }
}

static kn_background *create_background(kiln_device *device, const kiln_source *source,
                                        const kiln_build_options *options, kiln_program *fallback)
{
    kn_background *background = (kn_background *)calloc(1, sizeof(*background));
    if (background == NULL) {
        return NULL;
    }
    atomic_init(&background->references, 1);
    atomic_init(&background->fast, NULL);
    kn_mutex_init(&background->mutex);
    kn_cond_init(&background->ended);
    background->device = device;
    background->task = (kn_thread_pool_task){.run = compile_in_background, .user = background};
    const bool named = options->fallback_entry != NULL;
    background->fallback_entry = named ? kn_text_copy(options->fallback_entry) : NULL;
    if (!kn_source_copy_init(&background->copy, source, true) ||
        (named && background->fallback_entry == NULL)) {
        kn_background_release(background);
        return NULL;
    }
    background->fallback = fallback;
    return background;
}

/* A program that stands for `fallback`, and posts the compile. Takes `fallback` on success. */
static kiln_program *stand_in(kiln_device *device, const kiln_source *source,
                              const kiln_build_options *options, const kiln_key *first_key,
                              kiln_program *fallback)
{
    kn_thread_pool *pool = kn_runtime_thread_pool(device->runtime, NULL);
    kiln_program *program = (kiln_program *)calloc(1, sizeof(*program));
    kn_background *background = pool != NULL && program != NULL
                                    ? create_background(device, source, options, fallback)
                                    : NULL;
    if (background == NULL) {
        free(program);
        return NULL;
    }
    atomic_init(&program->references, 1);
    program->device = device;
    program->background = background;
    background->first_key = *first_key;
    (void)atomic_fetch_add(&background->references, 1); /* the task's */
    kn_thread_pool_post(pool, &background->task, true);
    return program;
}

kiln_status kn_background_build(kiln_device *device, const kiln_source *source,
                                const kiln_build_options *options, kiln_program **out_program,
                                kiln_diag *diag)
{
    kiln_key first_key = {{0}};
    kn_build_extra extra = {.seen = take_first_key, .user = &first_key};
    kiln_build_options cached = *options;
    kiln_program *fallback = NULL;
    kiln_diag own = KILN_DIAG_INIT;
    cached.cache_only = true;
    kiln_status status = kn_build_program(device, source, &cached, &extra, out_program, &own);
    if (status != KILN_MISS) {
        if (status != KILN_OK) {
            kn_diag_move(diag, &own);
        }
        kiln_diag_clear(&own);
        return status;
    }
    kiln_diag_clear(&own);
    const kiln_source *generic =
        kn_source_taken(device, options->fallback, options->fallback_count);
    if (generic != NULL &&
        kn_build_program(device, generic, options, NULL, &fallback, &own) != KILN_OK) {
        kn_log_diag(KILN_LOG_WARN, "the fallback of a compile in the background", &own);
        kiln_diag_clear(&own);
    }
    if (fallback != NULL) {
        *out_program = stand_in(device, source, options, &first_key, fallback);
        if (*out_program != NULL) {
            return KILN_OK;
        }
        kiln_program_release(fallback);
    }
    return kn_build_program(device, source, options, NULL, out_program, diag); /* waits, as usual */
}

/* --- asking ----------------------------------------------------------------------------------- */

static kiln_status background_outcome(kiln_program *program, bool wait, kiln_diag *diag)
{
    kn_background *background = program->background;
    if (background == NULL) {
        return KILN_OK;
    }
    kn_mutex_lock(&background->mutex);
    while (wait && !background->done) {
        kn_cond_wait(&background->ended, &background->mutex);
    }
    const kiln_status status = background->done ? background->status : KILN_E_BUSY;
    if (background->done && status != KILN_OK) {
        kn_diag_copy(diag, &background->diag);
    }
    kn_mutex_unlock(&background->mutex);
    return status;
}

kiln_status kiln_program_ready(kiln_program *program, kiln_diag *diag)
{
    return background_outcome(program, false, diag);
}

kiln_status kiln_program_wait(kiln_program *program, kiln_diag *diag)
{
    return background_outcome(program, true, diag);
}
