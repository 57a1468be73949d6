/* Why a lookup misses: the recipe that would be looked up, compared with the nearest one stored.
 *
 *     kiln_explain(runtime, "opencl:0", &source, print, NULL, &diag);   // level 3: every stage
 *     kiln_cache_explain(cache, recipe, print, NULL, &diag);            // level 1: your own recipe
 *
 * Looking for the nearest recipe reads every entry of the cache: for people, not for hot paths. */
#ifndef KILN_UNSTABLE_EXPLAIN_H
#define KILN_UNSTABLE_EXPLAIN_H

#include "kiln/runtime.h"

KILN_BEGIN_DECLS

/* X(name, text). Where several things changed, the first of them in this order is the reason. */
#define KILN_WHY_MAP(X)                                                                            \
    X(KILN_WHY_HIT, "hit")                                                                         \
    X(KILN_WHY_BYPASS, "never cached")                                                             \
    X(KILN_WHY_NOT_YET, "not known until the preceding stage is made")                             \
    X(KILN_WHY_EVICTED, "evicted")                                                                 \
    X(KILN_WHY_CORRUPT, "damaged")                                                                 \
    X(KILN_WHY_NEW, "new")                                                                         \
    X(KILN_WHY_SOURCE, "source new or changed")                                                    \
    X(KILN_WHY_INPUT, "result of the preceding stage changed")                                     \
    X(KILN_WHY_OPTIONS, "options changed")                                                         \
    X(KILN_WHY_ENTRY, "entry points changed")                                                      \
    X(KILN_WHY_HEADER, "header changed")                                                           \
    X(KILN_WHY_ENVIRONMENT, "environment changed")                                                 \
    X(KILN_WHY_DRIVER, "driver, compiler or device changed")                                       \
    X(KILN_WHY_STAGE, "kiln or the stage changed")                                                 \
    X(KILN_WHY_FIELD, "another field changed")

/* One of them. */
typedef enum kiln_why {
#define KILN_WHY_ENUM(name, text) name,
    KILN_WHY_MAP(KILN_WHY_ENUM)
#undef KILN_WHY_ENUM
} kiln_why;

/* Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_why_text(kiln_why why);

/* One field that differs. `then` is NULL where the nearest recipe lacks it, `now` where this one
 * does; both are values as recipes write them (a header is its name and digest). */
typedef struct kiln_difference {
    size_t struct_size;
    const char *field;
    const char *then;
    const char *now;
    kiln_why why;
} kiln_difference;

/* Of one stage, or one recipe. */
typedef struct kiln_explanation {
    size_t struct_size;
    const char *stage;
    kiln_why why;
    kiln_key key;       /* zeros with KILN_WHY_NOT_YET */
    const char *recipe; /* its text; NULL with KILN_WHY_NOT_YET and where only a key was given */
    const char *detail; /* KILN_WHY_BYPASS: the reason; "" otherwise */
    bool has_nearest;
    kiln_key nearest; /* the entry that the differences are from */
    const char *nearest_target;
    const kiln_difference *const *differences;
    size_t difference_count;
} kiln_explanation;

/* Any status but KILN_OK ends the work and is returned. */
typedef kiln_status kiln_explanation_fn(void *user, const kiln_explanation *explanation);

/* Explains one recipe, or the entry that has (or had) a key: that one is compared with the nearest
 * other. Entries of the same stage on disk and in packs are looked at.
 * Threads: any.   Blocks: disk.   Owns: the explanation is borrowed for the call.
 * Fails: KILN_E_IO, KILN_E_NOMEM, or what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_explain(kiln_cache *cache,
                                                        const kiln_recipe *recipe,
                                                        kiln_explanation_fn *visit, void *user,
                                                        kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_explain_key(kiln_cache *cache, const kiln_key *key,
                                                            kiln_explanation_fn *visit, void *user,
                                                            kiln_diag *diag);

/* What kiln_compile would look up for a source and a target, stage by stage, each explained.
 * Nothing is compiled: after a stage that misses, the next one's recipe is not known yet.
 * Threads: any.   Blocks: disk, drivers.
 * Owns: the explanation is borrowed for the call.
 * Fails: as kiln_compile, without the compiling. */
KILN_API KILN_MUST_CHECK kiln_status kiln_explain(kiln_runtime *runtime, const char *target,
                                                  const kiln_source *source,
                                                  kiln_explanation_fn *visit, void *user,
                                                  kiln_diag *diag);

/* The same for what a program's call of kiln's drop-in would look up (kiln_opencl_build_program,
 * kiln_nvrtc_compile, kiln_hiprtc_compile), as kiln_dropin_compile compiles it.
 * Threads: any.   Blocks: disk, drivers.
 * Owns: the explanation is borrowed for the call.
 * Fails: as kiln_dropin_compile, without the compiling. */
KILN_API KILN_MUST_CHECK kiln_status kiln_dropin_explain(kiln_runtime *runtime, const char *target,
                                                         const kiln_source *source,
                                                         kiln_explanation_fn *visit, void *user,
                                                         kiln_diag *diag);

/* kiln_explain without explaining misses, which is quick: `why` is HIT, NEW (a miss of any kind),
 * BYPASS or NOT_YET. The keys are what packs are made of (kiln_pack_writer_add). The list of a
 * source's headers, where it is in the cache, is visited after its stage, as stage "headers".
 * Threads: any.   Blocks: disk, drivers.
 * Owns: the explanation is borrowed for the call.
 * Fails: as kiln_compile, without the compiling. */
KILN_API KILN_MUST_CHECK kiln_status kiln_compile_plan(kiln_runtime *runtime, const char *target,
                                                       const kiln_source *source,
                                                       kiln_explanation_fn *visit, void *user,
                                                       kiln_diag *diag);

/* Calls `visit` with the path of each file that a compile of the source reaches through #include,
 * in branches that are taken or not: for a build system's list of dependencies. Headers in memory
 * and those that a compiler brings along inside itself are not files.
 * Threads: any.   Blocks: disk, drivers.   Owns: `path` is borrowed for the call.
 * Fails: as kiln_compile, without the compiling; KILN_E_UNSUPPORTED, with the reason, if the
 * headers cannot be known (the compile bypasses the cache); or what `visit` returns. */
typedef kiln_status kiln_header_fn(void *user, const char *path);
KILN_API KILN_MUST_CHECK kiln_status kiln_compile_headers(kiln_runtime *runtime, const char *target,
                                                          const kiln_source *source,
                                                          kiln_header_fn *visit, void *user,
                                                          kiln_diag *diag);

KILN_END_DECLS

#endif
