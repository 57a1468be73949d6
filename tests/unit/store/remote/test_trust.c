/* What is believed of what comes from a remote: FIELD S7. */
#include "unit/store/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kiln/unstable.h"

#include "base/stages.h"
#include "base/text.h"
#include "key/recipe.h"
#include "store/remote/trust.h"
#include "support/suite.h"
#include "sys/paths.h"

static const kn_unpacking nowhere;
enum { SEAL_PUBLIC = 16, SEAL_SIGNATURE = 48 };

typedef struct fixture {
    char *dir, *own, *stranger;
    kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob;
    kn_trust signs;     /* with the own key */
    kn_trust foreign;   /* with another's */
    kn_trust unsigned_; /* no keys at all */
} fixture;

static kn_trust trust_with(const char *key_file, kn_trust_policy policy)
{
    kn_trust trust = {.policy = policy};
    assert_int_equal(kn_signer_create(key_file, NULL, &trust.signer, NULL), KILN_OK);
    return trust;
}

static int setup(void **state)
{
    kn_public_key ignored;
    fixture *f = calloc(1, sizeof *f);
    f->dir = kt_tmpdir_create();
    f->own = kt_path(f->dir, "own.pem");
    f->stranger = kt_path(f->dir, "stranger.pem");
    assert_int_equal(kn_sign_generate(f->own, &ignored, NULL), KILN_OK);
    assert_int_equal(kn_sign_generate(f->stranger, &ignored, NULL), KILN_OK);
    f->recipe = ks_recipe("one");
    f->key = kiln_recipe_key(f->recipe);
    f->blob = ks_blob("the payload of it");
    f->signs = trust_with(f->own, KN_TRUST_SIGNED);
    f->foreign = trust_with(f->stranger, KN_TRUST_SIGNED);
    f->unsigned_ = trust_with(NULL, KN_TRUST_ANY);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    kn_trust_close(&f->signs);
    kn_trust_close(&f->foreign);
    kn_trust_close(&f->unsigned_);
    kiln_blob_release(f->blob);
    kiln_recipe_destroy(f->recipe);
    free(f->own);
    free(f->stranger);
    kt_tmpdir_remove(f->dir);
    free(f);
    return 0;
}

static char *seal(fixture *f, const kn_trust *trust, const kiln_recipe *recipe, size_t *out_size)
{
    void *data = NULL;
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_tier_put what = {.key = &key, .recipe = kn_recipe_span(recipe), .blob = f->blob};
    assert_int_equal(kn_trust_seal(trust, &what, &data, out_size, NULL), KILN_OK);
    return data;
}

static kiln_status unseal(const kn_trust *trust, const kiln_key *key, const void *data, size_t size)
{
    kiln_blob *blob = NULL;
    char *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    kiln_status status = kn_trust_unseal(trust, false, &nowhere, key, copy, size, &blob, NULL);
    assert_true((status == KILN_OK) == (blob != NULL));
    if (blob != NULL) {
        assert_int_equal(kiln_blob_size(blob), 17);
        assert_memory_equal(kiln_blob_data(blob), "the payload of it", 17);
    }
    kiln_blob_release(blob);
    return status;
}

KT_TEST(S7_a_signed_entry_is_taken)
{
    fixture *f = *state;
    size_t size = 0;
    char *data = seal(f, &f->signs, f->recipe, &size);
    assert_int_equal(unseal(&f->signs, &f->key, data, size), KILN_OK);
    assert_int_equal(unseal(&f->unsigned_, &f->key, data, size), KILN_OK);
    free(data);
}

KT_TEST(S7_every_tampered_byte_is_refused)
{
    fixture *f = *state;
    size_t size = 0;
    char *data = seal(f, &f->signs, f->recipe, &size);
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 0x20;
        assert_int_not_equal(unseal(&f->signs, &f->key, data, size), KILN_OK);
        data[i] ^= 0x20;
    }
    for (size_t cut = 0; cut < size; cut += 7) {
        assert_int_not_equal(unseal(&f->signs, &f->key, data, cut), KILN_OK);
    }
    free(data);
}

KT_TEST(S7_a_replay_under_another_key_is_refused)
{
    fixture *f = *state;
    size_t size = 0;
    kiln_recipe *other = ks_recipe("two");
    const kiln_key other_key = kiln_recipe_key(other);
    char *data = seal(f, &f->signs, f->recipe, &size);
    assert_int_equal(unseal(&f->signs, &other_key, data, size), KILN_E_REJECTED);
    free(data);
    data = seal(f, &f->unsigned_, f->recipe, &size);
    assert_int_equal(unseal(&f->unsigned_, &other_key, data, size), KILN_E_CORRUPT);
    free(data);
    kiln_recipe_destroy(other);
}

KT_TEST(S7_an_unsigned_entry_is_refused)
{
    fixture *f = *state;
    size_t size = 0;
    char *data = seal(f, &f->unsigned_, f->recipe, &size);
    assert_int_equal(unseal(&f->signs, &f->key, data, size), KILN_E_REJECTED);
    assert_int_equal(unseal(&f->unsigned_, &f->key, data, size), KILN_OK);
    free(data);
}

KT_TEST(S7_a_strangers_signature_is_refused)
{
    fixture *f = *state;
    size_t size = 0, own_size = 0;
    char *theirs = seal(f, &f->foreign, f->recipe, &size);
    char *own = seal(f, &f->signs, f->recipe, &own_size);
    assert_int_equal(unseal(&f->signs, &f->key, theirs, size), KILN_E_REJECTED);
    /* With a trusted name on it, it is no better. */
    memcpy(theirs + size - KN_SEAL_SIZE + SEAL_PUBLIC, own + own_size - KN_SEAL_SIZE + SEAL_PUBLIC,
           KN_PUBLIC_KEY);
    assert_int_equal(unseal(&f->signs, &f->key, theirs, size), KILN_E_REJECTED);
    free(theirs);
    free(own);
}

KT_TEST(S7_local_takes_nothing)
{
    fixture *f = *state;
    size_t size = 0;
    char *data = seal(f, &f->signs, f->recipe, &size);
    kn_trust local = trust_with(f->own, KN_TRUST_LOCAL);
    assert_int_equal(unseal(&local, &f->key, data, size), KILN_E_REJECTED);
    kn_trust_close(&local);
    free(data);
}

/* Whether an unsigned entry of the stage is taken where no key is set; `code` may be NULL. A signed
 * one always is, and so is an unsigned one from a remote whose URL says unsigned-native. */
static bool takes_unsigned(fixture *f, const char *stage, const char *code)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    size_t size = 0;
    assert_int_equal(kiln_recipe_create(stage, 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "somewhere");
    if (code != NULL) {
        kiln_recipe_add_text(recipe, "device.code", code, strlen(code));
    }
    const kiln_key key = kiln_recipe_key(recipe);
    char *data = seal(f, &f->unsigned_, recipe, &size);
    const kiln_status status = unseal(&f->unsigned_, &key, data, size);
    assert_true(status == KILN_OK || status == KILN_E_REJECTED);
    assert_int_equal(kn_trust_unseal(&f->unsigned_, true, &nowhere, &key, data, size, &blob, NULL),
                     KILN_OK);
    kiln_blob_release(blob);
    data = seal(f, &f->signs, recipe, &size);
    assert_int_equal(unseal(&f->signs, &key, data, size), KILN_OK);
    free(data);
    kiln_recipe_destroy(recipe);
    return status == KILN_OK;
}

/* Every stage of kiln's own, whatever its recipe says of the device. */
KT_TEST(S7_only_portable_stages_come_unsigned)
{
    size_t count = 0, portable = 0;
    const kn_stage_row *rows = kn_stages(&count);
    for (size_t i = 0; i < count; i++) {
        const bool is_free = rows[i].code == KN_STAGE_PORTABLE || rows[i].code == KN_STAGE_NOTE;
        portable += is_free;
        assert_true(i == 0 || strcmp(rows[i - 1].name, rows[i].name) < 0);
        assert_true((rows[i].code == KN_STAGE_NOTE) == (strncmp(rows[i].name, "kiln.", 5) == 0));
        assert_int_equal(takes_unsigned(*state, rows[i].name, NULL), is_free);
        assert_int_equal(takes_unsigned(*state, rows[i].name, "gpu"), is_free);
        assert_false(takes_unsigned(*state, rows[i].name, "processor"));
    }
    assert_true(portable > 0 && portable < count);
}

KT_TEST(S7_a_programs_own_stage_is_free_unless_it_is_native)
{
    fixture *f = *state;
    kiln_recipe *recipe = NULL;
    size_t size = 0;
    assert_true(takes_unsigned(f, "somebody.elses", NULL));
    assert_true(takes_unsigned(f, "somebody.elses", "gpu"));
    assert_false(takes_unsigned(f, "somebody.elses", "processor"));
    assert_false(takes_unsigned(f, "somebody.elses", ""));
    assert_false(takes_unsigned(f, "cpu.somebody.elses", NULL));
    assert_int_equal(kiln_recipe_create("somebody.elses", 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_native(recipe);
    const kiln_key key = kiln_recipe_key(recipe);
    char *data = seal(f, &f->unsigned_, recipe, &size);
    assert_int_equal(unseal(&f->unsigned_, &key, data, size), KILN_E_REJECTED);
    free(data);
    kiln_recipe_destroy(recipe);
}

/* Signed and unsigned native code are refused for reasons of their own, and what is taken is said
 * beforehand. */
KT_TEST(refusals_name_the_signature)
{
    fixture *f = *state;
    const kn_trust *signers[] = {&f->unsigned_, &f->signs};
    static const char *const reasons[] = {"not signed", "no key is trusted here"};
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create("cpu.somebody.elses", 1, &recipe, NULL), KILN_OK);
    const kiln_key key = kiln_recipe_key(recipe);
    for (size_t i = 0; i < 2; i++) {
        size_t size = 0;
        kiln_blob *blob = NULL;
        kiln_diag diag = KILN_DIAG_INIT;
        char *data = seal(f, signers[i], recipe, &size);
        assert_int_equal(
            kn_trust_unseal(&f->unsigned_, false, &nowhere, &key, data, size, &blob, &diag),
            KILN_E_REJECTED);
        assert_non_null(strstr(diag.why, reasons[i]));
        kiln_diag_clear(&diag);
    }
    kiln_recipe_destroy(recipe);
    const kn_trust local = {.policy = KN_TRUST_LOCAL, .signer = f->signs.signer};
    const kn_trust keyless = {.policy = KN_TRUST_SIGNED, .signer = f->unsigned_.signer};
    assert_non_null(strstr(kn_trust_describe(&local, true), "KILN_TRUST=local"));
    assert_non_null(strstr(kn_trust_describe(&keyless, true), "nothing: signed"));
    assert_non_null(strstr(kn_trust_describe(&f->signs, true), "a trusted key signed"));
    assert_non_null(strstr(kn_trust_describe(&f->unsigned_, true), "everything"));
    assert_non_null(strstr(kn_trust_describe(&f->unsigned_, false), "is refused"));
}

KT_TEST(key_files_are_looked_at)
{
    fixture *f = *state;
    kn_public_key public_key;
    kn_signer *signer = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    char line[256], hex[2 * KN_PUBLIC_KEY + 1];
    char *list = kt_at(f->dir, "trusted"), *open_key = kt_at(f->dir, "open.pem");
    assert_int_equal(kn_sign_generate(f->own, &public_key, NULL), KILN_E_INVALID);
    assert_int_equal(kn_sign_public(f->own, &public_key, NULL), KILN_OK);
    for (size_t i = 0; i < sizeof public_key.bytes; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", public_key.bytes[i]);
    }
    (void)snprintf(line, sizeof line, "# ours\n\nkiln-ed25519 %s build host\r\n", hex);
    kt_file_write(list, line, strlen(line));
    assert_int_equal(kn_signer_create(NULL, list, &signer, &diag), KILN_OK);
    kn_trust reader = {.policy = KN_TRUST_SIGNED, .signer = signer};
    size_t size = 0;
    char *data = seal(f, &f->signs, f->recipe, &size);
    assert_int_equal(unseal(&reader, &f->key, data, size), KILN_OK);
    free(data);
    kn_trust_close(&reader);

    kt_file_write(list, "kiln-ed25519 12", 15);
    assert_int_equal(kn_signer_create(NULL, list, &signer, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "line 1"));
    kiln_diag_clear(&diag);

    char *pem = kt_file_read(f->own, &size);
    FILE *file = fopen(open_key, "w"); /* 0644 by the usual mask */
    assert_non_null(file);
    assert_int_equal(fwrite(pem, 1, size, file), size);
    (void)fclose(file);
    (void)chmod(open_key, 0644);
    assert_int_equal(kn_signer_create(open_key, NULL, &signer, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    free(pem);
}

/* A user with keys never goes on without what checks signatures. */
KT_TEST(a_module_that_is_none_is_an_error)
{
    fixture *f = *state;
    static const char junk[] = "this is not a library";
    kiln_diag diag = KILN_DIAG_INIT;
    kn_signer *signer = NULL;
    kn_public_key public_key;
    kn_trust trust;
    char line[2 * KN_PUBLIC_KEY + 16] = "kiln-ed25519 ", *list = kt_at(f->dir, "keys");
    memset(line + 13, 'a', 2 * (size_t)KN_PUBLIC_KEY);
    kt_file_write(list, line, strlen(line));
    char *module = kt_at(f->dir, KN_MODULE_FILE("sign")), *fresh = kt_at(f->dir, "fresh.pem");
    char *before = kn_text_copy(getenv("KILN_LIBEXEC"));
    kt_file_write(module, junk, strlen(junk));
    assert_int_equal(setenv("KILN_LIBEXEC", f->dir, 1), 0);
    assert_int_equal(kn_signer_create(f->own, NULL, &signer, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.what, KN_MODULE_FILE("sign")));
    kiln_diag_clear(&diag);
    assert_int_equal(kn_signer_create(NULL, list, &signer, NULL), KILN_E_UNAVAILABLE);
    assert_null(signer);
    assert_int_equal(kn_sign_generate(fresh, &public_key, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(access(fresh, F_OK), -1);
    assert_int_equal(setenv("KILN_TRUSTED_KEYS", list, 1), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(unsetenv("KILN_TRUSTED_KEYS"), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_OK); /* which needs none */
    kn_trust_close(&trust);
    assert_int_equal(setenv("KILN_LIBEXEC", before, 1), 0);
    free(before);
}

KT_TEST(policies_come_from_the_environment)
{
    fixture *f = *state;
    kn_trust trust;
    assert_int_equal(setenv("KILN_TRUST", "everybody", 1), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_E_INVALID);
    assert_int_equal(unsetenv("KILN_TRUST"), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_OK);
    assert_int_equal(trust.policy, KN_TRUST_ANY);
    kn_trust_close(&trust);
    assert_int_equal(setenv("KILN_SIGNING_KEY", f->own, 1), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_OK);
    assert_int_equal(trust.policy, KN_TRUST_SIGNED);
    assert_true(kn_signer_signs(trust.signer));
    kn_trust_close(&trust);
    assert_int_equal(setenv("KILN_SIGNING_KEY", "/nowhere/at/all", 1), 0);
    assert_int_equal(kn_trust_open(&trust, NULL), KILN_E_INVALID);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
}

KT_MAIN(setup, teardown)
