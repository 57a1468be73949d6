/* One remote as a tier: the policy that is the same for every kind of server. What speaks to the
 * server is a module (kiln/sys/remote.h); what is believed is trust.h's.
 *
 * A lookup waits for the server, at most `timeout`, and only while the breaker is closed and the
 * budget is not used up. Nothing else does: uploads, leases' renewal and trying a broken server
 * again are the work of one thread of its own per remote (remote_work.c), started when there is
 * something for it to do.
 *
 * kn_remote_open is in remotes.c, which loads modules. */
#ifndef KILN_STORE_REMOTE_H
#define KILN_STORE_REMOTE_H

#include "kiln/cache.h"
#include "kiln/sys/remote.h"

#include <stdatomic.h>

#include "store/format/stats.h"
#include "store/format/tier.h"
#include "store/remote/breaker.h"
#include "store/remote/budget.h"
#include "store/remote/remote_url.h"
#include "store/remote/trust.h"
#include "sys/dylib.h"
#include "sys/thread.h"

#define KN_REMOTE_NAME 65
#define KN_REMOTE_TOKEN 33
#define KN_REMOTE_IDLE 8
#define KN_REMOTE_RING 64
#define KN_REMOTE_LEASES 32
#define KN_REMOTE_DICTIONARIES 4
/* The target of what is about a remote itself. */
#define KN_WIRE_TARGET "wire"
#define KN_REMOTE_QUEUE 1024u
/* A key that the server did not have is not asked for again so soon. */
#define KN_REMOTE_MISS_NS UINT64_C(100000000)

typedef enum kn_remote_job_kind {
    KN_REMOTE_JOB_PUT,
    KN_REMOTE_JOB_REMOVE,
    KN_REMOTE_JOB_DROP
} kn_remote_job_kind;

typedef struct kn_remote_job {
    struct kn_remote_job *next;
    kn_remote_job_kind kind;
    kiln_key key;
    kiln_blob *blob;
    char *recipe;
    size_t recipe_size;
    size_t weight;
    bool replace;
    char token[KN_REMOTE_TOKEN];
} kn_remote_job;

typedef struct kn_remote_dictionary_row {
    kiln_key key;
    kiln_blob *content; /* NULL: free */
} kn_remote_dictionary_row;

typedef struct kn_lease {
    bool held;
    kiln_key key;
    char token[KN_REMOTE_TOKEN];
    uint64_t renew_at;
} kn_lease;

typedef struct kn_remote {
    kn_remote_url url;
    kiln_remote_module_ops table;
    const kiln_remote_module_ops *ops; /* the table */
    kn_dylib *module;                  /* NULL: linked in */
    const kn_trust *trust;
    kn_stats *stats;
    _Atomic bool stop; /* ends what waits for the server */

    kn_mutex mutex; /* guards what follows */
    kn_cond work;   /* for the thread */
    kn_cond idle;   /* the queue is empty */
    void *connections[KN_REMOTE_IDLE];
    size_t connection_count;
    kn_breaker reads, writes;
    kn_breaker answers; /* of reads that came, and were no good */
    kn_budget budget;   /* of reads and leases */
    struct {
        kiln_key key;
        uint64_t until;
    } misses[KN_REMOTE_RING];
    kiln_key damaged[KN_REMOTE_RING]; /* what the next put replaces */
    size_t miss_at, damaged_at;
    kn_lease leases[KN_REMOTE_LEASES];
    kn_remote_dictionary_row dictionaries[KN_REMOTE_DICTIONARIES]; /* the last ones needed */
    size_t dictionary_at;
    kn_remote_job *first, *last;
    size_t queued, queued_bytes;
    bool busy; /* a job is being done */
    bool closing;
    bool finished; /* uploads had their time */
    kn_thread *thread;
} kn_remote;

/* Loads the module for the URL. KILN_E_UNAVAILABLE when there is none. `url` is taken over in every
 * case; trust and stats are borrowed. */
kiln_status kn_remote_open(kn_remote_url *url, const kn_trust *trust, kn_stats *stats,
                           kn_remote **out_remote, kiln_diag *diag);
/* The same with a module that is at hand. */
kiln_status kn_remote_open_with(kn_remote_url *url, const kiln_remote_module_ops *ops,
                                const kn_trust *trust, kn_stats *stats, kn_remote **out_remote,
                                kiln_diag *diag);
/* Waits for uploads, at most the URL's `flush`; not for a server that does not answer. */
void kn_remote_flush(kn_remote *remote);
/* The same to an end that several remotes share, and for the last time: closing does not wait
 * again. `started` by kn_clock_now. */
void kn_remote_finish(kn_remote *remote, uint64_t started);
void kn_remote_close(kn_remote *remote);
/* The tier, for a remote that only reads, only writes, or both. */
const kn_tier_ops *kn_remote_tier(const kn_remote *remote);

/* A lookup past what is remembered of misses. */
void kn_remote_forget_miss(kn_remote *remote, const kiln_key *key);
/* KILN_OK: held until kn_remote_lease_drop. KILN_E_BUSY: another's. Others: there are no leases
 * here now. */
kiln_status kn_remote_lease(kn_remote *remote, const kiln_key *key);
/* The same under a name that its holder's successors know: what is held under it is taken over. */
kiln_status kn_remote_lease_as(kn_remote *remote, const kiln_key *key,
                               const char token[KN_REMOTE_TOKEN]);
/* After the uploads before it. */
void kn_remote_lease_drop(kn_remote *remote, const kiln_key *key);
/* So long was another machine's compile waited for, without asking: it counts as an own one. */
void kn_remote_waited(kn_remote *remote, uint64_t waited_ns);

/* One question to the server, whatever is remembered and without opinions: malloc'ed bytes.
 * KILN_MISS; failures are counted, and `why` has room for KILN_REMOTE_WHY. */
kiln_status kn_remote_ask(kn_remote *remote, const kiln_key *key, uint32_t limit_ms,
                          void **out_data, size_t *out_size, char *why);
/* What came of the answer (kn_trust_unseal): a server whose answers are damaged, too large or too
 * slow to unpack is not asked for a while, like one that does not answer. */
void kn_remote_judge(kn_remote *remote, kiln_status status);
/* How an answer may be unpacked that was asked for at `start` (kn_clock_now) and has come now. */
kn_unpacking kn_remote_unpacking(kn_remote *remote, uint64_t start, uint32_t limit_ms);
/* The same for bytes that go there. */
kiln_status kn_remote_give(kn_remote *remote, const kiln_key *key, const void *data, size_t size,
                           bool replace, char *why);

/* The dictionary that an entry of an earlier version was packed with (remote_dictionary.c): a
 * reference of the caller's own. NULL: it is unavailable. */
kiln_blob *kn_remote_dictionary(kn_remote *remote, const kiln_key *key);
/* Bytes of what an entry holds. */
uint64_t kn_remote_raw_size(const kiln_blob *blob, size_t recipe_size);

/* --- between remote.c and remote_work.c ------------------------------------------------------- */

bool kn_remote_may_ask(kn_remote *remote, const kiln_key *key);
void kn_remote_remember_miss(kn_remote *remote, const kiln_key *key);

/* One request: takes a connection, or makes one, and gives it back or ends it. */
typedef struct kn_remote_session {
    kn_remote *remote;
    void *connection;
    bool fresh;
    uint64_t deadline;
    kiln_remote_call call;
} kn_remote_session;
kiln_status kn_remote_enter(kn_remote *remote, uint32_t limit_ms, kn_remote_session *session);
/* Sets the time left; false: there is none. */
bool kn_remote_arm(kn_remote_session *session);
/* True when a kept connection had broken and there is a new one: try again. */
bool kn_remote_again(kn_remote_session *session, kiln_status status);
void kn_remote_leave(kn_remote_session *session, kiln_status status);
/* Counts an error and moves a breaker. */
void kn_remote_result(kn_remote *remote, kn_breaker *breaker, const char *doing, kiln_status status,
                      const char *why);
void kn_remote_key_name(const kiln_key *key, char name[KN_REMOTE_NAME]);

/* With the mutex held: the last question got no answer. */
static inline bool kn_remote_is_silent(const kn_remote *remote)
{
    return (remote->reads.open && remote->reads.silent) ||
           (remote->writes.open && remote->writes.silent);
}
/* Takes the job over. False: no room, no thread, or nobody who would take it. With the mutex held.
 */
bool kn_remote_enqueue(kn_remote *remote, kn_remote_job *job);
void kn_remote_job_destroy(kn_remote_job *job);
/* Makes sure that there is a thread, and wakes it. With the mutex held. */
bool kn_remote_wake(kn_remote *remote);

#endif
