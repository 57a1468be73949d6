/* The list of settings; see kiln/unstable/settings.h. */
#include "kiln/unstable/settings.h"

#include "sys/env.h"

static const char *const names[] = {
#define X(name, place) "KILN_" #name,
#include "sys/settings.def"
#undef X
};

kiln_status kiln_settings_walk(kiln_setting_fn *visit, void *user)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < sizeof names / sizeof *names; i++) {
        const char *value = kn_env_get(names[i]);
        const kiln_setting setting = {.struct_size = sizeof setting,
                                      .name = names[i],
                                      .value = value,
                                      .origin = value != NULL ? "environment" : ""};
        status = visit(user, &setting);
    }
    return status;
}
