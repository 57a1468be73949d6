#include "unit/backends/lies_rig.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hal/artifact.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "sys/process.h"

#define ITEMS 64u
enum { MOST_ARGS = 8 };

static const lies_case *told;
static char program_path[4096];

static const uint64_t numbers[] = {
    0,
    1,
    3,
    17,
    257,
    UINT64_C(0x7fffffff),
    UINT64_C(0x80000000),
    UINT64_C(0xffffffff),
    UINT64_C(1) << 40,
    (UINT64_C(1) << 63) - 1,
    UINT64_MAX - 7,
    UINT64_MAX,
};

/* --- in the child ----------------------------------------------------------------------------- */

typedef struct trip {
    void *instance, *device, *queue, *program, *buffer, *event;
    kiln_target target;
    kn_artifact artifact;
} trip;

static void launch(trip *t)
{
    const kiln_device_ops *ops = told->backend->device;
    static const uint32_t one = 1;
    uint32_t data[ITEMS] = {0};
    uint64_t elapsed = 0;
    kiln_sys_arg args[MOST_ARGS];
    size_t count = 0;
    for (size_t pass = 0; pass < 2; pass++) {
        const bool values = (pass == 0) == told->values_are_first;
        for (size_t i = 0; i < (values ? told->values : told->buffers); i++) {
            args[count++] =
                values ? (kiln_sys_arg){.kind = KILN_ARG_VALUE, .value = &one, .size = sizeof(one)}
                       : (kiln_sys_arg){
                             .kind = KILN_ARG_BUFFER, .buffer = t->buffer, .size = sizeof(data)};
        }
    }
    const kiln_sys_launch request = {.program = t->program,
                                     .entry = "main",
                                     .dims = 2,
                                     .global = {8, 2, 1},
                                     .local = {0, 0, 0},
                                     .args = args,
                                     .arg_count = count};
    if (ops->buffer_create(t->device, sizeof(data), &t->buffer, NULL) != KILN_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        args[i].buffer = args[i].kind == KILN_ARG_BUFFER ? t->buffer : NULL;
    }
    if (ops->queue_write(t->queue, t->buffer, 0, data, sizeof(data), NULL, NULL) == KILN_OK &&
        ops->queue_launch(t->queue, &request, &t->event, NULL) == KILN_OK) {
        (void)ops->event_wait(t->device, t->event, NULL);
        (void)ops->event_elapsed(t->device, t->event, &elapsed, NULL);
        ops->event_destroy(t->device, t->event);
    }
    (void)ops->queue_read(t->queue, t->buffer, 0, data, sizeof(data), NULL, NULL);
    (void)ops->queue_finish(t->queue, NULL);
    ops->buffer_destroy(t->device, t->buffer);
}

static kiln_status compile(trip *t, const kiln_source *source)
{
    const kiln_compiler_ops *ops = told->backend->compiler;
    size_t count = 0;
    const kiln_stage *stages = ops->stages(t->instance, &t->target, source->language, &count);
    const kiln_compile_request request = {.stage = stages,
                                          .target = &t->target,
                                          .source = source,
                                          .device = t->device,
                                          .want_live = true};
    return count == 1 ? ops->compile(t->instance, &request, &t->artifact.base, &t->program, NULL)
                      : KILN_E_UNSUPPORTED;
}

static void load_again(trip *t, const kiln_source *source)
{
    const kiln_artifact *list[] = {&t->artifact.base};
    const kiln_load_request request = {
        .target = &t->target, .source = source, .artifacts = list, .artifact_count = 1};
    void *program = NULL;
    if (t->artifact.base.size > 0 &&
        told->backend->device->program_load(t->device, &request, &program, NULL) == KILN_OK) {
        told->backend->device->program_unload(t->device, program);
    }
}

static void use_device(trip *t, kiln_status *out_built)
{
    const kiln_device_ops *ops = told->backend->device;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = told->language;
    source.text = told->text;
    source.length = told->text_size;
    kn_artifact_init(&t->artifact);
    *out_built = compile(t, &source);
    if (t->program != NULL) {
        load_again(t, &source);
        if (ops->queue_create(t->device, &t->queue, NULL) == KILN_OK) {
            launch(t);
            ops->queue_destroy(t->device, t->queue);
        }
        ops->program_unload(t->device, t->program);
    }
    kn_artifact_deinit(&t->artifact);
}

/* Whether a device was opened; *out_built: what became of a compile for running. */
static bool go_through(kiln_status *out_built)
{
    trip t = {.instance = NULL};
    kiln_probe_report report = {0};
    kiln_device_info info = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_backend *backend = told->backend;
    *out_built = KILN_E_UNAVAILABLE;
    kiln_status status = backend->open(&kn_host, &t.instance, &report, &diag);
    if (status == KILN_OK && report.device_count > 0) {
        status = backend->device->device_info(t.instance, 0, &info, &diag);
    }
    if (status == KILN_OK) {
        status = backend->compiler->target_of_device(t.instance, 0, &t.target, &diag);
    }
    if (status == KILN_OK) {
        status = backend->device->device_open(t.instance, 0, &t.device, &diag);
    }
    const bool opened = status == KILN_OK;
    if (opened) {
        use_device(&t, out_built);
        backend->device->device_close(t.device);
    } else {
        (void)printf("%u devices, not opened: %s\n", report.device_count, diag.why);
    }
    if (t.instance != NULL) {
        backend->compiler->target_destroy(t.instance, &t.target);
        backend->close(t.instance);
    }
    kiln_diag_clear(&diag);
    return opened;
}

static bool costs_no_build(const char *query)
{
    for (const char *const *name = told->builds; *name != NULL; name++) {
        if (strcmp(*name, query) == 0) {
            return true;
        }
    }
    return false;
}

/* The last line says where it was. */
static int lie_about(const char *query)
{
    char lie[128];
    kiln_status built = KILN_OK;
    if (unsetenv("FAKE_LIE") != 0 || !go_through(&built) || built != KILN_OK) {
        (void)printf("without a lie: %s\n", kiln_status_name(built));
        return 3;
    }
    for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++) {
        kn_text_putf(lie, sizeof(lie), "%s %" PRIu64, query, numbers[n]);
        (void)printf("%s\n", lie);
        (void)fflush(stdout);
        if (setenv("FAKE_LIE", lie, 1) != 0) {
            return 1;
        }
        const bool opened = go_through(&built);
        if (costs_no_build(query) && (!opened || built != KILN_OK)) {
            (void)printf("the build failed with %s\n", kiln_status_name(built));
            return 2;
        }
    }
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static bool find_real_library(char *path, size_t size)
{
    struct link_map *map = NULL;
    void *library = dlopen(told->library, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        return false;
    }
    kn_text_put(path, size, map->l_name);
    return true;
}

static const char *last_lines(const char *output)
{
    const size_t length = output != NULL ? strlen(output) : 0;
    return length > 300 ? output + length - 300 : output != NULL ? output : "";
}

static void no_lie_of_a_driver_damages_memory(void **state)
{
    char real[4096], library[4200], path[4200];
    int bad = 0;
    if (!find_real_library(real, sizeof(real))) {
        kn_test_skip(told->name, dlerror());
    }
    kn_text_putf(library, sizeof(library), "FAKE_REAL_LIBRARY=%s", real);
    kn_text_putf(path, sizeof(path), "LD_LIBRARY_PATH=%s", told->dir);
    for (size_t i = 0; i < told->query_count; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        const char *const argv[] = {program_path, told->queries[i], NULL};
        const char *const environment[] = {library, path, NULL};
        kn_process_request request = {
            .argv = argv, .environment = environment, .limit_ns = UINT64_C(120000000000)};
        kn_process_result result = {0};
        assert_int_equal(kn_process_run(&request, &result, &diag), KILN_OK);
        if (result.exit_code == 3) {
            kn_test_skip(told->name, last_lines(result.out));
        }
        if (result.exit_code != 0 || result.signal != 0 || result.timed_out) {
            print_error("%s: exit code %d, signal %d%s after ...%s\n%s\n", told->queries[i],
                        result.exit_code, result.signal, result.timed_out ? ", too long" : "",
                        last_lines(result.out), result.err != NULL ? result.err : "");
            bad++;
        }
        kn_process_result_deinit(&result);
        kiln_diag_clear(&diag);
    }
    assert_int_equal(bad, 0);
}

int lies_run(const lies_case *what, int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_lie_of_a_driver_damages_memory)};
    told = what;
    if (argc == 2) {
        return lie_about(argv[1]);
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
