/* The dictionaries that packets are packed with, of one cache. A dictionary is an entry like any
 * other: its recipe names its content's digest, so that its key proves it regardless of the sender.
 * Stage "kiln.dictionary", target "wire": a note, so that packs and pushes leave it out. It is kept
 * in memory and in a tier near (the disk); getting it from a remote is remote_dictionary.c's.
 *
 * What is kept stays until the set ends, and there is room for few: pointers stay good. */
#ifndef KILN_STORE_DICTIONARIES_H
#define KILN_STORE_DICTIONARIES_H

#include "kiln/cache.h"

#include "store/format/tier.h"
#include "sys/thread.h"

struct ZSTD_DDict_s;
struct ZSTD_CDict_s;

#define KN_DICTIONARY_LIMIT ((size_t)1 << 20)
#define KN_DICTIONARY_LEVEL 9
#define KN_DICTIONARIES 8
#define KN_WIRE_TARGET "wire"

typedef struct kn_dictionary {
    kiln_key key;
    kiln_blob *content;
    struct ZSTD_DDict_s *unpack;
    struct ZSTD_CDict_s *pack; /* of those that kn_dictionaries_ready was called for */
} kn_dictionary;

typedef struct kn_dictionaries {
    kn_tier near; /* borrowed; without ops: memory alone */
    kn_mutex mutex;
    kn_dictionary *list[KN_DICTIONARIES];
    size_t count;
} kn_dictionaries;

void kn_dictionaries_init(kn_dictionaries *set, kn_tier near);
void kn_dictionaries_deinit(kn_dictionaries *set);
/* In memory, or in the tier near. NULL: neither. */
const kn_dictionary *kn_dictionaries_find(kn_dictionaries *set, const kiln_key *key);
/* Keeps one that came from elsewhere, and writes it to the tier near. NULL: it is not what its key
 * says, or there is no room. */
const kn_dictionary *kn_dictionaries_keep(kn_dictionaries *set, const kiln_key *key,
                                          kiln_blob *content);
/* Makes one ready to pack with. False: no memory. */
bool kn_dictionaries_ready(kn_dictionaries *set, const kn_dictionary *dictionary);

/* The recipe of the dictionary with this content. KILN_E_NOMEM. */
kiln_status kn_dictionary_recipe(const void *content, size_t size, kiln_recipe **out_recipe,
                                 kiln_diag *diag);

#endif
