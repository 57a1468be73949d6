/* What several remotes cost together, and what one costs that is dead, slow or not believed. */
#include "support/suite.h"
#include "unit/store/remote/memory_server.h"

/* --- servers that keep silent ----------------------------------------------------------------- */

static _Atomic int silent_puts;
static _Atomic int silent_leases;

/* Until the time is over, or until it is stopped. */
static kiln_status keep_silent(kiln_remote_call *call)
{
    const uint64_t end = kn_clock_now() + call->limit_ms * MS;
    while (kn_clock_now() < end) {
        if ((call->stop)(call->user)) { /* cmocka 2 has a macro stop */
            return KILN_E_CANCELLED;
        }
        kn_clock_sleep(MS);
    }
    return KILN_E_TIMEOUT;
}

static kiln_status silent_put(void *self, kiln_remote_call *call, const char *name,
                              const void *data, size_t size, bool replace)
{
    (void)self;
    (void)name;
    (void)data;
    (void)size;
    (void)replace;
    atomic_fetch_add(&silent_puts, 1);
    return keep_silent(call);
}

static kiln_status silent_lease(void *self, kiln_remote_call *call, const char *name,
                                const char *token, uint32_t ttl_ms)
{
    (void)self;
    (void)name;
    (void)token;
    (void)ttl_ms;
    atomic_fetch_add(&silent_leases, 1);
    return keep_silent(call);
}

static void wait_for(const _Atomic int *counter, int least)
{
    const uint64_t end = kn_clock_now() + 20000 * MS;
    while (atomic_load(counter) < least && kn_clock_now() < end) {
        kn_clock_sleep(MS);
    }
    assert_true(atomic_load(counter) >= least);
}

/* --- the end of a program --------------------------------------------------------------------- */

#define TEST(name) KT_TEST_WITH(setup, teardown, name)

/* TORTURE D3: it was twice `flush` for each. */
TEST(the_end_waits_one_flush_for_all_remotes)
{
    fixture *f = *state;
    kiln_remote_module_ops ops = fake_ops;
    ops.put = silent_put;
    silent_puts = 0;
    for (int i = 0; i < KN_REMOTES_MAX; i++) {
        open_over(f, "fake://h?flush=1s&upload-timeout=60s", &ops);
        put(f);
    }
    wait_for(&silent_puts, KN_REMOTES_MAX);
    const uint64_t start = kn_clock_now();
    kn_remotes_finish(&f->remotes);
    close_remotes(f);
    const uint64_t took = kn_clock_now() - start;
    assert_true(took >= 900 * MS); /* they had their time */
    assert_true(took < 3000 * MS); /* 8 seconds before */
    assert_int_equal(count(f, KN_COUNT_remote_uploads), 0);
}

TEST(the_end_does_not_wait_for_a_server_known_to_be_dead)
{
    fixture *f = *state;
    kiln_remote_module_ops ops = fake_ops;
    ops.put = silent_put;
    silent_puts = 0;
    open_over(f, "fake://h?flush=60s&upload-timeout=60s&timeout=30ms", &ops);
    put(f);
    put(f);
    wait_for(&silent_puts, 1);
    server.slow_ns = 3600 * 1000 * MS;
    server.get_fails = KILN_E_TIMEOUT; /* of the thread's questions, too */
    assert_int_equal(get(f), KILN_MISS);
    put(f); /* nobody queues for a dead server */
    assert_int_equal(count(f, KN_COUNT_remote_upload_failures), 1);
    const uint64_t start = kn_clock_now();
    kn_remotes_finish(&f->remotes);
    close_remotes(f);
    assert_true(kn_clock_now() - start < 30000 * MS); /* 120 seconds before */
    assert_int_equal(silent_puts, 1);
    assert_true(count(f, KN_COUNT_remote_upload_failures) >= 2);
}

/* --- leases ----------------------------------------------------------------------------------- */

/* TORTURE D8: the next remote that has leases is asked, and nothing is counted as a wait that was
 * given up. */
TEST(a_silent_server_does_not_end_the_agreement)
{
    fixture *f = *state;
    kiln_remote_module_ops ops = fake_ops;
    ops.lease = silent_lease;
    silent_leases = 0;
    open_over(f, "fake://silent?timeout=30ms", &ops);
    open_remote(f, "fake://good?timeout=5s&connect-timeout=5s");
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, false, kn_clock_now() + 20000 * MS, find_nothing, f),
        KILN_OK);
    assert_int_equal(silent_leases, 1);
    assert_int_equal(server.lease_asks, 1);
    assert_int_equal(count(f, KN_COUNT_remote_timeouts), 1);
    kn_remotes_lease_drop(&f->remotes, &f->key);
    kn_remotes_finish(&f->remotes);
    assert_int_equal(server.drops, 1);
}

TEST(a_lone_silent_server_is_no_end_of_waiting)
{
    fixture *f = *state;
    kiln_remote_module_ops ops = fake_ops;
    ops.lease = silent_lease;
    open_over(f, "fake://silent?timeout=30ms", &ops);
    /* KILN_E_TIMEOUT says that a wait was without success. */
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, false, kn_clock_now() + 20000 * MS, find_nothing, f),
        KILN_E_UNAVAILABLE);
}

/* TORTURE, lines 4: the host of a killed holder waited out the lease like all others. */
TEST(a_dead_holders_host_takes_the_lease_over)
{
    fixture *f = *state;
    const uint64_t soon = kn_clock_now() + 200 * MS;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&lease=1h");
    f->remotes.root = "/";
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, true, kn_clock_now() + 20000 * MS, find_nothing, f),
        KILN_OK);
    close_remotes(f); /* and nobody has dropped it */
    assert_int_equal(server.drops, 0);
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&lease=1h");
    /* Who does not have the lock of this host cannot know, and neither can another root. */
    assert_int_equal(kn_remotes_lease(&f->remotes, &f->key, false, soon, find_nothing, f),
                     KILN_E_TIMEOUT);
    f->remotes.root = "/dev";
    assert_int_equal(kn_remotes_lease(&f->remotes, &f->key, true, soon, find_nothing, f),
                     KILN_E_TIMEOUT);
    f->remotes.root = "/";
    const int asked = server.lease_asks;
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, true, kn_clock_now() + 20000 * MS, find_nothing, f),
        KILN_OK);
    assert_int_equal(server.lease_asks, asked + 1);
    kn_remotes_lease_drop(&f->remotes, &f->key);
    kn_remotes_finish(&f->remotes);
    assert_int_equal(server.drops, 1);
    assert_int_equal(server.lease[0], 0);
}

/* --- trust ------------------------------------------------------------------------------------ */

/* REVIEW 7.13: what will not be believed is not downloaded. */
TEST(S7_local_asks_no_server)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s");
    put(f);
    kn_remote_flush(f->remote);
    f->remotes.trust.policy = KN_TRUST_LOCAL;
    assert_int_equal(get(f), KILN_MISS);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_UNSUPPORTED);
    assert_int_equal(server.gets + server.lease_asks, 0);
    assert_int_equal(count(f, KN_COUNT_remote_bytes_in), 0);
    assert_int_equal(count(f, KN_COUNT_remote_errors), 0);
    f->remotes.trust.policy = KN_TRUST_ANY;
    assert_int_equal(get(f), KILN_OK);
}

KT_MAIN(NULL, NULL)
