/* See audit.h. The report was written by other processes: nothing in it is trusted to be whole. */
#include "exec/audit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "exec/preload.h"

enum { REPORT_LIMIT = 64 << 20, FIELDS = 4 };
enum { FIELD_KIND, FIELD_PROCESS, FIELD_PATH, FIELD_REQUESTER };

static kiln_status no_memory(kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "auditing a program", "out of memory");
}

kiln_status exec_audit_add(cli_pool *pool, exec_environment *environment, const char *report,
                           bool serves, kiln_diag *diag)
{
    const char *libraries = environment->libraries;
    const char *rest = getenv("LD_AUDIT");
    const bool has_rest = rest != NULL && rest[0] != '\0';
    const char *auditor = pool_format(pool, "%s/libkiln-audit.so", libraries);
    if (auditor == NULL) {
        return no_memory(diag);
    }
    if (!host_exists(auditor)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the package kiln whole",
                             "auditing a program", "%s is missing", auditor);
    }
    auditor = exec_preload_path(pool, libraries, auditor);
    const char *list = auditor != NULL ? pool_format(pool, "%s%s%s", auditor, has_rest ? ":" : "",
                                                     has_rest ? rest : "")
                                       : NULL;
    exec_environment_add(environment, "LD_AUDIT", list);
    exec_environment_add(environment, "KILN_AUDIT_LIBEXEC", libraries);
    if (report != NULL) {
        exec_environment_add(environment, "KILN_AUDIT_REPORT", report);
    }
    if (serves) {
        exec_environment_add(environment, "KILN_AUDIT_SERVE", "1");
    }
    return environment->failed ? no_memory(diag) : KILN_OK;
}

/* --- the report ------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *directory)
{
    const size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && path[length] == '/';
}

static bool add_compiler(cli_pool *pool, const char *own, char *const fields[FIELDS],
                         exec_audit *audit)
{
    const bool is_process = strcmp(fields[FIELD_KIND], "compiler") == 0;
    const bool is_requested = is_below(fields[FIELD_REQUESTER], own);
    for (size_t i = 0; i < audit->count; i++) {
        exec_compiler *known = &audit->compilers[i];
        if (strcmp(known->path, fields[FIELD_PATH]) == 0 && known->is_requested == is_requested) {
            known->count++;
            return true;
        }
    }
    if (audit->count == EXEC_COMPILERS_MAX) {
        return true;
    }
    exec_compiler *row = &audit->compilers[audit->count++];
    *row = (exec_compiler){
        .path = pool_text(pool, fields[FIELD_PATH], strlen(fields[FIELD_PATH])),
        .requester = pool_text(pool, fields[FIELD_REQUESTER], strlen(fields[FIELD_REQUESTER])),
        .is_process = is_process,
        .is_ours = is_below(fields[FIELD_PATH], own),
        .is_requested = is_requested,
        .count = 1};
    return row->path != NULL && row->requester != NULL;
}

static bool add_loader(cli_pool *pool, const char *path, exec_audit *audit)
{
    for (size_t i = 0; i < audit->loader_count; i++) {
        if (strcmp(audit->loaders[i], path) == 0) {
            return true;
        }
    }
    if (audit->loader_count == EXEC_LOADERS_MAX) {
        return true;
    }
    const char *copy = pool_text(pool, path, strlen(path));
    audit->loaders[audit->loader_count] = copy;
    audit->loader_count += copy != NULL;
    return copy != NULL;
}

/* A layer stands above its loader, and answers for it. */
static void mark_loaders(exec_audit *audit)
{
    for (size_t i = 0; i < audit->count; i++) {
        for (size_t k = 0; k < audit->loader_count; k++) {
            exec_compiler *row = &audit->compilers[i];
            row->is_ours = row->is_ours || strcmp(row->path, audit->loaders[k]) == 0;
        }
    }
}

/* False when out of memory. */
static bool add_line(cli_pool *pool, const char *own, char *line, exec_audit *audit)
{
    char *fields[FIELDS];
    size_t count = 0;
    for (char *at = line; at != NULL && count < FIELDS; count++) {
        char *tab = strchr(at, '\t');
        fields[count] = at;
        if (tab != NULL) {
            *tab++ = '\0';
        }
        at = tab;
    }
    if (count < FIELDS) {
        return true;
    }
    const char *kind = fields[FIELD_KIND];
    if (strcmp(kind, "layer") == 0) {
        return add_loader(pool, fields[FIELD_REQUESTER], audit);
    }
    const bool is_library = strcmp(kind, "library") == 0;
    const bool is_compiler = strcmp(kind, "compiler") == 0;
    audit->processes += is_compiler || strcmp(kind, "process") == 0;
    return (!is_library && !is_compiler) || add_compiler(pool, own, fields, audit);
}

kiln_status exec_audit_read(cli_pool *pool, const exec_environment *environment, const char *path,
                            exec_audit *out_audit, kiln_diag *diag)
{
    char *data = NULL;
    size_t size = 0;
    memset(out_audit, 0, sizeof(*out_audit));
    kiln_status status = host_read_file(path, REPORT_LIMIT, &data, &size, diag);
    for (char *at = data; status == KILN_OK && at < data + size;) {
        char *end = memchr(at, '\n', (size_t)(data + size - at));
        if (end == NULL) {
            break; /* its writer was killed */
        }
        *end = '\0';
        status = add_line(pool, environment->libraries, at, out_audit) ? KILN_OK : no_memory(diag);
        at = end + 1;
    }
    mark_loaders(out_audit);
    free(data);
    return status;
}
