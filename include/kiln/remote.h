/* Remotes: servers that several machines share as the last tier of their caches (docs/remote.md). A
 * cache uses those that kiln_cache_options.remote, or $KILN_REMOTE, names; here is what an
 * administrator wants besides: to look at them, and to make keys to sign with (docs/security.md).
 */
#ifndef KILN_REMOTE_H
#define KILN_REMOTE_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* What a remote is good for now. */
typedef struct kiln_remote_report {
    char name[256]; /* the URL without secrets and options */
    bool reachable;
    bool readable;
    bool writable;          /* false too where the URL says read-only */
    bool leases;            /* one compile over all machines */
    bool has_clock;         /* the kind of server tells its clock */
    uint64_t latency_ns;    /* of the quickest of three questions */
    int64_t clock_ahead_ns; /* the server's clock less this machine's */
    char why[256];          /* of the first thing that is not as it should be; "" */
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

/* "kiln-ed25519 " and 64 hexadecimal digits: a line of $KILN_TRUSTED_KEYS. */
#define KILN_PUBLIC_KEY_TEXT_SIZE 78

/* Makes a private key for $KILN_SIGNING_KEY in a new file that only its owner may read, and tells
 * its public half; kiln_signing_key_show tells that of a file that is there.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_E_INVALID (there is a file already; or it is no such key, or others may read it),
 * KILN_E_IO, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_signing_key_generate(
    const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE], kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_signing_key_show(
    const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE], kiln_diag *diag);

KILN_END_DECLS

#endif
