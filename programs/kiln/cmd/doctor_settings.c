/* See doctor_settings.h. */
#include "cmd/doctor_settings.h"

#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>
#include <kiln/unstable/settings.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/opt.h"
#include "cli/out.h"

#define PREFIX "KILN_"
enum { PREFIX_LENGTH = 5, NAMES_MAX = DOCTOR_SETTINGS_MAX };

/* --- unknown variables ------------------------------------------------------------------------ */

typedef struct known_names {
    doctor_problems *problems;
    const char *names[NAMES_MAX + 1]; /* without their prefix */
    size_t count;
} known_names;

static kiln_status note_name(void *user, const kiln_setting *setting)
{
    known_names *known = user;
    if (known->count < NAMES_MAX) {
        known->names[known->count++] = setting->name + PREFIX_LENGTH;
    }
    return KILN_OK;
}

/* What kiln sets itself, and what its tests set. */
static bool is_internal(const char *name)
{
    static const char *const starts[] = {"AUDIT_",      "EXEC_REPORT", "FAKE",
                                         "NVRTC_AGAIN", "TEST_",       "TRITON"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* A variable without a neighbour may be a build's or a test's: only a misspelling is a problem. */
static void check_name(void *user, const char *variable)
{
    known_names *known = user;
    char name[80];
    char fix[120];
    const size_t length = strcspn(variable, "=");
    if (strncmp(variable, PREFIX, PREFIX_LENGTH) != 0 || length >= sizeof(name)) {
        return;
    }
    memcpy(name, variable, length);
    name[length] = '\0';
    const char *own = name + PREFIX_LENGTH;
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->names[i], own) == 0) {
            return;
        }
    }
    const char *nearest = is_internal(own) ? NULL : opt_nearest(known->names, own);
    if (nearest != NULL) {
        (void)snprintf(fix, sizeof(fix), "did you mean " PREFIX "%s?", nearest);
        doctor_problem_add(known->problems, EXIT_USAGE, name, "kiln reads no such variable", fix);
    }
}

/* --- values ----------------------------------------------------------------------------------- */

/* The variable that a message names; NULL: none. */
static const char *named_variable(cli_pool *pool, const kiln_diag *diag)
{
    const char *at = strstr(diag->what, PREFIX);
    return at != NULL ? pool_text(pool, at, strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")) : NULL;
}

/* False: it cannot be taken out, or it is none of the variables. */
static bool leave_out(doctor_problems *problems, kiln_diag *diag)
{
    const char *name = named_variable(problems->pool, diag);
    const bool known = name != NULL && host_variable(problems->pool, name) != NULL;
    doctor_problem_add(problems, EXIT_USAGE, known ? name : diag->what, diag->why, diag->fix);
    kiln_diag_clear(diag);
    return known && host_set_variable(name, NULL);
}

static kiln_status check_file(void *user, const char *path, bool present, const char *trouble)
{
    (void)present;
    if (*trouble != '\0') {
        doctor_problem_add(user, EXIT_USAGE, path, trouble, "correct the file; see kiln config");
    }
    return KILN_OK;
}

static kiln_status read_cache_options(kiln_diag *diag)
{
    kiln_cache_options options = {0};
    return kiln_cache_options_init(&options, diag);
}

static kiln_status read_runtime_options(kiln_diag *diag)
{
    kiln_runtime_options options = {0};
    return kiln_runtime_options_init(&options, diag);
}

static void check_options(doctor_problems *problems, kiln_status (*read)(kiln_diag *diag))
{
    kiln_diag diag = KILN_DIAG_INIT;
    for (size_t i = 0; i < NAMES_MAX && read(&diag) != KILN_OK; i++) {
        if (!leave_out(problems, &diag)) {
            break;
        }
    }
    kiln_diag_clear(&diag);
}

/* Of a variable that is a list of words; `words` ends with NULL. */
static void check_words(doctor_problems *problems, const char *name, const char *const *words,
                        const char *fix)
{
    const char *value = host_variable(problems->pool, name);
    for (const char *at = value; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ", ");
        const char *word = pool_text(problems->pool, at, length);
        bool found = length == 0;
        for (size_t i = 0; !found && word != NULL && words[i] != NULL; i++) {
            found = strcmp(words[i], word) == 0;
        }
        if (!found && word != NULL) {
            const char *nearest = opt_nearest(words, word);
            const char *why = pool_format(problems->pool, "it cannot be \"%.60s\"", word);
            const char *meant =
                nearest != NULL ? pool_format(problems->pool, "did you mean %s?", nearest) : NULL;
            doctor_problem_add(problems, EXIT_USAGE, name, why != NULL ? why : word,
                               meant != NULL ? meant : fix);
            return;
        }
        at += length + (at[length] != '\0');
    }
}

static void check_number(doctor_problems *problems, const char *name)
{
    const char *value = host_variable(problems->pool, name);
    uint64_t number = 0;
    if (value != NULL && *value != '\0' && !opt_parse_count(value, &number)) {
        doctor_problem_add(problems, EXIT_USAGE, name, "it is not a whole number",
                           "set it to one, or unset it");
    }
}

/* --- what is set ------------------------------------------------------------------------------ */

/* URLs without the names and passwords before their '@': what the doctor says is shown around. */
char *doctor_settings_hide(cli_pool *pool, const char *urls)
{
    char *shown = pool_text(pool, "", 0);
    for (const char *at = urls; shown != NULL && *at != '\0';) {
        const size_t blanks = strspn(at, " \t\r\n");
        const size_t length = strcspn(at + blanks, " \t\r\n");
        const char *url = at + blanks;
        size_t secret_end = length;
        while (secret_end > 0 && url[secret_end - 1] != '@') {
            secret_end--;
        }
        const char *scheme = strstr(url, "://");
        size_t before = scheme != NULL && scheme < url + length ? (size_t)(scheme - url) + 3 : 0;
        before = secret_end > 0 ? before : length;
        shown = pool_format(pool, "%s%.*s%.*s%s%.*s", shown, (int)blanks, at, (int)before, url,
                            secret_end > 0 ? "...@" : "",
                            (int)(secret_end > 0 ? length - secret_end : 0), url + secret_end);
        at = url + length;
    }
    return shown;
}

typedef struct setting_list {
    doctor_problems *problems;
    doctor_settings *settings;
} setting_list;

static kiln_status keep_setting(void *user, const kiln_setting *setting)
{
    setting_list *list = user;
    cli_pool *pool = list->problems->pool;
    if (setting->value == NULL || list->settings->count == DOCTOR_SETTINGS_MAX) {
        return KILN_OK;
    }
    const bool urls = strcmp(setting->name, "KILN_REMOTE") == 0;
    const char *value = urls ? doctor_settings_hide(pool, setting->value) : setting->value;
    const char *line =
        value != NULL
            ? pool_format(pool, "%s=%s%s%s%s", setting->name, value, setting->line > 0 ? " (" : "",
                          setting->line > 0 ? setting->origin : "", setting->line > 0 ? ")" : "")
            : NULL;
    list->settings->lines[list->settings->count] = line;
    list->settings->count += line != NULL;
    return line != NULL ? KILN_OK : KILN_E_NOMEM;
}

void doctor_settings_examine(doctor_problems *problems, doctor_settings *out_settings)
{
    static const char *const levels[] = {"off", "error", "warn", "info", "debug", NULL};
    const char *backends[NAMES_MAX + 1] = {NULL};
    known_names known = {.problems = problems};
    for (size_t i = 0; i < NAMES_MAX && kiln_backend_name(i) != NULL; i++) {
        backends[i] = kiln_backend_name(i);
    }
    setting_list list = {problems, out_settings};
    out_settings->count = 0;
    problems->failed = problems->failed || kiln_settings_walk(keep_setting, &list) != KILN_OK ||
                       kiln_settings_walk(note_name, &known) != KILN_OK;
    host_each_variable(check_name, &known);
    problems->failed = kiln_settings_files(check_file, problems) != KILN_OK || problems->failed;
    check_options(problems, read_cache_options);
    check_options(problems, read_runtime_options);
    check_words(problems, "KILN_LOG", levels, "set it to off, error, warn, info or debug");
    check_words(problems, "KILN_BACKEND", backends, "kiln doctor lists the backends");
    check_number(problems, "KILN_CC_TIMEOUT");
    check_number(problems, "KILN_COMPILE_JOBS");
}

void doctor_settings_print(const doctor_settings *settings)
{
    for (size_t i = 0; i < settings->count; i++) {
        (void)fputs(i == 0 ? "\nEnvironment\n" : "", stdout);
        out_print(stdout, "  %s\n", settings->lines[i]);
    }
}
