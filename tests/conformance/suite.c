/* What the tests of the suite share. */
#include "conformance/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/names.h>

void suite_expect(kiln_status got, kiln_status expected, const kiln_diag *diag, const char *call,
                  const char *file, int line)
{
    if (got != expected || (expected != KILN_OK && diag->status != expected)) {
        char text[2048];
        (void)kiln_diag_format(diag, text, sizeof(text));
        print_error("%s\n  gave %s, expected %s (diag: %s)\n  %s\n%s\n", call,
                    kiln_status_name(got), kiln_status_name(expected),
                    kiln_status_name(diag->status), text, diag->log != NULL ? diag->log : "");
        _fail(file, line);
    }
    if (expected != KILN_OK && diag->why[0] == '\0') {
        print_error("%s was refused without a reason\n", call);
        _fail(file, line);
    }
}

void suite_load(const char *name, suite_sources *out)
{
    static const char *const suffixes[] = {"fake", "c", "cl", "cu", "comp"};
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char file[256];
        size_t size = 0;
        (void)snprintf(file, sizeof(file), "%s/kernels/%s.%s", KILN_CONFORMANCE_DIR, name,
                       suffixes[i]);
        char *text = kt_file_read(file, &size);
        if (text == NULL) {
            continue;
        }
        /* Named without a directory: what a test includes comes from where the test says. */
        (void)snprintf(file, sizeof(file), "%s.%s", name, suffixes[i]);
        kiln_source source = KILN_SOURCE_INIT;
        out->texts[out->count] = text;
        out->names[out->count] = strdup(file);
        assert_non_null(out->names[out->count]);
        source.language = kiln_language_of_path(file);
        source.name = out->names[out->count];
        source.text = text;
        source.length = size;
        out->sources[out->count++] = source;
    }
    assert_true(out->count > 0);
}

void suite_unload(suite_sources *sources)
{
    for (size_t i = 0; i < sources->count; i++) {
        free(sources->names[i]);
        free(sources->texts[i]);
    }
    memset(sources, 0, sizeof(*sources));
}

void suite_adorn(suite_sources *sources, const kiln_define *defines, size_t count,
                 const char *const *dir)
{
    for (size_t i = 0; i < sources->count; i++) {
        sources->sources[i].defines = defines;
        sources->sources[i].define_count = count;
        sources->sources[i].include_dirs = dir;
        sources->sources[i].include_dir_count = dir != NULL ? 1 : 0;
    }
}

static void open_runtime(suite *s, suite_fresh *fresh)
{
    kiln_runtime_options options;
    OK(kiln_runtime_options_init(&options, &diag));
    options.backend = s->backend;
    options.strict = true;
    options.cache = fresh->cache;
    OK(kiln_runtime_create(&options, &fresh->runtime, &diag));
    fresh->device = kiln_runtime_device(fresh->runtime, 0);
}

void suite_open(suite *s, const char *name, uint32_t cache_flags, suite_fresh *out)
{
    kiln_cache_options cache_options;
    char *root = kt_path(s->dir, name);
    OK(kiln_cache_options_init(&cache_options, &diag));
    cache_options.root = root;
    cache_options.flags |= cache_flags;
    OK(kiln_cache_create(&cache_options, &out->cache, &diag));
    open_runtime(s, out);
    free(root);
}

void suite_restart(suite *s, suite_fresh *fresh)
{
    kiln_runtime_destroy(fresh->runtime);
    open_runtime(s, fresh);
}

void suite_close(suite_fresh *fresh)
{
    kiln_runtime_destroy(fresh->runtime);
    kiln_cache_destroy(fresh->cache);
}

kiln_program *suite_build(kiln_device *device, const char *name, const kiln_define *defines,
                          size_t count, const char *const *dir)
{
    suite_sources sources;
    kiln_program *program = NULL;
    suite_load(name, &sources);
    suite_adorn(&sources, defines, count, dir);
    OK(kiln_program_build(device, sources.sources, sources.count, NULL, &program, &diag));
    suite_unload(&sources);
    return program;
}

bool suite_has_main(kiln_device *device)
{
    const char *backend = kiln_device_get_info(device)->backend;
    return strcmp(backend, "vulkan") == 0 || strcmp(backend, "opengl") == 0;
}

const char *suite_entry(kiln_device *device, const char *kernel)
{
    return suite_has_main(device) ? "main" : kernel;
}

kiln_program *suite_program(const suite *s, const char *kernel)
{
    if (s->shape != NULL && strcmp(kernel, "shape") == 0) {
        return s->shape;
    }
    return s->reverse != NULL && strcmp(kernel, "reverse") == 0 ? s->reverse : s->basics;
}

void suite_launch(kiln_device *device, kiln_program *program)
{
    enum { COUNT = 64 };
    static const float zeros[COUNT];
    const float factor = 2.0f;
    kiln_queue *queue = NULL;
    kiln_buffer *buffers[2] = {NULL};
    OK(kiln_queue_create(device, &queue, &diag));
    for (int i = 0; i < 2; i++) {
        OK(kiln_buffer_create(device, sizeof(zeros), &buffers[i], &diag));
        OK(kiln_queue_write(queue, buffers[i], 0, zeros, sizeof(zeros), &diag));
    }
    const kiln_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &factor, .size = sizeof(factor)},
        {.kind = KILN_ARG_BUFFER, .buffer = buffers[0]},
        {.kind = KILN_ARG_BUFFER, .buffer = buffers[1]},
    };
    const kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {COUNT}, .args = args, .arg_count = 3};
    OK(kiln_queue_launch(queue, program, suite_entry(device, "saxpy"), &launch, NULL, &diag));
    OK(kiln_queue_finish(queue, &diag));
    for (int i = 0; i < 2; i++) {
        kiln_buffer_destroy(buffers[i]);
    }
    kiln_queue_destroy(queue);
}

int suite_value(kiln_device *device, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    int value = -1;
    OK(kiln_queue_create(device, &queue, &diag));
    OK(kiln_buffer_create(device, sizeof(value), &buffer, &diag));
    kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {1}, .args = &arg, .arg_count = 1};
    OK(kiln_queue_launch(queue, program, suite_entry(device, "value"), &launch, NULL, &diag));
    OK(kiln_queue_read(queue, buffer, 0, &value, sizeof(value), &diag));
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
    return value;
}

static kiln_status count_entry(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(size_t *)user;
    return KILN_OK;
}

size_t suite_entries(kiln_cache *cache, const char *target)
{
    size_t count = 0;
    OK(kiln_cache_walk(cache, target, count_entry, &count, &diag));
    return count;
}
