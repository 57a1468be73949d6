/* The module that signs, linked into the test: a published vector, and what it refuses. */
#include "store/remote/sign_module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "support/suite.h"

const kn_sign_ops *kiln_sign_module(void);

/* RFC 8032, 7.1, test 2. */
static const char secret_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
static const char public_hex[] = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
static const char signature_hex[] =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
static const char message[] = {0x72};

KT_TEST(a_published_vector)
{
    const kn_sign_ops *ops = kiln_sign_module();
    unsigned char public_key[KN_PUBLIC_KEY], signature[KN_SIGNATURE];
    char hex[2 * KN_SIGNATURE + 1];
    assert_non_null(ops);
    void *pair = ops->read(secret_pem, strlen(secret_pem), public_key);
    assert_non_null(pair);
    kn_hex_encode(public_key, sizeof public_key, hex);
    assert_string_equal(hex, public_hex);
    assert_true(ops->sign(pair, message, sizeof message, signature));
    kn_hex_encode(signature, sizeof signature, hex);
    assert_string_equal(hex, signature_hex);
    assert_true(ops->verify(public_key, message, sizeof message, signature));
    assert_false(ops->verify(public_key, "s", 1, signature));
    signature[0] ^= 1;
    assert_false(ops->verify(public_key, message, sizeof message, signature));
    ops->forget(pair);
}

KT_TEST(a_made_key_is_read)
{
    const kn_sign_ops *ops = kiln_sign_module();
    unsigned char made[KN_PUBLIC_KEY], seen[KN_PUBLIC_KEY];
    char pem[KN_SIGN_PEM];
    size_t size = 0;
    assert_true(ops->make(pem, &size, made));
    void *pair = ops->read(pem, size, seen);
    assert_non_null(pair);
    assert_memory_equal(made, seen, sizeof made);
    ops->forget(pair);
    assert_null(ops->read(pem, size / 2, seen));
}

/* Only Ed25519, only without a password, whole and in its place. */
KT_TEST(other_texts_are_refused)
{
    static const char *const texts[] = {
        "",
        "nonsense",
        "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        /* X25519, another curve's number */
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VuBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
        "-----END PRIVATE KEY-----\n",
        /* a byte is missing */
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKY=\n"
        "-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n",
        /* with a password */
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
        "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhbHDI61ZwM0gICCAAw\n"
        "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENfaOw7X2s+e9d1ZRlpFm7sEQMKE\n"
        "jy8G0Cv/u07d7JgmeQFLe9TIQ1qin/bybPTSWw1cEWHSswRg3BUz5A7CDrGIZcuM\n"
        "jB1GDPiKZvn5D+Ud86Q=\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n",
    };
    const kn_sign_ops *ops = kiln_sign_module();
    unsigned char public_key[KN_PUBLIC_KEY];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_null(ops->read(texts[i], strlen(texts[i]), public_key));
    }
}

/* As editors and mail leave one. */
KT_TEST(a_key_with_other_line_ends_is_read)
{
    static const char text[] = "of the build host\r\n-----BEGIN PRIVATE KEY-----\r\n"
                               "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGf\r\n"
                               "NaumJNqM9u1PuKb7\r\n-----END PRIVATE KEY-----\r\n";
    const kn_sign_ops *ops = kiln_sign_module();
    unsigned char public_key[KN_PUBLIC_KEY];
    char hex[2 * KN_PUBLIC_KEY + 1];
    void *pair = ops->read(text, strlen(text), public_key);
    assert_non_null(pair);
    kn_hex_encode(public_key, sizeof public_key, hex);
    assert_string_equal(hex, public_hex);
    ops->forget(pair);
}

KT_MAIN(NULL, NULL)
