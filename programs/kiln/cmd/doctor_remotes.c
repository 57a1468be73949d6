/* See doctor_remotes.h. */
#include "cmd/doctor_remotes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"

enum { KEYS_LIMIT = 1 << 20 };

/* --- keys ------------------------------------------------------------------------------------- */

static const char *find_set(cli_pool *pool, const char *name)
{
    const char *value = host_variable(pool, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static kiln_status count_nothing(void *user, const kiln_remote_report *report)
{
    (void)user;
    (void)report;
    return KILN_OK;
}

/* What opening remotes says of the keys, though there may be none. */
static void check_keys(doctor_problems *problems)
{
    static const char *const names[] = {"KILN_TRUST", "KILN_SIGNING_KEY", "KILN_TRUSTED_KEYS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        const char *others[2] = {names[(i + 1) % 3], names[(i + 2) % 3]};
        const char *kept[2] = {host_variable(problems->pool, others[0]),
                               host_variable(problems->pool, others[1])};
        for (size_t k = 0; k < 2; k++) {
            kept[k] = kept[k] != NULL ? pool_text(problems->pool, kept[k], strlen(kept[k])) : NULL;
            (void)host_set_variable(others[k], NULL);
        }
        const kiln_status status = kiln_remote_check("", count_nothing, NULL, &diag);
        for (size_t k = 0; k < 2; k++) {
            (void)host_set_variable(others[k], kept[k]);
        }
        if (status != KILN_OK) {
            const char *why = pool_format(problems->pool, "%s: %s", diag.what, diag.why);
            doctor_problem_add(problems, EXIT_USAGE, names[i], why != NULL ? why : diag.why,
                               diag.fix);
            (void)host_set_variable(names[i], NULL);
        }
        kiln_diag_clear(&diag);
    }
}

static size_t count_trusted(const char *path)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    kiln_diag diag = KILN_DIAG_INIT;
    if (host_read_file(path, KEYS_LIMIT, &text, &size, &diag) == KILN_OK) {
        for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
            at += *at == '\n';
            count += strncmp(at, "kiln-ed25519 ", 13) == 0;
        }
    }
    free(text);
    kiln_diag_clear(&diag);
    return count;
}

static void examine_keys(doctor_problems *problems, doctor_remotes *remotes)
{
    kiln_diag diag = KILN_DIAG_INIT;
    check_keys(problems);
    remotes->signing = find_set(problems->pool, "KILN_SIGNING_KEY");
    remotes->trusted = find_set(problems->pool, "KILN_TRUSTED_KEYS");
    if (remotes->signing != NULL &&
        kiln_signing_key_show(remotes->signing, remotes->public_key, &diag) != KILN_OK) {
        remotes->public_key[0] = '\0';
    }
    remotes->trusted_count = remotes->trusted != NULL ? count_trusted(remotes->trusted) : 0;
    kiln_diag_clear(&diag);
}

/* --- remotes ---------------------------------------------------------------------------------- */

static kiln_status keep_report(void *user, const kiln_remote_report *report)
{
    doctor_remotes *remotes = user;
    if (remotes->count < DOCTOR_REMOTES_MAX) {
        remotes->reports[remotes->count++] = *report;
    }
    return KILN_OK;
}

static void judge_remote(doctor_problems *problems, const kiln_remote_report *report)
{
    if (report->why[0] != '\0') {
        doctor_problem_add(problems, EXIT_CACHE, report->name, report->why,
                           "see kiln remote check and docs/operate/remotes.md");
    } else if (strncmp(report->takes, "nothing: signed", 15) == 0) {
        doctor_problem_add(problems, EXIT_CACHE, report->name, "nothing is taken from it",
                           "set KILN_TRUSTED_KEYS to a file with the keys that sign for it");
    }
}

void doctor_remotes_examine(doctor_problems *problems, doctor_remotes *out_remotes)
{
    const char *list = find_set(problems->pool, "KILN_REMOTE");
    char *good = pool_text(problems->pool, "", 0);
    memset(out_remotes, 0, sizeof(*out_remotes));
    examine_keys(problems, out_remotes);
    for (const char *at = list; at != NULL && *at != '\0';) {
        kiln_diag diag = KILN_DIAG_INIT;
        at += strspn(at, " \t\r\n");
        const size_t length = strcspn(at, " \t\r\n");
        const char *url = pool_text(problems->pool, at, length);
        const size_t before = out_remotes->count;
        at += length;
        if (url == NULL || length == 0) {
            continue;
        }
        if (kiln_remote_check(url, keep_report, out_remotes, &diag) == KILN_OK) {
            good = good != NULL ? pool_format(problems->pool, "%s %s", good, url) : NULL;
        } else {
            doctor_problem_add(problems, EXIT_USAGE, "KILN_REMOTE", diag.why, diag.fix);
        }
        for (size_t i = before; i < out_remotes->count; i++) {
            judge_remote(problems, &out_remotes->reports[i]);
        }
        kiln_diag_clear(&diag);
    }
    if (list != NULL) {
        problems->failed = problems->failed || good == NULL;
        (void)host_set_variable("KILN_REMOTE", good);
    }
}

/* --- printing --------------------------------------------------------------------------------- */

static const char *state_of(const kiln_remote_report *report)
{
    if (!report->reachable) {
        return "away";
    }
    return report->readable && report->writable ? "in use"
           : report->readable                   ? "reads"
           : report->writable                   ? "writes"
                                                : "unusable";
}

void doctor_remotes_print(const doctor_remotes *remotes)
{
    if (remotes->count > 0) {
        (void)puts("\nRemotes");
    }
    for (size_t i = 0; i < remotes->count; i++) {
        const kiln_remote_report *report = &remotes->reports[i];
        out_print(stdout, "  %-9s %s%s%s\n            takes: %s\n", state_of(report), report->name,
                  *report->why != '\0' ? ": " : "", report->why, report->takes);
    }
    if (remotes->signing != NULL || remotes->trusted != NULL) {
        (void)puts("\nKeys");
    }
    if (remotes->signing != NULL) {
        out_print(stdout, "  signing   %s: %s\n", remotes->signing, remotes->public_key);
    }
    if (remotes->trusted != NULL) {
        out_print(stdout, "  trusted   %s: %zu %s\n", remotes->trusted, remotes->trusted_count,
                  remotes->trusted_count == 1 ? "key" : "keys");
    }
}

json_t *doctor_remotes_json(const doctor_remotes *remotes)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < remotes->count; i++) {
        const kiln_remote_report *report = &remotes->reports[i];
        json_t *row = json_object();
        out_json_set(&row, "remote", out_json_text(report->name));
        out_json_set(&row, "reachable", json_boolean(report->reachable));
        out_json_set(&row, "readable", json_boolean(report->readable));
        out_json_set(&row, "writable", json_boolean(report->writable));
        out_json_set(&row, "takes", out_json_text(report->takes));
        out_json_set(&row, "why", out_json_text(report->why));
        out_json_append(&rows, row);
    }
    return rows;
}
