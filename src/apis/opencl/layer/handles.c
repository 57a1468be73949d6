/* See handles.h. Two tables under one lock, which is held for a few instructions. */
#include "apis/opencl/layer/handles.h"

#include <stdint.h>
#include <stdlib.h>

#include "apis/opencl/layer/build.h"

#define BUCKETS 1024u

typedef struct layer_kernel {
    struct layer_kernel *next;
    cl_kernel handle;
    kn_layer_program *program;
    size_t references;
} layer_kernel;

static struct {
    kn_mutex lock;
    kn_layer_program *programs[BUCKETS];
    layer_kernel *kernels[BUCKETS];
} handles = {.lock = KN_MUTEX_INIT};

static size_t bucket_of(const void *handle)
{
    const uint64_t bits = (uint64_t)(uintptr_t)handle;
    return (size_t)((bits * 0x9E3779B97F4A7C15u) >> 54);
}

/* --- with the lock held ----------------------------------------------------------------------- */

static kn_layer_program **find_program(cl_program handle)
{
    kn_layer_program **at = &handles.programs[bucket_of(handle)];
    while (*at != NULL && (*at)->handle != handle) {
        at = &(*at)->next;
    }
    return at;
}

static layer_kernel **find_kernel(cl_kernel handle)
{
    layer_kernel **at = &handles.kernels[bucket_of(handle)];
    while (*at != NULL && (*at)->handle != handle) {
        at = &(*at)->next;
    }
    return at;
}

static void take_off(kn_layer_program *program)
{
    kn_layer_program **at = find_program(program->handle);
    if (*at == program) {
        *at = program->next;
    }
    program->gone = true;
}

/* --- programs --------------------------------------------------------------------------------- */

static void destroy_layer_program(kn_layer_program *program)
{
    kn_layer_build_destroy(program->build);
    kn_mutex_deinit(&program->lock);
    free(program);
}

void kn_handles_add_program(cl_program handle, bool given_il)
{
    kn_layer_program *program = calloc(1, sizeof(*program));
    if (program == NULL) {
        return;
    }
    program->handle = handle;
    program->references = 1;
    program->given_il = given_il;
    kn_mutex_init(&program->lock);
    kn_mutex_lock(&handles.lock);
    /* One that was released by a library that does not call the layer. */
    kn_layer_program *old = *find_program(handle);
    if (old != NULL) {
        take_off(old);
    }
    program->next = handles.programs[bucket_of(handle)];
    handles.programs[bucket_of(handle)] = program;
    const bool idle = old != NULL && old->pins == 0 && old->kernels == 0;
    kn_mutex_unlock(&handles.lock);
    if (idle) {
        destroy_layer_program(old);
    }
}

kn_layer_program *kn_handles_pin(cl_program handle)
{
    kn_mutex_lock(&handles.lock);
    kn_layer_program *program = *find_program(handle);
    if (program != NULL) {
        program->pins++;
    }
    kn_mutex_unlock(&handles.lock);
    return program;
}

kn_layer_program *kn_handles_pin_kernel(cl_kernel kernel)
{
    kn_mutex_lock(&handles.lock);
    const layer_kernel *known = *find_kernel(kernel);
    kn_layer_program *program = known != NULL ? known->program : NULL;
    if (program != NULL) {
        program->pins++;
    }
    kn_mutex_unlock(&handles.lock);
    return program;
}

void kn_handles_unpin(kn_layer_program *program)
{
    if (program == NULL) {
        return;
    }
    kn_mutex_lock(&handles.lock);
    program->pins--;
    const bool last = program->gone && program->pins == 0 && program->kernels == 0;
    kn_mutex_unlock(&handles.lock);
    if (last) {
        destroy_layer_program(program);
    }
}

kn_layer_program *kn_handles_next(kn_layer_program *last)
{
    kn_mutex_lock(&handles.lock);
    kn_layer_program *next = last != NULL && !last->gone ? last->next : NULL;
    size_t bucket = last != NULL ? bucket_of(last->handle) + 1 : 0;
    while (next == NULL && bucket < BUCKETS) {
        next = handles.programs[bucket++];
    }
    if (next != NULL) {
        next->pins++;
    }
    kn_mutex_unlock(&handles.lock);
    kn_handles_unpin(last);
    return next;
}

bool kn_handles_has_kernels(const kn_layer_program *program)
{
    kn_mutex_lock(&handles.lock);
    const bool has = program->kernels > 0;
    kn_mutex_unlock(&handles.lock);
    return has;
}

size_t kn_handles_count_references(const kn_layer_program *program)
{
    kn_mutex_lock(&handles.lock);
    const size_t count = program->references;
    kn_mutex_unlock(&handles.lock);
    return count;
}

static void free_kernels(layer_kernel *known)
{
    while (known != NULL) {
        layer_kernel *next = known->next;
        known->program->kernels--;
        free(known);
        known = next;
    }
}

void kn_handles_clear(void)
{
    kn_layer_program *all = NULL;
    kn_mutex_lock(&handles.lock);
    for (size_t i = 0; i < BUCKETS; i++) {
        free_kernels(handles.kernels[i]);
        handles.kernels[i] = NULL;
        while (handles.programs[i] != NULL) {
            kn_layer_program *program = handles.programs[i];
            take_off(program);
            program->pins++;
            program->next = all;
            all = program;
        }
    }
    kn_mutex_unlock(&handles.lock);
    while (all != NULL) {
        kn_layer_program *next = all->next;
        kn_handles_unpin(all);
        all = next;
    }
}

kn_handles_verdict kn_handles_retain_program(cl_program handle)
{
    kn_handles_verdict verdict = KN_HANDLES_DRIVER;
    kn_mutex_lock(&handles.lock);
    kn_layer_program *program = *find_program(handle);
    if (program != NULL) {
        verdict = program->held ? KN_HANDLES_DONE : KN_HANDLES_DRIVER;
        program->held = false;
        program->references++;
    }
    kn_mutex_unlock(&handles.lock);
    return verdict;
}

kn_handles_verdict kn_handles_release_program(cl_program handle,
                                              bool (*keep)(const kn_layer_program *program),
                                              kn_layer_program **out_program)
{
    kn_handles_verdict verdict = KN_HANDLES_DRIVER;
    *out_program = NULL;
    kn_mutex_lock(&handles.lock);
    kn_layer_program *program = *find_program(handle);
    if (program != NULL && program->references > 0 && --program->references == 0) {
        if (program->kernels == 0) {
            take_off(program);
            program->pins++;
            *out_program = program;
            verdict = KN_HANDLES_LAST;
        } else if (keep(program)) {
            program->held = true;
            verdict = KN_HANDLES_DONE;
        }
    }
    kn_mutex_unlock(&handles.lock);
    return verdict;
}

/* --- kernels ---------------------------------------------------------------------------------- */

bool kn_handles_add_kernel(cl_kernel kernel, kn_layer_program *program)
{
    layer_kernel *known = calloc(1, sizeof(*known));
    if (known == NULL) {
        return false;
    }
    *known = (layer_kernel){.handle = kernel, .program = program, .references = 1};
    kn_mutex_lock(&handles.lock);
    known->next = handles.kernels[bucket_of(kernel)];
    handles.kernels[bucket_of(kernel)] = known;
    program->kernels++;
    kn_mutex_unlock(&handles.lock);
    return true;
}

void kn_handles_retain_kernel(cl_kernel kernel)
{
    kn_mutex_lock(&handles.lock);
    layer_kernel *known = *find_kernel(kernel);
    if (known != NULL) {
        known->references++;
    }
    kn_mutex_unlock(&handles.lock);
}

kn_handles_verdict kn_handles_release_kernel(cl_kernel kernel, kn_layer_program **out_program)
{
    kn_handles_verdict verdict = KN_HANDLES_DRIVER;
    *out_program = NULL;
    kn_mutex_lock(&handles.lock);
    layer_kernel **at = find_kernel(kernel);
    layer_kernel *known = *at;
    if (known != NULL && --known->references == 0) {
        kn_layer_program *program = known->program;
        *at = known->next;
        program->kernels--;
        program->pins++;
        *out_program = program;
        if (program->kernels == 0 && program->references == 0 && !program->gone) {
            take_off(program);
            verdict = KN_HANDLES_LAST;
        }
        free(known);
    }
    kn_mutex_unlock(&handles.lock);
    return verdict;
}
