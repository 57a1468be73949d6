/* The runtime's options: one table of environment variables, and the check of their values.
 * The cache's own variables are the store's. */
#include <stddef.h>
#include <string.h>

#include "core/runtime/runtime.h"
#include "sized/sized.h"
#include "sys/env.h"
#include "sys/file.h"

typedef enum option_kind {
    OPTION_TEXT,
    OPTION_BOOL,
} option_kind;

typedef struct option_row {
    const char *variable;
    option_kind kind;
    size_t offset;
} option_row;

#define ROW(variable, kind, field)                                                                 \
    {                                                                                              \
        variable, kind, offsetof(kiln_runtime_options, field)                                      \
    }

static const option_row rows[] = {
    ROW("KILN_BACKEND", OPTION_TEXT, backend),
    ROW("KILN_DEVICE", OPTION_TEXT, device),
    ROW("KILN_BACKEND_PATH", OPTION_TEXT, backend_path),
    ROW("KILN_STRICT", OPTION_BOOL, strict),
    ROW("KILN_TRACE", OPTION_TEXT, trace),
    ROW("KILN_UNTUNED", OPTION_BOOL, untuned),
    ROW("KILN_FRESH_PROBE", OPTION_BOOL, fresh_probe),
    ROW("KILN_SKIP_PROBE", OPTION_TEXT, skip_probe),
};

/* `options` holds usable defaults in any case. */
static kiln_status read_environment(kiln_runtime_options *options, kiln_diag *diag)
{
    memset(options, 0, sizeof(*options));
    options->struct_size = sizeof(*options);
    kiln_status first = KILN_OK;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *field = (char *)options + rows[i].offset;
        kiln_status status = KILN_OK;
        if (rows[i].kind == OPTION_BOOL) {
            bool value = false;
            status = kn_env_bool(rows[i].variable, &value, first == KILN_OK ? diag : NULL);
            memcpy(field, &value, sizeof(value));
        } else {
            const char *value = kn_env_get(rows[i].variable);
            value = value != NULL && value[0] != '\0' ? value : NULL;
            memcpy(field, &value, sizeof(value));
        }
        first = first == KILN_OK ? status : first;
    }
    if (first == KILN_OK) {
        first = kn_options_check(options, diag);
        if (first != KILN_OK) {
            options->backend = NULL;
            options->backend_path = NULL;
            options->skip_probe = NULL;
        }
    }
    return first;
}

kiln_status kiln_runtime_options_init_sized(kiln_runtime_options *options, size_t size,
                                            kiln_diag *diag)
{
    kiln_runtime_options filled;
    kiln_status status = read_environment(&filled, diag);
    options->struct_size = size;
    kiln_status given = kn_sized_give(KN_SIZED(kiln_runtime_options), &filled, options,
                                      status == KILN_OK ? diag : NULL);
    return status == KILN_OK ? given : status;
}

/* The variable, if that is where the value came from. */
static const char *origin_of(const char *variable, const char *field, const char *value)
{
    return kn_env_get(variable) == value ? variable : field;
}

/* Names of a-z 0-9 _ -, with commas in between, no empty one. */
static bool is_name_list(const char *list)
{
    for (;;) {
        const size_t length = strspn(list, "abcdefghijklmnopqrstuvwxyz0123456789_-");
        if (length == 0 || length > 31 || (list[length] != ',' && list[length] != '\0')) {
            return false;
        }
        if (list[length] == '\0') {
            return true;
        }
        list += length + 1;
    }
}

static kiln_status check_names(const char *variable, const char *field, const char *names,
                               kiln_diag *diag)
{
    if (names == NULL || is_name_list(names)) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "give names like opencl,cpu",
                         origin_of(variable, field, names),
                         "\"%s\" is not a comma-separated list of backend names", names);
}

kiln_status kn_options_check(const kiln_runtime_options *options, kiln_diag *diag)
{
    kiln_status status = check_names("KILN_BACKEND", "options.backend", options->backend, diag);
    if (status == KILN_OK) {
        status = check_names("KILN_SKIP_PROBE", "options.skip_probe", options->skip_probe, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    const char *path = options->backend_path;
    while (path != NULL && *path != '\0') {
        if (*path != KN_PATH_LIST_SEPARATOR[0] && !kn_path_is_absolute(path)) {
            return kiln_diag_set(
                diag, KILN_E_INVALID,
                "use absolute paths, with \"" KN_PATH_LIST_SEPARATOR "\" in between",
                origin_of("KILN_BACKEND_PATH", "options.backend_path", options->backend_path),
                "\"%s\" is not a list of absolute paths", options->backend_path);
        }
        path += strcspn(path, KN_PATH_LIST_SEPARATOR);
        path += *path == KN_PATH_LIST_SEPARATOR[0];
    }
    return KILN_OK;
}
