/* Recorded calls of the OpenCL drop-in and of the OpenCL layer: the same wish, for a device of this
 * machine. */
#ifndef KILN_REPLAY_OPENCL_H
#define KILN_REPLAY_OPENCL_H

#include "core/build/plan.h"
#include "replay/program.h"

/* A string of options with each -I in the program's tree; free(). `out_first` of PoCL: the
 * program's current directory, which it searches first, as one more -I. NULL: no memory. */
char *kn_replay_opencl_options(const kn_replay_program *program, const char *options);

/* Compiles for the device of `plan`, as kiln_recording_compile. */
kiln_status kn_replay_opencl(const kn_replay_program *program, kiln_runtime *runtime,
                             const kn_plan *plan, kiln_blob **out_blob, kiln_build_info *info,
                             kiln_diag *diag);

#endif
