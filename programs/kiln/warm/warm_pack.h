/* The pack that kiln warm writes. While kernels are compiled side by side, only the keys of their
 * stages are noted; the entries are read when the last compile has finished, in order of their
 * keys. So every entry is on disk by then, and equal entries give equal files. */
#ifndef KILN_PROGRAM_WARM_PACK_H
#define KILN_PROGRAM_WARM_PACK_H

#include <kiln/unstable/pack.h>

#include "cli/host.h"
#include "warm/targets.h"
#include "warm/warm.h"
#include "warm/warm_order.h"

typedef struct warm_pack warm_pack;

/* `mutex` guards `pool` and what is noted. The file is begun at once, so that a path that cannot be
 * written to fails before anything is compiled. */
kiln_status warm_pack_create(const char *path, kiln_cache *cache, cli_pool *pool, host_mutex *mutex,
                             warm_pack **out_pack, kiln_diag *diag);
/* Notes the stages of an item that has just been made; of one that bypasses the cache it notes in
 * the item why it will be missing. May be called side by side. */
kiln_status warm_pack_note(warm_pack *pack, const cli_target *target, const kernel_source *source,
                           warm_item *item, kiln_diag *diag);
/* The same for an item with one entry, by its key. */
kiln_status warm_pack_note_key(warm_pack *pack, const kiln_key *key, warm_item *item,
                               kiln_diag *diag);
/* Reads the entries of what was noted, and publishes the pack. */
kiln_status warm_pack_write(warm_pack *pack, kiln_pack_info *out_info, kiln_diag *diag);
void warm_pack_destroy(warm_pack *pack);

#endif
