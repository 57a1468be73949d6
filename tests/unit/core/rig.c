/* The fake backend's runtime, opened and closed at will. */
#include "unit/core/rig.h"
#include "support/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

const char rig_saxpy[] = "kernel saxpy a:float x:floats y:floats\ny = a x * y +\n";

void rig_expect(kiln_status got, kiln_status expected, const kiln_diag *diag, const char *call,
                const char *file, int line)
{
    if (got != expected) {
        char text[2048];
        (void)kiln_diag_format(diag, text, sizeof(text));
        print_error("%s\n  gave %s, expected %s\n  %s\n%s\n", call, kiln_status_name(got),
                    kiln_status_name(expected), text, diag->log != NULL ? diag->log : "");
        _fail(file, line);
    }
}

static void clean_environment(void)
{
    for (size_t i = 0; environ[i] != NULL;) {
        char name[64];
        size_t length = strcspn(environ[i], "=");
        if (strncmp(environ[i], "KILN_", 5) != 0 || length >= sizeof(name) ||
            strncmp(environ[i], "KILN_LIBEXEC=", 13) == 0) {
            i++;
            continue;
        }
        memcpy(name, environ[i], length);
        name[length] = '\0';
        (void)unsetenv(name);
    }
}

int rig_setup(void **state)
{
    rig *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return -1;
    }
    clean_environment();
    /* No real drivers: they leak, and are slow. */
    (void)setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    (void)setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
    r->dir = kt_tmpdir_create();
    *state = r;
    return 0;
}

int rig_teardown(void **state)
{
    rig *r = *state;
    rig_close(r);
    kt_tmpdir_remove(r->dir);
    free(r);
    clean_environment();
    return 0;
}

kiln_status rig_create(rig *r, uint32_t cache_flags, const kiln_runtime_options *options,
                       kiln_diag *why)
{
    kiln_cache_options cache_options;
    kiln_runtime_options own = *options;
    char *root = kt_path(r->dir, "cache");
    rig_close(r);
    RIG_OK(kiln_cache_options_init(&cache_options, &diag));
    cache_options.root = root;
    cache_options.flags |= cache_flags;
    cache_options.no_fsync = true;
    RIG_OK(kiln_cache_create(&cache_options, &r->cache, &diag));
    free(root);
    own.cache = r->cache;
    const kiln_status status = kiln_runtime_create(&own, &r->runtime, why);
    r->device = status == KILN_OK ? kiln_runtime_device(r->runtime, 0) : NULL;
    return status;
}

void rig_open_cache(rig *r, const char *backend, uint32_t flags)
{
    kiln_runtime_options options;
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = backend != NULL ? backend : "fake";
    options.strict = true;
    RIG_OK(rig_create(r, flags, &options, &diag));
    r->fake = r->device->driver->in.handle;
}

void rig_open(rig *r, const char *backend)
{
    rig_open_cache(r, backend, 0);
}

void rig_close(rig *r)
{
    kiln_runtime_destroy(r->runtime);
    kiln_cache_destroy(r->cache);
    r->runtime = NULL;
    r->cache = NULL;
    r->device = NULL;
    r->fake = NULL;
}

kiln_source rig_source(const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_FAKE;
    source.name = "test.fake";
    source.text = text;
    source.length = strlen(text);
    return source;
}

kiln_status rig_try(rig *r, const kiln_source *source, kiln_diag *diag)
{
    kiln_program *program = NULL;
    kiln_status status = kiln_program_build(r->device, source, 1, NULL, &program, diag);
    assert_true((status == KILN_OK) == (program != NULL));
    kiln_program_release(program);
    return status;
}

kiln_program *rig_build(rig *r, const kiln_source *source)
{
    kiln_program *program = NULL;
    RIG_OK(kiln_program_build(r->device, source, 1, NULL, &program, &diag));
    return program;
}

kiln_key rig_key(rig *r, const kiln_source *source, uint32_t *out_compiles)
{
    kiln_program *program = rig_build(r, source);
    kiln_key key = kiln_program_get_info(program)->key;
    if (out_compiles != NULL) {
        *out_compiles = kiln_program_get_info(program)->compiles;
    }
    kiln_program_release(program);
    return key;
}

uint32_t rig_compiles(rig *r, const kiln_source *source)
{
    uint32_t compiles = 0;
    (void)rig_key(r, source, &compiles);
    return compiles;
}

void rig_launch(rig *r, kiln_program *program, uint64_t global, uint64_t local)
{
    kiln_queue *queue = NULL;
    kiln_buffer *x = NULL;
    kiln_buffer *y = NULL;
    float a = 1;
    RIG_OK(kiln_queue_create(r->device, &queue, &diag));
    RIG_OK(kiln_buffer_create(r->device, global * sizeof(float), &x, &diag));
    RIG_OK(kiln_buffer_create(r->device, global * sizeof(float), &y, &diag));
    kiln_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
                       {.kind = KILN_ARG_BUFFER, .buffer = x},
                       {.kind = KILN_ARG_BUFFER, .buffer = y}};
    kiln_launch launch = {.struct_size = sizeof(launch),
                          .dims = 1,
                          .global = {global},
                          .local = {local},
                          .args = args,
                          .arg_count = 3};
    RIG_OK(kiln_queue_launch(queue, program, "saxpy", &launch, NULL, &diag));
    RIG_OK(kiln_queue_finish(queue, &diag));
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
    kiln_queue_destroy(queue);
}

void rig_read_one(rig *r, kiln_program *program, const char *entry, void *out, size_t size)
{
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    RIG_OK(kiln_queue_create(r->device, &queue, &diag));
    RIG_OK(kiln_buffer_create(r->device, size, &buffer, &diag));
    const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    const kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {1}, .args = &arg, .arg_count = 1};
    RIG_OK(kiln_queue_launch(queue, program, entry, &launch, NULL, &diag));
    RIG_OK(kiln_queue_read(queue, buffer, 0, out, size, &diag));
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
}

kt_counters rig_stats(const rig *r)
{
    kt_counters stats;
    kt_counters_own(r->cache, &stats);
    return stats;
}

uint64_t rig_calls(const rig *r, kn_fake_op op)
{
    return atomic_load(&r->fake->faults.calls[op]);
}

static char log_text[16384];
static size_t log_used;

static void take_line(void *user, kiln_log_level level, const char *line)
{
    (void)user;
    (void)level;
    int written = snprintf(log_text + log_used, sizeof(log_text) - log_used, "%s\n", line);
    if (written > 0 && (size_t)written < sizeof(log_text) - log_used) {
        log_used += (size_t)written;
    }
}

void rig_log_start(void)
{
    log_used = 0;
    log_text[0] = '\0';
    kiln_log_set(take_line, NULL, KILN_LOG_DEBUG);
}

const char *rig_log_stop(void)
{
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    return log_text;
}
