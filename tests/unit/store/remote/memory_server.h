/* A server of remotes in memory, the module that speaks to it, and a fixture of remotes over it. */
#ifndef KILN_TESTS_UNIT_STORE_MEMORY_SERVER_H
#define KILN_TESTS_UNIT_STORE_MEMORY_SERVER_H

#include "unit/store/support.h"

#include <stdatomic.h>

#include "key/recipe.h"
#include "store/remote/remotes.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)
enum { ROOM = 8 };

/* A server in memory that follows its script. */
static struct server {
    kn_mutex mutex;
    char names[ROOM][KN_REMOTE_NAME];
    char *data[ROOM];
    size_t sizes[ROOM];
    char lease[KN_REMOTE_TOKEN];
    _Atomic kiln_status get_fails, put_fails, connect_fails;
    _Atomic uint64_t slow_ns; /* gets take so long, or until they are asked to stop */
    _Atomic int gets, puts, replaced, pings, connects, open, renewals, drops, lease_asks;
    _Atomic int hung_up; /* on the first so many connections */
} server;

enum { LINES = 64 };
static char lines[LINES]; /* connections: which of them is all that there is to know */

static inline bool has_hung_up(const void *self)
{
    return (const char *)self - lines < atomic_load(&server.hung_up);
}

static inline kiln_status fake_connect(const kiln_remote_server *s, kiln_remote_call *call,
                                       void **out)
{
    (void)s;
    const int line = atomic_fetch_add(&server.connects, 1) % LINES;
    *out = NULL;
    if (server.connect_fails != KILN_OK) {
        (void)snprintf(call->why, sizeof call->why, "nobody there");
        return server.connect_fails;
    }
    atomic_fetch_add(&server.open, 1);
    *out = &lines[line];
    return KILN_OK;
}

static inline void fake_disconnect(void *self)
{
    assert_true((char *)self >= lines && (char *)self < lines + LINES);
    atomic_fetch_sub(&server.open, 1);
}

static inline kiln_status fake_ping(void *self, kiln_remote_call *call, int64_t *out_clock)
{
    (void)call;
    *out_clock = 0;
    atomic_fetch_add(&server.pings, 1);
    return has_hung_up(self) ? KILN_E_UNAVAILABLE : server.get_fails;
}

static inline int find(const char *name)
{
    for (int i = 0; i < ROOM; i++) {
        if (server.data[i] != NULL && strcmp(server.names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static inline kiln_status fake_get(void *self, kiln_remote_call *call, const char *name,
                                   void **out_data, size_t *out_size)
{
    atomic_fetch_add(&server.gets, 1);
    if (has_hung_up(self)) {
        return KILN_E_UNAVAILABLE;
    }
    const uint64_t end =
        kn_clock_now() +
        (server.slow_ns < call->limit_ms * MS ? server.slow_ns : call->limit_ms * MS);
    while (server.slow_ns > 0 && kn_clock_now() < end) {
        if ((call->stop)(call->user)) { /* cmocka 2 has a macro stop */
            return KILN_E_CANCELLED;
        }
        kn_clock_sleep(MS);
    }
    if (server.slow_ns > call->limit_ms * MS) {
        return KILN_E_TIMEOUT;
    }
    if (server.get_fails != KILN_OK) {
        return server.get_fails;
    }
    kn_mutex_lock(&server.mutex);
    int at = find(name);
    kiln_status status = KILN_MISS;
    if (at >= 0) {
        *out_data = malloc(server.sizes[at]);
        status = *out_data != NULL ? KILN_OK : KILN_E_NOMEM;
    }
    if (status == KILN_OK) {
        memcpy(*out_data, server.data[at], server.sizes[at]);
        *out_size = server.sizes[at];
    }
    kn_mutex_unlock(&server.mutex);
    return status;
}

static inline kiln_status fake_put(void *self, kiln_remote_call *call, const char *name,
                                   const void *data, size_t size, bool replace)
{
    (void)self;
    (void)call;
    atomic_fetch_add(&server.puts, 1);
    atomic_fetch_add(&server.replaced, replace);
    if (server.put_fails != KILN_OK) {
        return server.put_fails;
    }
    kn_mutex_lock(&server.mutex);
    int at = find(name);
    if (at < 0) {
        for (at = 0; server.data[at] != NULL; at++) {
        }
    } else if (!replace) {
        kn_mutex_unlock(&server.mutex);
        return KILN_OK;
    }
    free(server.data[at]);
    server.data[at] = malloc(size);
    const bool room = server.data[at] != NULL;
    if (room) {
        memcpy(server.data[at], data, size);
        server.sizes[at] = size;
        (void)snprintf(server.names[at], sizeof server.names[at], "%s", name);
    }
    kn_mutex_unlock(&server.mutex);
    return room ? KILN_OK : KILN_E_NOMEM;
}

static inline kiln_status fake_remove(void *self, kiln_remote_call *call, const char *name)
{
    (void)self;
    (void)call;
    kn_mutex_lock(&server.mutex);
    int at = find(name);
    if (at >= 0) {
        free(server.data[at]);
        server.data[at] = NULL;
    }
    kn_mutex_unlock(&server.mutex);
    return at >= 0 ? KILN_OK : KILN_MISS;
}

static inline kiln_status fake_lease(void *self, kiln_remote_call *call, const char *name,
                                     const char *token, uint32_t ttl_ms)
{
    (void)self;
    (void)call;
    (void)name;
    (void)ttl_ms;
    atomic_fetch_add(&server.lease_asks, 1);
    kn_mutex_lock(&server.mutex);
    bool taken = server.lease[0] != '\0';
    if (!taken) {
        (void)snprintf(server.lease, sizeof server.lease, "%s", token);
    }
    kn_mutex_unlock(&server.mutex);
    return taken ? KILN_E_BUSY : KILN_OK;
}

static inline kiln_status fake_renew(void *self, kiln_remote_call *call, const char *name,
                                     const char *token, uint32_t ttl_ms)
{
    (void)self;
    (void)call;
    (void)name;
    (void)ttl_ms;
    atomic_fetch_add(&server.renewals, 1);
    return strcmp(server.lease, token) == 0 ? KILN_OK : KILN_MISS;
}

static inline kiln_status fake_drop(void *self, kiln_remote_call *call, const char *name,
                                    const char *token)
{
    (void)self;
    (void)call;
    (void)name;
    atomic_fetch_add(&server.drops, 1);
    kn_mutex_lock(&server.mutex);
    bool held = strcmp(server.lease, token) == 0;
    if (held) {
        server.lease[0] = '\0';
    }
    kn_mutex_unlock(&server.mutex);
    return held ? KILN_OK : KILN_MISS;
}

static const kiln_remote_module_ops fake_ops = {
    .abi = KILN_REMOTE_ABI,
    .struct_size = sizeof fake_ops,
    .name = "fake",
    .schemes = "fake",
    .caps = KILN_REMOTE_LEASES,
    .connect = fake_connect,
    .disconnect = fake_disconnect,
    .ping = fake_ping,
    .get = fake_get,
    .put = fake_put,
    .remove = fake_remove,
    .lease = fake_lease,
    .renew = fake_renew,
    .drop = fake_drop,
};

/* --- remotes on it ---------------------------------------------------------------------------- */

typedef struct fixture {
    kn_stats stats;
    kn_remotes remotes;
    kn_remote *remote; /* the last one that was opened */
    kiln_recipe *recipe;
    kiln_key key;
    kiln_blob *blob; /* "payload" */
} fixture;

static inline void open_over(fixture *f, const char *text, const kiln_remote_module_ops *ops)
{
    kn_remote_url url;
    assert_int_equal(kn_remote_url_parse(text, strlen(text), &url, NULL), KILN_OK);
    assert_int_equal(kn_remote_open_with(&url, ops, &f->remotes.trust, &f->stats, &f->remote, NULL),
                     KILN_OK);
    f->remotes.list[f->remotes.count++] = f->remote;
}

static inline void open_remote(fixture *f, const char *text)
{
    open_over(f, text, &fake_ops);
}

static inline void close_remotes(fixture *f)
{
    for (size_t i = 0; i < f->remotes.count; i++) {
        kn_remote_close(f->remotes.list[i]);
    }
    f->remotes.count = 0;
    assert_int_equal(server.open, 0);
}

static inline int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    memset(&server, 0, sizeof server);
    kn_mutex_init(&server.mutex);
    kn_stats_init(&f->stats);
    f->remotes.trust.policy = KN_TRUST_ANY;
    assert_int_equal(kn_signer_create(NULL, NULL, &f->remotes.trust.signer, NULL), KILN_OK);
    f->recipe = ks_recipe("one");
    f->key = kiln_recipe_key(f->recipe);
    f->blob = ks_blob("payload");
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    fixture *f = *state;
    close_remotes(f);
    for (int i = 0; i < ROOM; i++) {
        free(server.data[i]);
    }
    kn_mutex_deinit(&server.mutex);
    kn_trust_close(&f->remotes.trust);
    kn_stats_deinit(&f->stats);
    kiln_blob_release(f->blob);
    kiln_recipe_destroy(f->recipe);
    free(f);
    return 0;
}

static inline void put_blob(fixture *f, kiln_blob *blob)
{
    const kn_tier_put what = {
        .key = &f->key, .target = "test-target", .recipe = kn_recipe_span(f->recipe), .blob = blob};
    assert_int_equal(kn_remote_tier(f->remote)->put(f->remote, &what, NULL), KILN_OK);
}

static inline void put(fixture *f)
{
    put_blob(f, f->blob);
}

static inline kiln_status get_key(fixture *f, const kiln_key *key)
{
    kiln_blob *blob = NULL;
    kiln_status status = kn_remote_tier(f->remote)->get(f->remote, key, NULL, &blob, NULL);
    assert_true((status == KILN_OK) == (blob != NULL));
    kiln_blob_release(blob);
    return status;
}

static inline kiln_status get(fixture *f)
{
    kiln_blob *blob = NULL;
    kiln_status status = kn_remote_tier(f->remote)->get(f->remote, &f->key, NULL, &blob, NULL);
    assert_true((status == KILN_OK) == (blob != NULL));
    if (blob != NULL) {
        assert_memory_equal(kiln_blob_data(blob), "payload", 7);
    }
    kiln_blob_release(blob);
    return status;
}

static inline uint64_t count(const fixture *f, enum kn_counter counter)
{
    return atomic_load(&f->stats.own[counter]);
}

/* Puts bytes on the server as they are. `data` is taken over. */
static inline void serve(const kiln_key *key, void *data, size_t size)
{
    char name[KN_REMOTE_NAME];
    kiln_remote_call call = {.limit_ms = 1000};
    kn_remote_key_name(key, name);
    assert_int_equal(fake_put(lines, &call, name, data, size, true), KILN_OK);
    free(data);
}

static inline bool find_nothing(void *user)
{
    (void)user;
    return false;
}

#endif
