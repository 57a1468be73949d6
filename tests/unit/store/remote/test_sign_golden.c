/* A signature is the same on every system, byte for byte, and what one has signed another takes:
 * tests/golden/signed-v1 was made on Linux, by OpenSSL. KILN_UPDATE=1 makes it again. */
#include "unit/store/support.h"

#include "kiln/unstable/remote.h"

#include "key/recipe.h"
#include "store/remote/trust.h"
#include "support/suite.h"
#include "sys/guarded.h"

#define DIR KILN_GOLDEN "/signed-v1/"

/* RFC 8032, 7.1, test 2: everybody has it. */
static const char secret_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
static const char trusted[] =
    "kiln-ed25519 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c golden\n";
/* Of test 1. */
static const char stranger[] =
    "kiln-ed25519 d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\n";

static const char payload[] = "the payload of it";
static const kn_unpacking nowhere;

typedef struct fixture {
    char *dir, *key, *trusted;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = kt_tmpdir_create();
    f->key = kt_path(f->dir, "golden.pem");
    f->trusted = kt_path(f->dir, "trusted");
    assert_int_equal(kn_guarded_make(f->key, secret_pem, sizeof secret_pem - 1, NULL), KILN_OK);
    assert_int_equal(kn_guarded_make(f->trusted, trusted, sizeof trusted - 1, NULL), KILN_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    kt_tmpdir_remove(f->dir);
    free(f->key);
    free(f->trusted);
    free(f);
    return 0;
}

/* The golden file, made of `data` where that is asked for. */
static char *golden(const char *name, const void *data, size_t size, size_t *out_size)
{
    char *path = kt_at(DIR, name);
    if (getenv("KILN_UPDATE") != NULL) {
        kt_file_write(path, data, size);
    }
    char *bytes = kt_file_read(path, out_size);
    assert_non_null(bytes);
    return bytes;
}

KT_TEST(a_signature_has_the_same_bytes)
{
    const fixture *f = *state;
    static const char entry[] = "any bytes";
    unsigned char signature[KN_SIGNATURE];
    kn_public_key public_key;
    kn_signer *signer = NULL;
    kiln_key key;
    size_t size = 0;
    for (size_t i = 0; i < sizeof key.bytes; i++) {
        key.bytes[i] = (uint8_t)i;
    }
    assert_int_equal(kn_signer_create(f->key, NULL, &signer, NULL), KILN_OK);
    assert_int_equal(
        kn_signer_sign(signer, &key, kn_span_of(entry, sizeof entry - 1), &public_key, signature),
        KILN_OK);
    char *expected = golden("signature", signature, sizeof signature, &size);
    assert_int_equal(size, sizeof signature);
    assert_memory_equal(signature, expected, size);
    free(expected);
    kn_signer_destroy(signer);
}

static kiln_status unseal(const kn_trust *trust, const kiln_key *key, const char *data, size_t size)
{
    kiln_blob *blob = NULL;
    char *copy = malloc(size);
    memcpy(copy, data, size);
    kiln_status status = kn_trust_unseal(trust, false, &nowhere, key, copy, size, &blob, NULL);
    if (blob != NULL) {
        assert_int_equal(kiln_blob_size(blob), sizeof payload - 1);
        assert_memory_equal(kiln_blob_data(blob), payload, sizeof payload - 1);
    }
    kiln_blob_release(blob);
    return status;
}

/* As a server has it. */
static char *make_sealed(const fixture *f, const kiln_recipe *recipe, size_t *out_size)
{
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = ks_blob(payload);
    const kn_tier_put what = {.key = &key, .recipe = kn_recipe_span(recipe), .blob = blob};
    kn_trust maker = {.policy = KN_TRUST_SIGNED};
    void *data = NULL;
    assert_int_equal(kn_signer_create(f->key, NULL, &maker.signer, NULL), KILN_OK);
    assert_int_equal(kn_trust_seal(&maker, &what, &data, out_size, NULL), KILN_OK);
    kn_trust_close(&maker);
    kiln_blob_release(blob);
    return data;
}

KT_TEST(an_entry_that_was_signed_elsewhere_is_taken)
{
    const fixture *f = *state;
    size_t made_size = 0, size = 0;
    kiln_recipe *recipe = ks_recipe("golden");
    const kiln_key key = kiln_recipe_key(recipe);
    char *made = make_sealed(f, recipe, &made_size);
    char *bytes = golden("sealed", made, made_size, &size); /* its time differs, and its seal */
    kn_trust trust = {.policy = KN_TRUST_SIGNED};
    assert_int_equal(kn_signer_create(NULL, f->trusted, &trust.signer, NULL), KILN_OK);
    assert_int_equal(unseal(&trust, &key, bytes, size), KILN_OK);
    assert_int_equal(unseal(&trust, &key, made, made_size), KILN_OK);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        assert_int_not_equal(unseal(&trust, &key, bytes, size), KILN_OK);
        bytes[i] ^= 1;
    }
    kn_trust_close(&trust);
    char *list = kt_at(f->dir, "strangers");
    assert_int_equal(kn_guarded_make(list, stranger, sizeof stranger - 1, NULL), KILN_OK);
    assert_int_equal(kn_signer_create(NULL, list, &trust.signer, NULL), KILN_OK);
    assert_int_equal(unseal(&trust, &key, bytes, size), KILN_E_REJECTED);
    kn_trust_close(&trust);
    free(made);
    free(bytes);
    kiln_recipe_destroy(recipe);
}

KT_TEST(a_pack_that_was_signed_elsewhere_is_taken)
{
    const fixture *f = *state;
    char text[KILN_PACK_SIGNATURE_SIZE];
    size_t pack_size = 0, size = 0;
    char *pack = kt_file_read(KILN_GOLDEN "/pack-v1-raw.kpack", &pack_size);
    assert_non_null(pack);
    assert_int_equal(setenv("KILN_SIGNING_KEY", f->key, 1), 0);
    assert_int_equal(kiln_pack_sign(pack, pack_size, text, NULL), KILN_OK);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
    char *expected = golden("pack-signature", text, strlen(text), &size);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(text, expected, size);
    assert_int_equal(setenv("KILN_TRUSTED_KEYS", f->trusted, 1), 0);
    assert_int_equal(kiln_pack_judge("a pack", pack, pack_size, expected, size, NULL), KILN_OK);
    pack[pack_size / 2] ^= 1;
    assert_int_equal(kiln_pack_judge("a pack", pack, pack_size, expected, size, NULL),
                     KILN_E_REJECTED);
    assert_int_equal(unsetenv("KILN_TRUSTED_KEYS"), 0);
    free(expected);
    free(pack);
}

KT_MAIN(setup, teardown)
