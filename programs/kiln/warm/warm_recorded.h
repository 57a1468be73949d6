/* What kiln warm makes of a recording: its programs, in order of their use, for the targets that
 * are named or for those that were recorded. */
#ifndef KILN_PROGRAM_WARM_RECORDED_H
#define KILN_PROGRAM_WARM_RECORDED_H

#include <kiln/unstable/recording.h>

#include "cli/console.h"
#include "exec/helper.h"
#include "warm/targets.h"
#include "warm/warm_list.h"
#include "warm/warm_pack.h"

typedef struct warm_recorded {
    kiln_recording *recording;
    const char *path;
    uint64_t within_ns;             /* only what was used so long ago at most; 0: all */
    bool stale;                     /* used most first: not in order of the first use */
    bool as_recorded;               /* no targets were named */
    const char *names[TARGETS_MAX]; /* the targets that its uses have */
    size_t stand_ins[TARGETS_MAX];  /* what each is made for: itself, or another target */
    exec_helpers *helpers;          /* NULL until it is set: for what is replayed by calls */
} warm_recorded;

/* Opens it, and says in one line what is damaged. */
kiln_status warm_recorded_open(const char *path, cli_console *console, warm_recorded *out,
                               kiln_diag *diag);
void warm_recorded_close(warm_recorded *recorded);

/* The targets that its uses have. KILN_E_INVALID where there are more than TARGETS_MAX. */
kiln_status warm_recorded_targets(warm_recorded *recorded, cli_pool *pool, cli_targets *out_targets,
                                  kiln_diag *diag);
/* With --stale, where a device of the recording is gone: another one of its platform takes its
 * place. The targets are open. KILN_E_NOMEM. */
kiln_status warm_recorded_adopt(warm_recorded *recorded, cli_targets *targets, cli_pool *pool,
                                kiln_diag *diag);
/* Each use, or each program for each target whose backend takes it. KILN_E_NOMEM. */
kiln_status warm_recorded_list(const warm_recorded *recorded, const cli_targets *targets,
                               cli_pool *pool, warm_list *out_list, kiln_diag *diag);

/* Makes one of them, in this process or by a helper, and notes its stages for the pack (NULL: there
 * is none). As kiln_recording_compile. May be called side by side. */
kiln_status warm_recorded_make(warm_recorded *recorded, const cli_target *target, warm_item *item,
                               warm_pack *pack, kiln_diag *diag);

#endif
