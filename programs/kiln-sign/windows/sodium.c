/* Ed25519 by libsodium, for src/store/remote/sign.c on Windows, whose own cryptography has none.
 * This file must not know what is signed. Keys and signatures are those of sign.c, byte for byte.
 */
#include "store/remote/sign_module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#include <windows.h>

#include <bcrypt.h>

#include "kiln/export.h"

#define BEGIN "-----BEGIN PRIVATE KEY-----"
#define END "-----END PRIVATE KEY-----"

/* A private key as RFC 8410 frames it: this, then the 32 bytes. */
static const unsigned char frame[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                      0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
#define SEED crypto_sign_SEEDBYTES
#define FRAMED (sizeof frame + SEED)
#define ENCODED sodium_base64_ENCODED_LEN(FRAMED, sodium_base64_VARIANT_ORIGINAL)

typedef struct pair {
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
} pair;

_Static_assert(crypto_sign_PUBLICKEYBYTES == KN_PUBLIC_KEY, "a public key");
_Static_assert(crypto_sign_BYTES == KN_SIGNATURE, "a signature");
_Static_assert(sizeof BEGIN + sizeof END + ENCODED <= KN_SIGN_PEM, "room for a key in PEM");

KILN_API const kn_sign_ops *kiln_sign_module(void);

/* The first line that begins with `word`, or NULL. */
static const char *find_line(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    while (at != NULL && at != text && at[-1] != '\n') {
        at = strstr(at + 1, word);
    }
    return at;
}

/* What stands between the lines of a private key without a password. */
static bool unwrap_pem(const char *text, unsigned char out_framed[FRAMED])
{
    const char *begin = find_line(text, BEGIN);
    const char *from = begin != NULL ? begin + sizeof BEGIN - 1 : NULL;
    const char *end = from != NULL ? find_line(from, END) : NULL;
    size_t size = 0;
    return end != NULL &&
           sodium_base642bin(out_framed, FRAMED, from, (size_t)(end - from), " \t\r\n", &size, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           size == FRAMED && memcmp(out_framed, frame, sizeof frame) == 0;
}

static void *read_pair(const void *pem, size_t size, unsigned char out_public[KN_PUBLIC_KEY])
{
    unsigned char framed[FRAMED];
    char *text = malloc(size + 1);
    pair *made = malloc(sizeof *made);
    bool good = false;
    if (text != NULL && made != NULL) {
        memcpy(text, pem, size);
        text[size] = '\0';
        good = unwrap_pem(text, framed) &&
               crypto_sign_seed_keypair(out_public, made->secret, framed + sizeof frame) == 0;
        sodium_memzero(framed, sizeof framed);
        sodium_memzero(text, size);
    }
    free(text);
    if (!good) {
        free(made);
        return NULL;
    }
    return made;
}

/* libsodium ends the process where the system has no random bytes to give; this does not. */
static bool make_seed(unsigned char out_seed[SEED])
{
    return BCryptGenRandom(NULL, out_seed, SEED, BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

static bool make_pair(char out_pem[KN_SIGN_PEM], size_t *out_size,
                      unsigned char out_public[KN_PUBLIC_KEY])
{
    unsigned char framed[FRAMED], secret[crypto_sign_SECRETKEYBYTES];
    char text[ENCODED];
    memcpy(framed, frame, sizeof frame);
    *out_size = 0;
    bool good = make_seed(framed + sizeof frame) &&
                crypto_sign_seed_keypair(out_public, secret, framed + sizeof frame) == 0;
    if (good) {
        (void)sodium_bin2base64(text, sizeof text, framed, sizeof framed,
                                sodium_base64_VARIANT_ORIGINAL);
        int length = snprintf(out_pem, KN_SIGN_PEM, "%s\n%s\n%s\n", BEGIN, text, END);
        good = length > 0 && length < KN_SIGN_PEM;
        *out_size = good ? (size_t)length : 0;
    }
    sodium_memzero(framed, sizeof framed);
    sodium_memzero(secret, sizeof secret);
    sodium_memzero(text, sizeof text);
    return good;
}

static void forget_pair(void *opaque)
{
    if (opaque != NULL) {
        sodium_memzero(opaque, sizeof(pair));
        free(opaque);
    }
}

static bool sign_message(void *opaque, const void *message, size_t size,
                         unsigned char out_signature[KN_SIGNATURE])
{
    const pair *with = opaque;
    return crypto_sign_detached(out_signature, NULL, message, size, with->secret) == 0;
}

static bool verify_message(const unsigned char public_key[KN_PUBLIC_KEY], const void *message,
                           size_t size, const unsigned char signature[KN_SIGNATURE])
{
    return crypto_sign_verify_detached(signature, message, size, public_key) == 0;
}

static const kn_sign_ops ops = {
    .abi = KN_SIGN_ABI,
    .read = read_pair,
    .make = make_pair,
    .forget = forget_pair,
    .sign = sign_message,
    .verify = verify_message,
    .wipe = sodium_memzero,
};

const kn_sign_ops *kiln_sign_module(void)
{
    return sodium_init() >= 0 ? &ops : NULL;
}
