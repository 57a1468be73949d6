/* What a stage's output depends on besides its input: the identity of toolchain and target. */
#ifndef KILN_CORE_TARGET_H
#define KILN_CORE_TARGET_H

#include "kiln/cache.h"

#include "core/runtime/driver.h"

/* A sink that adds what it receives to a recipe. */
kiln_identity kn_identity_to_recipe(kiln_recipe *recipe);

/* Adds everything the backend says about a stage on a target, and the environment variables it
 * names, to a recipe. */
kiln_status kn_target_add_to(const kn_driver *driver, const kiln_stage *stage,
                             const kiln_target *target, kiln_recipe *recipe, kiln_diag *diag);

#endif
