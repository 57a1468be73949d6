/* A runtime on the fake driver and toolkit, with a cache of its own; WORLD_BACKEND is defined
 * before it where another backend than cuda takes the texts. */
#ifndef KILN_TESTS_CUDA_WORLD_H
#define KILN_TESTS_CUDA_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"

#ifndef WORLD_BACKEND
#define WORLD_BACKEND "cuda"
#endif

typedef struct world {
    kiln_cache *cache;
    kiln_runtime *runtime;
    kiln_device *device;
    kiln_queue *queue;
} world;

static inline void ok(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char line[4096];
        (void)kiln_diag_format(diag, line, sizeof(line));
        print_error("%s: %s\n%s\n", kiln_status_name(status), line,
                    diag->log != NULL ? diag->log : "");
    }
    assert_int_equal(status, KILN_OK);
}

#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, kt_tmpdir_teardown)

/* Without a device, where `compiles_only`; the status is the runtime's. */
static inline kiln_status world_try(world *w, const char *root, bool compiles_only,
                                    kiln_diag *out_diag)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache;
    kiln_runtime_options options;
    memset(w, 0, sizeof(*w));
    ok(kiln_cache_options_init(&cache, &diag), &diag);
    cache.root = root;
    ok(kiln_cache_create(&cache, &w->cache, &diag), &diag);
    ok(kiln_runtime_options_init(&options, &diag), &diag);
    options.cache = w->cache;
    options.backend = WORLD_BACKEND;
    options.strict = true;
    options.compile_only = compiles_only;
    return kiln_runtime_create(&options, &w->runtime, out_diag);
}

static inline void world_open(world *w, const char *root)
{
    kiln_diag diag = KILN_DIAG_INIT;
    ok(world_try(w, root, false, &diag), &diag);
    w->device = kiln_runtime_device(w->runtime, 0);
    assert_non_null(w->device);
    ok(kiln_queue_create(w->device, &w->queue, &diag), &diag);
}

static inline void world_close(world *w)
{
    kiln_queue_destroy(w->queue);
    kiln_runtime_destroy(w->runtime);
    kiln_cache_destroy(w->cache);
}

static inline kiln_source world_source(const char *text, const char *const *entries, size_t count)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_CUDA;
    source.name = "test.cu";
    source.text = text;
    source.length = strlen(text);
    source.entries = entries;
    source.entry_count = count;
    return source;
}

static inline kiln_program *world_build(world *w, const kiln_source *source)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    ok(kiln_program_build(w->device, source, 1, NULL, &program, &diag), &diag);
    return program;
}

static inline bool world_blob_holds(const kiln_blob *blob, const char *text)
{
    const char *data = (const char *)kiln_blob_data(blob);
    const size_t size = kiln_blob_size(blob);
    const size_t length = strlen(text);
    for (size_t i = 0; i + length <= size; i++) {
        if (memcmp(data + i, text, length) == 0) {
            return true;
        }
    }
    return false;
}

/* --- launches --------------------------------------------------------------------------------- */

/* A program, and a launch of 64 items in groups of 8 with a buffer of 64 numbers. */
typedef struct world_run {
    world w;
    kiln_program *program;
    kiln_buffer *buffer;
    kiln_arg args[3];
    kiln_launch launch;
} world_run;

static inline void world_start(world_run *r, const char *dir, const kiln_source *source)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *root = kt_path(dir, "cache");
    world_open(&r->w, root);
    r->program = world_build(&r->w, source);
    ok(kiln_buffer_create(r->w.device, 64 * sizeof(int), &r->buffer, &diag), &diag);
    r->args[0] = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = r->buffer};
    r->launch = (kiln_launch){.struct_size = sizeof(r->launch),
                              .dims = 1,
                              .global = {64},
                              .local = {8},
                              .args = r->args,
                              .arg_count = 1};
    free(root);
}

static inline void world_end(world_run *r)
{
    kiln_program_release(r->program);
    kiln_buffer_destroy(r->buffer);
    world_close(&r->w);
}

static inline void world_launch(world_run *r, const char *entry)
{
    kiln_diag diag = KILN_DIAG_INIT;
    ok(kiln_queue_launch(r->w.queue, r->program, entry, &r->launch, NULL, &diag), &diag);
}

/* `words` are in the diag. */
static inline void world_refuse(world_run *r, const char *entry, kiln_status expected,
                                const char *words)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_queue_launch(r->w.queue, r->program, entry, &r->launch, NULL, &diag),
                     expected);
    if (strstr(diag.why, words) == NULL) {
        fail_msg("'%s' is not in: %s", words, diag.why);
    }
    kiln_diag_clear(&diag);
}

static inline void world_read(world_run *r, int values[64])
{
    kiln_diag diag = KILN_DIAG_INIT;
    ok(kiln_queue_read(r->w.queue, r->buffer, 0, values, 64 * sizeof(int), &diag), &diag);
}

/* Launches of "one" over each of these grids, whose groups are left to the backend. */
static inline void world_launch_grids(world_run *r, const uint64_t grids[][3], size_t count)
{
    int values[64];
    r->launch.dims = 3;
    r->launch.local[0] = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(r->launch.global, grids[i], sizeof(grids[i]));
        world_launch(r, "one");
    }
    world_read(r, values);
    assert_int_equal(values[0], 1);
}

#endif
