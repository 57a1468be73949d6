/* The engine: one cached compile, for every frontend. It looks a key up, has a miss compiled once
 * however many ask, checks that the result may be kept, publishes and loads it, compiles again what
 * is refused, counts, records and reports. A frontend describes a compile and never calls the
 * store.
 *
 *     kn_job job;
 *     switch (kn_job_run(&job, &frontend, &request, call)) {   // begin, compile, finish
 *     case KN_OUTCOME_HIT: ...                                 // the call has what `load` gave it
 *     case KN_OUTCOME_FAILED: ...                              // job.status, job.why
 *     }
 *     kn_job_deinit(&job);
 *
 * Where a compile ends in another function or on another thread, kn_job_begin gives KN_COMPILE or
 * KN_BYPASS, and the job is open until kn_job_finish or kn_job_abandon:
 *
 *     begin ─┬─ a bypass ──────────────────────────────────► open: compile, finish
 *            ├─ found ── load ─┬─ loaded ──────────────────► HIT
 *            │                 ├─ failed: caller's trouble ► FAILED, the entry stays
 *            │                 └─ refused, unsound, or quarantined: dropped (not if quarantined),
 *            │                    looked up again, and compiled at the latest for the second time
 *            ├─ another one compiled it ───────────────────► as if found, or its failure
 *            ├─ not found, and only_cached ────────────────► REFUSED
 *            └─ not found: this job has the ticket ────────► open: compile, finish
 *     finish ─ check ─ publish ─ load ─ record ─ report ───► STORED, DEFERRED, PRIVATE, FAILED
 *
 * Nobody waits longer than the cache's limit for an open job. After a fork the child's copy may be
 * finished, which stores, or abandoned; the parent's waiters wait for the parent.
 *
 * Threads: one at a time per job, any. */
#ifndef KILN_ENGINE_JOB_H
#define KILN_ENGINE_JOB_H

#include "kiln/cache.h"

#include "store/cache/get_or_compile.h"

struct kn_draft;
struct kn_job;

/* What a caller asks for, as plain data; borrowed until the job ends. */
typedef struct kn_request {
    kiln_cache *cache;
    const kiln_recipe *recipe; /* NULL with a bypass */
    const char *what;          /* "nvrtc", in reports */
    const char *name;          /* of the source, in messages and reports */
    const char *bypass;        /* why no key describes it; NULL: one does */
    bool only_cached;          /* what is not cached is not compiled */
    bool glance;               /* with that: neither a hit nor a miss; no remote is asked */
    bool elsewhere;            /* compiled on threads that may ask the cache for anything: those of
                                  this process do not wait for it */
} kn_request;

/* What a job comes to. STORED to FAILED are also what a compile gives. */
typedef enum kn_outcome {
    KN_OUTCOME_NONE, /* open, or abandoned */
    KN_OUTCOME_HIT,
    KN_OUTCOME_STORED,
    KN_OUTCOME_DEFERRED, /* the caller has it, and its bytes come later; nobody waits for them */
    KN_OUTCOME_PRIVATE,  /* the caller has it, and nobody else gets it: for `reason` */
    KN_OUTCOME_FAILED,   /* never stored; the vendor's answer is with the call */
    KN_OUTCOME_REFUSED,  /* not cached, and only_cached */
} kn_outcome;

typedef enum kn_begun { KN_HIT, KN_COMPILE, KN_BYPASS, KN_REFUSED, KN_FAILED } kn_begun;

typedef enum kn_loaded {
    KN_LOADED,
    KN_LOAD_REFUSED, /* by the driver */
    KN_LOAD_UNSOUND, /* the entry is whole, and no answer to this request */
    KN_LOAD_FAILED,  /* memory, a lost device, a full disk: the entry is not to blame */
} kn_loaded;

/* What is no longer as the key says. */
typedef enum kn_change {
    KN_UNCHANGED,
    KN_CHANGED_HEADER,
    KN_CHANGED_COMPILER,    /* during the compile */
    KN_CHANGED_LIBRARY,     /* its file is not the one that this process has mapped */
    KN_CHANGED_ENVIRONMENT, /* by another thread */
} kn_change;

/* What a compile gives. */
typedef struct kn_output {
    kn_outcome outcome;
    kiln_blob *blob;    /* what to store; taken. STORED without one is PRIVATE */
    const char *reason; /* of PRIVATE; borrowed until the job ends. NULL: it could not be kept */
} kn_output;

/* How to serve one kind of compile. Each function gets the call of kn_job_begin; all but `compile`
 * may be NULL. */
typedef struct kn_frontend {
    /* Compiles, for kn_job_run. A failure's words go to `diag`, which is not NULL. */
    void (*compile)(void *call, kn_output *output, kiln_diag *diag);
    /* Whether all that a compile read is what the key says. */
    kn_change (*still_true)(void *call);
    /* Hands an entry to the caller. A failure's words go to `diag`, which is not NULL. */
    kn_loaded (*load)(void *call, kiln_blob *blob, kiln_diag *diag);
    /* It is a hit, stored or deferred: lists of headers are worth keeping. */
    void (*keep)(void *call);
    /* Fills a draft of the cache's recording, and its target (recorder.h). */
    void (*record)(void *call, struct kn_draft *draft, char *target, size_t size);
    void (*report)(void *call, const struct kn_job *job);
    /* A wait for another's compile may follow. */
    void (*wait)(void *call);
    /* Results without bytes, in this process: `defer` lets others find this one, `is_made` says
     * whether there is one, before a lookup and before a compile, and `adopt` takes it, which may
     * wait for it. */
    void (*defer)(void *call);
    bool (*is_made)(void *call);
    bool (*adopt)(void *call);
    bool driver_loads; /* a load can kill the process: it is watched, and quarantines the entry */
    bool loads_output; /* what was compiled is loaded, too: the caller has nothing of it yet */
    bool own_failures; /* a failure is the compiler's own answer: no other's stands for it */
    bool is_step;      /* of something larger, which the frontend counts and reports as a whole */
    unsigned retries;  /* after a compile of another's that gave nothing to share */
} kn_frontend;

/* Read by frontends: from outcome to compile_ns. */
typedef struct kn_job {
    kn_outcome outcome;
    kiln_status status; /* of FAILED and REFUSED; KILN_OK else */
    kiln_diag why;      /* the words of that */
    const char *reason; /* of a bypass or PRIVATE; NULL: none */
    kiln_key key;       /* zeros with a bypass */
    kiln_blob *blob;    /* NULL: there is none, or no bytes yet */
    kiln_origin origin;
    uint64_t took_ns;    /* from begin to end */
    uint64_t compile_ns; /* of the compile that ran in this job; 0: none did */
    bool ran;

    const kn_frontend *frontend;
    kn_request request;
    void *call;
    kn_fetch fetch;
    enum { KN_JOB_ENDED, KN_JOB_TICKET, KN_JOB_BYPASS } state;
    uint64_t began, compile_began;
    unsigned tries, refusals;
    bool quarantined;
} kn_job;

/* Looks up and loads, or opens the job. Blocks: disk, network, others' compiles. */
kn_begun kn_job_begin(kn_job *job, const kn_frontend *frontend, const kn_request *request,
                      void *call);
/* Ends an open job with what a compile gave; `job->why` says why it failed. NONE: nothing was
 * compiled, as for kn_job_abandon, and the status is KILN_E_CANCELLED. */
kn_outcome kn_job_finish(kn_job *job, const kn_output *output);
/* Ends an open job without: nothing is counted, and those who wait compile. */
void kn_job_abandon(kn_job *job);
/* Begins, compiles and finishes. */
kn_outcome kn_job_run(kn_job *job, const kn_frontend *frontend, const kn_request *request,
                      void *call);
/* Abandons a job that is open, and releases the blob. */
void kn_job_deinit(kn_job *job);

/* Counts and reports a job that ended as its frontend's `is_step` left it. */
void kn_job_tally(const kn_job *job);
/* What reports call the outcome: kiln_origin_name, "bypassed", "failed" or "refused". */
const char *kn_job_origin(const kn_job *job);
/* What a hit spared; 0 where this job compiled. */
uint64_t kn_job_saved_ns(const kn_job *job);

/* For a driver that loads after the job has ended (kn_job.blob): a watch around the load. False:
 * the entry is quarantined, and kn_job_redo is next. */
bool kn_job_load_begin(kn_job *job, kn_load *out_watch);
void kn_job_load_end(kn_job *job, const kn_load *watch);
/* The driver refused job->blob: it is dropped and counted, and made again as by kn_job_run.
 * KN_OUTCOME_FAILED with KILN_E_REJECTED where it had just been compiled. */
kn_outcome kn_job_redo(kn_job *job);

#endif
