/* See page.h. */
#include "page/page.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "page/page_parts.h"

/* In a script element "</script" ends the element and "<!--" changes how it is read, so no "<" may
 * be left. In JSON "<" occurs in strings only, where \u003c means the same. */
static void print_json(FILE *file, const char *json)
{
    for (; *json != '\0'; json++) {
        if (*json == '<') {
            (void)fputs("\\u003c", file);
        } else {
            (void)fputc(*json, file);
        }
    }
}

kiln_status page_write(json_t *report, const char *path, kiln_diag *diag)
{
    char *text = NULL;
    size_t size = 0;
    kiln_status status = KILN_E_NOMEM;
    char *json = report != NULL ? json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    FILE *file = json != NULL ? host_text_open(&text, &size) : NULL;
    json_decref(report);
    if (file == NULL) {
        goto cleanup;
    }
    (void)fputs(page_before_data, file);
    print_json(file, json);
    (void)fputs(page_after_data, file);
    if (host_text_finish(file, &text, &size)) {
        status = host_write_file(path, text, size, diag);
    }
    (void)fclose(file);
cleanup:
    free(text);
    free(json);
    return status == KILN_E_NOMEM ? diag_no_memory(diag, "making the page") : status;
}
