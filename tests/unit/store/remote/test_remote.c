/* The policy of remotes, over a module that is made up here: promotion, uploads, breaker, leases.
 */
#include "unit/store/remote/memory_server.h"

#include "store/cache/stack.h"
#include "store/format/blob.h"
#include "support/failalloc.h"
#include "support/suite.h"

#define TEST(name) KT_TEST_WITH(setup, teardown, name)

TEST(what_is_put_can_be_got)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s");
    put(f);
    kn_remote_flush(f->remote);
    assert_int_equal(count(f, KN_COUNT_remote_uploads), 1);
    assert_int_equal(get(f), KILN_OK);
    assert_int_equal(count(f, KN_COUNT_remote_bytes_in), count(f, KN_COUNT_remote_bytes_out));
    assert_true(count(f, KN_COUNT_remote_bytes_in) > 0);
    assert_int_equal(server.connects, 1); /* one connection does for both */
}

TEST(a_miss_is_not_asked_for_again_at_once)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    uint64_t took = UINT64_MAX;
    int before = 0;
    while (took >= KN_REMOTE_MISS_NS) { /* a busy machine may need so long for two lookups */
        kn_remote_forget_miss(f->remote, &f->key);
        before = server.gets;
        const uint64_t start = kn_clock_now();
        assert_int_equal(get(f), KILN_MISS);
        assert_int_equal(get(f), KILN_MISS);
        took = kn_clock_now() - start;
    }
    assert_int_equal(server.gets, before + 1);
    kn_remote_forget_miss(f->remote, &f->key);
    assert_int_equal(get(f), KILN_MISS);
    assert_int_equal(server.gets, before + 2);
    assert_int_equal(count(f, KN_COUNT_remote_errors), 0);
}

TEST(read_only_and_write_only_are_kept)
{
    fixture *f = *state;
    open_remote(f, "fake://h?read-only");
    assert_false(kn_remote_tier(f->remote)->caps & KN_TIER_WRITES);
    assert_null(kn_remote_tier(f->remote)->put);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_UNSUPPORTED);
    close_remotes(f);
    open_remote(f, "fake://h?write-only");
    put(f);
    kn_remote_flush(f->remote);
    assert_int_equal(count(f, KN_COUNT_remote_uploads), 1);
    assert_int_equal(get(f), KILN_MISS);
    assert_int_equal(server.gets, 0);
}

TEST(damage_is_counted_and_put_right)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    put(f);
    kn_remote_flush(f->remote);
    server.data[0][40] ^= 1;
    assert_int_equal(get(f), KILN_MISS);
    assert_int_equal(count(f, KN_COUNT_corrupt), 1);
    put(f);
    kn_remote_flush(f->remote);
    assert_int_equal(server.replaced, 1);
    kn_remote_forget_miss(f->remote, &f->key);
    assert_int_equal(get(f), KILN_OK);
}

TEST(a_dead_server_costs_its_delay_once)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=30ms");
    server.slow_ns = 3600 * 1000 * MS;
    server.get_fails = KILN_E_TIMEOUT; /* of the thread's questions, however often it asks */
    for (int i = 0; i < 50; i++) {
        kn_remote_forget_miss(f->remote, &f->key);
        assert_int_equal(get(f), KILN_MISS);
    }
    assert_int_equal(server.gets, 1);
    assert_int_equal(count(f, KN_COUNT_remote_timeouts), 1);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_UNAVAILABLE);
}

TEST(an_answering_server_has_three_tries)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    server.get_fails = KILN_E_IO;
    for (int i = 0; i < 10; i++) {
        kn_remote_forget_miss(f->remote, &f->key);
        assert_int_equal(get(f), KILN_MISS);
    }
    assert_int_equal(server.gets, (int)KN_BREAKER_TRIES);
    assert_int_equal(count(f, KN_COUNT_remote_errors), KN_BREAKER_TRIES);
}

TEST(the_thread_finds_out_when_a_server_is_back)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    put(f);
    kn_remote_flush(f->remote);
    server.get_fails = KILN_E_UNAVAILABLE;
    assert_int_equal(get(f), KILN_MISS);
    int asked = server.gets;
    server.get_fails = KILN_OK;
    uint64_t end = kn_clock_now() + 20000 * MS;
    kiln_status status = KILN_MISS;
    while (status != KILN_OK && kn_clock_now() < end) {
        kn_clock_sleep(20 * MS);
        kn_remote_forget_miss(f->remote, &f->key);
        status = get(f);
    }
    assert_int_equal(status, KILN_OK);
    assert_true(server.pings >= 1);
    assert_int_equal(server.gets, asked + 1); /* nobody had to find out by waiting */
}

TEST(what_is_too_large_is_no_trouble)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s");
    server.get_fails = KILN_E_UNSUPPORTED;
    for (int i = 0; i < 10; i++) {
        kn_remote_forget_miss(f->remote, &f->key);
        assert_int_equal(get(f), KILN_MISS);
    }
    assert_int_equal(server.gets, 10);
    assert_int_equal(count(f, KN_COUNT_remote_errors), 0);
}

/* A server that was restarted has hung up on every connection that is kept: none of them says that
 * it is still away, nor makes the pause before the next question longer. */
TEST(kept_connections_do_not_keep_a_server_away)
{
    fixture *f = *state;
    kn_remote_session sessions[3];
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s");
    put(f);
    kn_remote_flush(f->remote);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kn_remote_enter(f->remote, 5000, &sessions[i]), KILN_OK);
    }
    for (size_t i = 0; i < 3; i++) {
        kn_remote_leave(&sessions[i], KILN_OK);
    }
    server.hung_up = server.connects + 1;
    assert_int_equal(get(f), KILN_MISS); /* on one of them, and then on a new one: away */
    const uint64_t end = kn_clock_now() + 60000 * MS;
    kiln_status status = KILN_MISS;
    while (status != KILN_OK && kn_clock_now() < end) {
        kn_clock_sleep(20 * MS);
        kn_remote_forget_miss(f->remote, &f->key);
        status = get(f);
    }
    assert_int_equal(status, KILN_OK);
    assert_int_equal(server.pings, 2); /* the first on a kept one, the second on a new one */
}

TEST(uploads_that_fail_are_dropped_and_never_waited_for)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&flush=20s");
    server.put_fails = KILN_E_IO; /* full */
    for (int i = 0; i < 20; i++) {
        put(f);
    }
    kn_remote_flush(f->remote);
    assert_int_equal(count(f, KN_COUNT_remote_uploads), 0);
    assert_int_equal(count(f, KN_COUNT_remote_upload_failures), 20);
    assert_true(server.puts < 15); /* three, and one after each pause */
}

TEST(the_queue_is_bounded)
{
    fixture *f = *state;
    open_remote(f, "fake://h?queue=1");
    put(f);
    assert_int_equal(count(f, KN_COUNT_remote_upload_failures), 1);
    assert_int_equal(server.puts, 0);
}

TEST(notes_stay_on_this_machine)
{
    fixture *f = *state;
    kn_stack stack = {.stats = &f->stats};
    kiln_recipe *note = NULL;
    assert_int_equal(kiln_recipe_create("kiln.note", 1, &note, NULL), KILN_OK);
    const kiln_key key = kiln_recipe_key(note);
    open_remote(f, "fake://h");
    f->remotes.count = 0; /* the stack closes it */
    assert_int_equal(kn_stack_add(&stack, (kn_tier){kn_remote_tier(f->remote), f->remote}, NULL),
                     KILN_OK);
    const kn_tier_put what = {
        .key = &key, .target = "any", .recipe = kn_recipe_span(note), .blob = f->blob};
    kiln_blob *blob = NULL;
    kiln_origin origin;
    kn_stack_put(&stack, &what, true);
    assert_int_equal(kn_stack_get_note(&stack, &key, NULL, false, &blob, &origin), KILN_MISS);
    kn_stack_deinit(&stack);
    assert_int_equal(server.gets + server.puts, 0);
    kiln_recipe_destroy(note);
}

TEST(C6_a_lease_is_one_machines_and_is_renewed)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&lease=60ms");
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_OK);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_BUSY);
    uint64_t end = kn_clock_now() + 20000 * MS;
    while (server.renewals == 0 && kn_clock_now() < end) {
        kn_clock_sleep(MS);
    }
    assert_true(server.renewals > 0);
    put(f);
    kn_remote_lease_drop(f->remote, &f->key);
    kn_remote_flush(f->remote);
    assert_int_equal(server.drops, 1);
    assert_int_equal(server.lease[0], 0);
    assert_int_equal(count(f, KN_COUNT_remote_uploads), 1); /* before the lease was given up */
}

/* --- waiting ---------------------------------------------------------------------------------- */

static bool look(void *user)
{
    return get(user) == KILN_OK;
}

static bool look_and_finish(void *user)
{
    fixture *f = user;
    if (server.lease_asks == 3) { /* the other machine is done */
        put(f);
        kn_remote_flush(f->remote);
    }
    return get(f) == KILN_OK;
}

TEST(C6_who_waits_takes_the_others_result)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    (void)snprintf(server.lease, sizeof server.lease, "another");
    assert_int_equal(kn_remotes_lease(&f->remotes, &f->key, false, kn_clock_now() + 20000 * MS,
                                      look_and_finish, f),
                     KILN_MISS);
    assert_int_equal(count(f, KN_COUNT_remote_waits), 1);
    assert_string_equal(server.lease, "another");
}

TEST(C6_waiting_ends_at_the_deadline)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s");
    (void)snprintf(server.lease, sizeof server.lease, "another");
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, false, kn_clock_now() + 30 * MS, look, f),
        KILN_E_TIMEOUT);
}

/* --- without memory --------------------------------------------------------------------------- */

/* One of everything: a lookup, an upload, a lease, a removal. What is given is right or nothing;
 * what could not be done is a miss, or counted. */
static bool live_without_memory(void *user)
{
    fixture *f = user;
    static const char text[] = "fake://host?timeout=5s&upload-timeout=5s&flush=5s";
    kn_remote_url url;
    bool good = kn_remote_url_parse(text, sizeof text - 1, &url, NULL) == KILN_OK;
    good = good && kn_remote_open_with(&url, &fake_ops, &f->remotes.trust, &f->stats, &f->remote,
                                       NULL) == KILN_OK;
    if (!good) {
        return false;
    }
    const uint64_t uploads = count(f, KN_COUNT_remote_uploads);
    const uint64_t failures = count(f, KN_COUNT_remote_upload_failures);
    put(f);
    kn_remote_flush(f->remote);
    /* The one or the other: nothing is lost without being counted. */
    assert_int_equal(count(f, KN_COUNT_remote_uploads) - uploads +
                         count(f, KN_COUNT_remote_upload_failures) - failures,
                     1);
    good = get(f) == KILN_OK;
    if (kn_remote_lease(f->remote, &f->key) == KILN_OK) {
        kn_remote_lease_drop(f->remote, &f->key);
    } else {
        good = false;
    }
    (void)kn_remote_tier(f->remote)->remove(f->remote, &f->key, NULL);
    kn_remote_flush(f->remote);
    kn_remote_close(f->remote);
    assert_int_equal(server.open, 0);
    /* A lease whose drop found no memory runs out on a real server. */
    good = good && server.lease[0] == '\0';
    server.lease[0] = '\0';
    return good;
}

TEST(C6_uploads_and_leases_live_without_memory)
{
    assert_true(kt_failalloc_each(live_without_memory, *state) > 10);
}

KT_MAIN(NULL, NULL)
