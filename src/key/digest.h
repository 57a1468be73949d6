/* SHA-256: the digest of keys and of everything that is named by its content.
 *
 * The work is Nettle's. A kn_digest has its context in itself, and can be moved. A failure sticks:
 * a wrong digest is the one thing that must never come out.
 *
 * digest_once.c has those for all at once; digest_cng.c the rest on Windows. */
#ifndef KILN_KEY_DIGEST_H
#define KILN_KEY_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KN_DIGEST_SIZE 32
#define KN_DIGEST_WORDS 16 /* what a context has room in */

typedef struct kn_digest {
    uint64_t context[KN_DIGEST_WORDS]; /* struct sha256_ctx */
    bool ready;
    bool failed;
} kn_digest;

/* False when out of memory. One that is all zeros may be deinitialised. */
bool kn_digest_init(kn_digest *digest);
void kn_digest_deinit(kn_digest *digest);

/* begin, update as often as needed, finish; then begin again. One thread at a time. Finish is
 * false, and `out` zero, after any failure. */
void kn_digest_begin(kn_digest *digest);
void kn_digest_update(kn_digest *digest, const void *data, size_t size);
bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE]);
/* As finish, of what has come so far: updates may go on. */
bool kn_digest_peek(const kn_digest *digest, uint8_t out[KN_DIGEST_SIZE]);

/* All of it at once, with a digest of one's own or for a single use. */
bool kn_digest_bytes(kn_digest *digest, const void *data, size_t size, uint8_t out[KN_DIGEST_SIZE]);
bool kn_digest_of(const void *data, size_t size, uint8_t out[KN_DIGEST_SIZE]);

#endif
