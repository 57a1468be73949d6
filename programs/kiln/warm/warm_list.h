/* What kiln warm is to make: a list of kernels, targets and variants, and its order. */
#ifndef KILN_PROGRAM_WARM_LIST_H
#define KILN_PROGRAM_WARM_LIST_H

#include "manifest/manifest.h"
#include "warm/targets.h"
#include "warm/warm.h"

typedef struct warm_list {
    warm_item *items;
    size_t count;
} warm_list;

/* Each kernel for each target; with `variants` its forms and variants one by one, otherwise, where
 * kiln tune chose another variant than the kernel's own form for a target's device, that one
 * besides. The targets are open. Shapes that data files have are settled. KILN_E_NOMEM. */
kiln_status warm_list_make(const cli_manifest *manifests, size_t manifest_count,
                           const cli_targets *targets, bool variants, cli_pool *pool,
                           warm_list *out_list, kiln_diag *diag);

/* A part of a list: item k is in part k modulo `count`, whatever machine makes it. */
typedef struct warm_shard {
    uint64_t index, count; /* index counts from 1; count 0: all of it */
} warm_shard;

/* "3/8". KILN_E_INVALID. */
kiln_status warm_shard_read(const char *text, warm_shard *out_shard, kiln_diag *diag);
void warm_list_take_shard(warm_list *list, const warm_shard *shard);

/* Drops what is in a language that its target does not take, but for one row of a kernel that has
 * nothing for a target. */
void warm_list_settle(warm_list *list);

#endif
