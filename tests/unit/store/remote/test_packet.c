/* Packets and the dictionaries they are packed with: what comes out is what went in, and whatever
 * is done to them on the way is noticed. */
#include "unit/store/support.h"

#include "key/recipe.h"
#include "store/disk/disk.h"
#include "store/format/entry.h"
#include "store/pack/pack_train.h"
#include "store/remote/dictionaries.h"
#include "store/remote/packet.h"
#include "store/remote/trust.h"
#include "support/failalloc.h"

#define PAYLOAD 3000

typedef struct fixture {
    char *dir, *key_file;
    kn_stats stats;
    kn_disk *disk;
    kn_dictionaries set;
    kiln_blob *content; /* of a dictionary */
    kiln_key name;      /* the dictionary's */
    kn_trust signs, any;
} fixture;

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

static kiln_blob *train(void)
{
    enum { SAMPLES = 100 };
    static char samples[SAMPLES * PAYLOAD];
    size_t sizes[SAMPLES], size = 0;
    void *dictionary = NULL;
    kiln_blob *blob = NULL;
    for (unsigned i = 0; i < SAMPLES; i++) {
        write_code(samples + (size_t)i * PAYLOAD, PAYLOAD, i + 1000);
        sizes[i] = PAYLOAD;
    }
    kn_pack_train(samples, sizes, SAMPLES, KN_DICTIONARY_LEVEL, &dictionary, &size);
    assert_non_null(dictionary);
    assert_int_equal(kiln_blob_create(dictionary, size, NULL, 0, &blob, NULL), KILN_OK);
    free(dictionary);
    return blob;
}

static kiln_blob *trained; /* once: it takes a while */

static int set_up_group(void **state)
{
    (void)state;
    trained = train();
    return 0;
}

static int tear_down_group(void **state)
{
    (void)state;
    kiln_blob_release(trained);
    return 0;
}

static void open_disk(fixture *f)
{
    const kn_disk_options options = {
        .root = f->dir, .max_bytes = UINT64_C(1) << 30, .max_files = 1000};
    assert_int_equal(kn_disk_open(&options, &f->stats, &f->disk, NULL), KILN_OK);
    kn_dictionaries_init(&f->set, kn_disk_tier(f->disk));
}

static void close_disk(fixture *f)
{
    kn_dictionaries_deinit(&f->set);
    kn_disk_close(f->disk);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    kiln_recipe *recipe = NULL;
    kn_public_key ignored;
    f->dir = kt_tmpdir_create();
    f->key_file = kt_path(f->dir, "key.pem");
    kn_stats_init(&f->stats);
    f->content = kiln_blob_retain(trained);
    assert_int_equal(
        kn_dictionary_recipe(kiln_blob_data(f->content), kiln_blob_size(f->content), &recipe, NULL),
        KILN_OK);
    f->name = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    open_disk(f);
    assert_int_equal(kn_sign_generate(f->key_file, &ignored, NULL), KILN_OK);
    f->signs.policy = KN_TRUST_SIGNED;
    f->any.policy = KN_TRUST_ANY;
    assert_int_equal(kn_signer_create(f->key_file, NULL, &f->signs.signer, NULL), KILN_OK);
    assert_int_equal(kn_signer_create(NULL, NULL, &f->any.signer, NULL), KILN_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    close_disk(f);
    kn_trust_close(&f->signs);
    kn_trust_close(&f->any);
    kiln_blob_release(f->content);
    kn_stats_deinit(&f->stats);
    free(f->key_file);
    kt_tmpdir_remove(f->dir);
    free(f);
    return 0;
}

static const kn_dictionary *keep(fixture *f)
{
    const kn_dictionary *kept = kn_dictionaries_keep(&f->set, &f->name, f->content);
    assert_non_null(kept);
    assert_true(kn_dictionaries_ready(&f->set, kept));
    return kept;
}

/* --- packets ---------------------------------------------------------------------------------- */

static void expect_same(kn_span packed, const kn_dictionary *dictionary, kn_span original)
{
    kn_packet packet;
    void *data = NULL;
    size_t size = 0;
    assert_true(kn_packet_is(packed));
    assert_int_equal(kn_packet_parse(packed, &packet, NULL), KILN_OK);
    assert_true(packet.has_dictionary == (dictionary != NULL));
    if (dictionary != NULL) {
        assert_memory_equal(&packet.dictionary, &dictionary->key, sizeof packet.dictionary);
    }
    assert_int_equal(kn_packet_unpack(&packet, dictionary, 0, &data, &size, NULL), KILN_OK);
    assert_int_equal(size, original.length);
    assert_memory_equal(data, original.data, size);
    free(data);
}

static void what_was_packed_comes_out(void **state)
{
    fixture *f = *state;
    const kn_dictionary *dictionary = keep(f);
    char code[PAYLOAD];
    size_t plain_size = 0, size = 0;
    write_code(code, sizeof code, 7);
    void *plain = kn_packet_make(kn_span_of(code, sizeof code), NULL, 0, &plain_size);
    void *packed = kn_packet_make(kn_span_of(code, sizeof code), dictionary, 128, &size);
    assert_non_null(plain);
    assert_non_null(packed);
    assert_true(size < plain_size); /* what a dictionary is for */
    expect_same(kn_span_of(plain, plain_size), NULL, kn_span_of(code, sizeof code));
    expect_same(kn_span_of(packed, size), dictionary, kn_span_of(code, sizeof code));
    free(plain);
    free(packed);
}

static void what_does_not_pay_is_not_packed(void **state)
{
    char noise[500];
    uint32_t seed = 1;
    size_t size = 0;
    (void)state;
    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1664525u + 1013904223u;
        noise[i] = (char)(seed >> 24);
    }
    assert_null(kn_packet_make(kn_span_of(noise, sizeof noise), NULL, 0, &size));
    assert_null(kn_packet_make(kn_span_of("short", 5), NULL, 0, &size));
}

static void a_header_that_lies_is_refused(void **state)
{
    kn_packet packet;
    char code[PAYLOAD];
    size_t size = 0;
    (void)state;
    write_code(code, sizeof code, 7);
    char *packed = kn_packet_make(kn_span_of(code, sizeof code), NULL, 0, &size);
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

/* --- dictionaries ----------------------------------------------------------------------------- */

static void a_dictionary_is_what_its_key_says(void **state)
{
    fixture *f = *state;
    kiln_key other = f->name;
    other.bytes[0] ^= 1;
    assert_null(kn_dictionaries_find(&f->set, &f->name));
    assert_null(kn_dictionaries_keep(&f->set, &other, f->content));
    const kn_dictionary *kept = keep(f);
    assert_ptr_equal(kn_dictionaries_find(&f->set, &f->name), kept);
    assert_ptr_equal(kn_dictionaries_keep(&f->set, &f->name, f->content), kept);
    assert_null(kn_dictionaries_find(&f->set, &other));
}

static void a_dictionary_outlives_the_process_on_disk(void **state)
{
    fixture *f = *state;
    (void)keep(f);
    close_disk(f);
    open_disk(f);
    const kn_dictionary *found = kn_dictionaries_find(&f->set, &f->name);
    assert_non_null(found);
    assert_true(kn_dictionaries_ready(&f->set, found));
}

/* A packet may name any key: that of another entry on disk, too. */
static void another_entry_is_no_dictionary(void **state)
{
    fixture *f = *state;
    kiln_recipe *recipe = ks_recipe("something else");
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_tier_put what = {
        .key = &key, .target = "test-target", .recipe = kn_recipe_span(recipe), .blob = f->content};
    assert_int_equal(kn_disk_ops.put(f->disk, &what, NULL), KILN_OK);
    assert_null(kn_dictionaries_find(&f->set, &key));
    kiln_recipe_destroy(recipe);
}

static void there_is_room_for_few(void **state)
{
    fixture *f = *state;
    for (int i = 0; i <= KN_DICTIONARIES; i++) {
        kiln_recipe *recipe = NULL;
        char text[64];
        (void)snprintf(text, sizeof text, "not much of a dictionary, number %d", i);
        kiln_blob *blob = ks_blob(text);
        assert_int_equal(kn_dictionary_recipe(text, strlen(text), &recipe, NULL), KILN_OK);
        const kiln_key key = kiln_recipe_key(recipe);
        assert_true((kn_dictionaries_keep(&f->set, &key, blob) != NULL) == (i < KN_DICTIONARIES));
        kiln_recipe_destroy(recipe);
        kiln_blob_release(blob);
    }
}

/* --- sealed ----------------------------------------------------------------------------------- */

static const kn_dictionary *find(void *user, const kiln_key *key)
{
    return kn_dictionaries_find(user, key);
}

typedef struct sealed {
    kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob;
    char code[PAYLOAD];
    char *data;
    size_t size;
} sealed;

static sealed seal(const kn_trust *trust, const kn_dictionary *dictionary)
{
    void *data = NULL;
    sealed s = {.recipe = ks_recipe("packed")};
    s.key = kiln_recipe_key(s.recipe);
    write_code(s.code, sizeof s.code, 9);
    assert_int_equal(kiln_blob_create(s.code, sizeof s.code, "facts", 5, &s.blob, NULL), KILN_OK);
    const kn_tier_put what = {.key = &s.key, .recipe = kn_recipe_span(s.recipe), .blob = s.blob};
    assert_int_equal(kn_trust_seal(trust, &what, dictionary, &data, &s.size, NULL), KILN_OK);
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
static kiln_status unseal(fixture *f, const kn_trust *trust, const sealed *s, size_t size)
{
    const kn_unpacking source = {.find = find, .user = &f->set};
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

static void S7_every_tampered_byte_of_a_packet_is_refused(void **state)
{
    fixture *f = *state;
    sealed s = seal(&f->signs, keep(f));
    assert_int_equal(unseal(f, &f->signs, &s, s.size), KILN_OK);
    for (size_t i = 0; i < s.size; i++) {
        s.data[i] ^= 0x20;
        assert_int_not_equal(unseal(f, &f->signs, &s, s.size), KILN_OK);
        s.data[i] ^= 0x20;
    }
    unsealed_end(&s);
}

static void damage_without_a_signature_is_noticed(void **state)
{
    fixture *f = *state;
    sealed s = seal(&f->any, keep(f));
    assert_int_equal(unseal(f, &f->any, &s, s.size), KILN_OK);
    for (size_t i = 0; i < s.size; i++) {
        s.data[i] ^= 0x20;
        (void)unseal(f, &f->any, &s, s.size); /* which looks at the bytes */
        s.data[i] ^= 0x20;
    }
    for (size_t cut = 0; cut < s.size; cut += 5) {
        assert_int_equal(unseal(f, &f->any, &s, cut), KILN_E_CORRUPT);
    }
    unsealed_end(&s);
}

static void without_its_dictionary_an_entry_is_a_miss(void **state)
{
    fixture *f = *state;
    sealed s = seal(&f->signs, keep(f));
    close_disk(f);
    f->dir = (kt_tmpdir_remove(f->dir), kt_tmpdir_create());
    open_disk(f);
    assert_int_equal(unseal(f, &f->signs, &s, s.size), KILN_E_CORRUPT);
    unsealed_end(&s);
}

/* --- without memory --------------------------------------------------------------------------- */

static bool pack_without_memory(void *user)
{
    fixture *f = user;
    kn_dictionaries set;
    kiln_blob *blob = NULL;
    void *data = NULL;
    size_t size = 0;
    bool good = false;
    kn_dictionaries_init(&set, (kn_tier){0});
    const kn_unpacking source = {.find = find, .user = &set};
    const kn_dictionary *kept = kn_dictionaries_keep(&set, &f->name, f->content);
    const bool ready = kept != NULL && kn_dictionaries_ready(&set, kept);
    sealed *s = calloc(1, sizeof *s);
    kiln_recipe *recipe = NULL;
    if (s != NULL && kiln_recipe_create("test", 1, &recipe, NULL) == KILN_OK) {
        write_code(s->code, sizeof s->code, 9);
        const kiln_key key = kiln_recipe_key(recipe);
        if (kiln_blob_create(s->code, sizeof s->code, "facts", 5, &s->blob, NULL) == KILN_OK) {
            const kn_tier_put what = {
                .key = &key, .recipe = kn_recipe_span(recipe), .blob = s->blob};
            if (kn_trust_seal(&f->signs, &what, ready ? kept : NULL, &data, &size, NULL) ==
                KILN_OK) {
                good = kn_trust_unseal(&f->signs, true, &source, &key, data, size, &blob, NULL) ==
                       KILN_OK;
            }
        }
    }
    if (good) {
        assert_memory_equal(kiln_blob_data(blob), s->code, sizeof s->code);
    }
    kiln_blob_release(blob);
    kiln_blob_release(s != NULL ? s->blob : NULL);
    free(s);
    kiln_recipe_destroy(recipe);
    kn_dictionaries_deinit(&set);
    return good && ready;
}

static void packing_lives_without_memory(void **state)
{
    assert_true(kt_failalloc_each(pack_without_memory, *state) > 5);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(what_was_packed_comes_out),
        CASE(what_does_not_pay_is_not_packed),
        CASE(a_header_that_lies_is_refused),
        CASE(a_dictionary_is_what_its_key_says),
        CASE(a_dictionary_outlives_the_process_on_disk),
        CASE(another_entry_is_no_dictionary),
        CASE(there_is_room_for_few),
        CASE(S7_every_tampered_byte_of_a_packet_is_refused),
        CASE(damage_without_a_signature_is_noticed),
        CASE(without_its_dictionary_an_entry_is_a_miss),
        CASE(packing_lives_without_memory),
    };
    return cmocka_run_group_tests(tests, set_up_group, tear_down_group);
}
