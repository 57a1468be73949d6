/* This file must not read a binary: that is what its callers want to spare. */
#include "apis/opencl/dropin/worth.h"

#include <stdlib.h>

#include "sys/dylib.h"
#include "sys/file.h"

/* A library of PoCL 3.1 without any code of the kernel's own has some 12.5 KiB, and takes 60 ms;
 * each KiB more takes 30. Measured from 13 to 90 KiB; the budget corrects it by what it sees. */
#define LIBRARY_BYTES 12800u
#define LIBRARY_NS (60ull * 1000000ull)
#define BYTE_NS 30000ull

typedef struct launched_search {
    const char *names;
    size_t found;
    uint64_t cost;
} launched_search;

static uint64_t cost_of_library(const char *path)
{
    kn_file_facts facts = {0};
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return KN_OPENCL_WORTH_GUESS_NS;
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

uint64_t kn_opencl_worth_cost(const kn_opencl_api *api, cl_program program, size_t kernels)
{
    char *names = kn_opencl_program_names(api, program);
    launched_search search = {.names = names};
    const bool known = names != NULL && kn_module_select(choose_code, NULL, &search);
    free(names);
    if (!known) {
        return kernels * KN_OPENCL_WORTH_GUESS_NS;
    }
    /* Several sizes of one kernel are launched, or some kernels only: a mean for each. */
    return search.found > 0 ? search.cost / search.found * (kernels > 0 ? kernels : 1) : 0;
}
