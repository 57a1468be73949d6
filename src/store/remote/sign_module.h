/* What the module libkiln-sign does for sign.c: Ed25519, and keys in PEM. It is opened where a
 * key is configured, never otherwise: a cryptographic library costs a process more to load than a
 * warm start takes.
 *
 * The module exports one function, kiln_sign_module. It links nothing of kiln, knows neither
 * entries nor files, and is not a public interface: it comes with the library of its version. */
#ifndef KILN_STORE_SIGN_MODULE_H
#define KILN_STORE_SIGN_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KN_SIGN_ABI 1u
#define KN_SIGN_PEM 512 /* bytes, enough for a key in PEM */
#define KN_PUBLIC_KEY 32
#define KN_SIGNATURE 64

/* Any thread may call these; a pair of keys may be used by several at once. */
typedef struct kn_sign_ops {
    uint32_t abi; /* KN_SIGN_ABI */
    /* A private key in PEM, as a pair of keys for `forget`; NULL where it is not an Ed25519 key
     * without a password. */
    void *(*read)(const void *pem, size_t size, unsigned char out_public[KN_PUBLIC_KEY]);
    /* A new private key in PEM, of `*out_size` bytes. */
    bool (*make)(char out_pem[KN_SIGN_PEM], size_t *out_size,
                 unsigned char out_public[KN_PUBLIC_KEY]);
    void (*forget)(void *pair); /* or NULL */
    bool (*sign)(void *pair, const void *message, size_t size,
                 unsigned char out_signature[KN_SIGNATURE]);
    bool (*verify)(const unsigned char public_key[KN_PUBLIC_KEY], const void *message, size_t size,
                   const unsigned char signature[KN_SIGNATURE]);
    void (*wipe)(void *data, size_t size); /* of secrets; never left out by a compiler */
} kn_sign_ops;

typedef const kn_sign_ops *kn_sign_module_fn(void);

#endif
