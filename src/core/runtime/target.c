/* The sink that turns a backend's identity into fields of a recipe. */
#include "core/runtime/target.h"

#include <string.h>

#include "base/text.h"
#include "sys/env.h"

static void add_field(kn_identity_sink *sink, const char *name, const char *value)
{
    if (sink->status == KILN_OK) {
        sink->status = kiln_recipe_add_text(sink->recipe, name, value, strlen(value), sink->diag);
    }
}

static void sink_text(void *user, const char *name, const char *value)
{
    add_field((kn_identity_sink *)user, name, value != NULL ? value : "");
}

static void sink_env(void *user, const char *variable)
{
    char name[64];
    const char *value = kn_env_get(variable);
    /* Absent adds nothing, so that it differs from empty. */
    if (value != NULL) {
        kn_text_putf(name, sizeof(name), "env.%s", variable);
        add_field((kn_identity_sink *)user, name, value);
    }
}

kiln_identity kn_identity_to_recipe(kn_identity_sink *sink)
{
    return (kiln_identity){sink, sink_text, sink_env};
}

kiln_status kn_target_add_to(const kn_driver *driver, const kiln_stage *stage,
                             const kiln_target *target, kiln_recipe *recipe, kiln_diag *diag)
{
    kn_identity_sink sink = {recipe, diag, KILN_OK};
    kiln_identity identity = kn_identity_to_recipe(&sink);
    kiln_status status =
        kn_hal_identify(&driver->in, driver->in.handle, stage, target, &identity, diag);
    return status != KILN_OK ? status : sink.status;
}
