/* Environment first, command line over it. */
#include <kiln/unstable/admin.h>

#include "cli/session.h"

#include "cli/host.h"

kiln_status session_try_cache(const cmd_context *context, const session_options *options,
                              kiln_cache **out_cache, kiln_diag *diag)
{
    kiln_cache_options cache = {0};
    *out_cache = NULL;
    if (options->name_space != NULL && !host_set_variable("KILN_NAMESPACE", options->name_space)) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "--namespace", "out of memory");
    }
    kiln_status status = kiln_cache_options_init(&cache, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (options->cache_dir != NULL && *options->cache_dir == '\0') {
        /* The current directory it would be: a variable in a script that is not set. */
        return kiln_diag_set(diag, KILN_E_INVALID, "give a directory", "--cache-dir", "is empty");
    }
    if (options->cache_dir != NULL) {
        cache.root = host_absolute(context->pool, options->cache_dir);
        if (cache.root == NULL) {
            return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "--cache-dir", "out of memory");
        }
    }
    if (options->no_cache) {
        cache.flags |= KILN_CACHE_DISABLED;
    }
    if (options->no_record) {
        cache.record = NULL;
        cache.flags &= ~KILN_CACHE_KEEP_SOURCES;
    }
    return kiln_cache_create(&cache, out_cache, diag);
}

exit_code session_open_cache(const cmd_context *context, const session_options *options,
                             kiln_cache **out_cache)
{
    kiln_diag diag = KILN_DIAG_INIT;
    return session_try_cache(context, options, out_cache, &diag) == KILN_OK
               ? EXIT_FINE
               : cmd_fail(context, &diag);
}

/* Draws a bar, on a terminal, for what takes long in a walk over the cache. */
static void on_cache_progress(void *user, uint64_t done, uint64_t total)
{
    const cmd_context *context = user;
    if (done < total) {
        console_progress(context->console, (size_t)done, (size_t)total, "entries", 0.0);
    } else {
        console_progress_end(context->console);
    }
}

/* Gives the cache up. Where there was a warning, it has given the reason. */
static exit_code refuse_cache(const cmd_context *context, const char *what, kiln_cache **cache)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const char *reason = console_has_warned(context->console) ? "the warning above says why"
                                                              : kiln_cache_disk_reason(*cache);
    (void)kiln_diag_set(&diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", what, "%s",
                        reason);
    kiln_cache_destroy(*cache);
    *cache = NULL;
    return cmd_fail_as(context, EXIT_CACHE, &diag);
}

exit_code session_open_disk_to_write(const cmd_context *context, const session_options *options,
                                     kiln_cache **out_cache)
{
    exit_code code = session_open_disk(context, options, out_cache);
    if (code == EXIT_FINE && *kiln_cache_disk_reason(*out_cache) != '\0') {
        return refuse_cache(context, "the disk cache is read-only", out_cache);
    }
    return code;
}

bool session_only_reads(const kiln_cache *cache)
{
    kiln_cache_options asked = {0};
    return *kiln_cache_disk_reason(cache) != '\0' ||
           (kiln_cache_options_init(&asked, NULL) == KILN_OK &&
            (asked.flags & KILN_CACHE_READONLY) != 0);
}

exit_code session_open_disk(const cmd_context *context, const session_options *options,
                            kiln_cache **out_cache)
{
    exit_code code = session_open_cache(context, options, out_cache);
    if (code == EXIT_FINE && *kiln_cache_root(*out_cache) == '\0') {
        return refuse_cache(context, "the disk cache is off", out_cache);
    }
    if (code == EXIT_FINE) {
        kiln_cache_on_progress(*out_cache, on_cache_progress, (void *)(uintptr_t)context);
    }
    return code;
}

exit_code session_open(const cmd_context *context, const session_options *options,
                       kiln_cache **out_cache, kiln_runtime **out_runtime)
{
    *out_runtime = NULL;
    exit_code code = session_open_cache(context, options, out_cache);
    return code == EXIT_FINE ? session_open_runtime(context, options, *out_cache, out_runtime)
                             : code;
}

void session_close(kiln_cache *cache, kiln_runtime *runtime)
{
    kiln_runtime_destroy(runtime);
    kiln_cache_destroy(cache);
}

exit_code session_open_runtime(const cmd_context *context, const session_options *options,
                               kiln_cache *cache, kiln_runtime **out_runtime)
{
    return session_open_runtime_isolated(context, options, cache, false, out_runtime);
}

/* Where nothing can be remembered of a driver that crashes, a child has to show it each time. */
static bool cache_forgets(const kiln_cache *cache)
{
    return *kiln_cache_root(cache) == '\0' || *kiln_cache_disk_reason(cache) != '\0';
}

/* The command line over the environment. */
static void apply_options(const session_options *options, kiln_runtime_options *runtime)
{
    runtime->fresh_probe = runtime->fresh_probe || options->fresh_probe;
    if (options->backend != NULL) {
        runtime->backend = options->backend;
    }
    if (options->device != NULL) {
        runtime->device = options->device;
    }
    if (options->trace != NULL) {
        runtime->trace = options->trace;
    }
    runtime->compile_only = options->compile_only;
    runtime->untuned = runtime->untuned || options->untuned;
    if (options->strict || options->backend != NULL || options->device != NULL) {
        runtime->strict = true;
    }
}

exit_code session_open_runtime_isolated(const cmd_context *context, const session_options *options,
                                        kiln_cache *cache, bool isolate, kiln_runtime **out_runtime)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_runtime_options runtime = {0};
    *out_runtime = NULL;
    if (kiln_runtime_options_init(&runtime, &diag) != KILN_OK) {
        return cmd_fail(context, &diag);
    }
    runtime.cache = cache;
    host_pass_on_interrupts(); /* from here on there may be compilers */
    runtime.isolate_probe = runtime.isolate_probe || isolate || cache_forgets(cache);
    apply_options(options, &runtime);
    kiln_status status = kiln_runtime_create(&runtime, out_runtime, &diag);
    return status == KILN_OK ? EXIT_FINE : cmd_fail(context, &diag);
}
