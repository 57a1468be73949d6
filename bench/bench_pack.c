/* Packs: how long an open and a verified hit of 4 KB take, next to a bare mapped file of sorted
 * keys with the same checksum, and LMDB. Everything is in the page cache; keys come in random
 * order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/unstable/pack.h>

#include "bench/bench.h"
#include "store/format/checksum.h"

#ifdef HAVE_LMDB
#include <lmdb.h>
#endif

enum { VALUE = 4096, BATCH = 500, ROUNDS = 401, OPENS = 200 };

typedef struct pair {
    kiln_key key;
    uint32_t index;
} pair;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *state >> 33;
}

/* Half noise, half phrases: compresses about as a binary does. */
static void fill(uint32_t index, unsigned char *value)
{
    uint64_t state = index + 1;
    for (size_t i = 0; i < VALUE; i += 8) {
        uint64_t word = i % 16 == 0 ? next_random(&state) : UINT64_C(0x0020000700040036);
        memcpy(value + i, &word, sizeof word);
    }
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(kiln_key));
}

/* --- making ----------------------------------------------------------------------------------- */

static bool make_pack(const char *path, uint32_t count, bool raw, pair *pairs)
{
    const kiln_pack_writer_options options = {
        .struct_size = sizeof options, .raw = raw, .level = 3};
    kiln_pack_writer *writer = NULL;
    unsigned char value[VALUE];
    bool good = kiln_pack_writer_create(path, &options, &writer, NULL) == KILN_OK;
    for (uint32_t i = 0; good && i < count; i++) {
        kiln_recipe *recipe = NULL;
        kiln_blob *blob = NULL;
        fill(i, value);
        if (kiln_recipe_create("bench", 1, &recipe, NULL) != KILN_OK) {
            exit(1);
        }
        kiln_recipe_add_u64(recipe, "n", i);
        good = kiln_blob_create(value, VALUE, NULL, 0, &blob, NULL) == KILN_OK &&
               kiln_pack_writer_add_blob(writer, recipe, blob, NULL, NULL) == KILN_OK;
        pairs[i] = (pair){.key = kiln_recipe_key(recipe), .index = i};
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    good = good && kiln_pack_writer_finish(writer, NULL, NULL) == KILN_OK;
    kiln_pack_writer_destroy(writer);
    return good;
}

/* fan-out, keys, values each with its checksum before it: what one would write by hand. */
typedef struct bare {
    const unsigned char *map;
    size_t size;
    uint32_t fanout[257];
    const unsigned char *keys, *values;
} bare;

static bool make_bare(const char *path, uint32_t count, const pair *sorted)
{
    unsigned char value[VALUE], sum[KN_CHECKSUM_SIZE];
    FILE *file = fopen(path, "wb");
    bool good = file != NULL;
    for (uint32_t i = 0; good && i < count; i++) {
        good = fwrite(&sorted[i].key, sizeof(kiln_key), 1, file) == 1;
    }
    for (uint32_t i = 0; good && i < count; i++) {
        fill(sorted[i].index, value);
        const kn_span covered = kn_span_of(value, VALUE);
        kn_checksum(&covered, 1, sum);
        good = fwrite(sum, sizeof sum, 1, file) == 1 && fwrite(value, VALUE, 1, file) == 1;
    }
    return file != NULL && fclose(file) == 0 && good;
}

static bool open_bare(const char *path, uint32_t count, const pair *sorted, bare *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    out->size = (size_t)count * (sizeof(kiln_key) + KN_CHECKSUM_SIZE + VALUE);
    void *map = fd >= 0 ? mmap(NULL, out->size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd < 0 || close(fd) != 0 || map == MAP_FAILED) {
        return false;
    }
    out->map = map;
    out->keys = out->map;
    out->values = out->map + (size_t)count * sizeof(kiln_key);
    memset(out->fanout, 0, sizeof out->fanout);
    for (uint32_t i = 0; i < count; i++) {
        out->fanout[sorted[i].key.bytes[0] + 1]++;
    }
    for (size_t i = 1; i <= 256; i++) {
        out->fanout[i] += out->fanout[i - 1];
    }
    return true;
}

static const unsigned char *get_bare(const bare *b, const kiln_key *key)
{
    uint32_t low = b->fanout[key->bytes[0]], high = b->fanout[key->bytes[0] + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = memcmp(key, b->keys + (size_t)middle * sizeof *key, sizeof *key);
        if (order == 0) {
            unsigned char sum[KN_CHECKSUM_SIZE];
            const unsigned char *at = b->values + (size_t)middle * (VALUE + sizeof sum);
            const kn_span covered = kn_span_of(at + sizeof sum, VALUE);
            kn_checksum(&covered, 1, sum);
            return memcmp(sum, at, sizeof sum) == 0 ? at + sizeof sum : NULL;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

/* --- hits ------------------------------------------------------------------------------------- */

typedef struct contest {
    const pair *pairs;
    uint32_t count;
    kiln_pack *raw, *packed;
    bare bare;
#ifdef HAVE_LMDB
    MDB_env *env;
    MDB_dbi table;
    MDB_txn *txn;
#endif
} contest;

typedef bool hit_fn(contest *c, const kiln_key *key);

static bool hit_pack(kiln_pack *pack, const kiln_key *key)
{
    kiln_blob *blob = NULL;
    bool good = kiln_pack_get(pack, key, &blob, NULL) == KILN_OK && kiln_blob_size(blob) == VALUE;
    kiln_blob_release(blob);
    return good;
}

static bool hit_raw(contest *c, const kiln_key *key)
{
    return hit_pack(c->raw, key);
}

static bool hit_packed(contest *c, const kiln_key *key)
{
    return hit_pack(c->packed, key);
}

static bool hit_bare(contest *c, const kiln_key *key)
{
    return get_bare(&c->bare, key) != NULL;
}

#ifdef HAVE_LMDB
/* A value is good while its transaction lives: what outlives it must be copied, as here. */
static bool hit_lmdb_then(contest *c, const kiln_key *key, bool sum)
{
    MDB_val name = {sizeof *key, (void *)(uintptr_t)key}, value = {0, NULL};
    static unsigned char copy[VALUE];
    if (mdb_txn_renew(c->txn) != 0) {
        return false;
    }
    bool good = mdb_get(c->txn, c->table, &name, &value) == 0 && value.mv_size == VALUE;
    if (good) {
        memcpy(copy, value.mv_data, VALUE);
    }
    mdb_txn_reset(c->txn);
    if (sum) {
        unsigned char out[KN_CHECKSUM_SIZE];
        const kn_span covered = kn_span_of(copy, VALUE);
        kn_checksum(&covered, 1, out);
    }
    return good;
}

static bool hit_lmdb(contest *c, const kiln_key *key)
{
    return hit_lmdb_then(c, key, false);
}

static bool hit_lmdb_checked(contest *c, const kiln_key *key)
{
    return hit_lmdb_then(c, key, true);
}

static bool make_lmdb(contest *c, const char *dir)
{
    MDB_txn *txn = NULL;
    unsigned char value[VALUE];
    if (mdb_env_create(&c->env) != 0 || mdb_env_set_mapsize(c->env, (size_t)4 << 30) != 0 ||
        mdb_env_open(c->env, dir, MDB_NOSYNC, 0600) != 0 ||
        mdb_txn_begin(c->env, NULL, 0, &txn) != 0 ||
        mdb_dbi_open(txn, NULL, MDB_CREATE, &c->table) != 0) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; good && i < c->count; i++) {
        MDB_val name = {sizeof(kiln_key), (void *)(uintptr_t)&c->pairs[i].key};
        MDB_val data = {VALUE, value};
        fill(c->pairs[i].index, value);
        good = mdb_put(txn, c->table, &name, &data, 0) == 0;
    }
    good = mdb_txn_commit(txn) == 0 && good;
    good = good && mdb_txn_begin(c->env, NULL, MDB_RDONLY, &c->txn) == 0;
    if (good) {
        mdb_txn_reset(c->txn);
    }
    return good;
}
#endif

/* Nanoseconds a hit; the contestants take turns, so that the machine's moods hit all alike. */
static bool measure_hits(contest *c)
{
    const struct {
        const char *name;
        hit_fn *hit;
    } rows[] = {
        {"bare mapped file, checksum", hit_bare},
        {"kiln pack, raw", hit_raw},
        {"kiln pack, compressed", hit_packed},
#ifdef HAVE_LMDB
        {"LMDB, copied out, no checksum", hit_lmdb},
        {"LMDB, copied out, same checksum", hit_lmdb_checked},
#endif
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    bench_samples *samples = calloc(ROWS, sizeof *samples);
    uint64_t state = 7;
    bool good = samples != NULL;
    for (int round = 0; good && round < ROUNDS; round++) {
        for (size_t r = 0; good && r < ROWS; r++) {
            double begin = bench_now();
            for (int i = 0; good && i < BATCH; i++) {
                good = rows[r].hit(c, &c->pairs[next_random(&state) % c->count].key);
            }
            bench_add(&samples[r], (bench_now() - begin) * 1e9 / (double)BATCH);
        }
    }
    for (size_t r = 0; good && r < ROWS; r++) {
        (void)printf("| %u | %s | %.0f (%.0f..%.0f) | %.2f |\n", c->count, rows[r].name,
                     bench_median(&samples[r]), bench_quantile(&samples[r], 0.25),
                     bench_quantile(&samples[r], 0.75),
                     /* of the quiet rounds: a busy machine says little of a ratio */
                     bench_quantile(&samples[r], 0.1) / bench_quantile(&samples[0], 0.1));
    }
    free(samples);
    return good;
}

static void measure_open(const char *path, uint32_t count, const char *what)
{
    bench_samples opens = {.count = 0}, firsts = {.count = 0};
    kiln_key key = {{0}};
    for (int i = 0; i < OPENS; i++) {
        kiln_pack *pack = NULL;
        kiln_blob *blob = NULL;
        double begin = bench_now();
        if (kiln_pack_open(path, &pack, NULL) != KILN_OK) {
            return;
        }
        double opened = bench_now();
        bool found = kiln_pack_get(pack, &key, &blob, NULL) == KILN_OK;
        double asked = bench_now();
        bench_add(&opens, (opened - begin) * 1e6);
        bench_add(&firsts, (asked - opened) * 1e6);
        if (found) {
            kiln_blob_release(blob);
        }
        kiln_pack_close(pack);
    }
    (void)printf("open, %u entries, %s: %.1f us (%.1f..%.1f), then a miss %.1f us\n", count, what,
                 bench_median(&opens), bench_quantile(&opens, 0.25), bench_quantile(&opens, 0.75),
                 bench_median(&firsts));
}

static bool run(const char *dir, uint32_t count)
{
    contest c = {.count = count};
    char raw[600], packed[600], plain[600];
    pair *pairs = calloc(count, sizeof *pairs);
    (void)snprintf(raw, sizeof raw, "%s/raw-%u.kpack", dir, count);
    (void)snprintf(packed, sizeof packed, "%s/zstd-%u.kpack", dir, count);
    (void)snprintf(plain, sizeof plain, "%s/bare-%u", dir, count);
    bool good = pairs != NULL && make_pack(raw, count, true, pairs) &&
                make_pack(packed, count, false, pairs);
    if (good) {
        qsort(pairs, count, sizeof *pairs, by_key);
        c.pairs = pairs;
        good = make_bare(plain, count, pairs) && open_bare(plain, count, pairs, &c.bare) &&
               kiln_pack_open(raw, &c.raw, NULL) == KILN_OK &&
               kiln_pack_open(packed, &c.packed, NULL) == KILN_OK;
    }
#ifdef HAVE_LMDB
    char lmdb[600];
    (void)snprintf(lmdb, sizeof lmdb, "%s/lmdb-%u", dir, count);
    good = good && mkdir(lmdb, 0700) == 0 && make_lmdb(&c, lmdb);
#endif
    good = good && measure_hits(&c);
    if (good) {
        measure_open(raw, count, "raw");
        measure_open(packed, count, "compressed");
    }
#ifdef HAVE_LMDB
    mdb_txn_abort(c.txn);
    mdb_env_close(c.env);
#endif
    kiln_pack_close(c.raw);
    kiln_pack_close(c.packed);
    free(pairs);
    return good;
}

int main(int argc, char **argv)
{
    static const uint32_t counts[] = {10, 1000, 100000};
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    char dir[256];
    if (!bench_dir(dir, sizeof dir)) {
        return 1;
    }
    bench_print_machine();
    (void)printf("| entries | 4 KB, verified | ns a hit | of bare |\n| --- | --- | --- | --- |\n");
    bool good = true;
    for (size_t i = 0; good && i < (quick ? 2 : 3); i++) {
        good = run(dir, counts[i]);
    }
    bench_remove(dir);
    return good ? 0 : 1;
}
