/* A pack in a registry of container images: one layer a target, each with a pack and the pack's
 * signature. */
#ifndef KILN_PROGRAM_SHIP_H
#define KILN_PROGRAM_SHIP_H

#include <kiln/unstable/pack.h>

#include "cli/cmd.h"
#include "ship/layout.h"

typedef struct ship_result {
    uint64_t entries, bytes; /* of all packs */
    size_t layers;
    bool is_signed;             /* pushed: all of them; pulled: by trusted keys */
    char digest[LAYOUT_DIGEST]; /* of the image that was pushed, else "" */
} ship_result;

/* Pushes what the pack at `path` holds, or all of `cache` where that is NULL, to `place`
 * ("oci://..."). */
kiln_status ship_push(const cmd_context *context, const char *place, kiln_cache *cache,
                      const char *path, ship_result *out_result, kiln_diag *diag);
/* Pulls it into a pack at `path`, or, where that is NULL, into `cache`. Packs that no trusted key
 * signed are refused (KILN_E_REJECTED), unless `unsigned_too` and no key is set. Nothing is stored
 * unless all of it is right. */
kiln_status ship_pull(const cmd_context *context, const char *place, kiln_cache *cache,
                      const char *path, bool unsigned_too, ship_result *out_result,
                      kiln_diag *diag);

#endif
