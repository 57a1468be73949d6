/* What the tests of the backends that take GLSL share: a runtime on one of them with a cache of its
 * own, and one small shader run through it. Everything asserts. */
#ifndef KILN_TESTS_GLSL_RIG_H
#define KILN_TESTS_GLSL_RIG_H

#include <kiln/kiln.h>
#include <kiln/sys/backend.h>

#include "hal/artifact.h"

typedef struct glsl_rig {
    kiln_cache *cache;
    kiln_runtime *runtime;
    kiln_device *device;
} glsl_rig;

/* Adds one to 64 numbers; the size of its work-groups is left open. */
extern const char glsl_increment[];

/* Leaves the test program (77) if the backend is not here. */
void glsl_open(glsl_rig *rig, const char *backend, const char *cache_dir);
void glsl_close(glsl_rig *rig);
kiln_source glsl_source(const char *text);
kiln_program *glsl_build(glsl_rig *rig, const char *text);
/* Runs glsl_increment in work-groups of `local` items and checks what it wrote. */
void glsl_run(glsl_rig *rig, kiln_program *program, uint64_t local);

/* Blocks that share a binding, as two views of packed weights do, are one argument. */
void glsl_two_views_are_one_buffer(const char *backend);

/* Entries cut short and with flipped bits: each is a miss and made again, and the driver is not
 * asked about it. `target`: part of the directory's name that holds the entries of the device. */
void glsl_damaged_entries_are_made_again(const char *backend, const char *target);

/* The artifact that a backend makes of a source of one stage, and what it says to one of these
 * bytes. */
void glsl_compile(const kiln_backend *backend, void *instance, void *device,
                  const kiln_source *source, kn_artifact *out_artifact);
kiln_status glsl_load(const kiln_backend *backend, void *device, const kiln_source *source,
                      const void *bytes, size_t size, kiln_diag *diag);

/* A rig with a program of one buffer of 256 numbers, to be launched. */
typedef struct glsl_bed {
    char *dir;
    glsl_rig rig;
    kiln_program *program;
    kiln_queue *queue;
    kiln_buffer *buffer;
    kiln_arg arg;
} glsl_bed;
void glsl_bed_init(glsl_bed *bed, const char *backend, const char *text);
/* Launches, and tells the last number. */
uint32_t glsl_bed_run(glsl_bed *bed, const kiln_launch *launch);
void glsl_bed_deinit(glsl_bed *bed);

#endif
