/* The page of `kiln report`: report.html, with its style and script, around the report's JSON. */
#ifndef KILN_PROGRAM_PAGE_H
#define KILN_PROGRAM_PAGE_H

#include <jansson.h>

#include <kiln/status.h>

/* Writes the page to `path`, replacing the file as a whole. Frees `report`; NULL: memory ran out
 * while it was made. KILN_E_NOMEM, KILN_E_IO. */
kiln_status page_write(json_t *report, const char *path, kiln_diag *diag);

#endif
