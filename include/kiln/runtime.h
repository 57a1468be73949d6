/* Level 3: a runtime lists devices, builds programs through the cache, and launches kernels.
 *
 *     kiln_runtime_create(NULL, &runtime, &diag);
 *     kiln_runtime_select(runtime, sources, count, &device, &diag);
 *     kiln_program_build(device, sources, count, NULL, &program, &diag);
 *     kiln_queue_create(device, &queue, &diag);
 *     kiln_buffer_create(device, bytes, &buffer, &diag);
 *     kiln_queue_write(queue, buffer, 0, data, bytes, &diag);
 *     kiln_queue_launch(queue, program, "saxpy", &launch, NULL, &diag);
 *     kiln_queue_read(queue, buffer, 0, data, bytes, &diag);
 *
 * Objects hold a reference to what they need: a buffer, queue or program may be destroyed in any
 * order, but before the runtime. */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/cache.h"
#include "kiln/device.h"
#include "kiln/export.h"
#include "kiln/source.h"
#include "kiln/status.h"

KILN_BEGIN_DECLS

typedef struct kiln_runtime kiln_runtime; /* create/destroy */

/* Fill it with kiln_runtime_options_init, then change what you want. */
typedef struct kiln_runtime_options {
    size_t struct_size;
    /* KILN_BACKEND: only this one ("opencl"); comma-separated in order; NULL: any */
    const char *backend;
    const char *device; /* KILN_DEVICE: "opencl:1", index within its backend ("1"), or part of a
                           device's name in any case; NULL: any. With compile_only also the one
                           target that will be compiled for ("cuda:sm_90"): a driver that this does
                           not need stays closed */
    const char *backend_path; /* KILN_BACKEND_PATH: backends to load, file by file; NULL: none */
    bool strict;              /* KILN_STRICT: an unmet request is an error, not a warning */
    bool isolate_probe;       /* probe each backend in a child process first */
    uint32_t probe_ms;        /* time limit of an isolated probe; 0: 10 seconds */
    kiln_cache *cache; /* borrowed, must outlive the runtime; NULL: the runtime opens its own */
    const char
        *trace;   /* KILN_TRACE: a file for trace events (docs/advanced.md), emptied; NULL: none */
    bool untuned; /* KILN_UNTUNED: kiln_tuned_build always builds the baseline
                     (kiln/unstable/tune.h) */
    bool compile_only; /* for kiln_compile alone: a backend that compiles without a device is what
                          was asked for even where there is none (NVRTC without a GPU) */
    bool fresh_probe;  /* KILN_FRESH_PROBE: probe every backend, whatever is remembered of them */
    /* KILN_SKIP_PROBE: backends ("cuda,vulkan") whose drivers are opened here unseen, as a program
     * without kiln opens them: a first start saves the child process, and a driver that crashes
     * takes the program with it, once (docs/advanced.md); NULL: none */
    const char *skip_probe;
} kiln_runtime_options;

/* Fills `options` with defaults, then with what the environment says. The library learns how large
 * the caller's struct is, and writes no further: `size` is sizeof(kiln_runtime_options).
 * Threads: any, while nobody changes the environment.   Blocks: never.
 * Owns: strings borrow from the environment.
 * Fails: KILN_E_INVALID names the malformed variable; `options` then holds usable defaults. */
KILN_API KILN_MUST_CHECK kiln_status kiln_runtime_options_init_sized(kiln_runtime_options *options,
                                                                     size_t size, kiln_diag *diag);
static inline KILN_MUST_CHECK kiln_status kiln_runtime_options_init(kiln_runtime_options *options,
                                                                    kiln_diag *diag)
{
    return kiln_runtime_options_init_sized(options, sizeof(*options), diag);
}

/* Probes the backends and lists their devices. A backend that cannot work is reported, not fatal;
 * an empty list of devices is possible only when the cpu backend was not asked for. What a probe
 * found is remembered in the cache's directory: as long as the drivers are the same, the next start
 * opens the best device's backend alone, and the others when one of their devices is first used
 * (docs/advanced.md). A driver that is seen for the first time is looked at in a child process, so
 * that one that crashes or hangs is left out and reported; options->skip_probe names exceptions.
 * Threads: any.   Blocks: drivers, disk.
 * Owns: *out_runtime is yours, kiln_runtime_destroy().
 * Fails: KILN_E_INVALID (options or environment; strict, and no backend has a name that was asked
 * for), KILN_E_UNAVAILABLE (strict, and what was asked for is not there), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_runtime_create(const kiln_runtime_options *options,
                                                         kiln_runtime **out_runtime,
                                                         kiln_diag *diag);
KILN_API void kiln_runtime_destroy(kiln_runtime *runtime);

/* The cache in use, the devices found (best first), and the one line
 * "requested=… detected=[…] selected=…" that is also logged at start.
 * Threads: any.   Blocks: never.   Owns: borrowed from the runtime.
 * Fails: never; an index out of range gives NULL. */
KILN_API kiln_cache *kiln_runtime_cache(kiln_runtime *runtime);
KILN_API size_t kiln_runtime_device_count(const kiln_runtime *runtime);
KILN_API kiln_device *kiln_runtime_device(kiln_runtime *runtime, size_t index);
KILN_API const char *kiln_runtime_summary(const kiln_runtime *runtime);

/* Picks the best device that one of `sources` can run on (count 0: any device). Options and
 * environment (backend, device, strict) are obeyed as kiln_runtime_options says.
 * Threads: any.   Blocks: the driver, when it is opened only now.
 * Owns: *out_device is borrowed from the runtime.
 * Fails: KILN_E_UNAVAILABLE says what was asked for and what there is. */
KILN_API KILN_MUST_CHECK kiln_status kiln_runtime_select(kiln_runtime *runtime,
                                                         const kiln_source *sources,
                                                         size_t source_count,
                                                         kiln_device **out_device, kiln_diag *diag);

KILN_END_DECLS

#endif
