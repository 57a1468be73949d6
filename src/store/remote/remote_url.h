/* The text that names remotes: URLs with options, separated by blanks.
 *
 *     redis://[user[:password]@]host[:port][/database]?option&option=value
 *     rediss:// http:// https://  s3://bucket/prefix
 *
 * remotes.md lists the options. Text from the environment: every part is bounded and checked,
 * nothing of it reaches a log but `shown`, which has no secrets in it. */
#ifndef KILN_STORE_REMOTE_URL_H
#define KILN_STORE_REMOTE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"
#include "kiln/sys/remote.h"

#define KN_REMOTES_MAX 4
#define KN_REMOTE_TEXT 1024

typedef struct kn_remote_url {
    kiln_remote_server server; /* points into `text` */
    char *text;                /* memory of the strings */
    char shown[256];           /* scheme, host, port, path */
    bool reads, writes;
    bool unsigned_native; /* take native code for this machine without a signature */
    uint32_t limit_ms;    /* a whole lookup */
    uint32_t upload_ms;   /* a whole upload */
    uint32_t flush_ms;    /* waiting for uploads at the end */
    uint32_t lease_ms;    /* 0: no leases */
    uint32_t budget_ms;   /* of lookups in all (budget.h); 0: no limit */
    uint64_t queue_bytes;
} kn_remote_url;

/* One URL of `length` bytes. KILN_E_INVALID with a message that has no secrets in it. */
kiln_status kn_remote_url_parse(const char *text, size_t length, kn_remote_url *out_url,
                                kiln_diag *diag);
void kn_remote_url_deinit(kn_remote_url *url);

/* The next URL of a list: false at its end. */
bool kn_remote_url_next(const char **list, const char **out_text, size_t *out_length);

#endif
