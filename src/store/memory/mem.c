/* The memory tier. This file must not know of files, recipes or what is in a blob. */
#include "store/memory/mem.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/admin.h"
#include "kiln/unstable/memory.h"

#include "base/diag.h"
#include "store/format/blob.h"
#include "store/memory/readers.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/thread.h"

/* How much may lie retired before a change tries to free it. */
#define RETIRED_COUNT 32

/* All that a hit looks at lies in one line of the processor's caches. */
typedef struct node {
    alignas(64) _Atomic(struct node *) next; /* in its bucket */
    kiln_key key;
    kiln_blob *blob;
    uint64_t compile_ns;   /* the blob's */
    _Atomic unsigned used; /* USED_*: a hit sets both */
    uint32_t pins;
    uint64_t weight;
    uint64_t told_ns; /* when it was put or last returned by kn_mem_take_hot */
    struct node *older, *newer;
    struct node *retired;
} node;

enum {
    USED_LATELY = 1u << 0,     /* since it last came up for eviction */
    USED_SINCE_TOLD = 1u << 1, /* since told_ns */
    USED_BOTH = USED_LATELY | USED_SINCE_TOLD,
};

typedef struct line {
    node *oldest, *newest;
} line;

_Static_assert(offsetof(node, pins) < 64, "a hit would look at two lines");

struct kn_mem {
    _Atomic(node *) *buckets;
    uint64_t mask;
    kn_readers readers;

    kn_mutex mutex; /* guards what follows, and every change to the chains */
    uint64_t max_bytes, max_count;
    uint64_t bytes, count;
    line common, pinned;
    node *retired; /* taken out, and waiting for a batch */
    uint64_t retired_count, retired_bytes;
    node *batch; /* freed when `wait` has passed */
    kn_readers_wait wait;
};

kiln_status kn_mem_create(uint64_t max_bytes, uint32_t max_count, kn_mem **out_mem, kiln_diag *diag)
{
    *out_mem = NULL;
    uint64_t buckets = 64;
    while (buckets < (uint64_t)max_count * 2 && buckets < (UINT64_C(1) << 24)) {
        buckets *= 2;
    }
    kn_mem *mem = calloc(1, sizeof *mem);
    if (mem != NULL) {
        mem->buckets = calloc(buckets, sizeof *mem->buckets);
        if (mem->buckets == NULL || !kn_readers_init(&mem->readers)) {
            free((void *)mem->buckets);
            free(mem);
            mem = NULL;
        }
    }
    if (mem == NULL) {
        return kn_no_memory(diag, "opening the memory tier");
    }
    mem->mask = buckets - 1;
    mem->max_bytes = max_bytes;
    mem->max_count = max_count;
    kn_mutex_init(&mem->mutex);
    *out_mem = mem;
    return KILN_OK;
}

static void node_destroy(node *n)
{
    kiln_blob_release(n->blob);
    kn_memory_destroy(n);
}

static void destroy_retired(node *list)
{
    while (list != NULL) {
        node *next = list->retired;
        node_destroy(list);
        list = next;
    }
}

static void destroy_line(const line *of)
{
    for (node *n = of->oldest; n != NULL;) {
        node *newer = n->newer;
        node_destroy(n);
        n = newer;
    }
}

void kn_mem_destroy(kn_mem *mem)
{
    if (mem == NULL) {
        return;
    }
    destroy_line(&mem->common);
    destroy_line(&mem->pinned);
    destroy_retired(mem->retired);
    destroy_retired(mem->batch);
    kn_readers_deinit(&mem->readers);
    kn_mutex_deinit(&mem->mutex);
    free((void *)mem->buckets);
    free(mem);
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t hash_of(const kiln_key *key)
{
    uint64_t hash;
    memcpy(&hash, key->bytes, sizeof hash); /* a digest is its own hash */
    return hash;
}

static bool same_key(const kiln_key *a, const kiln_key *b)
{
    uint64_t x[4], y[4];
    memcpy(x, a->bytes, sizeof x);
    memcpy(y, b->bytes, sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}

static node *find_node(const kn_mem *mem, const kiln_key *key)
{
    node *n = atomic_load_explicit(&mem->buckets[hash_of(key) & mem->mask], memory_order_acquire);
    while (n != NULL && !same_key(&n->key, key)) {
        n = atomic_load_explicit(&n->next, memory_order_acquire);
    }
    return n;
}

static void mark_used(node *n)
{
    if (atomic_load_explicit(&n->used, memory_order_relaxed) != USED_BOTH) {
        atomic_store_explicit(&n->used, USED_BOTH, memory_order_relaxed);
    }
}

static void count_node_hit(kn_reader *reader, bool guest, node *n)
{
    mark_used(n);
    kn_readers_count(reader, guest, n->compile_ns);
}

kiln_blob *kn_mem_get(kn_mem *mem, const kiln_key *key)
{
    bool guest;
    kiln_blob *blob = NULL;
    kn_reader *reader = kn_readers_enter(&mem->readers, &guest);
    node *n = find_node(mem, key);
    if (n != NULL) {
        blob = kiln_blob_retain(n->blob);
        count_node_hit(reader, guest, n);
    }
    kn_readers_leave(reader, guest);
    return blob;
}

kiln_blob *kn_mem_get_uncounted(kn_mem *mem, const kiln_key *key)
{
    bool guest;
    kiln_blob *blob = NULL;
    kn_reader *reader = kn_readers_enter(&mem->readers, &guest);
    node *n = find_node(mem, key);
    if (n != NULL) {
        blob = kiln_blob_retain(n->blob);
        mark_used(n);
    }
    kn_readers_leave(reader, guest);
    return blob;
}

bool kn_mem_visit(kn_mem *mem, const kiln_key *key, kiln_blob_fn *use, void *user)
{
    bool guest;
    kn_reader *reader = kn_readers_enter(&mem->readers, &guest);
    node *n = find_node(mem, key);
    if (n != NULL) {
        count_node_hit(reader, guest, n);
        use(user, n->blob);
    }
    kn_readers_leave(reader, guest);
    return n != NULL;
}

bool kn_mem_contains(kn_mem *mem, const kiln_key *key)
{
    bool guest;
    kn_reader *reader = kn_readers_enter(&mem->readers, &guest);
    bool there = find_node(mem, key) != NULL;
    kn_readers_leave(reader, guest);
    return there;
}

void kn_mem_hits(const kn_mem *mem, uint64_t *out_hits, uint64_t *out_saved_ns)
{
    kn_readers_counted(&mem->readers, out_hits, out_saved_ns);
}

/* --- changing: all below with the mutex held -------------------------------------------------- */

static line *line_of(kn_mem *mem, const node *n)
{
    return n->pins > 0 ? &mem->pinned : &mem->common;
}

static void line_add(kn_mem *mem, node *n)
{
    line *to = line_of(mem, n);
    n->newer = NULL;
    n->older = to->newest;
    *(to->newest != NULL ? &to->newest->newer : &to->oldest) = n;
    to->newest = n;
}

static void line_remove(kn_mem *mem, node *n)
{
    line *from = line_of(mem, n);
    *(n->older != NULL ? &n->older->newer : &from->oldest) = n->newer;
    *(n->newer != NULL ? &n->newer->older : &from->newest) = n->older;
}

/* Takes a node out of everything. Readers that stand on it may go on along its `next`. */
static void take_out(kn_mem *mem, node *n)
{
    _Atomic(node *) *link = &mem->buckets[hash_of(&n->key) & mem->mask];
    node *at;
    while ((at = atomic_load_explicit(link, memory_order_relaxed)) != n) {
        link = &at->next;
    }
    node *next = atomic_load_explicit(&n->next, memory_order_relaxed);
    atomic_store_explicit(link, next, memory_order_release);
    line_remove(mem, n);
    mem->bytes -= n->weight;
    mem->count--;
    n->retired = mem->retired;
    mem->retired = n;
    mem->retired_count++;
    mem->retired_bytes += n->weight;
}

/* Frees what no reader can see any more; never waits for one. */
static void reclaim_nodes(kn_mem *mem, bool all)
{
    bool worth = (all && mem->retired != NULL) || mem->retired_count >= RETIRED_COUNT ||
                 mem->retired_bytes > mem->max_bytes / 16;
    if (mem->batch == NULL && worth) {
        mem->batch = mem->retired;
        mem->retired = NULL;
        mem->retired_count = mem->retired_bytes = 0;
        kn_readers_start(&mem->readers, &mem->wait);
    }
    if (mem->batch != NULL && kn_readers_passed(&mem->readers, &mem->wait)) {
        destroy_retired(mem->batch);
        mem->batch = NULL;
    }
}

static void evict_nodes(kn_mem *mem, uint64_t max_bytes, uint64_t max_count)
{
    uint64_t chances = mem->count;
    while (mem->common.oldest != NULL && (mem->bytes > max_bytes || mem->count > max_count)) {
        node *n = mem->common.oldest;
        unsigned used =
            atomic_fetch_and_explicit(&n->used, ~(unsigned)USED_LATELY, memory_order_relaxed);
        if (chances > 0 && (used & USED_LATELY)) {
            chances--;
            line_remove(mem, n);
            line_add(mem, n);
        } else {
            take_out(mem, n);
        }
    }
}

/* Puts a node in place of what has its key, whose pins it takes over, and `pins` more. */
static void put_in(kn_mem *mem, node *added, uint32_t pins)
{
    const kiln_key *key = &added->key;
    node *old = find_node(mem, key);
    added->pins = pins + (old != NULL ? old->pins : 0);
    added->told_ns = kn_clock_now();
    _Atomic(node *) *bucket = &mem->buckets[hash_of(key) & mem->mask];
    atomic_init(&added->next, atomic_load_explicit(bucket, memory_order_relaxed));
    atomic_store_explicit(bucket, added, memory_order_release);
    line_add(mem, added);
    mem->bytes += added->weight;
    mem->count++;
    if (old != NULL) {
        take_out(mem, old);
    }
    evict_nodes(mem, mem->max_bytes, mem->max_count);
    reclaim_nodes(mem, false);
}

static node *node_create(const kiln_key *key, kiln_blob *blob)
{
    node *n = kn_memory_create(alignof(node), sizeof *n);
    if (n != NULL) {
        memset(n, 0, sizeof *n);
        n->key = *key;
        n->blob = kiln_blob_retain(blob);
        n->compile_ns = kiln_blob_compile_ns(blob);
        n->weight = kn_blob_weight(blob) + sizeof(node);
    }
    return n;
}

/* What is not pinned: an older one would be stale now. False if there is a pinned one. */
static bool remove_common(kn_mem *mem, const kiln_key *key)
{
    kn_mutex_lock(&mem->mutex);
    node *n = find_node(mem, key);
    bool pinned = n != NULL && n->pins > 0;
    if (n != NULL && !pinned) {
        take_out(mem, n);
        reclaim_nodes(mem, false);
    }
    kn_mutex_unlock(&mem->mutex);
    return !pinned;
}

bool kn_mem_put(kn_mem *mem, const kiln_key *key, kiln_blob *blob)
{
    uint64_t weight = kn_blob_weight(blob) + sizeof(node);
    if ((weight > mem->max_bytes || mem->max_count == 0) && remove_common(mem, key)) {
        return true;
    }
    node *added = node_create(key, blob);
    if (added == NULL) {
        (void)kn_mem_remove(mem, key);
        return false;
    }
    kn_mutex_lock(&mem->mutex);
    put_in(mem, added, 0);
    kn_mutex_unlock(&mem->mutex);
    return true;
}

bool kn_mem_remove(kn_mem *mem, const kiln_key *key)
{
    kn_mutex_lock(&mem->mutex);
    node *n = find_node(mem, key);
    if (n != NULL) {
        take_out(mem, n);
        reclaim_nodes(mem, false);
    }
    kn_mutex_unlock(&mem->mutex);
    return n != NULL;
}

void kn_mem_trim(kn_mem *mem, uint64_t max_bytes, uint64_t max_count)
{
    kn_mutex_lock(&mem->mutex);
    evict_nodes(mem, max_bytes, max_count);
    reclaim_nodes(mem, true); /* the batch that was waiting */
    reclaim_nodes(mem, true); /* and this one */
    kn_mutex_unlock(&mem->mutex);
}

void kn_mem_clear(kn_mem *mem)
{
    kn_mutex_lock(&mem->mutex);
    while (mem->pinned.oldest != NULL) {
        take_out(mem, mem->pinned.oldest);
    }
    kn_mutex_unlock(&mem->mutex);
    kn_mem_trim(mem, 0, 0);
}

/* --- pins and stamps -------------------------------------------------------------------------- */

bool kn_mem_pin(kn_mem *mem, const kiln_key *key, kiln_blob *blob)
{
    node *added = blob != NULL ? node_create(key, blob) : NULL;
    if (blob != NULL && added == NULL) {
        return false;
    }
    kn_mutex_lock(&mem->mutex);
    node *n = find_node(mem, key);
    bool there = n != NULL && n->pins < UINT32_MAX;
    if (there) {
        line_remove(mem, n);
        n->pins++;
        line_add(mem, n);
    } else if (n == NULL && added != NULL) {
        put_in(mem, added, 1);
        added = NULL;
        there = true;
    }
    kn_mutex_unlock(&mem->mutex);
    if (added != NULL) {
        node_destroy(added);
    }
    return there;
}

void kn_mem_unpin(kn_mem *mem, const kiln_key *key)
{
    kn_mutex_lock(&mem->mutex);
    node *n = find_node(mem, key);
    if (n != NULL && n->pins > 0) {
        line_remove(mem, n);
        n->pins--;
        line_add(mem, n);
        evict_nodes(mem, mem->max_bytes, mem->max_count);
        reclaim_nodes(mem, false);
    }
    kn_mutex_unlock(&mem->mutex);
}

bool kn_mem_is_pinned(kn_mem *mem, const kiln_key *key)
{
    kn_mutex_lock(&mem->mutex);
    const node *n = find_node(mem, key);
    bool pinned = n != NULL && n->pins > 0;
    kn_mutex_unlock(&mem->mutex);
    return pinned;
}

static size_t take_hot_of(const line *of, uint64_t before_ns, kiln_key *keys, size_t room)
{
    size_t count = 0;
    uint64_t now = kn_clock_now();
    for (node *n = of->oldest; n != NULL && count < room; n = n->newer) {
        if (n->told_ns > before_ns) {
            continue;
        }
        unsigned used =
            atomic_fetch_and_explicit(&n->used, ~(unsigned)USED_SINCE_TOLD, memory_order_relaxed);
        if (n->pins > 0 || (used & USED_SINCE_TOLD)) {
            keys[count++] = n->key;
            n->told_ns = now;
        }
    }
    return count;
}

size_t kn_mem_take_hot(kn_mem *mem, uint64_t age_ns, kiln_key *keys, size_t room)
{
    uint64_t now = kn_clock_now();
    if (now < age_ns) {
        return 0;
    }
    kn_mutex_lock(&mem->mutex);
    size_t count = take_hot_of(&mem->pinned, now - age_ns, keys, room);
    count += take_hot_of(&mem->common, now - age_ns, keys + count, room - count);
    kn_mutex_unlock(&mem->mutex);
    return count;
}

void kn_mem_size(kn_mem *mem, uint64_t *out_bytes, uint64_t *out_count)
{
    kn_mutex_lock(&mem->mutex);
    *out_bytes = mem->bytes;
    *out_count = mem->count;
    kn_mutex_unlock(&mem->mutex);
}
