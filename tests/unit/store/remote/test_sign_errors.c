/* The module that signs by OpenSSL, linked into the test: nothing of it is left in the list of
 * errors that a program with OpenSSL reads. */
#include "store/remote/sign_module.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <openssl/err.h>

#include "support/suite.h"

const kn_sign_ops *kiln_sign_module(void);

static const char secret_pem[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
static const char message[] = {0x72};

/* A program that uses OpenSSL itself asks this list whether its own calls failed. */
KT_TEST(failures_are_not_left_in_the_programs_list)
{
    static const char nonsense[] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const kn_sign_ops *ops = kiln_sign_module();
    unsigned char public_key[KN_PUBLIC_KEY], signature[KN_SIGNATURE];
    void *pair = ops->read(secret_pem, strlen(secret_pem), public_key);
    assert_true(ops->sign(pair, message, sizeof message, signature));
    ops->forget(pair);
    for (int theirs = 0; theirs < 2; theirs++) {
        ERR_clear_error();
        if (theirs != 0) {
            ERR_raise(ERR_LIB_USER, 7);
        }
        const unsigned long before = ERR_peek_last_error();
        assert_null(ops->read(nonsense, strlen(nonsense), public_key));
        assert_int_equal(ERR_peek_last_error(), before);
        signature[63] ^= 0xff;
        assert_false(ops->verify(public_key, message, sizeof message, signature));
        assert_int_equal(ERR_peek_last_error(), before);
        signature[63] ^= 0xff;
        assert_true(ops->verify(public_key, message, sizeof message, signature));
        assert_int_equal(ERR_peek_last_error(), before);
    }
    ERR_clear_error();
}

KT_MAIN(NULL, NULL)
