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
     * launches. Without such a fallback the build waits. `progress` is not called for what goes on
     * in the background. kiln_program_wait. */
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

/* Whether a program that was built with options.background is what was asked for by now: KILN_OK
 * for ever after, and for every other program. kiln_program_wait waits for the end of the compile.
 * Threads: any.   Blocks: ready: never; wait: until the compile has finished.   Owns: nothing.
 * Fails: ready: KILN_E_BUSY (no diag) while it is compiled. Both: what the compile failed with,
 * each time; the fallback stays. It was also logged, once. KILN_E_CANCELLED if the runtime went
 * first. */
KILN_API KILN_MUST_CHECK kiln_status kiln_program_ready(kiln_program *program, kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_program_wait(kiln_program *program, kiln_diag *diag);

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
KILN_API const kiln_build_info *kiln_program_info(const kiln_program *program);

/* What a kernel takes, where the backend can tell. */
typedef enum kiln_arg_kind {
    KILN_ARG_UNKNOWN = 0,
    KILN_ARG_BUFFER,
    KILN_ARG_VALUE,
    KILN_ARG_LOCAL, /* work-group memory of a size given at launch */
} kiln_arg_kind;

/* One parameter of a kernel. */
typedef struct kiln_param {
    size_t struct_size;
    char name[64];
    char type[64];
    kiln_arg_kind kind;
    size_t size; /* of a value; 0 if unknown */
} kiln_param;

/* The entries of a program and their parameters, a list of pointers; `out_count` 0 where the
 * backend cannot tell.
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: KILN_MISS for an unknown entry; the diag lists those there are. */
KILN_API size_t kiln_program_entry_count(const kiln_program *program);
KILN_API const char *kiln_program_entry(const kiln_program *program, size_t index);
KILN_API KILN_MUST_CHECK kiln_status kiln_program_params(kiln_program *program, const char *entry,
                                                         const kiln_param *const **out_params,
                                                         size_t *out_count, kiln_diag *diag);

/* The attributes of an entry in the words of its language ("reqd_work_group_size(8,1,1)"), "" where
 * it has none or the backend does not list them. They are kept with the binary, for drivers forget
 * them (PoCL: CL_KERNEL_ATTRIBUTES): the same on a hit as on a compile.
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: NULL for an unknown entry, or where the backend keeps no list of its kernels. */
KILN_API const char *kiln_program_attributes(const kiln_program *program, const char *entry);

/* The qualifiers of a parameter in its language's words: the address space ("global", "private"),
 * an image's access ("read_only"), "const", "restrict", "volatile", "pipe", with blanks between.
 * They are kept with the binary, for drivers forget them (NVIDIA: clGetKernelArgInfo).
 * Threads: any.   Blocks: never.   Owns: borrowed from the program.
 * Fails: NULL for an unknown entry, an index past its parameters, or where the backend does not
 * tell. */
KILN_API const char *kiln_program_qualifiers(const kiln_program *program, const char *entry,
                                             size_t index);

KILN_END_DECLS

#endif
