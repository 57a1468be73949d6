/* What a remote may cost a program in all: the time that its lookups took, less what its hits
 * saved, stays within the limit and a tenth of the time that the program compiled. Not thread-safe.
 *
 * A lookup is paid for when it is over, so that the limit is passed by at most one lookup of each
 * thread. */
#ifndef KILN_STORE_BUDGET_H
#define KILN_STORE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* A hit saves what its entry says that it took to compile, and the server may say anything. */
#define KN_BUDGET_MOST_SAVED_NS UINT64_C(60000000000)
#define KN_BUDGET_SHARE 10u

typedef struct kn_budget {
    uint64_t limit_ns; /* 0: none */
    uint64_t spent_ns;
    uint64_t earned_ns;
} kn_budget;

static inline uint64_t kn_budget_sum(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

/* `compiled_ns`: what this program's own compiles took. */
static inline bool kn_budget_allows(const kn_budget *budget, uint64_t compiled_ns)
{
    const uint64_t earned = kn_budget_sum(budget->earned_ns, compiled_ns / KN_BUDGET_SHARE);
    return budget->limit_ns == 0 || budget->spent_ns < kn_budget_sum(budget->limit_ns, earned);
}

static inline void kn_budget_spend(kn_budget *budget, uint64_t took_ns)
{
    budget->spent_ns = kn_budget_sum(budget->spent_ns, took_ns);
}

/* Of a hit; one that does not say what it saved has paid for itself. */
static inline void kn_budget_save(kn_budget *budget, uint64_t took_ns, uint64_t compile_ns)
{
    uint64_t saved = compile_ns != 0 ? compile_ns : took_ns;
    saved = saved < KN_BUDGET_MOST_SAVED_NS ? saved : KN_BUDGET_MOST_SAVED_NS;
    budget->earned_ns = kn_budget_sum(budget->earned_ns, saved);
}

/* Of waiting for another machine's compile, which stands for an own one. */
static inline void kn_budget_wait(kn_budget *budget, uint64_t waited_ns)
{
    budget->earned_ns = kn_budget_sum(budget->earned_ns, waited_ns / KN_BUDGET_SHARE);
}

#endif
