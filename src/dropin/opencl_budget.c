/* Must not know what is read: only how long it took. */
#include "dropin/opencl_budget.h"

#include <stdatomic.h>

#define SHARE 4 /* of the time since the first build, one part */

static atomic_uint_least64_t first_build_at; /* 0: none yet */
static atomic_uint_least64_t built_ns;
static atomic_uint_least64_t read_total_ns;
static atomic_uint_least64_t read_kernels;

void kn_opencl_budget_earn(uint64_t build_ns, uint64_t now)
{
    uint_least64_t none = 0;
    (void)atomic_compare_exchange_strong(&first_build_at, &none,
                                         now > build_ns ? now - build_ns : 1);
    (void)atomic_fetch_add(&built_ns, build_ns);
}

void kn_opencl_budget_spend(size_t kernels, uint64_t read_ns)
{
    (void)atomic_fetch_add(&read_total_ns, read_ns);
    (void)atomic_fetch_add(&read_kernels, kernels > 0 ? kernels : 1);
}

bool kn_opencl_budget_allows(size_t kernels, uint64_t now)
{
    const uint64_t spent = atomic_load(&read_total_ns);
    const uint64_t count = atomic_load(&read_kernels);
    const uint64_t built = atomic_load(&built_ns);
    const uint64_t began = atomic_load(&first_build_at);
    if (count == 0) {
        return true;
    }
    const uint64_t share = began != 0 && now > began ? (now - began) / SHARE : 0;
    uint64_t allowed = share < built ? share : built;
    allowed = allowed > KN_OPENCL_BUDGET_FREE_NS ? allowed : KN_OPENCL_BUDGET_FREE_NS;
    return spent + spent / count * (kernels > 0 ? kernels : 1) <= allowed;
}
