/* A hash map from byte strings to pointers: open addressing, keys copied, not thread-safe. */
#ifndef KILN_BASE_MAP_H
#define KILN_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kn_map {
    struct kn_map_slot *slots;
    size_t count;
    size_t used; /* live and deleted slots */
    size_t capacity;
} kn_map;

void kn_map_init(kn_map *map);
void kn_map_deinit(kn_map *map); /* values are the caller's */
void *kn_map_find(const kn_map *map, const void *key, size_t key_size);
/* False when out of memory (map unchanged). An old value is replaced and returned through out_old
 * (may be NULL). */
bool kn_map_put(kn_map *map, const void *key, size_t key_size, void *value, void **out_old);
void *kn_map_remove(kn_map *map, const void *key, size_t key_size); /* the value, or NULL */
/* Visits all; `*cursor` starts at 0. False at the end. Removing on the way is fine, putting is not.
 * An out parameter that is of no interest may be NULL. */
bool kn_map_next(const kn_map *map, size_t *cursor, const void **out_key, size_t *out_key_size,
                 void **out_value);

/* The hash the map uses (FNV-1a), for small sets elsewhere; never stored, never a key. */
uint64_t kn_map_hash(const void *key, size_t key_size);

#endif
