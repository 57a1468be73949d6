/* An OCI image layout in a directory: one image, "kiln", whose layers hold packs, or a recording.
 * docs/reference/formats.md has what is in it. */
#ifndef KILN_PROGRAM_SHIP_LAYOUT_H
#define KILN_PROGRAM_SHIP_LAYOUT_H

#include <jansson.h>

#include <kiln/status.h>

#include "cli/pool.h"

#define LAYOUT_DIGEST 72 /* "sha256:", 64 digits, NUL */

typedef enum layout_kind { LAYOUT_PACKS, LAYOUT_RECORDING } layout_kind;

typedef struct ship_layout {
    cli_pool *pool;
    layout_kind kind;
    const char *path;
    json_t *layers;             /* descriptors */
    json_t *diffs;              /* digests of the layers, for the image's configuration */
    char digest[LAYOUT_DIGEST]; /* of the image, by which it can be pulled; set by finish */
} ship_layout;

/* Begins one in an empty directory; finish writes what names the layers; deinit frees. KILN_E_IO,
 * KILN_E_NOMEM. */
kiln_status layout_begin(ship_layout *layout, layout_kind kind, const char *path, cli_pool *pool,
                         kiln_diag *diag);
kiln_status layout_add(ship_layout *layout, const char *target, const void *data, size_t size,
                       kiln_diag *diag);
kiln_status layout_finish(ship_layout *layout, kiln_diag *diag);
void layout_deinit(ship_layout *layout);

/* Opens one that was downloaded: `what` is named where it does not hold that (KILN_E_CORRUPT). */
kiln_status layout_open(ship_layout *layout, layout_kind kind, const char *path, const char *what,
                        cli_pool *pool, kiln_diag *diag);
size_t layout_count(const ship_layout *layout);
/* A layer's target and its bytes, malloc'ed, whose digest is right. */
kiln_status layout_read(const ship_layout *layout, size_t index, const char *what,
                        const char **out_target, char **out_data, size_t *out_size,
                        kiln_diag *diag);

#endif
