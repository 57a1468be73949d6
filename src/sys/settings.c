/* The list of settings and of files that hold them; see kiln/unstable/settings.h. */
#include "kiln/unstable/settings.h"

#include "sys/config.h"
#include "sys/env.h"

kiln_status kiln_settings_walk(kiln_setting_fn *visit, void *user)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < KN_SETTINGS; i++) {
        const char *name = kn_setting_variable(i);
        const char *value = kn_env_get(name);
        const kn_config_row *row = NULL;
        const kn_config_file *file = kn_config_find(name, &row);
        const bool from_file = file != NULL && value == row->value;
        const kiln_setting setting = {.struct_size = sizeof setting,
                                      .name = name,
                                      .value = value,
                                      .origin = value == NULL ? ""
                                                : from_file   ? file->path
                                                              : "environment",
                                      .line = from_file ? row->line : 0,
                                      .locked = from_file && row->locked};
        status = visit(user, &setting);
    }
    return status;
}

kiln_status kiln_settings_files(kiln_setting_file_fn *visit, void *user)
{
    const kn_config_file *file = NULL;
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && (file = kn_config_get(i)) != NULL; i++) {
        if (file->path[0] != '\0') {
            status = visit(user, file->path, file->present, file->trouble);
        }
    }
    return status;
}
