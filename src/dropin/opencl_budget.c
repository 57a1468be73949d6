/* Must not know what is read: only how long it took. */
#include "dropin/opencl_budget.h"

#include <stdatomic.h>

/* Of the time since the first build, one part. */
#define SHARE 4
#define SHARE_NEW 20
#define SHARE_UNASKED 50

static atomic_uint_least64_t first_build_at; /* 0: none yet */
static atomic_uint_least64_t built_ns;
static atomic_uint_least64_t read_total_ns;
static atomic_uint_least64_t expected_total_ns;

void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now)
{
    uint_least64_t none = 0;
    (void)atomic_compare_exchange_strong(&first_build_at, &none,
                                         now > build_ns ? now - build_ns : 1);
    (void)atomic_fetch_add(&built_ns, build_ns);
}

uint64_t kn_opencl_budget_began(void)
{
    return atomic_load(&first_build_at);
}

void kn_opencl_budget_spend(uint64_t expected_ns, uint64_t read_ns)
{
    (void)atomic_fetch_add(&read_total_ns, read_ns);
    (void)atomic_fetch_add(&expected_total_ns, expected_ns > 0 ? expected_ns : 1);
}

static uint64_t since_first_build(uint64_t now)
{
    const uint64_t began = atomic_load(&first_build_at);
    return began != 0 && now > began ? now - began : 0;
}

/* What all reads will have taken when another one is done. */
static uint64_t expect_total(uint64_t expected_ns)
{
    const uint64_t spent = atomic_load(&read_total_ns);
    const uint64_t expected = atomic_load(&expected_total_ns);
    const double scale = expected > 0 ? (double)spent / (double)expected : 1.0;
    return spent + (uint64_t)((double)expected_ns * scale);
}

static uint64_t at_least_free(uint64_t allowed)
{
    return allowed > KN_OPENCL_BUDGET_FREE_NS ? allowed : KN_OPENCL_BUDGET_FREE_NS;
}

bool kn_opencl_budget_allows(uint64_t expected_ns, uint64_t now)
{
    const uint64_t built = atomic_load(&built_ns);
    const uint64_t share = since_first_build(now) / SHARE;
    return atomic_load(&expected_total_ns) == 0 ||
           expect_total(expected_ns) <= at_least_free(share < built ? share : built);
}

bool kn_opencl_budget_allows_new(uint64_t expected_ns, uint64_t now)
{
    return expect_total(expected_ns) <= at_least_free(since_first_build(now) / SHARE_NEW);
}

bool kn_opencl_budget_allows_unasked(uint64_t expected_ns, uint64_t now)
{
    return expect_total(expected_ns) <= since_first_build(now) / SHARE_UNASKED;
}
