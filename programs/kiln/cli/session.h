/* What most commands start with: the options that choose a cache and a device, and the cache and
 * runtime opened as they say. */
#ifndef KILN_PROGRAM_SESSION_H
#define KILN_PROGRAM_SESSION_H

#include <kiln/kiln.h>

#include "cli/cmd.h"

typedef struct session_options {
    const char *cache_dir;
    const char *name_space;
    bool no_cache;
    const char *backend;
    const char *device;
    bool strict;
    bool json;
    bool untuned;      /* of the commands that have SESSION_UNTUNED_ROW */
    const char *trace; /* of the commands that have SESSION_TRACE_ROW */
    bool fresh_probe;
    bool no_record;    /* no option: set by the command that compiles a recording */
    bool compile_only; /* no option: set by the command that needs no device */
} session_options;

/* Rows for a command's table; its struct must hold a session_options named `session`. */
#define SESSION_JSON_ROW(type)                                                                     \
    {                                                                                              \
        "json", 0, OPT_FLAG, offsetof(type, session.json), NULL, "print JSON instead of tables"    \
    }
#define SESSION_CACHE_ROW(type)                                                                    \
    {"cache-dir", 0,                                                                               \
     OPT_TEXT,    offsetof(type, session.cache_dir),                                               \
     "DIR",       "use the cache in DIR (instead of $KILN_CACHE_DIR)"},                            \
    {                                                                                              \
        "namespace", 0, OPT_TEXT, offsetof(type, session.name_space), "NAME",                      \
            "use this part of the cache (instead of $KILN_NAMESPACE)"                              \
    }
#define SESSION_UNTUNED_ROW(type)                                                                  \
    {                                                                                              \
        "untuned", 0, OPT_FLAG, offsetof(type, session.untuned), NULL,                             \
            "do not use tuned variants (also $KILN_UNTUNED)"                                       \
    }
#define SESSION_TRACE_ROW(type)                                                                    \
    {                                                                                              \
        "trace", 0, OPT_TEXT, offsetof(type, session.trace), "FILE",                               \
            "write a timeline to FILE, for Perfetto (also $KILN_TRACE)"                            \
    }
#define SESSION_DEVICE_ROWS(type)                                                                  \
    {"backend", 'b',                                                                               \
     OPT_TEXT,  offsetof(type, session.backend),                                                   \
     "NAME",    "use this backend only (kiln doctor lists them)"},                                 \
        {"device", 'd',                                                                            \
         OPT_TEXT, offsetof(type, session.device),                                                 \
         "DEVICE", "opencl:0, an index, or part of a name (kiln devices)"},                        \
        {"no-cache", 0,                                                                            \
         OPT_FLAG,   offsetof(type, session.no_cache),                                             \
         NULL,       "always compile, store nothing"},                                             \
    {                                                                                              \
        "strict", 0, OPT_FLAG, offsetof(type, session.strict), NULL,                               \
            "fail instead of falling back to another device"                                       \
    }

/* Opens the cache. On success *out_cache is the caller's; on failure the message has been given, or
 * is in `diag`. */
kiln_status session_try_cache(const cmd_context *context, const session_options *options,
                              kiln_cache **out_cache, kiln_diag *diag);
exit_code session_open_cache(const cmd_context *context, const session_options *options,
                             kiln_cache **out_cache);
/* The same, but a cache without a disk tier is a failure: for the commands that look into it. */
exit_code session_open_disk(const cmd_context *context, const session_options *options,
                            kiln_cache **out_cache);
/* The same, and one that can only be read is a failure as well. */
exit_code session_open_disk_to_write(const cmd_context *context, const session_options *options,
                                     kiln_cache **out_cache);
/* Whether a cache that was opened with the environment's options writes nothing to its disk. */
bool session_only_reads(const kiln_cache *cache);
/* Opens a cache, and a runtime on it as session_open_runtime does. What was opened is the caller's
 * on failure, too: session_close, which takes NULL for either. */
exit_code session_open(const cmd_context *context, const session_options *options,
                       kiln_cache **out_cache, kiln_runtime **out_runtime);
void session_close(kiln_cache *cache, kiln_runtime *runtime);
/* Opens a runtime on `cache`. A backend or device named on the command line must be there: asking
 * for one by hand and getting another is never wanted, so this is strict. */
exit_code session_open_runtime(const cmd_context *context, const session_options *options,
                               kiln_cache *cache, kiln_runtime **out_runtime);
/* The same; with `isolate` every backend is probed in a process of its own first. */
exit_code session_open_runtime_isolated(const cmd_context *context, const session_options *options,
                                        kiln_cache *cache, bool isolate,
                                        kiln_runtime **out_runtime);

#endif
