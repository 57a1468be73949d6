/* Moving many entries at once over real servers. */
#include "remote/servers.h"

#include "kiln/unstable/pack.h"
#include "kiln/unstable/remote.h"
#include "support/counters.h"

enum { ENTRIES = 40, SIZE = 2000 };

typedef struct fixture {
    ks_server server;
    char *dir, *roots[3];
    char url[256];
} fixture;

static int setup_redis(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    ks_redis(&f->server);
    (void)snprintf(f->url, sizeof f->url, "redis://:s3cr3t@127.0.0.1:%d?" KS_PATIENT,
                   f->server.port);
    f->dir = ks_roots_create(f->roots, 3);
    return 0;
}

static int setup_nginx(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    ks_nginx(&f->server);
    (void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d/kiln?" KS_PATIENT, f->server.port);
    f->dir = ks_roots_create(f->roots, 3);
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    ks_end(&f->server);
    ks_roots_remove(f->dir, f->roots, 3);
    free(f);
    return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Lines out of a stock of 100, other ones for each number. */
static const char *code(unsigned number)
{
    static char text[SIZE + 1];
    uint32_t seed = number * 2654435761u + 1;
    size_t at = 0;
    while (at < SIZE) {
        uint32_t line = next(&seed) % 100 + 1;
        for (size_t i = 0; i < 40 && at < SIZE; i++) {
            text[at++] = (char)('!' + next(&line) % 90);
        }
    }
    text[SIZE] = '\0';
    return text;
}

static kiln_key key_of(unsigned number)
{
    return ks_key(code(number));
}

static void fill(kiln_cache *cache, unsigned from, unsigned to, kiln_origin expected)
{
    ks_compile compile = {0};
    for (unsigned i = from; i < to; i++) {
        assert_int_equal(ks_get(cache, code(i), &compile), expected);
    }
}

static kiln_transfer *open_transfer(fixture *f, kiln_cache *cache)
{
    kiln_transfer *transfer = NULL;
    assert_int_equal(kiln_transfer_open(f->url, cache, &transfer, NULL), KILN_OK);
    return transfer;
}

static kiln_transfer_counts push(fixture *f, kiln_cache *cache, bool replace)
{
    kiln_transfer *transfer = open_transfer(f, cache);
    kiln_key keys[ENTRIES];
    for (unsigned i = 0; i < ENTRIES; i++) {
        keys[i] = key_of(i);
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        assert_int_equal(kiln_transfer_push(transfer, NULL, &keys[i], replace, NULL), KILN_OK);
    }
    assert_int_equal(kiln_transfer_push_list(transfer, "all of it", keys, ENTRIES, NULL), KILN_OK);
    const kiln_transfer_counts counts = *kiln_transfer_get_counts(transfer);
    kiln_transfer_close(transfer);
    assert_int_equal(counts.sent, ENTRIES);
    return counts;
}

static kiln_transfer_counts pull(fixture *f, kiln_cache *cache, bool present)
{
    kiln_transfer *transfer = open_transfer(f, cache);
    kiln_blob *list = NULL;
    bool there = false;
    assert_int_equal(kiln_transfer_pull_list(transfer, "all of it", &list, NULL), KILN_OK);
    assert_int_equal(kiln_blob_size(list), ENTRIES * sizeof(kiln_key));
    for (size_t i = 0; i < ENTRIES; i++) {
        kiln_key key;
        memcpy(&key, (const char *)kiln_blob_data(list) + i * sizeof key, sizeof key);
        assert_int_equal(kiln_transfer_pull(transfer, &key, &there, NULL), KILN_OK);
        assert_true(there == present);
    }
    kiln_blob_release(list);
    const kiln_transfer_counts counts = *kiln_transfer_get_counts(transfer);
    kiln_transfer_close(transfer);
    return counts;
}

/* --- tests ------------------------------------------------------------------------------------ */

KS_BOTH(what_is_pushed_can_be_pulled)
{
    fixture *f = *state;
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, ENTRIES, KILN_ORIGIN_COMPILED);
    kiln_transfer_counts counts = push(f, cache, false);
    assert_true(counts.bytes_out > 0 && counts.raw_out > counts.bytes_out);
    kiln_cache_destroy(cache);
    cache = ks_machine(f->roots[1], NULL);
    counts = pull(f, cache, false);
    assert_int_equal(counts.received, ENTRIES);
    assert_true(counts.raw_in > counts.bytes_in);
    counts = pull(f, cache, true);
    assert_int_equal(counts.received, 0);
    fill(cache, 0, ENTRIES, KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

KS_REDIS(a_pack_travels_too)
{
    fixture *f = *state;
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    kiln_pack *pack = NULL;
    char *path = kt_at(f->dir, "it.kpack");
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, 5, KILN_ORIGIN_COMPILED);
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
    assert_int_equal(kiln_pack_open(path, &pack, NULL), KILN_OK);
    cache = ks_machine(f->roots[1], NULL); /* which has none of it */
    kiln_transfer *transfer = open_transfer(f, cache);
    for (unsigned i = 0; i < 5; i++) {
        const kiln_key key = key_of(i);
        assert_int_equal(kiln_transfer_push(transfer, pack, &key, false, NULL), KILN_OK);
        assert_int_equal(kiln_transfer_pull(transfer, &key, NULL, NULL), KILN_OK);
    }
    const kiln_key none = key_of(6);
    assert_int_equal(kiln_transfer_push(transfer, pack, &none, false, NULL), KILN_MISS);
    assert_int_equal(kiln_transfer_push(transfer, NULL, &none, false, NULL), KILN_MISS);
    assert_int_equal(kiln_transfer_pull(transfer, &none, NULL, NULL), KILN_MISS);
    kiln_transfer_close(transfer);
    kiln_pack_close(pack);
    fill(cache, 0, 5, KILN_ORIGIN_DISK);
    kiln_cache_destroy(cache);
}

KS_BOTH(S7_a_pull_takes_only_what_is_trusted)
{
    fixture *f = *state;
    char line[KILN_PUBLIC_KEY_TEXT_SIZE];
    char *key_file = kt_at(f->dir, "key.pem");
    const kiln_key key = key_of(0);
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_signing_key_generate(key_file, line, NULL), KILN_OK);
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, ENTRIES, KILN_ORIGIN_COMPILED);
    (void)push(f, cache, false);
    kiln_cache *other = ks_machine(f->roots[1], NULL);
    assert_int_equal(setenv("KILN_SIGNING_KEY", key_file, 1), 0);
    kiln_transfer *transfer = open_transfer(f, other);
    assert_int_equal(kiln_transfer_pull(transfer, &key, NULL, &diag), KILN_E_REJECTED);
    assert_non_null(strstr(diag.why, "not signed"));
    kiln_diag_clear(&diag);
    kiln_transfer_close(transfer);
    (void)push(f, cache, true);
    (void)pull(f, other, false);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
    fill(other, 0, ENTRIES, KILN_ORIGIN_DISK);
    kiln_cache_destroy(other);
    kiln_cache_destroy(cache);
}

/* Redis keeps the first of two entries. That nobody signed the first must not make the second one,
 * which is what signed machines wait for, a push that changed nothing. */
KS_BOTH(S7_a_signed_push_replaces_what_nobody_signed)
{
    fixture *f = *state;
    char line[KILN_PUBLIC_KEY_TEXT_SIZE];
    char *key_file = kt_at(f->dir, "key.pem");
    assert_int_equal(kiln_signing_key_generate(key_file, line, NULL), KILN_OK);
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, ENTRIES, KILN_ORIGIN_COMPILED);
    (void)push(f, cache, false);
    assert_int_equal(setenv("KILN_SIGNING_KEY", key_file, 1), 0);
    /* KILN_TRUST=any would take what is there; those who pull may not. */
    assert_int_equal(setenv("KILN_TRUST", "any", 1), 0);
    const kiln_transfer_counts signing = push(f, cache, false);
    assert_int_equal(unsetenv("KILN_TRUST"), 0);
    kiln_cache *other = ks_machine(f->roots[1], NULL);
    const kiln_transfer_counts pulled = pull(f, other, false);
    assert_int_equal(pulled.received, ENTRIES);
    /* What is there and signed stays: only the list goes out again. */
    const kiln_transfer_counts again = push(f, cache, false);
    assert_true(again.raw_out == 0 && signing.raw_out > 0);
    assert_true(again.bytes_out < signing.bytes_out / 2);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
    kiln_cache_destroy(other);
    kiln_cache_destroy(cache);
}

KS_NGINX(S7_a_tampered_entry_is_not_pulled)
{
    fixture *f = *state;
    char command[512];
    const kiln_key key = key_of(0);
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, ENTRIES, KILN_ORIGIN_COMPILED);
    (void)push(f, cache, false);
    kiln_cache_destroy(cache);
    (void)snprintf(command, sizeof command,
                   "for e in $(find %s/files -type f); do printf x | dd of=$e bs=1 seek=100 "
                   "conv=notrunc 2>/dev/null; done",
                   f->server.dir);
    assert_int_equal(system(command), 0);
    cache = ks_machine(f->roots[1], NULL);
    kiln_transfer *transfer = open_transfer(f, cache);
    assert_int_equal(kiln_transfer_pull(transfer, &key, NULL, NULL), KILN_E_CORRUPT);
    kiln_transfer_close(transfer);
    kiln_cache_destroy(cache);
}

KS_BOTH(a_dead_server_is_told)
{
    fixture *f = *state;
    const kiln_key key = key_of(0);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_transfer *transfer = NULL;
    kiln_cache *cache = ks_machine(f->roots[0], NULL);
    fill(cache, 0, 1, KILN_ORIGIN_COMPILED);
    ks_kill(&f->server);
    transfer = open_transfer(f, cache);
    assert_int_equal(kiln_transfer_push(transfer, NULL, &key, false, &diag), KILN_E_UNAVAILABLE);
    assert_true(diag.why[0] != '\0');
    assert_null(strstr(diag.what, "s3cr3t"));
    kiln_diag_clear(&diag);
    const kiln_key absent = key_of(1);
    assert_int_equal(kiln_transfer_pull(transfer, &absent, NULL, NULL), KILN_E_UNAVAILABLE);
    kiln_transfer_close(transfer);
    assert_int_equal(kiln_transfer_open("", cache, &transfer, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(kiln_transfer_open("redis://x?no", cache, &transfer, NULL), KILN_E_INVALID);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
