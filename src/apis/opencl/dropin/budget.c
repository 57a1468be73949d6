/* See budget.h. */
#include "apis/opencl/dropin/budget.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "sys/clock.h"
#include "sys/dylib.h"
#include "sys/env.h"
#include "sys/file.h"

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

/* --- what a read takes ------------------------------------------------------------------------ */

/* A library of PoCL 3.1 without any code of the kernel's own has some 12.5 KiB, and takes 60 ms;
 * each KiB more takes 30. Measured from 13 to 90 KiB; the budget corrects it by what it sees. */
#define LIBRARY_BYTES 12800u
#define LIBRARY_NS (60ull * 1000000ull)
#define BYTE_NS 30000ull
#define GUESS_NS (250ull * 1000000ull) /* of a kernel of which nothing is known */

typedef struct launched_search {
    const char *names;
    size_t found;
    uint64_t cost;
} launched_search;

static uint64_t cost_of_library(const char *path)
{
    kn_file_facts facts = {0};
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return GUESS_NS;
    }
    return LIBRARY_NS + (facts.size > LIBRARY_BYTES ? (facts.size - LIBRARY_BYTES) * BYTE_NS : 0);
}

static kn_module_choice choose_code(void *user, const char *path)
{
    launched_search *search = (launched_search *)user;
    if (kn_pocl_is_code_of(path, search->names)) {
        search->found++;
        search->cost += cost_of_library(path);
    }
    return KN_MODULE_NO;
}

static size_t count_kernels(const kn_opencl_api *api, cl_program program)
{
    size_t count = 0;
    return api->clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count, NULL) ==
                       CL_SUCCESS &&
                   count > 0
               ? count
               : 1;
}

uint64_t kn_opencl_budget_guess(const kn_opencl_api *api, cl_program program)
{
    return count_kernels(api, program) * GUESS_NS;
}

uint64_t kn_opencl_budget_cost(const kn_opencl_api *api, cl_program program, bool is_linked)
{
    char *names = is_linked ? kn_opencl_program_names(api, program) : NULL;
    launched_search search = {.names = names};
    const bool known = names != NULL && kn_module_select(choose_code, NULL, &search);
    free(names);
    if (!known) {
        return kn_opencl_budget_guess(api, program);
    }
    /* Several sizes of one kernel are launched, or some kernels only: a mean for each. */
    return search.found > 0 ? search.cost / search.found * count_kernels(api, program) : 0;
}

kiln_status kn_opencl_budget_publish(const kn_request *request, uint64_t compile_ns,
                                     kn_late_fn *read, void *user, uint64_t expected_ns)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const uint64_t start = kn_clock_now();
    const kiln_status status = kn_late_publish(request, compile_ns, read, user, &diag);
    if (status != KILN_OK && status != KILN_MISS) {
        kn_log_diag(KILN_LOG_INFO, "storing an OpenCL binary", &diag);
    }
    if (status != KILN_MISS) {
        kn_opencl_budget_spend(expected_ns, kn_clock_now() - start);
    }
    kiln_diag_clear(&diag);
    return status;
}
