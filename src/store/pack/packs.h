/* The packs of a cache, in order, as one read-only tier. */
#ifndef KILN_STORE_PACKS_H
#define KILN_STORE_PACKS_H

#include <kiln/unstable/pack.h>

#include "store/format/tier.h"
#include "store/pack/pack.h"

#define KN_PACKS_MAX 64

typedef struct kn_packs {
    kiln_pack *packs[KN_PACKS_MAX];
    size_t count;
} kn_packs;

/* Opens the packs of a ':'-separated list (';' on Windows). One that cannot be used is one warning
 * and left out. *out_packs is NULL where there is none left. KILN_E_NOMEM. */
kiln_status kn_packs_open(const char *list, kn_packs **out_packs, kiln_diag *diag);
void kn_packs_close(kn_packs *packs);
bool kn_packs_contain(const kn_packs *packs, const kiln_key *key);
extern const kn_tier_ops kn_packs_ops;

#endif
