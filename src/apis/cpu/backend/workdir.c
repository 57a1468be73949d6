/* Temporary directories of compiles. */
#include "apis/cpu/backend/workdir.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"

#define MAX_TRIES 8
#define DEPTH_LIMIT 32

kiln_status kn_cpu_workdir_create(char **out_path, kiln_diag *diag)
{
    char *temporary = kn_paths_temporary();
    kiln_status status = KILN_E_BUSY;
    *out_path = NULL;
    for (int tries = 0; status == KILN_E_BUSY && tries < MAX_TRIES; tries++) {
        char name[64];
        kn_text_putf(name, sizeof(name), "kiln-cc-%016llx", (unsigned long long)kn_random_u64());
        char *path = temporary != NULL ? kn_path_join(temporary, name) : NULL;
        kiln_diag_clear(diag);
        status = path != NULL ? kn_file_make_new_dir(path, diag)
                              : kn_no_memory(diag, "making a temporary directory");
        if (status == KILN_OK) {
            *out_path = path;
        } else {
            free(path);
        }
    }
    free(temporary);
    return status;
}

typedef struct sweep {
    const char *dir;
    int depth;
} sweep;

static kiln_status sweep_name(void *user, const char *name)
{
    const sweep *s = (const sweep *)user;
    char *path = kn_path_join(s->dir, name);
    kn_file_facts facts;
    if (path == NULL) {
        return KILN_E_NOMEM;
    }
    if (kn_file_stat(path, false, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_DIR) {
        sweep inner = {path, s->depth + 1};
        if (inner.depth < DEPTH_LIMIT) {
            (void)kn_file_list(path, sweep_name, &inner, NULL);
        }
        (void)kn_file_remove_dir(path);
    } else {
        (void)kn_file_remove(path, NULL);
    }
    free(path);
    return KILN_OK;
}

/* What cannot be removed stays for the system's own cleaning: nothing can be done about it here. */
void kn_cpu_workdir_remove(char *path)
{
    if (path == NULL) {
        return;
    }
    sweep whole = {path, 0};
    (void)kn_file_list(path, sweep_name, &whole, NULL);
    (void)kn_file_remove_dir(path);
    free(path);
}

static bool stays_below(const char *name)
{
    if (name[0] == '\0' || name[0] == '/') {
        return false;
    }
    for (const char *part = name; part != NULL;) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || (length == 2 && memcmp(part, "..", 2) == 0)) {
            return false;
        }
        part = part[length] == '/' ? part + length + 1 : NULL;
    }
    return true;
}

kiln_status kn_cpu_workdir_write(const char *dir, const char *name, const void *data, size_t size,
                                 char **out_path, kiln_diag *diag)
{
    char *path = NULL;
    char *parent = NULL;
    kn_file *file = NULL;
    kiln_status status = KILN_OK;

    if (!stays_below(name)) {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "name it as it is included, relative and without \"..\"",
                             "header in memory", "\"%.200s\" is not a valid name", name);
    }
    path = kn_path_join(dir, name);
    parent = path != NULL ? kn_path_dir(path) : NULL;
    if (parent == NULL) {
        status = kn_no_memory(diag, "making a temporary directory");
        goto cleanup;
    }
    status = kn_file_make_dir(parent, diag);
    if (status == KILN_OK) {
        status = kn_file_open(path, true, &file, diag);
    }
    if (status == KILN_OK && size > 0) {
        status = kn_file_write_at(file, 0, data, size);
        if (status != KILN_OK) {
            (void)kiln_diag_set(diag, status, "free some space, or set TMPDIR",
                                "writing a temporary file", "%s cannot be written", path);
        }
    }
    if (status == KILN_OK && out_path != NULL) {
        *out_path = path;
        path = NULL;
    }
cleanup:
    kn_file_close(file);
    free(parent);
    free(path);
    return status;
}
