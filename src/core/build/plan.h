/* A build for a named target, without a load: what compile.c compiles and explain.c looks at.
 *
 * The functions are in precompile_program.c, with kiln_compile. */
#ifndef KILN_CORE_PLAN_H
#define KILN_CORE_PLAN_H

#include "core/build/build.h"

typedef struct kn_plan {
    kn_driver *driver;
    kiln_device *device; /* a listed one, whose target is used; or NULL */
    kiln_target own;     /* a target by name alone */
    bool owned;
    bool started; /* build is to be cancelled */
    kn_build build;
} kn_plan;

/* Finds the target and starts the build; kn_plan_close in every case. `options` (may be NULL) must
 * live as long. Fails as kiln_compile. */
kiln_status kn_plan_open(kiln_runtime *runtime, const char *target, const kiln_source *source,
                         const kiln_build_options *options, kn_plan *out_plan, kiln_diag *diag);
void kn_plan_close(kn_plan *plan);

#endif
