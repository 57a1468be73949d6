/* kiln config: what each setting is, and where it is set. */
#include <string.h>

#include <kiln/unstable/settings.h>

#include "cli/out.h"
#include "cli/session.h"
#include "cmd/doctor_settings.h"

typedef struct config_options {
    session_options session;
    bool all;
} config_options;

static const opt_spec specs[] = {
    {"all", 'a', OPT_FLAG, offsetof(config_options, all), NULL, "list what is not set, too"},
    SESSION_JSON_ROW(config_options),
    OPT_END};

typedef struct config_work {
    const cmd_context *context;
    const config_options *options;
    const opt_list *names; /* those to show; none: all */
    out_table table;
    json_t *settings, *files;
    size_t shown;
    bool troubled;
} config_work;

/* As a file, or as the environment calls it. */
static bool is_called(const char *variable, const char *name)
{
    const char *own = variable + strlen("KILN_");
    if (strcmp(variable, name) == 0) {
        return true;
    }
    for (; *own != '\0' && *name != '\0'; own++, name++) {
        if (*own != *name && (*own < 'A' || *own > 'Z' || *own - 'A' + 'a' != *name)) {
            return false;
        }
    }
    return *own == *name;
}

static bool is_setting_wanted(const config_work *work, const kiln_setting *setting)
{
    for (size_t i = 0; i < work->names->count; i++) {
        if (is_called(setting->name, work->names->items[i])) {
            return true;
        }
    }
    return work->names->count == 0 && (setting->value != NULL || work->options->all);
}

static kiln_status show_setting(void *user, const kiln_setting *setting)
{
    config_work *work = user;
    cli_pool *pool = work->context->pool;
    if (!is_setting_wanted(work, setting)) {
        return KILN_OK;
    }
    const bool urls = setting->value != NULL && strcmp(setting->name, "KILN_REMOTE") == 0;
    const char *value = urls ? doctor_settings_hide(pool, setting->value) : setting->value;
    const char *from = setting->line > 0
                           ? pool_format(pool, "%s:%u%s", setting->origin, setting->line,
                                         setting->locked ? ", locked" : "")
                           : setting->origin;
    if (from == NULL || (urls && value == NULL)) {
        return KILN_E_NOMEM;
    }
    work->shown++;
    if (!work->options->session.json) {
        const char *cells[] = {setting->name, value != NULL ? value : "-", from};
        out_table_add(&work->table, cells);
        return KILN_OK;
    }
    json_t *row = json_object();
    out_json_set(&row, "name", out_json_text(setting->name));
    out_json_set(&row, "value", value != NULL ? out_json_text(value) : json_null());
    out_json_set(&row, "from", out_json_text(setting->origin));
    out_json_set(&row, "line", out_json_u64(setting->line));
    out_json_set(&row, "locked", json_boolean(setting->locked));
    out_json_append(&work->settings, row);
    return KILN_OK;
}

static kiln_status show_file(void *user, const char *path, bool present, const char *trouble)
{
    config_work *work = user;
    work->troubled = work->troubled || *trouble != '\0';
    if (!work->options->session.json) {
        out_print(stdout, "%s: %s%s\n", path, present ? "read" : "not there",
                  *trouble != '\0' ? ", with trouble" : "");
        return KILN_OK;
    }
    json_t *row = json_object();
    out_json_set(&row, "path", out_json_text(path));
    out_json_set(&row, "present", json_boolean(present));
    out_json_set(&row, "trouble", out_json_text(trouble));
    out_json_append(&work->files, row);
    return KILN_OK;
}

static bool print_config(config_work *work)
{
    const kiln_status walked = kiln_settings_walk(show_setting, work);
    if (work->options->session.json) {
        const kiln_status listed = kiln_settings_files(show_file, work);
        json_t *root = json_object();
        out_json_set(&root, "settings", work->settings);
        out_json_set(&root, "files", work->files);
        return out_json(stdout, root) && walked == KILN_OK && listed == KILN_OK;
    }
    if (walked != KILN_OK || (work->shown > 0 && !out_table_print(&work->table, stdout))) {
        return false;
    }
    return work->names->count > 0 || kiln_settings_files(show_file, work) == KILN_OK;
}

static exit_code run_config(const cmd_context *context, void *fields, const opt_list *arguments)
{
    config_work work = {.context = context,
                        .options = fields,
                        .names = arguments,
                        .settings = json_array(),
                        .files = json_array()};
    work.table = out_table_make(context->pool, "setting|value|from");
    const bool good = print_config(&work);
    if (!work.options->session.json) {
        json_decref(work.settings);
        json_decref(work.files);
    }
    if (!good) {
        return cmd_no_memory(context);
    }
    if (work.shown < arguments->count) {
        kiln_diag diag = KILN_DIAG_INIT;
        (void)kiln_diag_set(&diag, KILN_E_INVALID, "kiln config --all lists them", "",
                            "there is no such setting among those named");
        return cmd_fail(context, &diag);
    }
    return work.troubled ? EXIT_USAGE : EXIT_FINE;
}

const cli_command cmd_config = {
    .name = "config",
    .usage = "[NAME...]",
    .summary = "Lists the settings, and where each is set",
    .details =
        "A setting is a variable of the environment, or a line of the user's configuration file\n"
        "(XDG_CONFIG_HOME/kiln/kiln.conf, or KILN_CONFIG) or of /etc/kiln.conf: cache_max_size =\n"
        "5G for KILN_CACHE_MAX_SIZE. The environment wins over the user's file, and that over\n"
        "/etc, but for what /etc locks. Exits 2 if a file, or a line of one, is refused.",
    .options = specs,
    .options_size = sizeof(config_options),
    .max_arguments = 100,
    .run = run_config,
};
