/* A remote as a tier: looking up, remembering, and handing the rest to the thread. This file must
 * not know what a server speaks. */
#include "store/remote/remote.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "sys/clock.h"
#include "sys/random.h"

#define MS UINT64_C(1000000)

void kn_remote_key_name(const kiln_key *key, char name[KN_REMOTE_NAME])
{
    kn_hex_encode(key->bytes, sizeof key->bytes, name);
}

/* --- sessions --------------------------------------------------------------------------------- */

static bool is_stopped(void *user)
{
    const kn_remote *remote = user;
    return atomic_load_explicit(&remote->stop, memory_order_relaxed);
}

bool kn_remote_arm(kn_remote_session *session)
{
    uint64_t now = kn_clock_now();
    session->call.limit_ms = now < session->deadline ? (session->deadline - now + MS - 1) / MS : 0;
    return session->call.limit_ms > 0;
}

static kiln_status make_connection(kn_remote_session *session)
{
    kn_remote *remote = session->remote;
    session->fresh = true;
    if (!kn_remote_arm(session)) {
        return KILN_E_TIMEOUT;
    }
    if (session->call.limit_ms > remote->url.server.connect_ms) {
        session->call.limit_ms = remote->url.server.connect_ms;
    }
    return remote->ops->connect(&remote->url.server, &session->call, &session->connection);
}

kiln_status kn_remote_enter(kn_remote *remote, uint32_t limit_ms, kn_remote_session *session)
{
    memset(session, 0, sizeof *session);
    session->remote = remote;
    session->deadline = kn_clock_now() + limit_ms * MS;
    session->call.stop = is_stopped;
    session->call.user = remote;
    kn_mutex_lock(&remote->mutex);
    if (remote->connection_count > 0) {
        session->connection = remote->connections[--remote->connection_count];
    }
    kn_mutex_unlock(&remote->mutex);
    kiln_status status = session->connection != NULL ? KILN_OK : make_connection(session);
    return status == KILN_OK && !kn_remote_arm(session) ? KILN_E_TIMEOUT : status;
}

bool kn_remote_again(kn_remote_session *session, kiln_status status)
{
    if (status != KILN_E_UNAVAILABLE || session->fresh || session->connection == NULL) {
        return false;
    }
    /* A server closes what has been quiet for long: that says nothing about it. */
    session->remote->ops->disconnect(session->connection);
    session->connection = NULL;
    return make_connection(session) == KILN_OK && kn_remote_arm(session);
}

void kn_remote_leave(kn_remote_session *session, kiln_status status)
{
    kn_remote *remote = session->remote;
    void *connection = session->connection;
    session->connection = NULL;
    if (connection == NULL) {
        return;
    }
    if (status == KILN_OK || status == KILN_MISS || status == KILN_E_BUSY ||
        status == KILN_E_UNSUPPORTED || status == KILN_E_IO) {
        kn_mutex_lock(&remote->mutex);
        if (remote->connection_count < KN_REMOTE_IDLE) {
            remote->connections[remote->connection_count++] = connection;
            connection = NULL;
        }
        kn_mutex_unlock(&remote->mutex);
    }
    if (connection != NULL) {
        remote->ops->disconnect(connection);
    }
}

void kn_remote_result(kn_remote *remote, kn_breaker *breaker, const char *doing, kiln_status status,
                      const char *why)
{
    bool failed = status != KILN_OK && status != KILN_MISS && status != KILN_E_BUSY &&
                  status != KILN_E_UNSUPPORTED;
    if (status == KILN_E_CANCELLED) {
        return;
    }
    kn_mutex_lock(&remote->mutex);
    if (failed) {
        kn_breaker_failed(breaker, kn_clock_now(),
                          status == KILN_E_TIMEOUT || status == KILN_E_UNAVAILABLE);
        if (breaker->open) {
            (void)kn_remote_wake(remote);
        }
    } else {
        kn_breaker_worked(breaker);
    }
    kn_mutex_unlock(&remote->mutex);
    if (failed) {
        kn_stats_add(remote->stats,
                     status == KILN_E_TIMEOUT ? KN_COUNT_remote_timeouts : KN_COUNT_remote_errors,
                     1);
        kn_log_once(KILN_LOG_WARN, "the remote %s could not %s: %s", remote->url.shown, doing,
                    why[0] != '\0' ? why : kiln_status_text(status));
    }
}

/* --- what is remembered of keys --------------------------------------------------------------- */

bool kn_remote_may_ask(kn_remote *remote, const kiln_key *key)
{
    uint64_t now = kn_clock_now();
    kn_mutex_lock(&remote->mutex);
    if (remote->thread == NULL && kn_breaker_due(&remote->reads, now)) {
        kn_breaker_try(&remote->reads); /* there is no thread that would */
    }
    if (kn_breaker_due(&remote->answers, now)) {
        kn_breaker_try(&remote->answers);
    }
    bool may = !remote->reads.open && !remote->answers.open;
    for (size_t i = 0; may && i < KN_REMOTE_RING; i++) {
        may =
            now >= remote->misses[i].until || memcmp(&remote->misses[i].key, key, sizeof *key) != 0;
    }
    kn_mutex_unlock(&remote->mutex);
    return may;
}

void kn_remote_remember_miss(kn_remote *remote, const kiln_key *key)
{
    kn_mutex_lock(&remote->mutex);
    size_t at = remote->miss_at++ % KN_REMOTE_RING;
    remote->misses[at].key = *key;
    remote->misses[at].until = kn_clock_now() + KN_REMOTE_MISS_NS;
    kn_mutex_unlock(&remote->mutex);
}

void kn_remote_forget_miss(kn_remote *remote, const kiln_key *key)
{
    kn_mutex_lock(&remote->mutex);
    for (size_t i = 0; i < KN_REMOTE_RING; i++) {
        if (memcmp(&remote->misses[i].key, key, sizeof *key) == 0) {
            remote->misses[i].until = 0;
        }
    }
    kn_mutex_unlock(&remote->mutex);
}

static void remember_damaged(kn_remote *remote, const kiln_key *key)
{
    kn_mutex_lock(&remote->mutex);
    remote->damaged[remote->damaged_at++ % KN_REMOTE_RING] = *key;
    kn_mutex_unlock(&remote->mutex);
}

/* With the mutex held. */
static bool was_damaged(kn_remote *remote, const kiln_key *key)
{
    bool was = false;
    for (size_t i = 0; i < KN_REMOTE_RING; i++) {
        if (memcmp(&remote->damaged[i], key, sizeof *key) == 0) {
            memset(&remote->damaged[i], 0, sizeof remote->damaged[i]);
            was = true;
        }
    }
    return was;
}

/* --- what it may cost ------------------------------------------------------------------------- */

static bool budget_allows(kn_remote *remote)
{
    const uint64_t compiled =
        atomic_load_explicit(&remote->stats->own[KN_COUNT_compile_ns], memory_order_relaxed);
    kn_mutex_lock(&remote->mutex);
    const kn_budget budget = remote->budget;
    kn_mutex_unlock(&remote->mutex);
    const bool allows = kn_budget_allows(&budget, compiled);
    if (!allows) {
        /* No figures that change: it is logged once. */
        kn_log_once(KILN_LOG_WARN,
                    "the remote %s is skipped while its budget of %" PRIu32
                    " ms is used up: its answers took longer than its hits saved; use a nearer "
                    "remote, or raise budget= in its URL",
                    remote->url.shown, remote->url.budget_ms);
    }
    return allows;
}

/* `hit`: what was found; NULL: nothing. */
static void pay_for_question(kn_remote *remote, uint64_t start, const kiln_blob *hit)
{
    const uint64_t took = kn_clock_now() - start;
    kn_mutex_lock(&remote->mutex);
    kn_budget_spend(&remote->budget, took);
    if (hit != NULL) {
        kn_budget_save(&remote->budget, took, kiln_blob_compile_ns(hit));
    }
    kn_mutex_unlock(&remote->mutex);
}

void kn_remote_waited(kn_remote *remote, uint64_t waited_ns)
{
    kn_mutex_lock(&remote->mutex);
    kn_budget_wait(&remote->budget, waited_ns);
    kn_mutex_unlock(&remote->mutex);
}

/* --- get -------------------------------------------------------------------------------------- */

kiln_status kn_remote_ask(kn_remote *remote, const kiln_key *key, uint32_t limit_ms,
                          void **out_data, size_t *out_size, char *why)
{
    kn_remote_session session;
    char name[KN_REMOTE_NAME];
    *out_data = NULL;
    *out_size = 0;
    if (!kn_trust_takes(remote->trust)) { /* before the download, not after it */
        kn_text_putf(why, KILN_REMOTE_WHY, "KILN_TRUST=local refuses all entries of remotes");
        return KILN_E_REJECTED;
    }
    kn_remote_key_name(key, name);
    kiln_status status = kn_remote_enter(remote, limit_ms, &session);
    if (status == KILN_OK) {
        do {
            status = remote->ops->get(session.connection, &session.call, name, out_data, out_size);
        } while (kn_remote_again(&session, status));
    }
    kn_remote_result(remote, &remote->reads, "be read", status, session.call.why);
    memcpy(why, session.call.why, KILN_REMOTE_WHY);
    kn_remote_leave(&session, status);
    kn_stats_add(remote->stats, KN_COUNT_remote_bytes_in, *out_size);
    return status;
}

static kiln_blob *find_dictionary(void *user, const kiln_key *key)
{
    return kn_remote_dictionary(user, key);
}

void kn_remote_judge(kn_remote *remote, kiln_status status)
{
    if (status == KILN_E_NOMEM || status == KILN_E_REJECTED) {
        return; /* which says nothing of the server */
    }
    kn_mutex_lock(&remote->mutex);
    if (status == KILN_OK) {
        kn_breaker_worked(&remote->answers);
    } else {
        kn_breaker_failed(&remote->answers, kn_clock_now(), status == KILN_E_TIMEOUT);
    }
    kn_mutex_unlock(&remote->mutex);
}

/* The time of the lookup is that for its answer, too. One that came late has a quarter more. */
kn_unpacking kn_remote_unpacking(kn_remote *remote, uint64_t start, uint32_t limit_ms)
{
    const uint64_t end = start + limit_ms * MS;
    const uint64_t least = kn_clock_now() + limit_ms * MS / 4;
    return (kn_unpacking){.find = find_dictionary,
                          .user = remote,
                          .limit = remote->url.server.max_bytes,
                          .until = end > least ? end : least};
}

/* Every error is counted here and is a miss: the stack need not care. */
static kiln_status fetch_entry(kn_remote *remote, const kiln_key *key, uint64_t start,
                               kiln_blob **out_blob)
{
    char why[KILN_REMOTE_WHY];
    void *data = NULL;
    size_t size = 0;
    kiln_diag own = KILN_DIAG_INIT;
    kiln_status status = kn_remote_ask(remote, key, remote->url.limit_ms, &data, &size, why);
    if (status == KILN_E_REJECTED) {
        kn_log_once(KILN_LOG_INFO, "the remote %s is skipped: %s", remote->url.shown, why);
        return KILN_MISS;
    }
    if (status != KILN_OK) {
        kn_remote_remember_miss(remote, key);
        return KILN_MISS;
    }
    const kn_unpacking means = kn_remote_unpacking(remote, start, remote->url.limit_ms);
    status = kn_trust_unseal(remote->trust, remote->url.unsigned_native, &means, key, data, size,
                             out_blob, &own);
    kn_remote_judge(remote, status);
    if (status == KILN_OK && kn_recipe_is_note((*out_blob)->recipe)) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        status = kiln_diag_set(&own, KILN_E_REJECTED, NULL, "an entry from a remote",
                               "it is one of kiln's own notes, which each machine makes itself");
    }
    if (status == KILN_OK) {
        kn_stats_add(remote->stats, KN_COUNT_remote_raw_in,
                     kn_remote_raw_size(*out_blob, (*out_blob)->recipe.length));
        return KILN_OK;
    }
    kn_remote_remember_miss(remote, key);
    kn_stats_add(remote->stats,
                 status == KILN_E_REJECTED  ? KN_COUNT_remote_refused
                 : status == KILN_E_CORRUPT ? KN_COUNT_corrupt
                 : status == KILN_E_TIMEOUT ? KN_COUNT_remote_timeouts
                                            : KN_COUNT_remote_errors,
                 1);
    /* Damage is repaired by the next compile. What a stranger signed only by who can sign too. */
    if (status == KILN_E_CORRUPT ||
        (status == KILN_E_REJECTED && kn_signer_signs(remote->trust->signer))) {
        remember_damaged(remote, key);
    }
    kn_log_once(KILN_LOG_WARN, "an entry of the remote %s was refused: %s%s%s", remote->url.shown,
                own.why[0] != '\0' ? own.why : kiln_status_text(status),
                own.fix[0] != '\0' ? ": " : "", own.fix);
    kiln_diag_clear(&own);
    return KILN_MISS;
}

static kiln_status remote_get(void *self, const kiln_key *key, const char *target,
                              kiln_blob **out_blob, kiln_diag *diag)
{
    kn_remote *remote = self;
    (void)target;
    (void)diag;
    *out_blob = NULL;
    if (!remote->url.reads || !kn_remote_may_ask(remote, key)) {
        return KILN_MISS;
    }
    if (!budget_allows(remote)) {
        kn_stats_add(remote->stats, KN_COUNT_remote_skipped, 1);
        return KILN_MISS;
    }
    const uint64_t start = kn_clock_now();
    kiln_status status = fetch_entry(remote, key, start, out_blob);
    pay_for_question(remote, start, status == KILN_OK ? *out_blob : NULL);
    return status;
}

/* --- put, remove ------------------------------------------------------------------------------ */

static kn_remote_job *make_job(kn_remote_job_kind kind, const kiln_key *key)
{
    kn_remote_job *job = calloc(1, sizeof *job);
    if (job != NULL) {
        job->kind = kind;
        job->key = *key;
    }
    return job;
}

static kiln_status remote_put(void *self, const kn_tier_put *what, kiln_diag *diag)
{
    kn_remote *remote = self;
    (void)diag;
    kn_remote_job *job = make_job(KN_REMOTE_JOB_PUT, what->key);
    if (job != NULL) {
        job->recipe = kn_bytes_copy(what->recipe.data, what->recipe.length);
        job->recipe_size = what->recipe.length;
        job->blob = kiln_blob_retain(what->blob);
        job->weight = kn_blob_weight(what->blob) + what->recipe.length;
    }
    kn_mutex_lock(&remote->mutex);
    bool queued = false;
    if (job != NULL && job->recipe != NULL && job->weight <= remote->url.server.max_bytes) {
        job->replace = was_damaged(remote, what->key);
        queued = kn_remote_enqueue(remote, job);
    }
    kn_mutex_unlock(&remote->mutex);
    if (!queued) {
        kn_stats_add(remote->stats, KN_COUNT_remote_upload_failures, 1);
        kn_remote_job_destroy(job);
    }
    return KILN_OK;
}

static kiln_status remote_remove(void *self, const kiln_key *key, kiln_diag *diag)
{
    kn_remote *remote = self;
    (void)diag;
    remember_damaged(remote, key);
    kn_remote_job *job = make_job(KN_REMOTE_JOB_REMOVE, key);
    kn_mutex_lock(&remote->mutex);
    bool queued = job != NULL && kn_remote_enqueue(remote, job);
    kn_mutex_unlock(&remote->mutex);
    if (!queued) {
        kn_remote_job_destroy(job);
    }
    return KILN_MISS; /* whether it was there nobody waits to hear */
}

static void remote_close(void *self)
{
    kn_remote_close(self);
}

/* --- leases ----------------------------------------------------------------------------------- */

static kn_lease *free_lease(kn_remote *remote)
{
    for (size_t i = 0; i < KN_REMOTE_LEASES; i++) {
        if (!remote->leases[i].held) {
            return &remote->leases[i];
        }
    }
    return NULL;
}

static void keep_lease(kn_remote *remote, const kiln_key *key, const char *token)
{
    kn_mutex_lock(&remote->mutex);
    kn_lease *lease = free_lease(remote);
    if (lease != NULL) { /* else it runs out by itself */
        lease->held = true;
        lease->key = *key;
        memcpy(lease->token, token, sizeof lease->token);
        lease->renew_at = kn_clock_now() + remote->url.lease_ms * MS / 3;
        (void)kn_remote_wake(remote);
    }
    kn_mutex_unlock(&remote->mutex);
}

/* One question; a second one where the first says that another has the lease, who may be a
 * predecessor. */
static kiln_status ask_for_lease(kn_remote_session *session, const char *name, const char *token,
                                 bool takes_over)
{
    kn_remote *remote = session->remote;
    kiln_status status;
    do {
        status = remote->ops->lease(session->connection, &session->call, name, token,
                                    remote->url.lease_ms);
    } while (kn_remote_again(session, status));
    if (status == KILN_E_BUSY && takes_over && kn_remote_arm(session) &&
        remote->ops->renew(session->connection, &session->call, name, token,
                           remote->url.lease_ms) == KILN_OK) {
        status = KILN_OK;
    }
    return status;
}

static kiln_status lease_with(kn_remote *remote, const kiln_key *key, const char *token,
                              bool takes_over)
{
    kn_remote_session session;
    char name[KN_REMOTE_NAME];
    if (!(remote->ops->caps & KILN_REMOTE_LEASES) || remote->url.lease_ms == 0 ||
        !remote->url.reads || !remote->url.writes || !kn_trust_takes(remote->trust)) {
        return KILN_E_UNSUPPORTED;
    }
    kn_mutex_lock(&remote->mutex);
    bool broken = remote->reads.open || remote->writes.open;
    kn_mutex_unlock(&remote->mutex);
    if (broken || !budget_allows(remote)) {
        return KILN_E_UNAVAILABLE;
    }
    const uint64_t start = kn_clock_now();
    kn_remote_key_name(key, name);
    kiln_status status = kn_remote_enter(remote, remote->url.limit_ms, &session);
    if (status == KILN_OK) {
        status = ask_for_lease(&session, name, token, takes_over);
    }
    kn_remote_result(remote, &remote->reads, "give a lease", status, session.call.why);
    kn_remote_leave(&session, status);
    pay_for_question(remote, start, NULL);
    if (status == KILN_OK) {
        keep_lease(remote, key, token);
    }
    return status;
}

kiln_status kn_remote_lease(kn_remote *remote, const kiln_key *key)
{
    char token[KN_REMOTE_TOKEN];
    const uint64_t bits[2] = {kn_random_u64(), kn_random_u64()};
    kn_hex_encode(bits, sizeof bits, token);
    return lease_with(remote, key, token, false);
}

kiln_status kn_remote_lease_as(kn_remote *remote, const kiln_key *key,
                               const char token[KN_REMOTE_TOKEN])
{
    return lease_with(remote, key, token, true);
}

void kn_remote_lease_drop(kn_remote *remote, const kiln_key *key)
{
    kn_remote_job *job = make_job(KN_REMOTE_JOB_DROP, key);
    bool queued = false;
    kn_mutex_lock(&remote->mutex);
    for (size_t i = 0; job != NULL && !queued && i < KN_REMOTE_LEASES; i++) {
        kn_lease *lease = &remote->leases[i];
        if (lease->held && memcmp(&lease->key, key, sizeof *key) == 0) {
            memcpy(job->token, lease->token, sizeof job->token);
            lease->held = false;
            queued = kn_remote_enqueue(remote, job);
        }
    }
    kn_mutex_unlock(&remote->mutex);
    if (!queued) {
        kn_remote_job_destroy(job);
    }
}

/* --- the tiers -------------------------------------------------------------------------------- */

static const kn_tier_ops write_ops = {
    .name = "remote",
    .origin = KILN_ORIGIN_REMOTE,
    .caps = KN_TIER_WRITES | KN_TIER_FAR,
    .get = remote_get,
    .put = remote_put,
    .remove = remote_remove,
    .close = remote_close,
};

static const kn_tier_ops read_ops = {
    .name = "remote",
    .origin = KILN_ORIGIN_REMOTE,
    .caps = KN_TIER_FAR,
    .get = remote_get,
    .close = remote_close,
};

const kn_tier_ops *kn_remote_tier(const kn_remote *remote)
{
    return remote->url.writes ? &write_ops : &read_ops;
}
