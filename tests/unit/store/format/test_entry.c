/* The entry file: round trips, golden files, and bytes that must never be accepted. */
#include "unit/store/support.h"

#include "base/checked.h"
#include "key/digest.h"
#include "store/format/blob.h"
#include "store/format/checksum.h"
#include "store/format/entry.h"
#include "support/failalloc.h"
#include "support/suite.h"

/* One entry as a single piece of memory. */
typedef struct image {
    char *bytes;
    size_t size;
    kiln_key key;
} image;

#define PAYLOAD                                                                                    \
    "\x7f"                                                                                         \
    "ELF, or something like it: thirty-nine bytes"

static image make_image(const char *payload, size_t size, bool compress)
{
    image out = {0};
    kiln_blob *blob = NULL;
    kiln_recipe *recipe = ks_recipe("golden");
    kn_entry_parts parts;
    assert_int_equal(kiln_blob_create(payload, size, "some facts", 10, &blob, NULL), KILN_OK);
    atomic_store(&blob->compile_ns, 123456789);
    out.key = kiln_recipe_key(recipe);
    const kn_entry_request request = {.key = &out.key,
                                      .recipe = kn_span_of_text(kiln_recipe_text(recipe)),
                                      .blob = blob,
                                      .created_ns = INT64_C(1700000000123456789),
                                      .writer = "0.1.0-golden",
                                      .compress = compress};
    assert_int_equal(kn_entry_write(&request, &parts, NULL), KILN_OK);
    out.size = kn_entry_parts_size(&parts);
    out.bytes = malloc(out.size);
    assert_non_null(out.bytes);
    memcpy(out.bytes, parts.header, sizeof parts.header);
    memcpy(out.bytes + sizeof parts.header, parts.body.data, parts.body.length);
    memcpy(out.bytes + sizeof parts.header + parts.body.length, parts.recipe.data,
           parts.recipe.length);
    kn_entry_parts_deinit(&parts);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return out;
}

static void assert_golden_blob(const kiln_blob *blob, const kiln_recipe *recipe,
                               const char *payload, size_t payload_size)
{
    assert_int_equal(kiln_blob_size(blob), payload_size);
    assert_memory_equal(kiln_blob_data(blob), payload, payload_size);
    assert_int_equal((uintptr_t)kiln_blob_data(blob) % 16, 0);
    assert_int_equal((uintptr_t)kiln_blob_facts(blob) % 16, 0);
    assert_memory_equal(kiln_blob_facts(blob), "some facts", 10);
    assert_int_equal(kiln_blob_compile_ns(blob), 123456789);
    assert_true(kn_span_equal(blob->recipe, kn_span_of_text(kiln_recipe_text(recipe))));
}

/* Parses a copy and checks everything that is in a golden entry. */
static void assert_golden(const char *bytes, size_t size, const char *payload, size_t payload_size)
{
    kn_entry entry;
    kiln_blob *blob = NULL;
    kiln_recipe *recipe = ks_recipe("golden");
    kiln_key key = kiln_recipe_key(recipe);
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    assert_int_equal(kn_entry_parse(kn_span_of(copy, size), &key, &entry, NULL), KILN_OK);
    assert_int_equal(entry.compile_ns, 123456789);
    assert_int_equal(entry.created_ns, INT64_C(1700000000123456789));
    assert_string_equal(entry.writer, "0.1.0-golden");
    assert_int_equal(entry.payload_size, payload_size);
    assert_true(kn_span_equal(entry.facts, kn_span_of_text("some facts")));
    assert_true(kn_span_equal(entry.recipe, kn_span_of_text(kiln_recipe_text(recipe))));
    uint8_t digest[KN_DIGEST_SIZE]; /* an entry proves its own key */
    assert_true(kn_digest_of(entry.recipe.data, entry.recipe.length, digest));
    assert_memory_equal(digest, key.bytes, sizeof digest);

    assert_int_equal(kn_entry_load(copy, size, &entry, &blob, NULL), KILN_OK);
    assert_golden_blob(blob, recipe, payload, payload_size);
    kiln_blob_release(blob);

    char *room = malloc(KN_BLOB_ROOM + size); /* and made in place */
    assert_non_null(room);
    memcpy(room + KN_BLOB_ROOM, bytes, size);
    assert_int_equal(kn_entry_parse(kn_span_of(room + KN_BLOB_ROOM, size), &key, &entry, NULL),
                     KILN_OK);
    assert_int_equal(kn_entry_load_in(room, KN_BLOB_ROOM + size, &entry, &blob, NULL), KILN_OK);
    assert_golden_blob(blob, recipe, payload, payload_size);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

static char *large_payload(size_t size)
{
    char *payload = malloc(size);
    assert_non_null(payload);
    for (size_t i = 0; i < size; i++) {
        payload[i] = (char)('a' + i % 7 + i / 1000 % 3);
    }
    return payload;
}

KT_TEST(entries_round_trip)
{
    for (size_t size = 1; size < 70; size += 3) {
        char *payload = large_payload(size);
        image raw = make_image(payload, size, false);
        assert_golden(raw.bytes, raw.size, payload, size);
        free(raw.bytes);
        free(payload);
    }
}

KT_TEST(compression_is_used_where_it_pays)
{
    char *payload = large_payload(20000);
    image packed = make_image(payload, 20000, true);
    assert_true(packed.size < 10000);
    assert_golden(packed.bytes, packed.size, payload, 20000);
    free(packed.bytes);
    free(payload);
    /* Too small to gain an eighth: stored as it is. */
    image raw = make_image("abc", 3, false), tried = make_image("abc", 3, true);
    assert_int_equal(raw.size, tried.size);
    assert_memory_equal(raw.bytes, tried.bytes, raw.size);
    free(raw.bytes);
    free(tried.bytes);
}

static void check_golden(const char *name, const image *made, bool same_bytes, const char *payload,
                         size_t payload_size)
{
    char *path = kt_at(KILN_GOLDEN, name);
    size_t size = 0;
    if (getenv("KILN_UPDATE") != NULL) {
        kt_file_write(path, made->bytes, made->size);
    }
    char *bytes = kt_file_read(path, &size);
    assert_non_null(bytes);
    assert_golden(bytes, size, payload, payload_size);
    if (same_bytes) {
        assert_int_equal(size, made->size);
        assert_memory_equal(bytes, made->bytes, size);
    }
    free(bytes);
}

KT_TEST(golden_entries_stay_readable_for_ever)
{
    char *payload = large_payload(5000);
    image raw = make_image(PAYLOAD, sizeof PAYLOAD - 1, false);
    image packed = make_image(payload, 5000, true);
    check_golden("entry-v1-raw.kiln", &raw, true, PAYLOAD, sizeof PAYLOAD - 1);
    /* Another zstd may pack the same payload into other bytes. */
    check_golden("entry-v1-zstd.kiln", &packed, false, payload, 5000);
    free(raw.bytes);
    free(packed.bytes);
    free(payload);
}

static void assert_refused(const char *bytes, size_t size, const kiln_key *key)
{
    kn_entry entry;
    kiln_diag diag = KILN_DIAG_INIT;
    char *copy = malloc(size > 0 ? size : 1); /* of exactly this size, for ASan */
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    assert_int_equal(kn_entry_parse(kn_span_of(copy, size), key, &entry, &diag), KILN_E_CORRUPT);
    assert_true(diag.why[0] != '\0');
    kiln_diag_clear(&diag);
    free(copy);
}

KT_TEST(checksums_agree_in_one_piece_and_in_many)
{
    enum { SIZE = 70000 };
    char *bytes = large_payload(SIZE + 3);
    for (size_t size = 0; size <= SIZE; size = size < 1100 ? size + 1 : size * 2 - 7) {
        unsigned char one[KN_CHECKSUM_SIZE], many[KN_CHECKSUM_SIZE];
        const kn_span whole = kn_span_of(bytes + size % 4, size);
        const kn_span parts[] = {kn_span_of(whole.data, size / 3), kn_span_of(NULL, 0),
                                 kn_span_of(whole.data + size / 3, size - size / 3)};
        kn_checksum(&whole, 1, one);
        kn_checksum(parts, 3, many);
        assert_memory_equal(one, many, sizeof one);
    }
    free(bytes);
}

KT_TEST(D1_every_flipped_bit_is_found)
{
    for (int packed = 0; packed < 2; packed++) {
        char *payload = large_payload(300);
        image made = make_image(payload, 300, packed != 0);
        for (size_t at = 0; at < made.size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                made.bytes[at] ^= (char)(1 << bit);
                assert_refused(made.bytes, made.size, &made.key);
                made.bytes[at] ^= (char)(1 << bit);
            }
        }
        free(made.bytes);
        free(payload);
    }
}

KT_TEST(D2_every_truncation_is_found)
{
    image made = make_image(PAYLOAD, sizeof PAYLOAD - 1, false);
    for (size_t size = 0; size < made.size; size++) {
        assert_refused(made.bytes, size, &made.key);
    }
    /* The length is right, and the disk gave zeros. */
    for (size_t keep = 0; keep < made.size; keep += 16) {
        char *torn = calloc(1, made.size);
        assert_non_null(torn);
        memcpy(torn, made.bytes, keep);
        assert_refused(torn, made.size, &made.key);
        free(torn);
    }
    char *longer = calloc(1, made.size + 1);
    assert_non_null(longer);
    memcpy(longer, made.bytes, made.size);
    assert_refused(longer, made.size + 1, &made.key);
    free(longer);
    free(made.bytes);
}

KT_TEST(K4_another_keys_entry_is_refused)
{
    image made = make_image(PAYLOAD, sizeof PAYLOAD - 1, false);
    kiln_key other = made.key;
    other.bytes[31] ^= 1;
    assert_refused(made.bytes, made.size, &other);
    free(made.bytes);
}

KT_TEST(lies_under_a_right_checksum_are_refused)
{
    /* version, flags, payload size, stored size, facts size, recipe size */
    const size_t fields[] = {24, 28, 80, 88, 96, 104};
    const uint64_t lies[] = {0,         2, 7, UINT64_C(1) << 31, UINT64_C(1) << 63, UINT64_MAX - 15,
                             UINT64_MAX};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        for (size_t l = 0; l < sizeof lies / sizeof *lies; l++) {
            image made = make_image(PAYLOAD, sizeof PAYLOAD - 1, false);
            if (f < 2) {
                if ((uint32_t)lies[l] == 0) {
                    free(made.bytes);
                    continue; /* no flags is what is there; no version is covered by 2 and 7 */
                }
                uint32_t lie = (uint32_t)lies[l];
                kn_put_u32(made.bytes + fields[f], lie);
            } else {
                kn_put_u64(made.bytes + fields[f], lies[l]);
            }
            kn_span covered = kn_span_of(made.bytes + 24, made.size - 24);
            kn_checksum(&covered, 1, (unsigned char *)made.bytes + 8);
            assert_refused(made.bytes, made.size, &made.key);
            free(made.bytes);
        }
    }
}

KT_TEST(a_packed_payload_that_does_not_unpack_is_refused)
{
    char *payload = large_payload(5000);
    image made = make_image(payload, 5000, true);
    kn_entry entry;
    kiln_blob *blob = NULL;
    uint64_t lie = 4999;
    for (int round = 0; round < 2; round++) {
        if (round == 0) {
            kn_put_u64(made.bytes + 80, lie);
        } else {
            memset(made.bytes + 128, 0xaa, 16);
        }
        kn_span covered = kn_span_of(made.bytes + 24, made.size - 24);
        kn_checksum(&covered, 1, (unsigned char *)made.bytes + 8);
        char *copy = malloc(made.size);
        assert_non_null(copy);
        memcpy(copy, made.bytes, made.size);
        assert_int_equal(kn_entry_parse(kn_span_of(copy, made.size), NULL, &entry, NULL), KILN_OK);
        assert_int_equal(kn_entry_load(copy, made.size, &entry, &blob, NULL), KILN_E_CORRUPT);
        assert_null(blob);
    }
    free(made.bytes);
    free(payload);
}

static bool write_and_load(void *user)
{
    (void)user;
    bool worked = false;
    kiln_blob *blob = NULL, *back = NULL;
    kn_entry_parts parts = {0};
    kn_entry entry;
    kiln_key key = {{1}};
    char *payload = calloc(1, 3000), *bytes = NULL;
    if (payload == NULL || kiln_blob_create(payload, 3000, "f", 1, &blob, NULL) != KILN_OK) {
        goto cleanup;
    }
    const kn_entry_request request = {
        .key = &key, .recipe = kn_span_of_text("r"), .blob = blob, .compress = true};
    if (kn_entry_write(&request, &parts, NULL) != KILN_OK) {
        goto cleanup;
    }
    size_t size = kn_entry_parts_size(&parts);
    bytes = malloc(size);
    if (bytes == NULL) {
        goto cleanup;
    }
    memcpy(bytes, parts.header, sizeof parts.header);
    memcpy(bytes + sizeof parts.header, parts.body.data, parts.body.length);
    memcpy(bytes + size - 1, "r", 1);
    assert_int_equal(kn_entry_parse(kn_span_of(bytes, size), &key, &entry, NULL), KILN_OK);
    kiln_status status = kn_entry_load(bytes, size, &entry, &back, NULL);
    bytes = NULL;
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    worked = status == KILN_OK;
cleanup:
    kn_entry_parts_deinit(&parts);
    kiln_blob_release(blob);
    kiln_blob_release(back);
    free(payload);
    free(bytes);
    return worked;
}

KT_TEST(entries_survive_failing_allocations)
{
    assert_true(kt_failalloc_each(write_and_load, NULL) > 3);
}

KT_MAIN(NULL, NULL)
