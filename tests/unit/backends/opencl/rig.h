/* Drives the OpenCL backend's own tables, without core: what a test of the backend needs in a few
 * lines. Everything asserts. */
#ifndef KILN_TESTS_OPENCL_RIG_H
#define KILN_TESTS_OPENCL_RIG_H

#include "hal/artifact.h"
#include "kiln/kiln.h"
#include "kiln/sys/backend.h"

typedef struct rig {
    void *instance, *device, *queue;
    kiln_target target;
    kiln_probe_report report;
} rig;

/* Opens the first device of the platform that `platform` (part of its name, NULL: any) means; false
 * if there is none. */
bool rig_open(rig *r, const char *platform);
void rig_close(rig *r);

/* The request for OpenCL C; and a text with add(buffer, value) and scale(buffer, value). */
kiln_source rig_source(const char *text);
extern const char rig_two_kernels[];

kiln_status rig_compile(rig *r, const kiln_source *source, kn_artifact *artifact, void **out_live,
                        kiln_diag *diag);
kiln_status rig_load(rig *r, const kiln_source *source, const kn_artifact *artifact,
                     void **out_program, kiln_diag *diag);

/* Launches entry(buffer, value) over `global` items and waits; returns the nanoseconds it took
 * until the queue was empty again. */
uint64_t rig_launch(rig *r, void *program, const char *entry, void *buffer, float value,
                    uint64_t global, uint64_t local);

/* The identity of the target as one text of "name=value" lines; malloc'ed. */
char *rig_identity(rig *r);

/* For "nothing may go wrong": fails the test with the diag's words. */
void rig_ok(kiln_status status, kiln_diag *diag);

/* A buffer of floats, all zero, and one of its items as it is now. */
void *rig_buffer(rig *r, size_t items);
float rig_item(rig *r, void *buffer, size_t index);

/* The last item after k(buffer, 1.0F) ran over 64 zeros. */
float rig_compile_and_run(rig *r, const kiln_source *source);

/* Behind the whole of kiln: a strict runtime of OpenCL and its device for a source, which stay the
 * caller's after a failure, too; and one launch of "k" without arguments. */
kiln_status rig_open_runtime(const kiln_source *source, kiln_runtime **out_runtime,
                             kiln_device **out_device);
kiln_status rig_launch_once(kiln_device *device, kiln_program *program);

#endif
