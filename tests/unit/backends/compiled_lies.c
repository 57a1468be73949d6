/* See compiled_lies.h. */
#include "unit/backends/compiled_lies.h"

#include <inttypes.h>
#include <unistd.h>

#include "sys/process.h"
#include "unit/backends/cuda/world.h"

static char program_path[4096];

static const compiled_lies *lied;

static const uint64_t numbers[] = {
    0, 1, 7, 65536, UINT64_C(0x80000000), UINT64_C(0x7878787878787878), UINT64_MAX - 1, UINT64_MAX,
};

static const char text[] = "extern \"C\" __global__ void one(int *x)\n"
                           "{\n"
                           "    x[(blockIdx.x * blockDim.x + threadIdx.x) % 64] = 1;\n"
                           "}\n";
static const char *const entries[] = {"one"};

static void launch(kiln_device *device, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    if (kiln_queue_create(device, &queue, NULL) == KILN_OK &&
        kiln_buffer_create(device, 64 * sizeof(int), &buffer, NULL) == KILN_OK) {
        const kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
        kiln_launch request = {.struct_size = sizeof(request),
                               .dims = 1,
                               .global = {64},
                               .local = {8},
                               .args = &arg,
                               .arg_count = 1};
        for (int choose = 0; choose < 2; choose++) { /* the group is the driver's to allow */
            kiln_event *event = NULL;
            uint64_t took = 0;
            request.local[0] = choose ? 0 : 8;
            if (kiln_queue_launch(queue, program, "one", &request, &event, NULL) == KILN_OK) {
                (void)!kiln_queue_finish(queue, NULL);
                (void)!kiln_event_elapsed(event, &took, NULL);
            }
            kiln_event_release(event);
        }
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
}

static void go_through(kiln_cache *cache)
{
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    kiln_program *program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = world_source(text, entries, 1);
    source.language = lied->language;
    ok(kiln_runtime_options_init(&options, NULL), &diag);
    options.cache = cache;
    options.backend = lied->backend;
    options.strict = true;
    if (kiln_runtime_create(&options, &runtime, NULL) == KILN_OK &&
        kiln_runtime_device_count(runtime) > 0) {
        kiln_device *device = kiln_runtime_device(runtime, 0);
        if (kiln_program_build(device, &source, 1, NULL, &program, NULL) == KILN_OK) {
            launch(device, program);
        }
    }
    kiln_program_release(program);
    kiln_runtime_destroy(runtime);
}

/* In memory only: no child is asked first. What a driver is asked needs one compile for all. */
static kiln_cache *open_cache(void)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    ok(kiln_cache_options_init(&options, NULL), &diag);
    options.flags |= KILN_CACHE_NO_DISK;
    ok(kiln_cache_create(&options, &cache, NULL), &diag);
    return cache;
}

/* Each lie of a compiler needs a compile of its own. */
static bool is_of_compiler(const char *query)
{
    return strncmp(query, lied->compiler, strlen(lied->compiler)) == 0;
}

static int lie_about(const char *query, const char *kind)
{
    char lie[128];
    kiln_cache *cache = open_cache();
    go_through(cache);                                 /* without a lie */
    const size_t step = is_of_compiler(query) ? 2 : 1; /* each is a compile */
    for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n += step) {
        (void)snprintf(lie, sizeof(lie), "%s %s %" PRIu64, query, kind, numbers[n]);
        (void)printf("%s\n", lie);
        (void)fflush(stdout);
        if (setenv("FAKE_LIE", lie, 1) != 0) {
            return 1;
        }
        if (is_of_compiler(query)) {
            kiln_cache_destroy(cache);
            cache = open_cache();
        }
        go_through(cache);
    }
    kiln_cache_destroy(cache);
    return 0;
}

static void no_lie_of_a_driver_damages_memory(void **state)
{
    int bad = 0;
    (void)state;
    for (size_t i = 0; lied->lies[i].query != NULL; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        const char *const argv[] = {program_path, lied->lies[i].query, lied->lies[i].kind, NULL};
        kn_process_request request = {.argv = argv, .limit_ns = UINT64_C(60000000000)};
        kn_process_result result = {0};
        ok(kn_process_run(&request, &result, &diag), &diag);
        if (result.exit_code != 0 || result.signal != 0 || result.timed_out) {
            const size_t length = result.out != NULL ? strlen(result.out) : 0;
            print_error("%s: exit code %d, signal %d%s after ...%s\n%s\n", lied->lies[i].query,
                        result.exit_code, result.signal, result.timed_out ? ", too long" : "",
                        length > 200 ? result.out + length - 200
                        : length > 0 ? result.out
                                     : "",
                        result.err != NULL ? result.err : "");
            bad++;
        }
        kn_process_result_deinit(&result);
    }
    assert_int_equal(bad, 0);
}

int compiled_lies_run(const compiled_lies *what, int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_lie_of_a_driver_damages_memory)};
    lied = what;
    if (argc == 3) {
        return lie_about(argv[1], argv[2]);
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
