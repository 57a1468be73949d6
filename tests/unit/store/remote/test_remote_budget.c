/* What a slow remote may cost a program in all. */
#include "unit/store/remote/memory_server.h"

#include "store/format/blob.h"
#include "store/remote/budget.h"
#include "support/suite.h"

enum { LOOKUPS = 40 };
#define HOUR (UINT64_C(3600) * 1000 * MS)

/* --- the account ------------------------------------------------------------------------------ */

KT_TEST(a_budget_is_spent_and_earned)
{
    kn_budget budget = {.limit_ns = 100};
    kn_budget_spend(&budget, 99);
    assert_true(kn_budget_allows(&budget, 0));
    kn_budget_spend(&budget, 1);
    assert_false(kn_budget_allows(&budget, 0));
    assert_false(kn_budget_allows(&budget, KN_BUDGET_SHARE - 1));
    assert_true(kn_budget_allows(&budget, KN_BUDGET_SHARE));
    kn_budget_save(&budget, 7, 1);
    assert_true(kn_budget_allows(&budget, 0));
    kn_budget_spend(&budget, 1);
    assert_false(kn_budget_allows(&budget, 0));
    kn_budget_wait(&budget, KN_BUDGET_SHARE);
    assert_true(kn_budget_allows(&budget, 0));
    kn_budget_spend(&budget, 5 + 1);
    kn_budget_save(&budget, 5, 0); /* not known: it has paid for itself */
    assert_false(kn_budget_allows(&budget, 0));
}

KT_TEST(what_an_entry_says_is_bounded)
{
    kn_budget budget = {.limit_ns = 100};
    kn_budget_save(&budget, 1, UINT64_MAX);
    kn_budget_spend(&budget, KN_BUDGET_MOST_SAVED_NS + 99);
    assert_true(kn_budget_allows(&budget, 0));
    kn_budget_spend(&budget, 1);
    assert_false(kn_budget_allows(&budget, 0));
    kn_budget_spend(&budget, UINT64_MAX);
    assert_false(kn_budget_allows(&budget, UINT64_MAX));
    budget.limit_ns = 0;
    assert_true(kn_budget_allows(&budget, 0));
}

/* --- remotes ---------------------------------------------------------------------------------- */

/* An entry that took so long to compile. */
static void put_dear(fixture *f, uint64_t compile_ns)
{
    atomic_store(&f->blob->compile_ns, compile_ns);
    put(f);
    kn_remote_flush(f->remote);
    assert_int_equal(server.puts, 1);
}

/* Returns how many of the lookups found it. */
static int get_often(fixture *f)
{
    int hits = 0;
    for (int i = 0; i < LOOKUPS; i++) {
        kn_remote_forget_miss(f->remote, &f->key);
        hits += get(f) == KILN_OK;
    }
    return hits;
}

static void count_line(void *user, kiln_log_level level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "budget") != NULL;
}

#define TEST(name) KT_TEST_WITH(setup, teardown, name)

/* TORTURE, lines 4: 240 ms for each key, for ever. Five answers of 20 ms are 100 ms; a busy machine
 * gets fewer. */
TEST(a_slow_remote_costs_its_budget)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=100ms");
    server.slow_ns = 20 * MS;
    int budget_lines = 0;
    kiln_log_set(count_line, &budget_lines, KILN_LOG_WARN);
    assert_int_equal(get_often(f), 0);
    kiln_log_set(NULL, NULL, KILN_LOG_WARN);
    assert_int_equal(budget_lines, 1);
    assert_true(server.gets >= 1 && server.gets <= 5);
    assert_int_equal(count(f, KN_COUNT_remote_skipped), LOOKUPS - server.gets);
    assert_int_equal(count(f, KN_COUNT_remote_errors) + count(f, KN_COUNT_remote_timeouts), 0);
}

TEST(compiles_earn_further_look_ups)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=1ms");
    server.slow_ns = 20 * MS;
    assert_int_equal(get_often(f), 0);
    assert_int_equal(server.gets, 1);
    kn_stats_add(&f->stats, KN_COUNT_compile_ns, HOUR);
    assert_int_equal(get_often(f), 0);
    assert_int_equal(server.gets, 1 + LOOKUPS);
    assert_int_equal(count(f, KN_COUNT_remote_skipped), LOOKUPS - 1);
}

TEST(hits_earn_what_they_save)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=1ms");
    put_dear(f, 10000 * MS);
    server.slow_ns = 5 * MS;
    assert_int_equal(get_often(f), LOOKUPS);
    assert_int_equal(count(f, KN_COUNT_remote_skipped), 0);
}

TEST(hits_that_take_longer_than_a_compile_cost)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=100ms");
    put_dear(f, 1 * MS);
    server.slow_ns = 21 * MS;
    const int hits = get_often(f);
    assert_true(hits >= 1 && hits <= 5);
    assert_int_equal(server.gets, hits);
    assert_int_equal(count(f, KN_COUNT_remote_skipped), LOOKUPS - hits);
}

TEST(no_budget_is_no_limit)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=0");
    server.slow_ns = 2 * MS;
    assert_int_equal(get_often(f), 0);
    assert_int_equal(server.gets, LOOKUPS);
    assert_int_equal(count(f, KN_COUNT_remote_skipped), 0);
}

/* --- leases ----------------------------------------------------------------------------------- */

static kiln_status slow_lease(void *self, kiln_remote_call *call, const char *name,
                              const char *token, uint32_t ttl_ms)
{
    kn_clock_sleep(20 * MS);
    return fake_lease(self, call, name, token, ttl_ms);
}

TEST(leases_are_paid_for_too)
{
    fixture *f = *state;
    kiln_remote_module_ops ops = fake_ops;
    ops.lease = slow_lease;
    open_over(f, "fake://h?timeout=5s&connect-timeout=5s&budget=10ms", &ops);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_OK);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_UNAVAILABLE);
    assert_int_equal(server.lease_asks, 1);
    assert_int_equal(get_often(f), 0);
    assert_int_equal(server.gets, 0);
    kn_stats_add(&f->stats, KN_COUNT_compile_ns, HOUR);
    assert_int_equal(kn_remote_lease(f->remote, &f->key), KILN_E_BUSY);
}

/* Who waits for another machine asks often; that it waits is not the server's fault. */
TEST(waiting_for_a_compile_earns_its_questions)
{
    fixture *f = *state;
    open_remote(f, "fake://h?timeout=5s&connect-timeout=5s&budget=1h");
    (void)snprintf(server.lease, sizeof server.lease, "another");
    assert_int_equal(
        kn_remotes_lease(&f->remotes, &f->key, false, kn_clock_now() + 30 * MS, find_nothing, NULL),
        KILN_E_TIMEOUT);
    assert_true(server.lease_asks > 1);
    assert_true(f->remote->budget.spent_ns > 0);
    assert_true(f->remote->budget.earned_ns > 0);
    assert_true(f->remote->budget.earned_ns <= HOUR / KN_BUDGET_SHARE);
}

KT_MAIN(NULL, NULL)
