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
    const char *field; /* how messages call it when it came through the API */
    option_kind kind;
    size_t offset;
} option_row;

#define ROW(variable, kind, field)                                                                 \
    {                                                                                              \
        variable, "options." #field, kind, offsetof(kiln_runtime_options, field)                   \
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
static const char *origin_of(const option_row *row, const char *value)
{
    const char *set = kn_env_get(row->variable);
    return set == value ? row->variable : row->field;
}

static const option_row *row_at(size_t offset)
{
    size_t i = sizeof(rows) / sizeof(rows[0]) - 1;
    while (i > 0 && rows[i].offset != offset) {
        i--;
    }
    return &rows[i];
}
#define ROW_OF(field) row_at(offsetof(kiln_runtime_options, field))

static kiln_status check_names(const option_row *row, const char *names, kiln_diag *diag)
{
    if (names == NULL || kn_request_sound(names)) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "give names like opencl,cpu", origin_of(row, names),
                         "\"%s\" is not a comma-separated list of backend names", names);
}

kiln_status kn_options_check(const kiln_runtime_options *options, kiln_diag *diag)
{
    kiln_status status = check_names(ROW_OF(backend), options->backend, diag);
    status =
        status == KILN_OK ? check_names(ROW_OF(skip_probe), options->skip_probe, diag) : status;
    if (status != KILN_OK) {
        return status;
    }
    const char *path = options->backend_path;
    while (path != NULL && *path != '\0') {
        if (*path != KN_PATH_LIST_SEPARATOR[0] && !kn_path_is_absolute(path)) {
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "use absolute paths, with \"" KN_PATH_LIST_SEPARATOR
                                 "\" in between",
                                 origin_of(ROW_OF(backend_path), options->backend_path),
                                 "\"%s\" is not a list of absolute paths", options->backend_path);
        }
        path += strcspn(path, KN_PATH_LIST_SEPARATOR);
        path += *path == KN_PATH_LIST_SEPARATOR[0];
    }
    return KILN_OK;
}

kiln_status kn_options_show_hidden(bool *out_show, kiln_diag *diag)
{
    *out_show = false;
    return kn_env_bool("KILN_FAKE", out_show, diag);
}
