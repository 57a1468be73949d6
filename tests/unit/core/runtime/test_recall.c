/* The remembered probe: who is opened at a start, that selection gives the answer of a full probe,
 * and that nothing old is believed. Three copies of the fake backend stand for three drivers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/probe.h>

#include "core/runtime/surroundings.h"
#include "sys/file.h"
#include "unit/core/rig.h"

enum { DRIVERS = 3 };

static const char *const names[DRIVERS] = {"alpha", "beta", "gamma"};
static const kiln_device_class classes[DRIVERS] = {KILN_DEVICE_SOFTWARE, KILN_DEVICE_DISCRETE,
                                                   KILN_DEVICE_INTEGRATED};
static const kiln_language languages[DRIVERS] = {KILN_LANG_FAKE, KILN_LANG_GLSL, KILN_LANG_PTX};

static kiln_backend backends[DRIVERS];
static kiln_device_ops device_ops[DRIVERS];
static kiln_compiler_ops compiler_ops[DRIVERS];
static unsigned opens[DRIVERS];
static bool refuses[DRIVERS];   /* the next opens fail */
static unsigned fewer[DRIVERS]; /* devices that are gone */

static kiln_status open_at(int n, const kiln_host *host, void **out_instance,
                           kiln_probe_report *report, kiln_diag *diag)
{
    opens[n]++;
    if (refuses[n]) {
        report->outcome = KILN_PROBE_NO_DEVICE;
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, names[n], "it is gone");
    }
    kiln_status status = kn_fake_open(host, out_instance, report, diag);
    if (status == KILN_OK) {
        kn_fake_instance *instance = *out_instance;
        instance->devices -= fewer[n];
        report->device_count = instance->devices;
    }
    return status;
}

static kiln_status info_at(int n, void *instance, uint32_t index, kiln_device_info *out_info,
                           kiln_diag *diag)
{
    kiln_status status = kn_fake_device_info(instance, index, out_info, diag);
    out_info->device_class = classes[n];
    (void)snprintf(out_info->name, sizeof(out_info->name), "%s %u", names[n], (unsigned)index);
    return status;
}

static const kiln_stage *stages_at(int n, void *instance, const kiln_target *target,
                                   kiln_language language, size_t *out_count)
{
    const kiln_stage *stages = kn_fake_stages(instance, target, KILN_LANG_FAKE, out_count);
    return language == languages[n] ? stages : NULL;
}

#define DRIVER(n)                                                                                  \
    static kiln_status open_##n(const kiln_host *host, void **out, kiln_probe_report *report,      \
                                kiln_diag *diag)                                                   \
    {                                                                                              \
        return open_at(n, host, out, report, diag);                                                \
    }                                                                                              \
    static kiln_status info_##n(void *instance, uint32_t index, kiln_device_info *info,            \
                                kiln_diag *diag)                                                   \
    {                                                                                              \
        return info_at(n, instance, index, info, diag);                                            \
    }                                                                                              \
    static const kiln_stage *stages_##n(void *instance, const kiln_target *target,                 \
                                        kiln_language language, size_t *count)                     \
    {                                                                                              \
        return stages_at(n, instance, target, language, count);                                    \
    }
DRIVER(0)
DRIVER(1)
DRIVER(2)

static const char *const variables[] = {"KILN_FAKE*", "KILN_TEST_ICD", "MESA_*", "CUDA_*",
                                        "POCL_*",     "__GL*",         NULL};
static const char *const places[] = {"$KILN_TEST_ICD/", NULL};
static const kiln_probe_basis basis = {variables, places, false};

static void register_drivers(void)
{
    backends[0].open = open_0;
    backends[1].open = open_1;
    backends[2].open = open_2;
    device_ops[0].device_info = info_0;
    device_ops[1].device_info = info_1;
    device_ops[2].device_info = info_2;
    compiler_ops[0].stages = stages_0;
    compiler_ops[1].stages = stages_1;
    compiler_ops[2].stages = stages_2;
}

static int register_all(void **state)
{
    (void)state;
    for (int i = 0; i < DRIVERS; i++) {
        backends[i] = kn_backend_fake;
        backends[i].name = names[i];
        backends[i].basis = &basis;
        device_ops[i] = *kn_backend_fake.device;
        compiler_ops[i] = *kn_backend_fake.compiler;
        backends[i].device = &device_ops[i];
        backends[i].compiler = &compiler_ops[i];
    }
    register_drivers();
    for (int i = 0; i < DRIVERS; i++) {
        if (kiln_backend_register(&backends[i], NULL) != KILN_OK) {
            return -1;
        }
    }
    return 0;
}

/* The directories of libraries are the machine's own. */
static char *system_before;

static char *describe_system(void)
{
    static const char *const none[] = {NULL};
    const kiln_probe_basis nothing = {none, none, false};
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    kn_surroundings_describe(&text, &nothing);
    char *copy = strdup(kn_strbuf_text(&text));
    kn_strbuf_deinit(&text);
    assert_non_null(copy);
    return copy;
}

/* Where packages are installed next to the test, every start probes again, as it should. */
static void skip_if_the_system_changed(void)
{
    char *now = describe_system();
    const bool changed = strcmp(now, system_before) != 0;
    free(now);
    if (changed) {
        print_message("SKIP: libraries were installed beside the test\n");
        skip();
    }
}

#define assert_opens(found, expected)                                                              \
    do {                                                                                           \
        if ((found) != (expected)) {                                                               \
            skip_if_the_system_changed();                                                          \
        }                                                                                          \
        assert_int_equal(found, expected);                                                         \
    } while (0)

static int setup(void **state)
{
    system_before = describe_system();
    memset(opens, 0, sizeof(opens));
    memset(refuses, 0, sizeof(refuses));
    memset(fewer, 0, sizeof(fewer));
    int result = rig_setup(state);
    rig *r = *state;
    char *icd = kt_at(r->dir, "icd");
    (void)kn_file_make_dir(icd, NULL);
    (void)setenv("KILN_TEST_ICD", icd, 1);
    return result;
}

static int teardown(void **state)
{
    free(system_before);
    return rig_teardown(state);
}

/* A process: the runtime on the directory's cache. */
static kiln_status start_asking(rig *r, const char *backend, const char *device, bool strict,
                                bool fresh, kiln_diag *why)
{
    kiln_runtime_options options;
    memset(opens, 0, sizeof(opens));
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    options.backend = backend;
    options.device = device;
    options.strict = strict;
    options.fresh_probe = fresh;
    return rig_create(r, 0, &options, why);
}

static void start(rig *r)
{
    RIG_OK(start_asking(r, "alpha,beta,gamma", NULL, false, false, &diag));
}

static unsigned all_opens(void)
{
    return opens[0] + opens[1] + opens[2];
}

static const kiln_probe_report *report_of(rig *r, const char *name)
{
    const kiln_probe_report *report = NULL;
    for (size_t i = 0; (report = kiln_runtime_get_report(r->runtime, i)) != NULL; i++) {
        if (strcmp(report->backend, name) == 0) {
            return report;
        }
    }
    fail_msg("no report of %s", name);
    return NULL;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void only_the_chosen_backend_is_opened(void **state)
{
    rig *r = *state;
    start(r);
    assert_opens(all_opens(), DRIVERS);
    assert_false(report_of(r, "gamma")->remembered);
    char *first = strdup(kiln_runtime_summary(r->runtime));
    start(r);
    assert_string_equal(kiln_runtime_summary(r->runtime), first);
    free(first);
    assert_opens(opens[0], 1); /* asked for first */
    assert_opens(all_opens(), 1);
    assert_false(report_of(r, "alpha")->remembered);
    assert_true(report_of(r, "gamma")->remembered);
    assert_int_equal(report_of(r, "gamma")->outcome, KILN_PROBE_READY);
    assert_int_equal(report_of(r, "gamma")->device_count, 2);
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2 * DRIVERS);
}

static void another_backend_opens_when_it_is_used(void **state)
{
    rig *r = *state;
    start(r);
    start(r);
    kiln_source source = rig_source(rig_saxpy);
    source.language = KILN_LANG_PTX;
    kiln_device *device = NULL;
    RIG_OK(kiln_runtime_select(r->runtime, &source, 1, &device, &diag));
    assert_string_equal(kiln_device_get_info(device)->name, "gamma 0");
    assert_opens(opens[1], 0);
    assert_opens(opens[2], 1);
    /* A device taken from the list by hand, too. */
    kiln_queue *queue = NULL;
    kiln_device *by_hand = NULL;
    for (size_t i = 0; i < kiln_runtime_device_count(r->runtime); i++) {
        kiln_device *one = kiln_runtime_device(r->runtime, i);
        if (strcmp(kiln_device_get_info(one)->backend, "beta") == 0) {
            by_hand = one;
        }
    }
    assert_non_null(by_hand);
    RIG_OK(kiln_queue_create(by_hand, &queue, &diag));
    kiln_queue_destroy(queue);
    assert_opens(opens[1], 1);
    assert_opens(all_opens(), DRIVERS);
    kiln_blob *blob = NULL;
    source.language = KILN_LANG_PTX;
    RIG_OK(kiln_compile(r->runtime, "gamma:1", &source, &blob, NULL, &diag));
    kiln_blob_release(blob);
    assert_opens(all_opens(), DRIVERS);
}

typedef struct answer {
    kiln_status created, selected;
    char summary[2048];
    char name[256];
} answer;

static answer ask(rig *r, const char *backend, const char *device, bool strict, bool fresh,
                  kiln_language language)
{
    answer a = {.selected = KILN_MISS};
    kiln_diag why = KILN_DIAG_INIT;
    kiln_device *chosen = NULL;
    kiln_source source = rig_source(rig_saxpy);
    source.language = language;
    a.created = start_asking(r, backend, device, strict, fresh, &why);
    kiln_diag_clear(&why);
    if (a.created == KILN_OK) {
        (void)snprintf(a.summary, sizeof(a.summary), "%s", kiln_runtime_summary(r->runtime));
        a.selected =
            kiln_runtime_select(r->runtime, &source, language != KILN_LANG_NONE, &chosen, &why);
        kiln_diag_clear(&why);
    }
    if (chosen != NULL) {
        (void)snprintf(a.name, sizeof(a.name), "%s", kiln_device_get_info(chosen)->name);
    }
    return a;
}

/* Everything that can be asked for, from memory and by a full probe. */
static void selection_gives_the_answer_of_a_full_probe(void **state)
{
    static const char *const asked[] = {"alpha,beta,gamma", "gamma,alpha,beta", "beta",
                                        "beta,gamma",       "nothing,gamma",    "nothing"};
    static const char *const devices[] = {NULL, "1", "beta:1", "delta"};
    static const kiln_language sources[] = {KILN_LANG_NONE, KILN_LANG_GLSL, KILN_LANG_CUDA};
    rig *r = *state;
    unsigned saved = 0;
    start(r);
    for (size_t b = 0; b < sizeof(asked) / sizeof(asked[0]); b++) {
        for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
            for (size_t s = 0; s < sizeof(sources) / sizeof(sources[0]); s++) {
                const bool strict = (b + d + s) % 2 == 0;
                answer full = ask(r, asked[b], devices[d], strict, true, sources[s]);
                const unsigned by_probe = all_opens();
                answer recalled = ask(r, asked[b], devices[d], strict, false, sources[s]);
                saved += by_probe > all_opens();
                assert_int_equal(recalled.created, full.created);
                assert_int_equal(recalled.selected, full.selected);
                assert_string_equal(recalled.summary, full.summary);
                assert_string_equal(recalled.name, full.name);
            }
        }
    }
    if (saved < 20) {
        skip_if_the_system_changed();
    }
    assert_true(saved >= 20);
}

static void write_icd(rig *r, const char *name, const char *text)
{
    char *icd = kt_at(r->dir, "icd");
    char *path = kt_at(icd, name);
    kt_file_write(path, text, strlen(text));
}

/* Names a library by its whole path, which is not there yet; or puts it there. */
static void install_late(rig *r, bool library)
{
    char text[512];
    char *path = kt_at(r->dir, "libfar.so");
    (void)snprintf(text, sizeof(text), "{\"library_path\": \"%s\"}\n", path);
    if (library) {
        kt_file_write(path, "", 0);
    } else {
        write_icd(r, "far.json", text);
    }
}

/* What decides a probe changes: everything is probed again, and remembered again. */
static void a_change_around_a_driver_is_probed_again(void **state)
{
    rig *r = *state;
    start(r);
    for (int change = 0; change < 7; change++) {
        start(r);
        assert_opens(all_opens(), 1);
        switch (change) {
        case 0:
            assert_int_equal(setenv("KILN_FAKE_DRIVER", "2.0", 1), 0);
            break;
        case 1:
            write_icd(r, "new.icd", "libnew.so");
            break;
        case 2:
            write_icd(r, "new.icd", "libnewer.so"); /* other bytes, same name */
            break;
        case 3: {
            char *icd = kt_at(r->dir, "icd");
            char *path = kt_at(icd, "new.icd");
            assert_int_equal(remove(path), 0);
            break;
        }
        case 4:
        case 5:
            install_late(r, change == 5);
            break;
        default:
            assert_int_equal(unsetenv("KILN_TEST_ICD"), 0);
            break;
        }
        start(r);
        assert_opens(all_opens(), DRIVERS);
        if (change == 0) {
            assert_string_equal(kiln_device_get_info(kiln_runtime_device(r->runtime, 0))->driver,
                                "2.0");
        }
    }
    start(r);
    assert_opens(all_opens(), 1);
}

static void a_dir_of_the_drivers_own_cache_is_no_change(void **state)
{
    static const struct {
        const char *name;
        bool counts;
    } changes[] = {{"MESA_SHADER_CACHE_DIR", false},
                   {"MESA_SHADER_CACHE_MAX_SIZE", false},
                   {"MESA_GLSL_CACHE_DIR", false},
                   {"CUDA_CACHE_PATH", false},
                   {"__GL_SHADER_DISK_CACHE_PATH", false},
                   {"MESA_SHADER_CACHE_DIRS", true},
                   {"MESA_SHADER_CACHE", true},
                   {"MESA_SHADER_CACHE_DISABLE", true},
                   {"MESA_EXTENSION_OVERRIDE", true},
                   {"POCL_CACHE_DIR", true}};
    rig *r = *state;
    start(r);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        assert_int_equal(setenv(changes[i].name, r->dir, 1), 0);
        start(r);
        assert_opens(all_opens(), changes[i].counts ? DRIVERS : 1);
        start(r);
        assert_opens(all_opens(), 1);
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        assert_int_equal(unsetenv(changes[i].name), 0);
    }
}

static void a_device_that_went_is_not_listed(void **state)
{
    rig *r = *state;
    start(r);
    fewer[0] = 1; /* nothing else shows it */
    start(r);
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2 * DRIVERS - 1);
    assert_opens(opens[0], 2); /* as remembered, then as it is */
    assert_opens(opens[1], 1);
    start(r);
    assert_opens(all_opens(), 1);
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2 * DRIVERS - 1);
}

static void what_does_not_open_is_not_trusted(void **state)
{
    rig *r = *state;
    kiln_device *device = NULL;
    start(r);
    refuses[0] = true;
    start(r);
    RIG_OK(kiln_runtime_select(r->runtime, NULL, 0, &device, &diag));
    assert_string_equal(kiln_device_get_info(device)->backend, "beta");
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2 * (DRIVERS - 1));
    assert_int_equal(report_of(r, "alpha")->outcome, KILN_PROBE_NO_DEVICE);
}

/* Not the chosen one, so that it shows only when it is used. */
static void a_later_one_that_does_not_open_is_passed_over(void **state)
{
    rig *r = *state;
    kiln_device *device = NULL;
    kiln_source sources[] = {rig_source(rig_saxpy), rig_source(rig_saxpy)};
    sources[0].language = KILN_LANG_GLSL; /* beta alone */
    sources[1].language = KILN_LANG_PTX;  /* gamma alone */
    start(r);
    refuses[1] = true;
    start(r);
    RIG_OK(kiln_runtime_select(r->runtime, sources, 2, &device, &diag));
    assert_string_equal(kiln_device_get_info(device)->backend, "gamma");
    kiln_queue *queue = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    for (size_t i = 0; i < kiln_runtime_device_count(r->runtime); i++) {
        device = kiln_runtime_device(r->runtime, i);
        if (strcmp(kiln_device_get_info(device)->backend, "beta") == 0) {
            assert_int_equal(kiln_queue_create(device, &queue, &why), KILN_E_UNAVAILABLE);
            assert_true(why.why[0] != '\0');
            kiln_diag_clear(&why);
        }
    }
    assert_opens(opens[1], 1); /* tried once */
    start(r);                  /* forgotten: beta is asked again */
    assert_int_equal(kiln_runtime_device_count(r->runtime), 2 * (DRIVERS - 1));
}

typedef struct damage {
    const char *dir;
    unsigned done;
} damage;

static kiln_status damage_one(void *user, const char *name)
{
    damage *d = user;
    char *path = kt_at(d->dir, name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 200, SEEK_SET), 0);
    assert_int_equal(fputc(0x5a, file), 0x5a);
    assert_int_equal(fputc(0xa5, file), 0xa5);
    assert_int_equal(fclose(file), 0);
    d->done++;
    return KILN_OK;
}

static void damaged_records_are_no_records(void **state)
{
    rig *r = *state;
    start(r);
    rig_close(r);
    char *probes = kt_at(r->dir, "cache/probes");
    damage d = {probes, 0};
    RIG_OK(kn_file_list(probes, damage_one, &d, &diag));
    assert_true(d.done >= 1 && d.done <= DRIVERS);
    start(r);
    assert_opens(all_opens(), DRIVERS);
    start(r);
    assert_opens(all_opens(), 1);
}

static void without_a_dir_nothing_is_remembered(void **state)
{
    rig *r = *state;
    for (int i = 0; i < 2; i++) {
        memset(opens, 0, sizeof(opens));
        rig_open_cache(r, "alpha,beta,gamma", KILN_CACHE_NO_DISK);
        assert_opens(all_opens(), DRIVERS);
        rig_close(r);
    }
}

static void a_fresh_probe_can_be_asked_for(void **state)
{
    rig *r = *state;
    start(r);
    assert_int_equal(setenv("KILN_FRESH_PROBE", "1", 1), 0);
    kiln_runtime_options options;
    RIG_OK(kiln_runtime_options_init(&options, &diag));
    assert_true(options.fresh_probe);
    RIG_OK(start_asking(r, "alpha,beta,gamma", NULL, false, options.fresh_probe, &diag));
    assert_opens(all_opens(), DRIVERS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_the_chosen_backend_is_opened),
        TEST(another_backend_opens_when_it_is_used),
        TEST(selection_gives_the_answer_of_a_full_probe),
        TEST(a_change_around_a_driver_is_probed_again),
        TEST(a_dir_of_the_drivers_own_cache_is_no_change),
        TEST(a_device_that_went_is_not_listed),
        TEST(what_does_not_open_is_not_trusted),
        TEST(a_later_one_that_does_not_open_is_passed_over),
        TEST(damaged_records_are_no_records),
        TEST(without_a_dir_nothing_is_remembered),
        TEST(a_fresh_probe_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, register_all, NULL);
}
