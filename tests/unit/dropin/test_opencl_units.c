/* kiln_opencl_build: strings with lengths, units compiled and linked, headers, several devices,
 * builds in the background. On fake drivers that count calls (S from source, C a unit compiled, L a
 * link, B from a binary, G a binary read), and on PoCL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/counters.h"
#include "support/tmpdir.h"
#include "sys/thread.h"
#include "unit/dropin/opencl_rig.h"

/* --- in the child: WORD ARGUMENT -------------------------------------------------------------- */

typedef struct outcome {
    kn_mutex mutex;
    kn_cond ended;
    int told;
    kiln_status status;
    cl_program program;
    char log[256];
} outcome;

static void take_outcome(void *user, kiln_status status, struct _cl_program *program,
                         const kiln_diag *diag)
{
    outcome *o = (outcome *)user;
    kn_mutex_lock(&o->mutex);
    o->told++;
    o->status = status;
    o->program = program;
    (void)snprintf(o->log, sizeof(o->log), "%s", diag->log != NULL ? diag->log : "");
    kn_cond_signal(&o->ended);
    kn_mutex_unlock(&o->mutex);
}

static kiln_status build_behind(rig_client *c, kiln_opencl_request *request,
                                cl_program *out_program, kiln_diag *diag)
{
    outcome o = {.status = KILN_E_INTERNAL};
    kn_mutex_init(&o.mutex);
    kn_cond_init(&o.ended);
    request->notify = take_outcome;
    request->user = &o;
    kiln_status status = kiln_opencl_build(c->cache, request, out_program, diag);
    kn_mutex_lock(&o.mutex);
    while (status == KILN_OK && o.told == 0) {
        kn_cond_wait(&o.ended, &o.mutex);
    }
    kn_mutex_unlock(&o.mutex);
    if (status == KILN_OK) {
        status = o.status;
        *out_program = o.program;
        kiln_diag_set_log(diag, o.log, strlen(o.log));
    }
    kn_cond_deinit(&o.ended);
    kn_mutex_deinit(&o.mutex);
    return status;
}

/* "-I" and the directory of the test, if it has one. */
static const char *dir_option(void)
{
    static char option[4200];
    const char *dir = getenv("TEST_FOLDER");
    (void)snprintf(option, sizeof(option), dir != NULL ? "-I %s" : "%s", dir != NULL ? dir : "");
    return option;
}

/* What each word asks for; `argument` goes into a text or an option. */
static kiln_status build_word(rig_client *c, const char *word, const char *argument,
                              cl_program *out_program, kiln_diag *diag)
{
    const char *const halves[] = {"int times(int x) { return x * FACTOR; }\nXXX",
                                  "__kernel void scale(__global int *d)\n"
                                  "{ d[get_global_id(0)] = times(d[get_global_id(0)]); }\n"};
    const size_t lengths[] = {strlen(halves[0]) - 3, 0};
    const char *const tail[] = {"int times(int x);\n__kernel void scale(__global int *d)\n"
                                "{ d[get_global_id(0)] = times(d[get_global_id(0)]); }\n"};
    const char *const with_header[] = {"#include \"my/factor.h\"\n__kernel void scale(__global int "
                                       "*d)\n{ d[get_global_id(0)] *= FACTOR; }\n"};
    /* 7 where numbers too small to be normal are taken for 0, else 9. */
    const char *const small[] = {
        "__kernel void scale(__global int *d) { int i = get_global_id(0);\n"
        "volatile float tiny = 1e-42f; float f = tiny * (float)d[i];\n"
        "d[i] = f * 1e20f == 0.0f ? 7 : 9; }\n"};
    const kiln_header header = {"my/factor.h", argument, strlen(argument)};
    kiln_opencl_unit units[2] = {
        {.struct_size = sizeof(units[0]), .strings = halves, .string_count = 2, .lengths = lengths},
        {.struct_size = sizeof(units[0]), .strings = tail, .string_count = 1}};
    kiln_opencl_request request = {.struct_size = sizeof(request),
                                   .context = c->context,
                                   .devices = c->devices,
                                   .device_count = c->device_count,
                                   .units = units,
                                   .unit_count = 1};
    units[0].options = argument;
    if (strcmp(word, "linked") == 0) {
        request.link = true;
    } else if (strcmp(word, "units") == 0) {
        units[0].string_count = 1;
        request.unit_count = 2;
    } else if (strcmp(word, "library") == 0) {
        request.link = true;
        request.link_options = "-create-library";
    } else if (strcmp(word, "headers") == 0) {
        units[0] = (kiln_opencl_unit){.struct_size = sizeof(units[0]),
                                      .strings = with_header,
                                      .string_count = 1,
                                      .options = dir_option(),
                                      .headers = &header,
                                      .header_count = 1};
    } else if (strcmp(word, "text") == 0) {
        units[0] = (kiln_opencl_unit){
            .struct_size = sizeof(units[0]), .strings = &argument, .string_count = 1};
        request.link = true;
    } else if (strncmp(word, "small", 5) == 0) {
        units[0] = (kiln_opencl_unit){.struct_size = sizeof(units[0]),
                                      .strings = small,
                                      .string_count = 1,
                                      .options = argument};
        request.link = strcmp(word, "small") != 0;
    } else if (strcmp(word, "none") == 0) {
        request.unit_count = 0;
    }
    return strcmp(word, "behind") == 0 ? build_behind(c, &request, out_program, diag)
                                       : kiln_opencl_build(c->cache, &request, out_program, diag);
}

static int child(const char *word, const char *argument)
{
    rig_client c;
    cl_program program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kt_counters stats;
    int value = 0;
    if (!rig_open(&c)) {
        return CHILD_NO_DEVICE;
    }
    kiln_status status = build_word(&c, word, argument, &program, &diag);
    for (cl_uint i = 0; i < c.device_count && status == KILN_OK && getenv("TEST_RUNS") != NULL;
         i++) {
        value += rig_scale(&c, c.devices[i], program);
    }
    kt_counters_own(c.cache, &stats);
    (void)printf("%s value=%d disk=%llu compiles=%llu bypassed=%llu|%s\n", kiln_status_name(status),
                 value, (unsigned long long)stats.hits_disk, (unsigned long long)stats.compiles,
                 (unsigned long long)stats.bypassed, diag.log != NULL ? diag.log : diag.why);
    if (program != NULL) {
        (void)c.api.clReleaseProgram(program);
    }
    kiln_diag_clear(&diag);
    rig_close(&c);
    return 0;
}

/* --- in the parent ---------------------------------------------------------------------------- */

static const char *pocl_devices = "basic";

static void expect(void **state, const char *word, const char *argument, const char *beginning)
{
    assert_int_equal(setenv("POCL_DEVICES", pocl_devices, 1), 0);
    assert_int_equal(child_variant == NULL ? setenv("TEST_RUNS", "1", 1) : unsetenv("TEST_RUNS"),
                     0);
    child_expect((const char *)*state, word, argument, beginning);
}

#define BUILT "KILN_OK value=0 disk=0 compiles=1 bypassed=0"
#define FOUND "KILN_OK value=0 disk=1 compiles=0 bypassed=0"

/* Compiled once, found afterwards, with these calls of the driver. */
static void expect_cached(void **state, const char *word, const char *argument, const char *made,
                          const char *loaded)
{
    expect(state, word, argument, BUILT);
    assert_string_equal(child_last.calls, made);
    expect(state, word, argument, FOUND);
    assert_string_equal(child_last.calls, loaded);
}

static void each_form_is_made_as_it_is_asked_for(void **state)
{
    child_variant = "good";
    expect_cached(state, "plain", "-DFACTOR=2", "SG", "B");
    expect_cached(state, "linked", "-DFACTOR=2", "SCLG", "B");
    expect_cached(state, "units", "-DFACTOR=2", "SCSCLG", "B");
    expect_cached(state, "headers", "#define FACTOR 3\n", "SSCLG", "B");
    expect_cached(state, "behind", "-DFACTOR=4", "SG", "B");
}

static void K3_all_parts_are_in_the_key(void **state)
{
    child_variant = "good";
    expect(state, "units", "-DFACTOR=2", BUILT);
    expect(state, "units", "-DFACTOR=3", BUILT);
    expect(state, "headers", "#define FACTOR 3\n", BUILT);
    expect(state, "headers", "#define FACTOR 4\n", BUILT);
    expect(state, "headers", "#define FACTOR 3\n", FOUND);
}

static void a_library_goes_past_the_cache(void **state)
{
    child_variant = "good";
    for (int i = 0; i < 2; i++) {
        expect(state, "library", "", "KILN_OK value=0 disk=0 compiles=0 bypassed=1");
        assert_string_equal(child_last.calls, "SCL");
    }
}

static void a_file_of_a_headers_name_goes_past_the_cache(void **state)
{
    child_variant = "good";
    char *dir = kt_at((const char *)*state, "my");
    char *file = kt_at(dir, "factor.h");
    assert_int_equal(setenv("TEST_FOLDER", (const char *)*state, 1), 0);
    expect(state, "headers", "#define FACTOR 3\n", BUILT);
    assert_int_equal(mkdir(dir, 0700), 0);
    kt_file_write(file, "", 0);
    expect(state, "headers", "#define FACTOR 3\n", "KILN_OK value=0 disk=0 compiles=0 bypassed=1");
    assert_int_equal(unsetenv("TEST_FOLDER"), 0);
}

static void all_devices_are_one_entry(void **state)
{
    child_variant = "two";
    expect_cached(state, "plain", "-DFACTOR=2", "SGG", "B");
    expect_cached(state, "units", "-DFACTOR=2", "SCSCLGG", "B");
    child_variant = "good";
    expect(state, "plain", "-DFACTOR=2", BUILT);
}

static void a_failure_gives_the_log_of_what_failed(void **state)
{
    child_variant = "good";
    expect(state, "text", "broken", "KILN_E_COMPILE value=0 disk=0 compiles=1 bypassed=0|1:1: it");
    expect(state, "text", "loose", "KILN_E_COMPILE value=0 disk=0 compiles=1 bypassed=0|an end");
    expect(state, "none", "", "KILN_E_INVALID");
    expect(state, "text", "", "KILN_E_INVALID");
}

static void with_pocl_each_form_computes_the_same(void **state)
{
    static const struct {
        const char *word, *argument;
        int value;
    } rows[] = {{"plain", "-DFACTOR=2", 20},
                {"linked", "-DFACTOR=3", 30},
                {"units", "-DFACTOR=4", 40},
                {"headers", "#define FACTOR 5\n", 50},
                {"behind", "-DFACTOR=6", 60}};
    char line[128];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int hit = 0; hit < 2; hit++) {
            (void)snprintf(line, sizeof(line), "KILN_OK value=%d disk=%d compiles=%d bypassed=0",
                           rows[i].value, hit, !hit);
            expect(state, rows[i].word, rows[i].argument, line);
        }
    }
}

/* The options of a build act on its program from the cache, too. */
static void with_pocl_options_act_on_what_is_loaded(void **state)
{
    static const char *const words[] = {"small", "small-linked"};
    static const char *const options[] = {"-cl-denorms-are-zero", "-cl-mad-enable", ""};
    for (size_t i = 0; i < 6; i++) {
        char compiled[64], loaded[64];
        expect(state, words[i % 2], options[i / 2], "KILN_OK value=");
        (void)snprintf(compiled, sizeof(compiled), "%.17s", child_last.output);
        expect(state, words[i % 2], options[i / 2], "KILN_OK value=");
        (void)snprintf(loaded, sizeof(loaded), "%.17s", child_last.output);
        assert_non_null(strstr(child_last.output, "disk=1 compiles=0"));
        print_message("%s '%s': %s\n", words[i % 2], options[i / 2], compiled);
        assert_string_equal(compiled, loaded);
    }
}

static void with_pocl_two_devices_are_loaded_together(void **state)
{
    pocl_devices = "basic basic";
    expect(state, "plain", "-DFACTOR=2", "KILN_OK value=40 disk=0 compiles=1 bypassed=0");
    expect(state, "plain", "-DFACTOR=2", "KILN_OK value=40 disk=1 compiles=0 bypassed=0");
    pocl_devices = "basic";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, child_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest on_fakes[] = {
        TEST(each_form_is_made_as_it_is_asked_for),
        TEST(K3_all_parts_are_in_the_key),
        TEST(a_library_goes_past_the_cache),
        TEST(a_file_of_a_headers_name_goes_past_the_cache),
        TEST(all_devices_are_one_entry),
        TEST(a_failure_gives_the_log_of_what_failed),
    };
    const struct CMUnitTest on_pocl[] = {
        TEST(with_pocl_each_form_computes_the_same),
        TEST(with_pocl_options_act_on_what_is_loaded),
        TEST(with_pocl_two_devices_are_loaded_together),
    };
    if (argc == 3) {
        return child(argv[1], argv[2]);
    }
    const int failures =
        child_before_pocl(cmocka_run_group_tests(on_fakes, NULL, NULL), "plain", "-DFACTOR=1");
    (void)setenv("KILN_CAPTURE", "1", 1);
    return failures + cmocka_run_group_tests(on_pocl, NULL, NULL);
}
