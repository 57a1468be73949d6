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
        print_error("%s: %s\n", kiln_status_name(status), line);
    }
    assert_int_equal(status, KILN_OK);
}

static inline void world_open(world *w, const char *root)
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
    ok(kiln_runtime_create(&options, &w->runtime, &diag), &diag);
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

#endif
