/* A crowd of first starts on the processor: the C compiler is asked what it is by one of them, and
 * compiles once. Each start has a cache object and a runtime of its own, as processes have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/thread.h"
#include "unit/core/rig.h"

enum { CROWD = 6 };

static const char kernel[] =
    "#include <kiln_kernel.h>\n"
    "KILN_KERNEL(twice, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] *= 2; } }\n";

typedef struct start {
    const rig *r;
    kiln_origin origin;
} start;

static void start_and_build(void *user)
{
    start *s = user;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    kiln_program *program = NULL;
    char *root = kt_path(s->r->dir, "cache");
    RIG_OK(kiln_cache_options_init(&cache_options, &diag));
    cache_options.root = root;
    cache_options.no_fsync = true;
    RIG_OK(kiln_cache_create(&cache_options, &cache, &diag));
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = "cpu";
    options.strict = true;
    options.cache = cache;
    RIG_OK(kiln_runtime_create(&options, &runtime, &diag));
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_C;
    source.name = "twice.c";
    source.text = kernel;
    source.length = sizeof(kernel) - 1;
    RIG_OK(kiln_program_build(kiln_runtime_device(runtime, 0), &source, 1, NULL, &program, &diag));
    s->origin = kiln_program_get_info(program)->origin;
    kiln_program_release(program);
    kiln_runtime_destroy(runtime);
    kiln_cache_destroy(cache);
    free(root);
}

/* How many times the compiler was called with `first` as its first argument. */
static unsigned calls_with(const rig *r, const char *first)
{
    size_t size = 0;
    unsigned count = 0;
    char *path = kt_at(r->dir, "asked");
    char *text = kt_file_read(path, &size);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        count += strcmp(line, first) == 0;
    }
    free(text);
    return count;
}

static void a_crowd_asks_the_compiler_once(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "echo \"$1\" >>\"${0%/*}/asked\"\n"
                                 "[ \"$1\" != -v ] || sleep 0.2\n"
                                 "exec cc \"$@\"\n";
    const rig *r = *state;
    start crowd[CROWD];
    kn_thread *threads[CROWD] = {NULL};
    unsigned compiled = 0;
    char *compiler = kt_at(r->dir, "counting");
    kt_file_write(compiler, script, sizeof(script) - 1);
    assert_int_equal(chmod(compiler, 0700), 0);
    assert_int_equal(setenv("KILN_CC", compiler, 1), 0);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = (start){.r = r};
        RIG_OK(kn_thread_start(start_and_build, &crowd[i], &threads[i], &diag));
    }
    for (int i = 0; i < CROWD; i++) {
        kn_thread_join(threads[i]);
        compiled += crowd[i].origin == KILN_ORIGIN_COMPILED;
    }
    assert_int_equal(calls_with(r, "-v"), 1);
    /* A compiler that is a script bypasses the cache. */
    assert_int_equal(calls_with(r, "-std=c17"), CROWD);
    assert_int_equal(compiled, CROWD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_crowd_asks_the_compiler_once, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
