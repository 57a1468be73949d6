/* What kiln warm made of each kernel and target, and how it is printed. */
#ifndef KILN_PROGRAM_WARM_H
#define KILN_PROGRAM_WARM_H

#include <kiln/kiln.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/recording.h>

#include "cli/cmd.h"
#include "kernel/kernel.h"

typedef enum warm_outcome {
    WARM_COMPILED,
    WARM_THERE,       /* found in the cache */
    WARM_SKIPPED,     /* cannot be made here: `reason` */
    WARM_FAILED,      /* does not compile: `reason` */
    WARM_PASSED_OVER, /* a variant in a language that is not for its target */
} warm_outcome;

/* "compiled", "there", "skipped", "failed", "passed over". */
const char *warm_outcome_name(warm_outcome outcome);

typedef struct warm_item {
    const char *name;
    const cli_kernel *kernel;     /* NULL: of a recording */
    const kiln_recorded_use *use; /* NULL: of a manifest */
    size_t use_index;
    bool compared, other_key; /* with the recorded key, and found to be another one */
    size_t target;            /* index */
    const kernel_form *form;  /* NULL: the first one that works */
    const char *variant_name; /* the form's; "": the kernel itself */
    warm_outcome outcome;
    kiln_language language;
    uint64_t size;
    uint64_t compile_ns;  /* of what was compiled now; 0 for what was there */
    uint64_t saved_ns;    /* what that compile took */
    const char *unpacked; /* made, but not in the pack: why; NULL if it is, or none was asked for */
    const char *reason;
    kiln_diag
        *trouble;  /* of what failed, with the compiler's log, to be reported when all are done */
    uint64_t uses; /* with --used; with --stale the days on which it was used */
    int64_t last_use_ns; /* the same */
    size_t place;
} warm_item;

typedef struct warm_result {
    const char *const *targets;
    size_t target_count;
    const warm_item *items;
    size_t count;
    uint64_t total_ns;
    const char *pack; /* NULL: none was asked for */
    kiln_pack_info info;
} warm_result;

bool warm_print_table(const warm_result *result, cli_pool *pool);
bool warm_print_json(const warm_result *result);
/* How many keys are others than the recorded ones, of all that could be compared. */
size_t warm_count_other_keys(const warm_result *result, size_t *out_compared);
size_t warm_count(const warm_result *result, warm_outcome outcome);

#endif
