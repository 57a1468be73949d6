/* The hash map: linear probing over a power of two, at most three quarters used, FNV-1a. Its keys
 * are kiln's own digests and names, so no defence against chosen collisions is made. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

typedef struct kn_map_slot {
    char *key; /* NULL: never used; `deleted`: was used */
    size_t key_size;
    uint64_t hash;
    void *value;
} kn_map_slot;

#define FIRST_CAPACITY 16

static char deleted_mark;
static char *const deleted = &deleted_mark;

uint64_t kn_map_hash(const void *key, size_t key_size)
{
    const unsigned char *bytes = key;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < key_size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32; /* the low bits alone choose the slot */
}

static bool is_live(const kn_map_slot *slot)
{
    return slot->key != NULL && slot->key != deleted;
}

static bool slot_holds(const kn_map_slot *slot, uint64_t hash, const void *key, size_t key_size)
{
    return is_live(slot) && slot->hash == hash && slot->key_size == key_size &&
           (key_size == 0 || memcmp(slot->key, key, key_size) == 0);
}

/* The slot that holds the key, or NULL. */
static kn_map_slot *find_slot(const kn_map *map, uint64_t hash, const void *key, size_t key_size)
{
    if (map->count == 0) {
        return NULL;
    }
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        kn_map_slot *slot = &map->slots[i];
        if (slot->key == NULL) {
            return NULL;
        }
        if (slot_holds(slot, hash, key, key_size)) {
            return slot;
        }
    }
}

/* The first slot on the hash's way that holds nothing. */
static kn_map_slot *free_slot(kn_map_slot *slots, size_t capacity, uint64_t hash)
{
    size_t i = (size_t)hash & (capacity - 1);
    while (is_live(&slots[i])) {
        i = (i + 1) & (capacity - 1);
    }
    return &slots[i];
}

/* Moves to a table with room to spare; sheds deleted slots on the way. */
static bool rehash_map(kn_map *map)
{
    size_t capacity = map->capacity > 0 ? map->capacity : FIRST_CAPACITY;
    while (map->count >= capacity / 2) {
        if (!kn_mul_size(capacity, 2, &capacity)) {
            return false;
        }
    }
    kn_map_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (is_live(&map->slots[i])) {
            *free_slot(slots, capacity, map->slots[i].hash) = map->slots[i];
        }
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->used = map->count;
    return true;
}

void kn_map_init(kn_map *map)
{
    *map = (kn_map){0};
}

void kn_map_deinit(kn_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        if (is_live(&map->slots[i])) {
            free(map->slots[i].key);
        }
    }
    free(map->slots);
    kn_map_init(map);
}

void *kn_map_find(const kn_map *map, const void *key, size_t key_size)
{
    const kn_map_slot *slot = find_slot(map, kn_map_hash(key, key_size), key, key_size);
    return slot != NULL ? slot->value : NULL;
}

bool kn_map_put(kn_map *map, const void *key, size_t key_size, void *value, void **out_old)
{
    uint64_t hash = kn_map_hash(key, key_size);
    kn_map_slot *slot = find_slot(map, hash, key, key_size);

    if (out_old != NULL) {
        *out_old = slot != NULL ? slot->value : NULL;
    }
    if (slot != NULL) {
        slot->value = value;
        return true;
    }
    char *copy = kn_bytes_copy(key, key_size);
    if (copy == NULL) {
        return false;
    }
    if (map->used >= map->capacity - map->capacity / 4 && !rehash_map(map)) {
        free(copy);
        return false;
    }
    slot = free_slot(map->slots, map->capacity, hash);
    if (slot->key == NULL) {
        map->used++;
    }
    *slot = (kn_map_slot){.key = copy, .key_size = key_size, .hash = hash, .value = value};
    map->count++;
    return true;
}

void *kn_map_remove(kn_map *map, const void *key, size_t key_size)
{
    kn_map_slot *slot = find_slot(map, kn_map_hash(key, key_size), key, key_size);
    if (slot == NULL) {
        return NULL;
    }
    void *value = slot->value;
    free(slot->key);
    *slot = (kn_map_slot){.key = deleted};
    map->count--;
    return value;
}

bool kn_map_next(const kn_map *map, size_t *cursor, const void **out_key, size_t *out_key_size,
                 void **out_value)
{
    for (size_t i = *cursor; i < map->capacity; i++) {
        const kn_map_slot *slot = &map->slots[i];
        if (is_live(slot)) {
            *cursor = i + 1;
            if (out_key != NULL) {
                *out_key = slot->key;
            }
            if (out_key_size != NULL) {
                *out_key_size = slot->key_size;
            }
            if (out_value != NULL) {
                *out_value = slot->value;
            }
            return true;
        }
    }
    *cursor = map->capacity;
    return false;
}
