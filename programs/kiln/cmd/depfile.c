/* Blanks, '#' and '$' are quoted as gcc quotes them. */
#include "cmd/depfile.h"

#include <stdio.h>
#include <stdlib.h>

#include <kiln/unstable/explain.h>

#include "cli/host.h"

static void put_quoted(FILE *file, const char *path)
{
    for (const char *at = path; *at != '\0'; at++) {
        if (*at == ' ' || *at == '\t' || *at == '#') {
            /* A backslash before a blank is quoted, too. */
            for (const char *back = at; back > path && back[-1] == '\\'; back--) {
                (void)fputc('\\', file);
            }
            (void)fputc('\\', file);
        } else if (*at == '$') {
            (void)fputc('$', file);
        }
        (void)fputc(*at, file);
    }
}

static kiln_status add_path(void *user, const char *path)
{
    const bool here = path[0] == '.' && path[1] == '/'; /* as build systems write it */
    (void)fputs(" \\\n ", user);
    put_quoted(user, here ? path + 2 : path);
    return KILN_OK;
}

kiln_status depfile_write(const char *path, const char *output, const char *file,
                          kiln_runtime *runtime, const char *target, const kiln_source *source,
                          kiln_diag *diag)
{
    char *text = NULL;
    size_t size = 0;
    FILE *list = host_text_open(&text, &size);
    if (list == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, path, "out of memory");
    }
    put_quoted(list, output);
    (void)fputc(':', list);
    (void)add_path(list, file);
    kiln_status status = kiln_compile_headers(runtime, target, source, add_path, list, diag);
    (void)fputc('\n', list);
    if (status == KILN_OK && !host_text_finish(list, &text, &size)) {
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, path, "out of memory");
    }
    if (status == KILN_OK) {
        status = host_write_file(path, text, size, diag);
    }
    (void)fclose(list); /* memory */
    free(text);
    return status;
}
