/* Small facts that backends want to find again in the next process, kept in the cache. */
#ifndef KILN_CORE_MEMO_H
#define KILN_CORE_MEMO_H

#include "kiln/sys/backend.h"

struct kiln_cache;

/* A host whose memo functions use `cache` (NULL: it keeps nothing), which must outlive it. */
void kn_memo_host(struct kiln_cache *cache, kiln_host *out_host);

#endif
