/* Programs: kernels compiled (or found in the cache) and loaded on one device. */
#ifndef KILN_PROGRAM_H
#define KILN_PROGRAM_H

#include "kiln/runtime.h"

KILN_BEGIN_DECLS

typedef struct kiln_program kiln_program; /* retain/release */

/* Reports slow work: called when a compile starts (`seconds` 0) and about once a second while it or
 * a wait for another process goes on. May be called on another thread. */
typedef void kiln_progress_fn(void *user, const char *what, double seconds);

/* Zero it and set struct_size; then what you want. */
typedef struct kiln_build_options {
    size_t struct_size;
    kiln_progress_fn *progress; /* may be NULL */
    void *user;
    bool cache_only; /* never compile: a miss is KILN_MISS with a diag that names the stage */
    /* Do not wait for a compile. What the cache does not have is compiled in the background, and
     * the program that is returned runs the first of `fallback` that the device takes until then:
     * a variant that compiles at once, or that is cached. Then it switches, for good, between two
     * launches. Without such a fallback the build waits. `progress` is not called for background
     * compiles. See kiln_program_wait. */
    bool background;
    const kiln_source *fallback; /* may be NULL; borrowed for the call */
    size_t fallback_count;
    const char *fallback_entry; /* what every entry is called in `fallback`; NULL: the same */
} kiln_build_options;

/* Builds the first of `sources` whose language the device's backend takes, from the cache when it
 * can. Programs are shared: an equal build that is still alive is returned again.
 * Threads: any; equal requests share one compile.
 * Blocks: disk, another's compile, compiler, driver.
 * Owns: borrows sources for the call; *out_program is yours, kiln_program_release(). NULL options
 * mean none.
 * Fails: KILN_E_COMPILE (log in diag), KILN_E_INVALID (also an entry that is not in the program;
 * the diag lists those there are), KILN_E_UNSUPPORTED (no source for this backend),
 * KILN_E_UNAVAILABLE (compiler missing), KILN_E_REJECTED (the driver refused the binary twice),
 * KILN_E_NOMEM. A broken cache never fails a build. */
KILN_API KILN_MUST_CHECK kiln_status
kiln_program_build(kiln_device *device, const kiln_source *sources, size_t source_count,
                   const kiln_build_options *options, kiln_program **out_program, kiln_diag *diag);
KILN_API kiln_program *kiln_program_retain(kiln_program *program);
KILN_API void kiln_program_release(kiln_program *program);

/* How the program came to be. Times are nanoseconds; `origin` is the last stage's, `compiles` how
 * many stages this call compiled itself (0 on a warm start). */
typedef struct kiln_build_info {
    size_t struct_size;
    kiln_origin origin;
    uint32_t stage_count;
    uint32_t compiles;
    uint64_t key_ns;     /* reading sources and headers, making keys */
    uint64_t lookup_ns;  /* store lookups and waits */
    uint64_t compile_ns; /* in the compiler, in this call: 0 where every stage was a hit */
    uint64_t load_ns;    /* the driver's load call */
    uint64_t total_ns;
    kiln_key key;    /* of the last stage */
    const char *log; /* compiler's warnings, "" if none; the same on a hit as on a compile */
} kiln_build_info;

/* How this program came to be; of one that is built in the background: of what it runs now.
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.   Fails: never. */
KILN_API const kiln_build_info *kiln_program_get_info(const kiln_program *program);

KILN_END_DECLS

#endif
