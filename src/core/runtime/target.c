/* The sink that turns a backend's identity into fields of a recipe. */
#include "core/runtime/target.h"

#include "base/text.h"
#include "key/recipe.h"
#include "sys/env.h"

static void sink_text(void *user, const char *name, const char *value)
{
    kn_recipe_add_string((kiln_recipe *)user, name, value != NULL ? value : "");
}

static void sink_env(void *user, const char *variable)
{
    char name[64];
    const char *value = kn_env_get(variable);
    /* Absent adds nothing, so that it differs from empty. */
    if (value != NULL) {
        kn_text_putf(name, sizeof(name), "env.%s", variable);
        kn_recipe_add_string((kiln_recipe *)user, name, value);
    }
}

kiln_identity kn_identity_to_recipe(kiln_recipe *recipe)
{
    return (kiln_identity){recipe, sink_text, sink_env};
}

kiln_status kn_target_add_to(const kn_driver *driver, const kiln_stage *stage,
                             const kiln_target *target, kiln_recipe *recipe, kiln_diag *diag)
{
    const kiln_identity identity = kn_identity_to_recipe(recipe);
    const kiln_status status =
        kn_hal_identify(&driver->in, driver->in.handle, stage, target, &identity, diag);
    return status != KILN_OK ? status : kiln_recipe_status(recipe, diag);
}
