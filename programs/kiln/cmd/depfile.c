/* Blanks, '#' and '$' are quoted as gcc quotes them. */
#include "cmd/depfile.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/explain.h>

#include "cli/host.h"

typedef struct depfile {
    char *text;
    size_t length, room;
} depfile;

static bool append_depfile(depfile *list, const char *text, size_t length)
{
    if (list->length + length > list->room) {
        const size_t room = 2 * (list->length + length) + 256;
        char *grown = realloc(list->text, room);
        if (grown == NULL) {
            return false;
        }
        list->text = grown;
        list->room = room;
    }
    memcpy(list->text + list->length, text, length);
    list->length += length;
    return true;
}

static bool append_quoted(depfile *list, const char *path)
{
    bool good = true;
    for (const char *at = path; good && *at != '\0'; at++) {
        if (*at == ' ' || *at == '\t' || *at == '#') {
            /* A backslash before a blank is quoted, too. */
            for (const char *back = at; good && back > path && back[-1] == '\\'; back--) {
                good = append_depfile(list, "\\", 1);
            }
            good = good && append_depfile(list, "\\", 1);
        } else if (*at == '$') {
            good = append_depfile(list, "$", 1);
        }
        good = good && append_depfile(list, at, 1);
    }
    return good;
}

static kiln_status add_path(void *user, const char *path)
{
    static const char next[] = " \\\n ";
    depfile *list = user;
    const bool here = path[0] == '.' && path[1] == '/'; /* as build systems write it */
    return append_depfile(list, next, sizeof(next) - 1) &&
                   append_quoted(list, here ? path + 2 : path)
               ? KILN_OK
               : KILN_E_NOMEM;
}

kiln_status depfile_write(const char *path, const char *output, const char *file,
                          kiln_runtime *runtime, const char *target, const kiln_source *source,
                          kiln_diag *diag)
{
    depfile list = {NULL, 0, 0};
    kiln_status status = append_quoted(&list, output) && append_depfile(&list, ":", 1)
                             ? add_path(&list, file)
                             : KILN_E_NOMEM;
    if (status == KILN_OK) {
        status = kiln_compile_headers(runtime, target, source, add_path, &list, diag);
    }
    if (status == KILN_OK && !append_depfile(&list, "\n", 1)) {
        status = KILN_E_NOMEM;
    }
    if (status == KILN_E_NOMEM) {
        (void)kiln_diag_set(diag, status, NULL, path, "out of memory");
    } else if (status == KILN_OK) {
        status = host_write_file(path, list.text, list.length, diag);
    }
    free(list.text);
    return status;
}
