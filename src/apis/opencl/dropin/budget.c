/* This file must not know what is read: only how long it took. */
#include "apis/opencl/dropin/budget.h"

#include <stdatomic.h>

#include "sys/clock.h"
#include "sys/env.h"

#define SHARE 50 /* of the time since the first build, one part */

static atomic_uint_least64_t first_build_at; /* 0: none yet */
static atomic_uint_least64_t read_total_ns;
static atomic_uint_least64_t expected_total_ns;

void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now)
{
    uint_least64_t none = 0;
    (void)atomic_compare_exchange_strong(&first_build_at, &none,
                                         now > build_ns ? now - build_ns : 1);
}

uint64_t kn_opencl_budget_now(void)
{
    const uint64_t now = kn_clock_now(), busy = kn_clock_busy();
    const uint64_t began = atomic_load(&first_build_at);
    return now > began && now - began > busy ? began + busy : now;
}

void kn_opencl_budget_spend(uint64_t expected_ns, uint64_t read_ns)
{
    (void)atomic_fetch_add(&read_total_ns, read_ns);
    (void)atomic_fetch_add(&expected_total_ns, expected_ns > 0 ? expected_ns : 1);
}

/* What all reads will have taken when another one is done. */
static uint64_t expect_total(uint64_t expected_ns)
{
    const uint64_t spent = atomic_load(&read_total_ns);
    const uint64_t expected = atomic_load(&expected_total_ns);
    const double scale = expected > 0 ? (double)spent / (double)expected : 1.0;
    return spent + (uint64_t)((double)expected_ns * scale);
}

bool kn_opencl_budget_allows(uint64_t expected_ns, uint64_t now)
{
    const uint64_t began = atomic_load(&first_build_at);
    const uint64_t passed = began != 0 && now > began ? now - began : 0;
    return expect_total(expected_ns) <= passed / SHARE;
}

bool kn_opencl_budget_is_lifted(void)
{
    bool lifted = false;
    return kn_env_bool("KILN_CAPTURE", &lifted, NULL) == KILN_OK && lifted;
}
