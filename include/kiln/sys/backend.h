/* The contract between kiln and a backend: two tables, a COMPILER (text + target -> artifact) and a
 * DEVICE (memory, load, launch). For authors of backends; stable within a minor release.
 *
 * Rules:
 *  - An operation is required, or named by a capability bit. An optional operation is never called
 *    without its bit, even if it is not NULL; a required one is never NULL. Registration refuses a
 *    table that breaks this.
 *  - A backend knows nothing of the cache, of keys or of other backends. It names what its output
 *    depends on through `identify`; core makes the key.
 *  - Every handle is a `void *` that only the backend looks into. Out parameters are filled on
 *    success only; the caller has zeroed them.
 *  - Calls may come from any thread when KILN_CAP_ANY_THREAD is set; otherwise every call for one
 *    instance comes from one and the same thread, which core provides (but see facts_any_thread).
 *  - Diags may be NULL. Text that a backend hands over is copied by the helper functions below. */
#ifndef KILN_SYS_BACKEND_H
#define KILN_SYS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/device.h"
#include "kiln/launch.h"
#include "kiln/source.h"
#include "kiln/status.h"
#include "kiln/unstable/names.h"
#include "kiln/unstable/probe.h"
#include "kiln/unstable/reflect.h"

KILN_BEGIN_DECLS

#define KILN_BACKEND_ABI 2u

enum {
    KILN_CAP_ANY_THREAD = 1u << 0, /* calls may come from any thread */
    KILN_CAP_COMPILE_OFFLINE =
        1u << 1,                /* target_parse: compiles for named targets without a device */
    KILN_CAP_CAPTURE = 1u << 2, /* program_capture: a better artifact exists after a launch */
    KILN_CAP_FILL = 1u << 3,    /* queue_fill */
    KILN_CAP_COPY = 1u << 4,    /* queue_copy */
    KILN_CAP_REFLECT = 1u << 5, /* program_entry, program_params */
    KILN_CAP_LIVE_COMPILE =
        1u << 6, /* compile may hand over a loaded program next to the artifact */
    KILN_CAP_BUFFER_OFFSET = 1u << 7,   /* buffer arguments may have an offset */
    KILN_CAP_PARTIAL_GROUPS = 1u << 8,  /* global need not be a multiple of local */
    KILN_CAP_ON_REQUEST = 1u << 9,      /* not listed or chosen unless asked for by name */
    KILN_CAP_PRECOMPILE = 1u << 11,     /* uses a compile request's `precompile` */
    KILN_CAP_COOPERATIVE = 1u << 12,    /* launches with `cooperative` */
    KILN_CAP_CLUSTERS = 1u << 13,       /* launches with `cluster` */
    KILN_CAP_QUEUE_WAIT = 1u << 14,     /* queue_wait */
    KILN_CAP_WHOLE_PROGRAMS = 1u << 16, /* artifacts hold every kernel of the source, whatever its
                                           `entries` name: the names are part of no key */
    KILN_CAP_ASYNC_COPY =
        1u << 20, /* queue_write and queue_read with an event return before the copy is done, and
                     run in parallel with launches of other queues */
    KILN_CAP_NATIVE_MEMORY = 1u << 21, /* buffer_wrap, buffer_address */
    KILN_CAP_NATIVE_QUEUE =
        1u << 22, /* queue_wrap, queue_native, queue_mark; with KILN_CAP_QUEUE_WAIT */
    KILN_CAP_NO_DEVICES = 1u << 23,    /* it compiles and lists no device: `device` may be NULL */
    KILN_CAP_COMPILE_APART = 1u << 24, /* with compile_only its driver stays closed */
    KILN_CAP_LENT_ARTIFACT = 1u << 25, /* uses a load request's `stays` */
};

/* --- what core lends a backend ---------------------------------------------------------------- */

/* Receives the facts that identify a toolchain and a target, in a fixed order. */
typedef struct kiln_identity {
    void *sink;
    void (*text)(void *sink, const char *name, const char *value);
    /* Adds the value of an environment variable known to change code generation (absent differs
     * from empty). */
    void (*env)(void *sink, const char *variable);
} kiln_identity;

/* What the code of a device runs on: its text is KILN_IDENTITY_GPU, or anything else for code that
 * runs on the host's processor, or where nobody knows. A backend that loads code for a device
 * names it; what is not known to be a GPU's is not taken unsigned from a remote. */
#define KILN_IDENTITY_CODE "device.code"
#define KILN_IDENTITY_GPU "gpu"

/* A fact that core reads: the kernels of the artifact, a line each: the name and, if there are any,
 * a tab and the attributes, and behind these for each parameter a tab and its qualifiers (never
 * empty; of all parameters or of none). With it the entries that a source names are checked,
 * without it not. */
#define KILN_FACT_ENTRIES "entries"

/* A growing artifact. Core owns the memory; the backend appends through the host's functions. */
typedef struct kiln_artifact {
    kiln_language language; /* KILN_LANG_NONE for a driver's opaque binary */
    const void *data;
    size_t size;
    const char *log; /* compiler's warnings; NULL if none */
    /* Facts a hit must give back as a compile did: name and bytes, in order. Read with
     * host->artifact_fact. */
    void *facts;
    /* KILN_CAP_CAPTURE, next to a loaded program: there are no bytes yet, since the driver would
     * have to compile for them what nobody has launched. program_capture gives them after a launch.
     */
    bool later;
} kiln_artifact;

/* What a backend may call. */
typedef struct kiln_host {
    uint32_t abi;
    size_t size;
    /* Copies bytes, a log, a fact into the artifact; each replaces what was there under that name.
     */
    kiln_status (*artifact_set)(kiln_artifact *artifact, kiln_language language, const void *data,
                                size_t size);
    kiln_status (*artifact_set_log)(kiln_artifact *artifact, const char *log, size_t length);
    kiln_status (*artifact_set_fact)(kiln_artifact *artifact, const char *name, const void *data,
                                     size_t size);
    /* The bytes of a fact, or NULL. Borrowed from the artifact. */
    const void *(*artifact_fact)(const kiln_artifact *artifact, const char *name, size_t *out_size);
    void (*log)(kiln_log_level level, const char *line);
    /* Small facts found again in the next process (where the compiler's parts lie, say): bytes
     * under a name that starts with the backend's and may be long. They may be forgotten at any
     * time, and what comes back may be old: the backend checks it before it believes it. Both NULL
     * where core keeps nothing. memo_get gives malloc'ed bytes, or KILN_MISS; `memo` is passed
     * through. */
    void *memo;
    kiln_status (*memo_get)(void *memo, const char *name, void **out_data, size_t *out_size);
    void (*memo_put)(void *memo, const char *name, const void *data, size_t size);
    /* Nothing will run: a backend that compiles without its driver need not open it. */
    bool compile_only;
    /* Around work whose memo other processes need at the same time, and after a memo_get that gave
     * none. KILN_OK: the work is this process's, and after its memo_put comes memo_leave.
     * KILN_MISS: another has done it meanwhile, and memo_get has it. Waits for the other, half a
     * minute at most. NULL where nobody waits. */
    kiln_status (*memo_enter)(void *memo, const char *name, void **out_turn);
    void (*memo_leave)(void *memo, void *turn);
} kiln_host;

/* --- compiler --------------------------------------------------------------------------------- */

/* What code is made for. Core keeps it; `handle` is the backend's (may be NULL) and is released
 * with target_destroy. */
typedef struct kiln_target {
    char name[64]; /* directory name in the store: letters, digits, '.', '-', '_' */
    bool has_device;
    uint32_t device_index; /* valid if has_device */
    void *handle;
    bool searches_current; /* the compiler looks into the current directory before all others */
} kiln_target;

#define KILN_STAGE_MAX 4

/* One cached function of the pipeline. A backend's pipeline for a language is a fixed list of at
 * most KILN_STAGE_MAX. */
typedef struct kiln_stage {
    const char *name;  /* "opencl.binary"; part of the key */
    uint32_t revision; /* raised when the stage's output changes for the same input */
    kiln_language output;
    bool takes_source; /* first stage: defines, options, include dirs and headers apply */
    bool portable;     /* output does not depend on the target's device */
    bool needs_device; /* can only run where the device is */
} kiln_stage;

/* A file that a precompiled header would be made of, as it was when its digest was taken; size
 * UINT64_MAX: nothing may be at that path. */
typedef struct kiln_precompile_file {
    const char *path;
    uint64_t size;
    int64_t mtime_ns, ctime_ns;
    uint64_t inode;
} kiln_precompile_file;

/* KILN_CAP_PRECOMPILE: where a backend may keep a precompiled form of what a source begins with,
 * for other sources that begin so. `path` (no ending, in a private directory on disk that may be
 * emptied at any time) has a digest in its name that stands for the leading directives, all headers
 * reached, the toolchain, the target, options and defines. What is found there is right, and what
 * is put there must have been made while `files` were as they are said to be. */
typedef struct kiln_precompile {
    const char *path;
    size_t leading; /* bytes of the source before its first token that is not a directive's */
    size_t header_count;
    uint64_t header_bytes;
    const kiln_precompile_file *files;
    size_t file_count;
} kiln_precompile;

/* What a stage is to do. For a stage that takes the source, `source` is the request as the user
 * made it, with include directories to be searched in that order (the source's own directory, if it
 * has one, is already the first of them). For later stages `input` is the artifact before, and
 * `source` holds nothing but language, name and entries: nothing else is in such a stage's key. */
typedef struct kiln_compile_request {
    const kiln_stage *stage;
    const kiln_target *target;
    const kiln_source *source;
    const kiln_artifact *input; /* NULL for a first stage */
    void *device;               /* opened device, or NULL when compiling for a named target */
    /* KILN_CAP_LIVE_COMPILE, last stage: fill *out_live with a loaded program if that costs
     * nothing. It is what program_load would give for the artifact; program_load is not called
     * then. out_live is NULL unless this is set. */
    bool want_live;
    const kiln_precompile *precompile; /* NULL where nothing can be kept */
} kiln_compile_request;

/* What options change besides the code that they ask for. */
enum {
    KILN_OPTION_NOT_BESIDE = 1u << 0, /* "x.h" is not searched in the directory of its includer */
    KILN_OPTION_NAMES = 1u << 1, /* the code names files and the current directory even where no
                                    text asks for it: line information */
    KILN_OPTION_NAMES_GIVEN = 1u << 2, /* the same, but as they are given, with their directories,
                                          and not the current directory */
};

/* How a compiler searches headers, so that core can follow includes without it. All zero is the
 * safest: an include outside the request's directories bypasses the cache. */
typedef struct kiln_include_rules {
    /* The request's include dirs and system_include_dir are all that the compiler searches. */
    bool complete;
    /* An include dir that is also a system_include_dir is searched where it stands, too. */
    bool dirs_in_order;
    /* Where code names a file, it names it without its include directory. */
    bool names_relative;
    /* Without KILN_CAP_ANY_THREAD: stages, identify, system_include_dir, ships_header,
     * uncacheable_option and the two below may come from any thread all the same; they report what
     * is known and touch no context. */
    bool facts_any_thread;
    /* KILN_OPTION_ bits of a source's options. NULL: always 0. */
    uint32_t (*option_effects)(void *instance, const kiln_source *source);
    /* Names that every compile includes as <name> though no text that core sees says so, or NULL at
     * the end: by the compiler itself, or by a header that it ships. One that is nowhere is not an
     * error. NULL: none. */
    const char *(*implied_include)(void *instance, const kiln_target *target, size_t index);
} kiln_include_rules;

/* Text and target to artifact. */
typedef struct kiln_compiler_ops {
    uint32_t abi;
    size_t size;
    /* Stages for a source language on this target, first to last (at most KILN_STAGE_MAX); NULL if
     * the language is not taken; non-NULL with count 0 if there is nothing to compile (the program
     * is loaded from the source alone). */
    const kiln_stage *(*stages)(void *instance, const kiln_target *target, kiln_language language,
                                size_t *out_count);
    /* The target of a listed device. */
    kiln_status (*target_of_device)(void *instance, uint32_t device_index, kiln_target *out_target,
                                    kiln_diag *diag);
    /* KILN_CAP_COMPILE_OFFLINE: a target by name ("native", "x86-64-v3", "sm_90"). */
    kiln_status (*target_parse)(void *instance, const char *name, kiln_target *out_target,
                                kiln_diag *diag);
    void (*target_destroy)(void *instance, kiln_target *target);
    /* Emits everything a stage's output depends on besides its input and options: versions and
     * build ids of the compiler libraries that are loaded, the exact target, environment variables.
     */
    kiln_status (*identify)(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag);
    /* Directories the compiler searches by itself after the request's, or NULL at the end; whether
     * a header that kiln cannot find ships with the toolchain (its identity then covers it). */
    const char *(*system_include_dir)(void *instance, const kiln_target *target, size_t index);
    bool (*ships_header)(void *instance, const kiln_target *target, const char *name);
    /* Why these options keep a compile from being cached (they name files kiln does not follow), or
     * NULL. */
    const char *(*uncacheable_option)(void *instance, const kiln_source *source);
    /* Runs a stage. KILN_E_COMPILE with the log in diag when the kernel is at fault. */
    kiln_status (*compile)(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag);
    const kiln_include_rules *include_rules;
} kiln_compiler_ops;

/* --- device ----------------------------------------------------------------------------------- */

/* What program_load makes a program of. */
typedef struct kiln_load_request {
    const kiln_target *target;
    const kiln_source *source;             /* entries and options; text may be absent */
    const kiln_artifact *const *artifacts; /* one a stage, first to last */
    size_t artifact_count;
    bool eager; /* do now what the first launch would have to: the caller has to wait anyway */
    bool stays; /* the last artifact's bytes lie where they are until program_unload has returned;
                   with KILN_CAP_LENT_ARTIFACT only */
} kiln_load_request;

/* A launch with handles resolved; lengths and kinds have been checked by core where they could. */
typedef struct kiln_sys_arg {
    kiln_arg_kind kind;
    void *buffer; /* the backend's handle */
    size_t offset;
    const void *value;
    size_t size;
} kiln_sys_arg;

/* A launch as the queue gets it. */
typedef struct kiln_sys_launch {
    void *program;
    const char *entry;
    uint32_t dims;
    uint64_t global[3], local[3], offset[3]; /* past dims: 1, 1, 0; local all 0: choose */
    const kiln_sys_arg *args;
    size_t arg_count;
    uint32_t shared_bytes;
    bool cooperative;    /* KILN_CAP_COOPERATIVE, else false */
    uint32_t cluster[3]; /* KILN_CAP_CLUSTERS: groups in a cluster, all 0: none */
} kiln_sys_launch;

/* Memory, programs, queues and events of a device. */
typedef struct kiln_device_ops {
    uint32_t abi;
    size_t size;
    kiln_status (*device_info)(void *instance, uint32_t index, kiln_device_info *out_info,
                               kiln_diag *diag);
    kiln_status (*device_open)(void *instance, uint32_t index, void **out_device, kiln_diag *diag);
    void (*device_close)(void *device);

    /* Destroying waits for (or puts itself after) work in any queue that uses the buffer. */
    kiln_status (*buffer_create)(void *device, size_t size, void **out_buffer, kiln_diag *diag);
    void (*buffer_destroy)(void *device, void *buffer);

    /* KILN_E_REJECTED when the driver refuses the artifact; core then compiles again. */
    kiln_status (*program_load)(void *device, const kiln_load_request *request, void **out_program,
                                kiln_diag *diag);
    void (*program_unload)(void *device, void *program);
    /* KILN_CAP_CAPTURE: true when a capture now would give more than the loaded artifact had (say,
     * after a launch of a new shape); and the capture, which replaces the last stage's artifact.
     * Slow; called off the caller's thread, never twice at once for one program. */
    bool (*program_grew)(void *device, void *program);
    kiln_status (*program_capture)(void *device, void *program, kiln_artifact *artifact,
                                   kiln_diag *diag);
    /* KILN_CAP_REFLECT: names (NULL past the end) and parameters, borrowed from the program;
     * KILN_MISS for an unknown entry. */
    const char *(*program_entry)(void *device, void *program, size_t index);
    kiln_status (*program_params)(void *device, void *program, const char *entry,
                                  const kiln_param **out_params, size_t *out_count,
                                  kiln_diag *diag);

    kiln_status (*queue_create)(void *device, void **out_queue, kiln_diag *diag);
    void (*queue_destroy)(void *device, void *queue);
    /* Blocking copies when out_event is NULL; else asynchronous, data must live until the event. */
    kiln_status (*queue_write)(void *queue, void *buffer, size_t offset, const void *data,
                               size_t size, void **out_event, kiln_diag *diag);
    kiln_status (*queue_read)(void *queue, void *buffer, size_t offset, void *data, size_t size,
                              void **out_event, kiln_diag *diag);
    /* KILN_CAP_FILL, KILN_CAP_COPY. */
    kiln_status (*queue_fill)(void *queue, void *buffer, size_t offset, const void *pattern,
                              size_t pattern_size, size_t size, kiln_diag *diag);
    kiln_status (*queue_copy)(void *queue, void *from, size_t from_offset, void *to,
                              size_t to_offset, size_t size, kiln_diag *diag);
    kiln_status (*queue_launch)(void *queue, const kiln_sys_launch *launch, void **out_event,
                                kiln_diag *diag);
    kiln_status (*queue_finish)(void *queue, kiln_diag *diag);
    /* KILN_CAP_QUEUE_WAIT: what is put into the queue from now on begins after `event`, which is of
     * another queue of the same device and may be destroyed right after. The host does not wait. */
    kiln_status (*queue_wait)(void *queue, void *event, kiln_diag *diag);

    /* done: without waiting. wait: until done; the work's own failure. elapsed: device time in ns.
     */
    bool (*event_done)(void *device, void *event);
    kiln_status (*event_wait)(void *device, void *event, kiln_diag *diag);
    kiln_status (*event_elapsed)(void *device, void *event, uint64_t *out_ns, kiln_diag *diag);
    void (*event_destroy)(void *device, void *event);

    /* KILN_CAP_NATIVE_MEMORY: a buffer over memory that others own and that outlives it:
     * buffer_destroy frees nothing of it and need not wait. KILN_E_INVALID for an address that the
     * device cannot reach, where it can tell. And where a buffer's first byte lies, in the terms of
     * the device's own interface. */
    kiln_status (*buffer_wrap)(void *device, uint64_t address, size_t size, void **out_buffer,
                               kiln_diag *diag);
    uint64_t (*buffer_address)(void *device, void *buffer);
    /* KILN_CAP_NATIVE_QUEUE: a queue in a stream that others own and that outlives it:
     * queue_destroy leaves it alone; the stream of any queue; and an event that is done when all
     * that is in the queue by now is, for queue_wait. */
    kiln_status (*queue_wrap)(void *device, uint64_t native, void **out_queue, kiln_diag *diag);
    uint64_t (*queue_native)(void *device, void *queue);
    kiln_status (*queue_mark)(void *queue, void **out_event, kiln_diag *diag);
} kiln_device_ops;

/* --- backend ---------------------------------------------------------------------------------- */

/* What decides what `open` finds. With it core remembers what was found, and starts without opening
 * the backend until one of its devices is used, for as long as nothing here, none of the files that
 * were mapped then and none of the system's directories of libraries has changed. Lists end with
 * NULL.
 */
typedef struct kiln_probe_basis {
    /* Environment variables; "MESA_*": all that begin so. Directories and sizes of drivers' own
     * caches (MESA_SHADER_CACHE_DIR) are left out of it. */
    const char *const *variables;
    /* Files and directories: "/etc/x" that file's or directory's own facts, "/etc/x/" those of
     * everything in it too, "/dev/x*" those of all whose names begin so, "$NAME/x" the same for
     * each path in a variable's colon-separated list. Files of /proc and /sys are read. */
    const char *const *places;
    /* It loads a driver that others made: the first look at one is taken in a child process. */
    bool foreign;
} kiln_probe_basis;

/* A backend: its name and its two tables. */
typedef struct kiln_backend {
    uint32_t abi;
    size_t size;
    const char *name;    /* lower case, a directory of src/apis */
    const char *summary; /* one line for `kiln devices` */
    uint32_t caps;
    const kiln_compiler_ops *compiler;
    const kiln_device_ops *device; /* NULL with KILN_CAP_NO_DEVICES */
    /* Opens vendor libraries and lists devices. Fills `report` (outcome, library, version, why,
     * fix, device_count) in every case; KILN_OK with an instance when it can at least compile. */
    kiln_status (*open)(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                        kiln_diag *diag);
    void (*close)(void *instance);
    const kiln_probe_basis *basis; /* NULL: opened at every start */
} kiln_backend;

/* What a backend in a file of its own ($KILN_BACKEND_PATH) exports as `kiln_backend_entry`. */
typedef const kiln_backend *kiln_backend_entry_fn(void);

/* Adds a backend to this process, before or after the built-in ones. For programs that link one in.
 * Threads: any.   Blocks: never.
 * Owns: `backend` must live as long as the process.
 * Fails: KILN_E_INVALID names the operation that is missing or the ABI that does not fit;
 * KILN_E_BUSY when the name is taken. */
KILN_API KILN_MUST_CHECK kiln_status kiln_backend_register(const kiln_backend *backend,
                                                           kiln_diag *diag);

KILN_END_DECLS

#endif
