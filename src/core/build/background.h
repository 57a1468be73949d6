/* Programs that are compiled in the background: what a kiln_program stands for until, and from
 * when, what was asked for is ready (kiln_build_options.background).
 *
 * A kn_background belongs to the program that stands for it and to the task that compiles; `fast`
 * goes from NULL to a program once, and both it and `fallback` live as long as the program does: so
 * a launch takes a pointer and needs no reference. */
#ifndef KILN_CORE_BACKGROUND_H
#define KILN_CORE_BACKGROUND_H

#include "core/build/program.h"
#include "core/build/source_copy.h"

typedef struct kn_background {
    atomic_uint references;
    kiln_device *device;
    kiln_program *fallback;
    char *fallback_entry; /* NULL: entries are called the same */
    _Atomic(kiln_program *) fast;
    kn_source_copy copy;
    kiln_key first_key;
    kn_thread_pool_task task;

    kn_mutex mutex; /* what follows */
    kn_cond ended;
    bool done;
    kiln_status status;
    kiln_diag diag;
} kn_background;

/* As kiln_program_build with that option. */
kiln_status kn_background_build(kiln_device *device, const kiln_source *source,
                                const kiln_build_options *options, kiln_program **out_program,
                                kiln_diag *diag);
void kn_background_release(kn_background *background);
const kiln_key *kn_background_key(const kn_background *background);

/* The program to run: itself, for one that stands for no other. */
static inline kiln_program *kn_program_now(const kiln_program *program)
{
    kn_background *background = program->background;
    if (background == NULL) {
        return (kiln_program *)(uintptr_t)program;
    }
    kiln_program *fast = atomic_load_explicit(&background->fast, memory_order_acquire);
    return fast != NULL ? fast : background->fallback;
}

/* What `entry` is called in the program `now`, which was taken from `program`. */
static inline const char *kn_program_entry_now(const kiln_program *program, const kiln_program *now,
                                               const char *entry)
{
    const kn_background *background = program->background;
    return background != NULL && now == background->fallback && background->fallback_entry != NULL
               ? background->fallback_entry
               : entry;
}

#endif
