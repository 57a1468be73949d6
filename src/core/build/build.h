/* One build of a kernel through its stages: what build.c leads and stage.c does the steps of. */
#ifndef KILN_CORE_BUILD_H
#define KILN_CORE_BUILD_H

#include "kiln/kiln.h"

#include "base/label.h"
#include "core/build/progress.h"
#include "core/build/source.h"
#include "core/build/stage_artifact.h"
#include "core/runtime/driver.h"
#include "core/runtime/trace.h"
#include "engine/job.h"
#include "headers/closure.h"

/* One stage of a build. */
typedef struct kn_stage_run {
    kiln_recipe *recipe; /* what the output depends on; complete after kn_stage_key */
    kn_closure *closure; /* of a stage that takes the source */
    kiln_key key;
    char bypass[256];     /* why this stage bypasses the cache; "" if it does not */
    kiln_blob *blob;      /* what the stage made, or what was found */
    kn_artifact artifact; /* the same for backends; borrows from blob */
    kiln_origin origin;
    bool later; /* what it made is in `live`, and its bytes come with a capture */
} kn_stage_run;

typedef struct kn_build {
    kiln_cache *cache;
    kn_driver *driver;
    const kiln_target *target;
    void *device; /* the backend's handle, or NULL when compiling for a named target */
    const kiln_build_options *options; /* never NULL */
    kiln_build_options room;           /* for options of another version */
    kn_resolved source;
    uint32_t effects; /* KILN_OPTION_ bits of the source's options */
    const kiln_stage *stages;
    size_t stage_count;
    kn_stage_run runs[KILN_STAGE_MAX];
    bool want_live; /* the artifact will be loaded */
    bool assume;    /* the optimistic build: its states are drawn in build.c */
    bool mistaken;  /* the same */
    bool dropin;    /* asked for through a drop-in */
    kn_job job;     /* of the stage that was got last */
    size_t at;      /* which one that is */
    kn_ticker *ticker;
    void *live;     /* a loaded program that the last compile gave next to its artifact */
    bool expecting; /* others may be waiting for that program: kn_program_expect */
    struct kn_build *next_expecting;
    kiln_program *shared; /* another thread's, which has no bytes to share; retained */
    kiln_build_info info;
    kn_trace *trace;       /* NULL: no trace */
    const kiln_device *on; /* for the trace; NULL when compiling for a named target */
} kn_build;

/* What people call it. */
void kn_build_label(const kn_build *build, char out[KN_LABEL_SIZE]);

/* --- the steps (stage.c); each is for one stage of the build ---------------------------------- */

/* Makes the stage's recipe and key from the source or from the stage before. Blocks: disk. */
kiln_status kn_stage_key(kn_build *build, size_t index, kiln_diag *diag);

/* Gets the stage's artifact from the store, or compiles it under single flight and publishes it. */
kiln_status kn_stage_get(kn_build *build, size_t index, kiln_diag *diag);

/* The driver refused what kn_stage_get got last: drops the entry and gets another. KILN_E_REJECTED
 * if what was refused had just been compiled. */
kiln_status kn_stage_redo(kn_build *build, kiln_diag *diag);

/* Ends assuming (build.c): KILN_OK if all headers are what the keys were made of, else `mistaken`
 * is set. */
kiln_status kn_stage_settle(kn_build *build);

void kn_stage_run_deinit(kn_stage_run *run);

/* --- the build (build.c) ---------------------------------------------------------------------- */

kiln_status kn_build_init(kn_build *build, kiln_cache *cache, kn_driver *driver,
                          const kiln_target *target, void *device, const kiln_source *source,
                          const kiln_build_options *options, kiln_diag *diag);
void kn_build_deinit(kn_build *build);

/* All stages but the load, for a named target. */
kiln_status kn_build_artifacts(kn_build *build, kiln_diag *diag);

/* What a build may be asked besides. */
typedef void kn_build_seen_fn(void *user, const kn_build *build);
typedef struct kn_build_extra {
    kn_build_seen_fn
        *seen; /* is shown the build when it is over, whatever its outcome; may be NULL */
    void *user;
    /* What the first stage's key must be (NULL: anything): another one, or bypassing the cache,
     * gives KILN_MISS without a diag and sets `changed`, before anything is looked up. */
    const kiln_key *expected;
    bool changed;
} kn_build_extra;

/* Records what a build was asked for, if its cache records and the first stage gave something under
 * a key: what bypassed the cache would not be found again. Fails: never. (record_build.c) */
void kn_build_record(const kn_build *build);

/* The whole build; `extra` may be NULL. */
kiln_status kn_build_program(kiln_device *device, const kiln_source *source,
                             const kiln_build_options *options, kn_build_extra *extra,
                             kiln_program **out_program, kiln_diag *diag);

#endif
