/* Remotes: servers that several machines share as the last tier of their caches (remotes.md). A
 * cache uses those that kiln_cache_options.remote, or $KILN_REMOTE, names; here is what an
 * administrator wants besides: to look at them, to make keys to sign with (security.md), and
 * to move many entries at once. */
#ifndef KILN_UNSTABLE_REMOTE_H
#define KILN_UNSTABLE_REMOTE_H

#include "kiln/cache.h"
#include "kiln/unstable/pack.h"

KILN_BEGIN_DECLS

/* What a remote is good for now. The struct is the library's. */
typedef struct kiln_remote_report {
    size_t struct_size;
    char name[256]; /* the URL without secrets and options */
    bool reachable;
    bool readable;
    bool writable;          /* false too where the URL says read-only */
    bool leases;            /* one compile over all machines */
    bool has_clock;         /* the server reported its clock; over HTTP to half a second */
    uint64_t latency_ns;    /* of the quickest of three questions */
    int64_t clock_ahead_ns; /* the server's clock less this machine's */
    char why[256];          /* of the first thing that is not as it should be; "" */
    char takes[256];        /* what this process takes from it, and refuses: a sentence's part */
} kiln_remote_report;

/* Called for each remote; any status but KILN_OK ends it and is returned. */
typedef kiln_status kiln_remote_report_fn(void *user, const kiln_remote_report *report);

/* Asks each of the remotes in `list` (NULL: $KILN_REMOTE) whether it answers, reads and writes: by
 * an entry of its own, which it removes.
 * Threads: any.   Blocks: network (each remote's upload-timeout, six times at most).
 * Owns: report is borrowed for the call.
 * Fails: KILN_E_INVALID (a URL, a key file), KILN_E_NOMEM, or what `visit` returns. What is wrong
 * with a remote is in its report. */
KILN_API KILN_MUST_CHECK kiln_status kiln_remote_check(const char *list,
                                                       kiln_remote_report_fn *visit, void *user,
                                                       kiln_diag *diag);

/* Says that the entries of a recipe of yours run on the host (libraries, pickles): they are then
 * taken from a remote only with a trusted signature, or where its URL says unsigned-native. The key
 * changes: it adds the field "device.code".
 * Threads: one at a time per recipe.   Blocks: never.   Owns: nothing.
 * Fails: KILN_E_NOMEM. */
KILN_API void kiln_recipe_set_native(kiln_recipe *recipe);

/* "kiln-ed25519 " and 64 hexadecimal digits: a line of $KILN_TRUSTED_KEYS. */
#define KILN_PUBLIC_KEY_TEXT_SIZE 78

/* Makes a private key for $KILN_SIGNING_KEY in a new file that only its owner may read, and returns
 * its public half; kiln_signing_key_show returns that of a file that is there.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_INVALID (there is a file already; or it is no such key, or others may read it),
 * KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_signing_key_generate(
    const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE], kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_signing_key_show(
    const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE], kiln_diag *diag);

/* A signature that lies next to a pack: text (docs/reference/formats.md). */
#define KILN_PACK_SIGNATURE_SIZE 256

/* Signs the bytes of a pack with $KILN_SIGNING_KEY; judges them by $KILN_TRUST and
 * $KILN_TRUSTED_KEYS: `what` names the pack in messages, `text_size` is 0 where there is no
 * signature.
 * Threads: any, while nobody changes the environment.   Blocks: disk.
 * Owns: `out_text` is the caller's, and ends with a NUL.
 * Fails: KILN_MISS without a diag (sign: there is no key; judge: no key is set to judge by),
 * KILN_E_REJECTED (judge: nobody signed it, or no trusted key did), KILN_E_INVALID (a variable, a
 * key file), KILN_E_INTERNAL, KILN_E_UNSUPPORTED (Windows), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_sign(const void *data, size_t size,
                                                    char out_text[KILN_PACK_SIGNATURE_SIZE],
                                                    kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_pack_judge(const char *what, const void *data,
                                                     size_t size, const char *text,
                                                     size_t text_size, kiln_diag *diag);

/* --- moving many at once ---------------------------------------------------------------------- */

/* Entries between a cache's disk (or a pack) and remotes, one after the other, each waited for:
 *
 *     kiln_transfer_open(NULL, cache, &transfer, &diag);
 *     for each key: kiln_transfer_push(transfer, NULL, &key, false, &diag);
 *     counts = kiln_transfer_get_counts(transfer);
 *     kiln_transfer_close(transfer);
 *
 * What comes in is judged by KILN_TRUST as always. */
typedef struct kiln_transfer kiln_transfer; /* open/close */

/* Opens the remotes of `list` (NULL: $KILN_REMOTE) for a cache, which is borrowed and must outlive
 * it.
 * Threads: any.   Blocks: disk.
 * Owns: *out_transfer is yours, kiln_transfer_close(); one thread at a time uses it.
 * Fails: KILN_E_INVALID (a URL, a key file), KILN_E_UNAVAILABLE (the list is empty, or no module is
 * there for any of it), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_transfer_open(const char *list, kiln_cache *cache,
                                                        kiln_transfer **out_transfer,
                                                        kiln_diag *diag);
KILN_API void kiln_transfer_close(kiln_transfer *transfer);

/* Uploads one entry to every remote that takes writes: out of `pack`, or, when that is NULL, of the
 * cache's disk and packs. What a remote has stays there, unless `replace`; with KILN_SIGNING_KEY it
 * stays only if a trusted key signed it.
 * Threads: one at a time per transfer.   Blocks: disk, network (each remote's upload-timeout, twice
 * with KILN_SIGNING_KEY).
 * Owns: nothing.
 * Fails: KILN_MISS (there is none, or it is a note of one machine; no diag), KILN_E_INVALID (larger
 * than max-bytes), KILN_E_UNAVAILABLE (no remote takes writes), and what a remote's failure is:
 * KILN_E_UNAVAILABLE, KILN_E_TIMEOUT, KILN_E_IO, KILN_E_CORRUPT. */
KILN_API KILN_MUST_CHECK kiln_status kiln_transfer_push(kiln_transfer *transfer, kiln_pack *pack,
                                                        const kiln_key *key, bool replace,
                                                        kiln_diag *diag);

/* Gets one entry from the first remote that has it into the cache's disk; `out_present` (may be
 * NULL) is true where it was there already.
 * Threads: one at a time per transfer.   Blocks: disk, network (each remote's upload-timeout).
 * Owns: nothing.
 * Fails: KILN_MISS (no remote has it; no diag), KILN_E_REJECTED (KILN_TRUST), KILN_E_CORRUPT,
 * KILN_E_UNAVAILABLE (nobody answers; no disk to write to), KILN_E_TIMEOUT, KILN_E_IO. */
KILN_API KILN_MUST_CHECK kiln_status kiln_transfer_pull(kiln_transfer *transfer,
                                                        const kiln_key *key, bool *out_present,
                                                        kiln_diag *diag);

/* Keeps a list of keys on the remotes under a name, replacing the one before; gets one, as a blob
 * of kiln_key.
 * Threads: one at a time per transfer.   Blocks: network.
 * Owns: *out_keys is yours, kiln_blob_release().
 * Fails: as push and pull; KILN_E_INVALID for an empty name or list. */
KILN_API KILN_MUST_CHECK kiln_status kiln_transfer_push_list(kiln_transfer *transfer,
                                                             const char *name, const kiln_key *keys,
                                                             size_t count, kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_transfer_pull_list(kiln_transfer *transfer,
                                                             const char *name, kiln_blob **out_keys,
                                                             kiln_diag *diag);

/* What went over the wire, lists included, and what entries were before packing. */
typedef struct kiln_transfer_counts {
    size_t struct_size;
    uint64_t sent, received; /* entries */
    uint64_t bytes_out, bytes_in;
    uint64_t raw_out, raw_in;
} kiln_transfer_counts;

/* Threads: one at a time per transfer.   Blocks: never.
 * Owns: borrowed from the transfer, and valid until the next call with it.   Fails: never. */
KILN_API const kiln_transfer_counts *kiln_transfer_get_counts(kiln_transfer *transfer);

KILN_END_DECLS

#endif
