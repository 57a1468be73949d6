/* The thread of a remote: uploads, leases' renewal, trying a broken server again; opening and
 * closing. This file must not know what a server speaks. */
#include "store/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)

void kn_remote_job_destroy(kn_remote_job *job)
{
    if (job != NULL) {
        kiln_blob_release(job->blob);
        free(job->recipe);
        free(job);
    }
}

/* --- jobs ------------------------------------------------------------------------------------- */

typedef struct parcel {
    kn_remote_job_kind kind;
    const kiln_key *key;
    const void *data;
    size_t size;
    bool replace;
    const char *token;
} parcel;

static kiln_status send_parcel(kn_remote *remote, const parcel *p, char *why)
{
    kn_remote_session session;
    char name[KN_REMOTE_NAME];
    const kiln_remote_module_ops *ops = remote->ops;
    kn_remote_key_name(p->key, name);
    kiln_status status = kn_remote_enter(remote, remote->url.upload_ms, &session);
    if (status == KILN_OK) {
        do {
            void *connection = session.connection;
            status = p->kind == KN_REMOTE_JOB_PUT
                         ? ops->put(connection, &session.call, name, p->data, p->size, p->replace)
                     : p->kind == KN_REMOTE_JOB_REMOVE
                         ? ops->remove(connection, &session.call, name)
                         : ops->drop(connection, &session.call, name, p->token);
        } while (kn_remote_again(&session, status));
    }
    kn_remote_result(remote, &remote->writes, "take an entry", status, session.call.why);
    if (why != NULL) {
        memcpy(why, session.call.why, KILN_REMOTE_WHY);
    }
    kn_remote_leave(&session, status);
    return status;
}

kiln_status kn_remote_give(kn_remote *remote, const kiln_key *key, const void *data, size_t size,
                           bool replace, char *why)
{
    const parcel p = {
        .kind = KN_REMOTE_JOB_PUT, .key = key, .data = data, .size = size, .replace = replace};
    kiln_status status = send_parcel(remote, &p, why);
    kn_stats_add(remote->stats,
                 status == KILN_OK ? KN_COUNT_remote_uploads : KN_COUNT_remote_upload_failures, 1);
    kn_stats_add(remote->stats, KN_COUNT_remote_bytes_out, status == KILN_OK ? size : 0);
    return status;
}

uint64_t kn_remote_raw_size(const kiln_blob *blob, size_t recipe_size)
{
    return (uint64_t)kiln_blob_size(blob) + kiln_blob_facts_size(blob) + recipe_size;
}

static void upload_job(kn_remote *remote, const kn_remote_job *job)
{
    void *data = NULL;
    size_t size = 0;
    char why[KILN_REMOTE_WHY];
    const kn_tier_put what = {
        .key = &job->key, .recipe = {job->recipe, job->recipe_size}, .blob = job->blob};
    kiln_status status = kn_trust_seal(remote->trust, &what, &data, &size, NULL);
    if (status != KILN_OK || size > remote->url.server.max_bytes) {
        kn_stats_add(remote->stats, KN_COUNT_remote_upload_failures, 1);
    } else if (kn_remote_give(remote, &job->key, data, size, job->replace, why) == KILN_OK) {
        kn_stats_add(remote->stats, KN_COUNT_remote_raw_out,
                     kn_remote_raw_size(job->blob, job->recipe_size));
    }
    free(data);
}

static void do_job(kn_remote *remote, const kn_remote_job *job)
{
    if (job->kind == KN_REMOTE_JOB_PUT) {
        upload_job(remote, job);
    } else {
        const parcel p = {.kind = job->kind, .key = &job->key, .token = job->token};
        kn_ignore(send_parcel(remote, &p, NULL)); /* counted there */
    }
}

static void release_job(kn_remote *remote, kn_remote_job *job)
{
    remote->queued--;
    remote->queued_bytes -= job->weight;
}

static kn_remote_job *pop_job(kn_remote *remote)
{
    kn_remote_job *job = remote->first;
    remote->first = job->next;
    remote->last = remote->first != NULL ? remote->last : NULL;
    return job;
}

/* With the mutex held; drops everything that waits. */
static void drop_queue(kn_remote *remote)
{
    while (remote->first != NULL) {
        kn_remote_job *job = pop_job(remote);
        release_job(remote, job);
        kn_stats_add(remote->stats, KN_COUNT_remote_upload_failures,
                     job->kind == KN_REMOTE_JOB_PUT);
        kn_remote_job_destroy(job);
    }
}

bool kn_remote_enqueue(kn_remote *remote, kn_remote_job *job)
{
    if (remote->closing || remote->writes.open || kn_remote_is_silent(remote) ||
        remote->queued >= KN_REMOTE_QUEUE ||
        job->weight > remote->url.queue_bytes - remote->queued_bytes || !kn_remote_wake(remote)) {
        return false;
    }
    job->next = NULL;
    if (remote->last != NULL) {
        remote->last->next = job;
    } else {
        remote->first = job;
    }
    remote->last = job;
    remote->queued++;
    remote->queued_bytes += job->weight;
    return true;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void ping_remote(kn_remote *remote)
{
    kn_remote_session session;
    int64_t clock = 0;
    kiln_status status = kn_remote_enter(remote, remote->url.limit_ms, &session);
    if (status == KILN_OK) {
        do {
            status = remote->ops->ping(session.connection, &session.call, &clock);
        } while (kn_remote_again(&session, status));
    }
    kn_mutex_lock(&remote->mutex);
    if (status == KILN_OK) {
        kn_breaker_try(&remote->reads);
    } else if (status != KILN_E_CANCELLED) {
        kn_breaker_failed(&remote->reads, kn_clock_now(), true);
    }
    kn_mutex_unlock(&remote->mutex);
    kn_remote_leave(&session, status);
}

static void renew_lease(kn_remote *remote, kn_lease *lease)
{
    kn_remote_session session;
    char name[KN_REMOTE_NAME];
    const kn_lease copy = *lease;
    lease->renew_at = kn_clock_now() + remote->url.lease_ms * MS / 3;
    kn_mutex_unlock(&remote->mutex);
    kn_remote_key_name(&copy.key, name);
    kiln_status status = kn_remote_enter(remote, remote->url.limit_ms, &session);
    if (status == KILN_OK) {
        do {
            status = remote->ops->renew(session.connection, &session.call, name, copy.token,
                                        remote->url.lease_ms);
        } while (kn_remote_again(&session, status));
    }
    kn_remote_leave(&session, status);
    kn_mutex_lock(&remote->mutex);
    if (status == KILN_MISS && lease->held &&
        memcmp(lease->token, copy.token, sizeof copy.token) == 0) {
        lease->held = false; /* it expired: another may have it */
    }
}

/* The most urgent thing to do, with the mutex held. False: nothing until *out_next. */
static bool do_something(kn_remote *remote, uint64_t *out_next)
{
    uint64_t now = kn_clock_now(), next = now + 3600u * 1000u * MS;
    if (remote->writes.open || kn_remote_is_silent(remote)) {
        drop_queue(remote);
    }
    if (remote->writes.open) {
        if (kn_breaker_due(&remote->writes, now)) {
            kn_breaker_try(&remote->writes);
        }
        next = remote->writes.due < next ? remote->writes.due : next;
    }
    for (size_t i = 0; i < KN_REMOTE_LEASES; i++) {
        kn_lease *lease = &remote->leases[i];
        if (lease->held && now >= lease->renew_at) {
            renew_lease(remote, lease);
            return true;
        }
        next = lease->held && lease->renew_at < next ? lease->renew_at : next;
    }
    if (remote->first != NULL) {
        kn_remote_job *job = pop_job(remote);
        remote->busy = true;
        kn_mutex_unlock(&remote->mutex);
        do_job(remote, job);
        kn_mutex_lock(&remote->mutex);
        remote->busy = false;
        release_job(remote, job);
        kn_remote_job_destroy(job);
        return true;
    }
    if (kn_breaker_due(&remote->reads, now)) {
        kn_mutex_unlock(&remote->mutex);
        ping_remote(remote);
        kn_mutex_lock(&remote->mutex);
        return true;
    }
    next = remote->reads.open && remote->reads.due < next ? remote->reads.due : next;
    *out_next = next;
    return false;
}

static void run_remote(void *user)
{
    kn_remote *remote = user;
    kn_mutex_lock(&remote->mutex);
    while (!remote->closing) {
        uint64_t next = 0;
        if (do_something(remote, &next)) {
            continue;
        }
        kn_cond_broadcast(&remote->idle);
        (void)kn_cond_wait_until(&remote->work, &remote->mutex, next);
    }
    drop_queue(remote);
    kn_cond_broadcast(&remote->idle);
    kn_mutex_unlock(&remote->mutex);
}

bool kn_remote_wake(kn_remote *remote)
{
    if (remote->thread == NULL && !remote->closing &&
        kn_thread_start(run_remote, remote, &remote->thread, NULL) != KILN_OK) {
        remote->thread = NULL;
        return false;
    }
    kn_cond_signal(&remote->work);
    return !remote->closing;
}

/* --- open, flush, close ----------------------------------------------------------------------- */

kiln_status kn_remote_open_with(kn_remote_url *url, const kiln_remote_module_ops *ops,
                                const kn_trust *trust, kn_stats *stats, kn_remote **out_remote,
                                kiln_diag *diag)
{
    *out_remote = NULL;
    kn_remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) {
        kn_remote_url_deinit(url);
        return kn_no_memory(diag, "opening a remote");
    }
    remote->url = *url;
    url->text = NULL;
    remote->table = *ops;
    remote->ops = &remote->table;
    remote->trust = trust;
    remote->stats = stats;
    remote->budget.limit_ns = url->budget_ms * MS;
    atomic_init(&remote->stop, false);
    kn_mutex_init(&remote->mutex);
    kn_cond_init(&remote->work);
    kn_cond_init(&remote->idle);
    *out_remote = remote;
    return KILN_OK;
}

/* With the mutex held. */
static void wait_for_uploads(kn_remote *remote, uint64_t deadline)
{
    while ((remote->first != NULL || remote->busy) && kn_clock_now() < deadline) {
        if (kn_remote_is_silent(remote)) {
            drop_queue(remote);
            return;
        }
        kn_cond_signal(&remote->work);
        (void)kn_cond_wait_until(&remote->idle, &remote->mutex, deadline);
    }
}

void kn_remote_flush(kn_remote *remote)
{
    const uint64_t deadline = kn_clock_now() + remote->url.flush_ms * MS;
    kn_mutex_lock(&remote->mutex);
    wait_for_uploads(remote, deadline);
    kn_mutex_unlock(&remote->mutex);
}

void kn_remote_finish(kn_remote *remote, uint64_t started)
{
    kn_mutex_lock(&remote->mutex);
    wait_for_uploads(remote, started + remote->url.flush_ms * MS);
    remote->finished = true;
    kn_mutex_unlock(&remote->mutex);
}

void kn_remote_close(kn_remote *remote)
{
    if (remote == NULL) {
        return;
    }
    if (!remote->finished) {
        kn_remote_finish(remote, kn_clock_now());
    }
    atomic_store(&remote->stop, true);
    kn_mutex_lock(&remote->mutex);
    remote->closing = true;
    kn_cond_broadcast(&remote->work);
    kn_mutex_unlock(&remote->mutex);
    if (remote->thread != NULL) {
        kn_thread_join(remote->thread);
    }
    for (size_t i = 0; i < remote->connection_count; i++) {
        remote->ops->disconnect(remote->connections[i]);
    }
    for (size_t i = 0; i < KN_REMOTE_DICTIONARIES; i++) {
        kiln_blob_release(remote->dictionaries[i].content);
    }
    kn_cond_deinit(&remote->work);
    kn_cond_deinit(&remote->idle);
    kn_mutex_deinit(&remote->mutex);
    kn_remote_url_deinit(&remote->url);
    if (remote->module != NULL) {
        kn_dylib_retire(remote->module); /* the protocols' libraries keep state for the process */
    }
    free(remote);
}
