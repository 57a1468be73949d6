/* What kiln push and kiln pull share: which entries manifests name, and what became of them. */
#ifndef KILN_PROGRAM_TRANSFER_H
#define KILN_PROGRAM_TRANSFER_H

#include <kiln/unstable/explain.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/remote.h>

#include "cli/cmd.h"
#include "cli/session.h"
#include "kernel/kernel.h"
#include "warm/targets.h"

/* Options of both; their rows are TRANSFER_ROWS. */
typedef struct transfer_options {
    session_options session;
    opt_list targets;
    const char *remote;
    const char *pack;
    const char *name;
    bool all;
    bool replace;      /* of push */
    bool unsigned_too; /* of pull, from a registry */
} transfer_options;

#define TRANSFER_ROWS                                                                              \
    {"target",   't',                                                                              \
     OPT_LIST,   offsetof(transfer_options, targets),                                              \
     "T[,T...]", "manifests: for these: vulkan:spirv, cuda:sm_90, opencl:0"},                      \
        {"remote", 'r',                                                                            \
         OPT_TEXT, offsetof(transfer_options, remote),                                             \
         "URL",    "use this remote (instead of $KILN_REMOTE)"},                                   \
    {                                                                                              \
        "all", 0, OPT_FLAG, offsetof(transfer_options, all), NULL, "fail if anything is missing"   \
    }

typedef struct cli_transfer {
    const cmd_context *context;
    const transfer_options *options;
    kiln_cache *cache;
    kiln_transfer *transfer;
    cli_targets targets;
    kiln_key *keys; /* of the pool; each once */
    size_t count, capacity;
    size_t *places; /* of the keys, plus one, by their first bytes: 2 * capacity of them, or NULL */
    uint64_t moved, present, missing, refused, failed;
} cli_transfer;

/* Opens the cache and the remotes. On failure the message has been given. */
exit_code transfer_open(const cmd_context *context, const transfer_options *options,
                        cli_transfer *out_transfer);
void transfer_close(cli_transfer *t);
/* Remembers a key, once. KILN_E_NOMEM. */
kiln_status transfer_add(cli_transfer *t, const kiln_key *key, kiln_diag *diag);

/* Reads manifests and calls `visit` for each kernel and target that can be planned here; the others
 * count as missing, with a line. */
typedef struct transfer_kernel {
    const cli_kernel *kernel;
    const cli_target *target;
} transfer_kernel;
typedef kiln_status transfer_kernel_fn(cli_transfer *t, const transfer_kernel *one,
                                       kiln_diag *diag);
kiln_status transfer_each_kernel(cli_transfer *t, const opt_list *manifests,
                                 transfer_kernel_fn *visit, kiln_diag *diag);
/* The stages of one kernel, up to the first that is not there (kiln_compile_plan), in the first
 * language that is taken. KILN_E_UNSUPPORTED: none is. */
kiln_status transfer_plan(const cli_transfer *t, const transfer_kernel *one,
                          kiln_explanation_fn *visit, void *user, kiln_diag *diag);

/* Reports and counts what went wrong with one entry. KILN_OK: go on with the next. */
kiln_status transfer_trouble(cli_transfer *t, kiln_status status, kiln_diag *diag);
/* The summary; the exit code of the whole. `verb`: "pushed", "pulled". */
exit_code transfer_tell(const cli_transfer *t, const char *verb, const kiln_transfer_counts *counts,
                        const kiln_pack_info *pack);

#endif
