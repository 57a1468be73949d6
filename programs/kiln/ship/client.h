/* skopeo, which copies between an OCI layout in a directory and a registry. It knows the
 * registries' ways of logging in, retries and proxies; kiln knows none of it. */
#ifndef KILN_PROGRAM_SHIP_CLIENT_H
#define KILN_PROGRAM_SHIP_CLIENT_H

#include <stdbool.h>

#include <kiln/status.h>

#include "cli/pool.h"

/* "oci://registry/name:tag", or with "oci+http://" for a registry without TLS, taken apart. */
typedef struct client_place {
    const char *name; /* "registry/name:tag" */
    bool plain;       /* without TLS */
} client_place;

/* Whether a word is meant as one; client_parse says what is wrong with it (KILN_E_INVALID). */
bool client_means_place(const char *word);
kiln_status client_parse(const char *word, client_place *out_place, kiln_diag *diag);

/* Copies the image "kiln" of the layout to the place, or back. KILN_E_UNSUPPORTED: there is no
 * skopeo. KILN_E_CORRUPT: a digest does not match. KILN_E_UNAVAILABLE with skopeo's own words. */
kiln_status client_upload(const char *layout, const client_place *place, cli_pool *pool,
                          kiln_diag *diag);
kiln_status client_download(const client_place *place, const char *layout, cli_pool *pool,
                            kiln_diag *diag);

#endif
