/* What a module that speaks to a kind of server fills in: Redis, HTTP, S3, or one of your own.
 *
 * A module is a shared library `libkiln-<name>.so` in kiln's libexec directory that exports one
 * function, `kiln_remote_module`. It is loaded when a remote with its scheme is configured, never
 * otherwise. It keeps bytes by name and knows neither entries nor signatures: kiln checks all that
 * comes back. It links nothing of kiln.
 *
 * A connection is used by one thread at a time; kiln opens as many as it needs at once. */
#ifndef KILN_SYS_REMOTE_H
#define KILN_SYS_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

KILN_BEGIN_DECLS

#define KILN_REMOTE_ABI 1u
#define KILN_REMOTE_WHY 256

/* Where and how, taken apart; strings are never NULL. They live as long as the connection. */
typedef struct kiln_remote_server {
    size_t struct_size;
    const char *scheme; /* "redis", "rediss", "http", "https", "s3" */
    const char *user, *password;
    const char *host;     /* without brackets; of "s3" the bucket */
    uint16_t port;        /* 0: the scheme's */
    const char *path;     /* begins with '/' or is empty */
    const char *prefix;   /* of names, for servers with a flat name space */
    const char *token;    /* bearer token, or "" */
    const char *ca_file;  /* what to trust in TLS instead of the system's list, or "" */
    const char *region;   /* s3 */
    const char *endpoint; /* s3: "http://host:port" of a compatible store, or "" */
    bool netrc;           /* look the user and password up in ~/.netrc */
    uint32_t connect_ms;
    uint64_t ttl_ms;       /* entries are forgotten so long after they were stored; 0: never */
    uint64_t max_bytes;    /* larger answers are refused */
    const char *cert_file; /* what to show in TLS when the server asks who this is, or "" */
    const char *key_file;  /* its private key; "": in cert_file */
    const char *layout;    /* of names on HTTP and S3: "subdirs", "flat", "bazel" */
} kiln_remote_server;

/* One request: when it must be over, and what it says on failure. `stop` is asked at least every
 * 100 ms while the call waits; true ends it with KILN_E_CANCELLED. */
typedef struct kiln_remote_call {
    uint64_t limit_ms;
    bool (*stop)(void *user);
    void *user;
    char why[KILN_REMOTE_WHY]; /* one line without secrets */
} kiln_remote_call;

/* What a kind of server can do besides. */
typedef enum kiln_remote_caps {
    KILN_REMOTE_LEASES = 1u << 0, /* lease, renew and drop are there */
    KILN_REMOTE_CLOCK = 1u << 1,  /* ping returns the server's clock */
} kiln_remote_caps;

/* Every call but `connect` needs what `connect` made. Failures: KILN_E_TIMEOUT, KILN_E_CANCELLED,
 * KILN_E_UNAVAILABLE (nobody answers, the connection broke: kiln disconnects), KILN_E_IO (the
 * server answers, and refuses), KILN_E_CORRUPT (the answer makes no sense), KILN_E_NOMEM. */
typedef struct kiln_remote_module_ops {
    uint32_t abi; /* KILN_REMOTE_ABI */
    size_t struct_size;
    const char *name;
    const char *schemes; /* separated by blanks */
    uint32_t caps;       /* kiln_remote_caps */
    kiln_status (*connect)(const kiln_remote_server *server, kiln_remote_call *call,
                           void **out_connection);
    void (*disconnect)(void *connection);
    /* KILN_OK when the server answers. `out_clock_ns` (ns since 1970; 0: it did not say) only with
     * the capability. */
    kiln_status (*ping)(void *connection, kiln_remote_call *call, int64_t *out_clock_ns);
    /* malloc'ed bytes, or KILN_MISS. KILN_E_UNSUPPORTED where the server says that they are more
     * than max_bytes: nothing is wrong with it. */
    kiln_status (*get)(void *connection, kiln_remote_call *call, const char *name, void **out_data,
                       size_t *out_size);
    /* Without `replace`, what is there stays there, and that is KILN_OK. */
    kiln_status (*put)(void *connection, kiln_remote_call *call, const char *name, const void *data,
                       size_t size, bool replace);
    /* KILN_E_UNSUPPORTED: the server keeps what it has, and nothing is wrong with it. */
    kiln_status (*remove)(void *connection, kiln_remote_call *call, const char *name);
    /* A lease on a name for `ttl_ms`: KILN_OK, or KILN_E_BUSY when another token holds it. Renew
     * and drop act only on a lease with this token; KILN_MISS when it is not there any more. */
    kiln_status (*lease)(void *connection, kiln_remote_call *call, const char *name,
                         const char *token, uint32_t ttl_ms);
    kiln_status (*renew)(void *connection, kiln_remote_call *call, const char *name,
                         const char *token, uint32_t ttl_ms);
    kiln_status (*drop)(void *connection, kiln_remote_call *call, const char *name,
                        const char *token);
} kiln_remote_module_ops;

/* The one function a module exports. */
typedef const kiln_remote_module_ops *kiln_remote_module_fn(void);

KILN_END_DECLS

#endif
