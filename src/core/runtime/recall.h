/* What a probe found, remembered in the cache's directory for the next start (docs/advanced.md). A
 * record is believed only if it was made by this very kiln, with these surroundings
 * (surroundings.h), every file that was mapped after the probe is the same, and it is not a day
 * old. It is a hint all the same: the code that opens the backend compares. */
#ifndef KILN_CORE_RECALL_H
#define KILN_CORE_RECALL_H

#include "core/runtime/apart.h"
#include "key/digest.h"
#include "kiln/runtime.h"
#include "kiln/sys/backend.h"

typedef struct kn_recalled_device {
    kiln_device_info info;
    uint32_t languages; /* bit n: it takes the kiln_language n */
} kn_recalled_device;

typedef struct kn_recall {
    kiln_status status;              /* what opening the backend gave */
    kiln_probe_report report;        /* `remembered` is set */
    char left_out[KN_LEFT_OUT_SIZE]; /* of the drivers behind its loader: apart.h */
    kn_recalled_device *devices;
    uint32_t device_count;
} kn_recall;

/* False if nothing is known. `*out_recall` needs its deinit in every case. Blocks: disk. */
bool kn_recall_get(const kiln_cache *cache, const kiln_backend *backend, kn_recall *out_recall);
void kn_recall_deinit(kn_recall *recall);

/* Remembers what a probe found, where the outcome is one that lasts. A record that cannot be
 * written is one that is not there. */
void kn_recall_put(const kiln_cache *cache, const kiln_backend *backend, const kn_recall *recall);
void kn_recall_forget(const kiln_cache *cache, const kiln_backend *backend);

/* True if there is a place to remember things in. */
bool kn_recall_works(const kiln_cache *cache, const kiln_backend *backend);

/* The digest of this kiln, the backend, and its surroundings as they are now; false when out of
 * memory. */
bool kn_recall_key(const kiln_backend *backend, uint8_t out_key[KN_DIGEST_SIZE]);

#endif
