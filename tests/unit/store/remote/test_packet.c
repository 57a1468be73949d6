/* Packets: what comes out is what went in, whatever is done to them on the way is noticed, and
 * those that earlier versions packed with a dictionary stay readable. */
#include "unit/store/remote/memory_server.h"

#include "base/text.h"
#include "store/remote/packet.h"
#include "support/failalloc.h"
#include "support/suite.h"

#define PAYLOAD 3000

static kn_trust signs;
static kiln_key packet_key, dictionary_key; /* of the golden entries */

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Something like code: lines out of a stock of 200, other ones for each number. */
static void write_code(char *out, size_t size, unsigned number)
{
    enum { LINE = 40 };
    uint32_t seed = number * 2654435761u + 1;
    size_t at = 0;
    while (at < size) {
        uint32_t line = next(&seed) % 200 + 1;
        for (size_t i = 0; i < LINE && at < size; i++) {
            out[at++] = (char)('!' + next(&line) % 90);
        }
    }
}

/* Puts bytes of tests/golden/wire-v1 on the server, which an earlier version uploaded. */
static void serve_golden(const char *file, const kiln_key *key)
{
    size_t size = 0;
    char *path = kt_at(KILN_GOLDEN "/wire-v1", file), *bytes = kt_file_read(path, &size);
    serve(key, bytes, size);
}

static int set_up_group(void **state)
{
    char *dir = kt_tmpdir_create(), *path = kt_at(dir, "key.pem");
    kn_public_key ignored;
    (void)state;
    signs.policy = KN_TRUST_SIGNED;
    assert_int_equal(kn_sign_generate(path, &ignored, NULL), KILN_OK);
    assert_int_equal(kn_signer_create(path, NULL, &signs.signer, NULL), KILN_OK);
    kt_tmpdir_remove(dir);
    kiln_recipe *recipe = ks_recipe("packed");
    packet_key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    assert_true(kn_hex_decode("b50527f2752f1635539f10f348e6b7a0379632d3bcb7614d9cec9571a6b370ff",
                              dictionary_key.bytes, sizeof dictionary_key.bytes));
    return 0;
}

static int tear_down_group(void **state)
{
    (void)state;
    kn_trust_close(&signs);
    return 0;
}

static int set_up_golden(void **state)
{
    (void)setup(state);
    open_remote(*state, "fake://x?timeout=20s");
    serve_golden("packet", &packet_key);
    serve_golden("dictionary", &dictionary_key);
    return 0;
}

/* --- packets ---------------------------------------------------------------------------------- */

#define TEST(name) KT_TEST_WITH(set_up_golden, teardown, name)

TEST(what_was_packed_comes_out)
{
    char code[PAYLOAD];
    kn_packet packet;
    void *data = NULL;
    size_t size = 0;
    write_code(code, sizeof code, 7);
    void *packed = kn_packet_make(kn_span_of(code, sizeof code), 128, &size);
    assert_non_null(packed);
    assert_true(size < sizeof code && kn_packet_is(kn_span_of(packed, size)));
    assert_int_equal(kn_packet_parse(kn_span_of(packed, size), &packet, NULL), KILN_OK);
    assert_false(packet.has_dictionary);
    assert_int_equal(kn_packet_unpack(&packet, (kn_span){NULL, 0}, 0, &data, &size, NULL), KILN_OK);
    assert_int_equal(size, sizeof code);
    assert_memory_equal(data, code, size);
    free(data);
    free(packed);
}

TEST(what_does_not_pay_is_not_packed)
{
    char noise[500];
    uint32_t seed = 1;
    size_t size = 0;
    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (char)(seed >> 24);
    }
    assert_null(kn_packet_make(kn_span_of(noise, sizeof noise), 0, &size));
    assert_null(kn_packet_make(kn_span_of("short", 5), 0, &size));
}

TEST(a_header_that_lies_is_refused)
{
    kn_packet packet;
    char code[PAYLOAD];
    size_t size = 0;
    write_code(code, sizeof code, 7);
    char *packed = kn_packet_make(kn_span_of(code, sizeof code), 0, &size);
    assert_non_null(packed);
    for (size_t i = 0; i < KN_PACKET_HEADER; i++) {
        packed[i] ^= 0x10;
        kiln_status status = kn_packet_parse(kn_span_of(packed, size), &packet, NULL);
        /* Another dictionary's name is as good as any. */
        assert_int_equal(status, i >= 24 && i < 56 ? KILN_OK : KILN_E_CORRUPT);
        packed[i] ^= 0x10;
    }
    for (size_t cut = 0; cut < KN_PACKET_HEADER + 4; cut++) {
        assert_int_equal(kn_packet_parse(kn_span_of(packed, cut), &packet, NULL), KILN_E_CORRUPT);
    }
    free(packed);
}

/* --- dictionaries of earlier versions --------------------------------------------------------- */

/* The golden entry's bytes, or none. */
static kiln_status read_golden(fixture *f)
{
    char code[PAYLOAD];
    kiln_blob *blob = NULL;
    kn_remote_forget_miss(f->remote, &packet_key);
    kn_remote_forget_miss(f->remote, &dictionary_key);
    kiln_status status = kn_remote_tier(f->remote)->get(f->remote, &packet_key, NULL, &blob, NULL);
    if (status == KILN_OK) {
        write_code(code, sizeof code, 9);
        assert_int_equal(kiln_blob_size(blob), sizeof code);
        assert_memory_equal(kiln_blob_data(blob), code, sizeof code);
        assert_int_equal(kiln_blob_facts_size(blob), 5);
    }
    kiln_blob_release(blob);
    return status;
}

/* Failures, and dictionaries. */
static void forget_all(fixture *f)
{
    kn_remote *remote = f->remote;
    memset(&remote->answers, 0, sizeof remote->answers);
    memset(&remote->reads, 0, sizeof remote->reads);
    for (size_t i = 0; i < KN_REMOTE_DICTIONARIES; i++) {
        kiln_blob_release(remote->dictionaries[i].content);
        remote->dictionaries[i].content = NULL;
    }
}

static char *served(const kiln_key *key, size_t *out_size)
{
    char name[KN_REMOTE_NAME];
    kn_remote_key_name(key, name);
    *out_size = server.sizes[find(name)];
    return server.data[find(name)];
}

TEST(a_golden_packet_stays_readable)
{
    fixture *f = *state;
    assert_int_equal(read_golden(f), KILN_OK);
    assert_int_equal(server.gets, 2);
    assert_int_equal(read_golden(f), KILN_OK);
    assert_int_equal(server.gets, 3); /* the dictionary is kept */
}

TEST(without_its_dictionary_an_entry_is_a_miss)
{
    fixture *f = *state;
    char name[KN_REMOTE_NAME];
    kiln_remote_call call = {.limit_ms = 1000};
    kn_remote_key_name(&dictionary_key, name);
    assert_int_equal(fake_remove(lines, &call, name), KILN_OK);
    assert_int_equal(read_golden(f), KILN_MISS);
    assert_int_equal(kn_stats_own(&f->stats, KN_COUNT_corrupt), 1);
}

/* A packet may name any key: that of another entry, too. */
TEST(another_entry_is_no_dictionary)
{
    fixture *f = *state;
    kiln_recipe *recipe = ks_recipe("something else");
    kiln_blob *blob = ks_blob("not much of a dictionary");
    void *data = NULL;
    size_t size = 0;
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_tier_put what = {.key = &key, .recipe = kn_recipe_span(recipe), .blob = blob};
    assert_int_equal(kn_trust_seal(&f->remotes.trust, &what, &data, &size, NULL), KILN_OK);
    serve(&key, data, size);
    assert_null(kn_remote_dictionary(f->remote, &key));
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* Damage in a packet, or in its dictionary. */
TEST(damage_without_a_signature_is_noticed)
{
    fixture *f = *state;
    const kiln_key *keys[] = {&packet_key, &dictionary_key};
    for (size_t k = 0; k < 2; k++) {
        size_t size = 0;
        char *bytes = served(keys[k], &size);
        for (size_t i = 0; i < size; i += 3) {
            bytes[i] ^= 0x20;
            (void)read_golden(f); /* which looks at the bytes */
            forget_all(f);
            bytes[i] ^= 0x20;
        }
    }
    assert_int_equal(read_golden(f), KILN_OK);
}

/* --- sealed ----------------------------------------------------------------------------------- */

typedef struct sealed {
    kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob;
    char code[PAYLOAD];
    char *data;
    size_t size;
} sealed;

static sealed seal(const kn_trust *trust)
{
    void *data = NULL;
    sealed s = {.recipe = ks_recipe("packed")};
    s.key = kiln_recipe_key(s.recipe);
    write_code(s.code, sizeof s.code, 9);
    assert_int_equal(kiln_blob_create(s.code, sizeof s.code, "facts", 5, &s.blob, NULL), KILN_OK);
    const kn_tier_put what = {.key = &s.key, .recipe = kn_recipe_span(s.recipe), .blob = s.blob};
    assert_int_equal(kn_trust_seal(trust, &what, &data, &s.size, NULL), KILN_OK);
    assert_true(kn_packet_is(kn_span_of(data, s.size)));
    s.data = data;
    return s;
}

static void unsealed_end(sealed *s)
{
    free(s->data);
    kiln_blob_release(s->blob);
    kiln_recipe_destroy(s->recipe);
}

/* What becomes of the first `size` bytes; right bytes or none. */
static kiln_status unseal(const kn_trust *trust, const sealed *s, size_t size)
{
    const kn_unpacking source = {.find = NULL};
    kiln_blob *blob = NULL;
    char *copy = malloc(size + 1);
    memcpy(copy, s->data, size);
    kiln_status status = kn_trust_unseal(trust, false, &source, &s->key, copy, size, &blob, NULL);
    if (status == KILN_OK) {
        assert_int_equal(kiln_blob_size(blob), sizeof s->code);
        assert_memory_equal(kiln_blob_data(blob), s->code, sizeof s->code);
        assert_int_equal(kiln_blob_facts_size(blob), 5);
    }
    kiln_blob_release(blob);
    return status;
}

TEST(S7_every_tampered_byte_of_a_packet_is_refused)
{
    sealed s = seal(&signs);
    assert_int_equal(unseal(&signs, &s, s.size), KILN_OK);
    for (size_t i = 0; i < s.size; i++) {
        s.data[i] ^= 0x20;
        assert_int_not_equal(unseal(&signs, &s, s.size), KILN_OK);
        s.data[i] ^= 0x20;
    }
    unsealed_end(&s);
}

TEST(a_cut_packet_is_refused)
{
    fixture *f = *state;
    sealed s = seal(&f->remotes.trust);
    assert_int_equal(unseal(&f->remotes.trust, &s, s.size), KILN_OK);
    for (size_t cut = 0; cut < s.size; cut += 5) {
        assert_int_equal(unseal(&f->remotes.trust, &s, cut), KILN_E_CORRUPT);
    }
    unsealed_end(&s);
}

/* --- without memory --------------------------------------------------------------------------- */

static bool pack_without_memory(void *user)
{
    (void)user;
    kiln_blob *blob = NULL, *found = NULL;
    kiln_recipe *recipe = NULL;
    void *data = NULL;
    size_t size = 0;
    char code[PAYLOAD];
    bool good = false;
    write_code(code, sizeof code, 9);
    if (kiln_recipe_create("test", 1, &recipe, NULL) == KILN_OK &&
        kiln_blob_create(code, sizeof code, "facts", 5, &blob, NULL) == KILN_OK) {
        const kiln_key key = kiln_recipe_key(recipe);
        const kn_unpacking source = {.find = NULL};
        const kn_tier_put what = {.key = &key, .recipe = kn_recipe_span(recipe), .blob = blob};
        good = kn_trust_seal(&signs, &what, &data, &size, NULL) == KILN_OK &&
               kn_trust_unseal(&signs, true, &source, &key, data, size, &found, NULL) == KILN_OK;
    }
    if (good) {
        assert_memory_equal(kiln_blob_data(found), code, sizeof code);
    }
    kiln_blob_release(found);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return good;
}

TEST(packing_lives_without_memory)
{
    assert_true(kt_failalloc_each(pack_without_memory, *state) > 5);
}

static bool read_without_memory(void *user)
{
    forget_all(user);
    return read_golden(user) == KILN_OK;
}

TEST(a_dictionary_lives_without_memory)
{
    assert_true(kt_failalloc_each(read_without_memory, *state) > 5);
}

KT_MAIN(set_up_group, tear_down_group)
