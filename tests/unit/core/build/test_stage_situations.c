/* The situations of tests/unit/engine/situations.c, for the frontend of the runtime's stages: the
 * fake backend, whose two stages are one here, so that a program is one compile. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "unit/core/rig.h"
#include "unit/engine/situations.h"

/* --- the process and its driver --------------------------------------------------------------- */

static kiln_runtime *runtime_now;
static _Thread_local char origin_now[16];

/* What the next compile or load does; it is taken back then. */
static struct {
    _Atomic unsigned compiles;
    kiln_status loads; /* not KILN_OK: the next load gives that */
    _Atomic bool fails, replaced, includes, odd, live, later;
    void (*during)(void);
} real;

static kiln_backend whole;
static kiln_compiler_ops whole_compiler;
static kiln_device_ops whole_device;

static const kiln_stage *find_stage(void *instance, const kiln_target *target,
                                    kiln_language language, size_t *out_count)
{
    static const kiln_stage stage = {.name = "whole.binary", .revision = 1, .takes_source = true};
    (void)instance, (void)target;
    *out_count = 1;
    return language == KILN_LANG_FAKE ? &stage : NULL;
}

/* Leaves a loaded program, and no bytes of it. */
static void withhold_bytes(kiln_artifact *artifact, void *const *live)
{
    assert_non_null(*live);
    artifact->data = NULL;
    artifact->size = 0;
    artifact->later = real.later;
    real.live = real.later = false;
}

static kiln_status compile_whole(void *instance, const kiln_compile_request *request,
                                 kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    static const kiln_stage stages[] = {{.takes_source = true}, {.takes_source = false}};
    kn_fake_instance *fake = instance;
    kn_artifact code;
    void (*during)(void) = real.during;
    real.compiles++;
    if (during != NULL) {
        real.during = NULL;
        during();
    }
    if (real.replaced) {
        real.replaced = false;
        kn_text_put(fake->build, sizeof(fake->build), "another");
    }
    if (real.fails) {
        return kiln_diag_set(diag, KILN_E_COMPILE, NULL, "whole", "told to fail");
    }
    kiln_compile_request part = *request;
    part.stage = &stages[0];
    part.want_live = false;
    kn_artifact_init(&code);
    kiln_status status = kn_fake_compile(instance, &part, &code.base, NULL, diag);
    if (status == KILN_OK) {
        part = *request;
        part.stage = &stages[1];
        part.input = &code.base;
        status = kn_fake_compile(instance, &part, artifact, out_live, diag);
    }
    kn_artifact_deinit(&code);
    if (status == KILN_OK && real.live) {
        withhold_bytes(artifact, out_live);
    }
    return status;
}

static kiln_status load_whole(void *device, const kiln_load_request *request, void **out_program,
                              kiln_diag *diag)
{
    const kiln_status status = real.loads;
    if (status != KILN_OK) {
        real.loads = KILN_OK;
        return kiln_diag_set(diag, status, NULL, "whole", "told so");
    }
    return kn_fake_program_load(device, request, out_program, diag);
}

static int register_backend(void **state)
{
    whole_compiler = *kn_backend_fake.compiler;
    whole_compiler.stages = find_stage;
    whole_compiler.compile = compile_whole;
    whole_device = *kn_backend_fake.device;
    whole_device.program_load = load_whole;
    whole = kn_backend_fake;
    whole.name = "whole";
    whole.compiler = &whole_compiler;
    whole.device = &whole_device;
    return kiln_backend_register(&whole, NULL) == KILN_OK ? rig_setup(state) : -1;
}

/* --- a program -------------------------------------------------------------------------------- */

static char *header, *directory;

static void begin(const char *dir)
{
    memset(&real, 0, sizeof(real));
    header = kt_path(dir, "value.h");
    directory = kt_path(dir, ".");
}

static void end(void)
{
    free(header);
    free(directory);
}

/* Another process, whose header is as it was. */
static void use_cache(kiln_cache *cache)
{
    kiln_runtime_options options;
    kiln_runtime_destroy(runtime_now);
    runtime_now = NULL;
    if (cache != NULL) {
        kt_file_write(header, "#define VALUE 1\n", 16);
        RIG_OK(kiln_runtime_options_init(&options, &diag));
        options.backend = "whole";
        options.strict = true;
        options.cache = cache;
        RIG_OK(kiln_runtime_create(&options, &runtime_now, &diag));
    }
}

static void see_build(void *user, const kn_build *build)
{
    (void)user;
    kn_text_put(origin_now, sizeof(origin_now), kn_job_origin(&build->job));
}

static void check_program(const kiln_program *program, bool other)
{
    const kn_fake_program *made = program->handle;
    assert_int_equal(made->code.kernel_count, 1);
    assert_string_equal(made->code.kernels[0].name, other ? "another" : "one");
}

/* Without an include no list of headers is stored, which would count. */
static const char *choose_text(bool other)
{
    if (other) {
        return "kernel another out:ints\nout = 1\n";
    }
    return real.includes ? "#include \"value.h\"\nkernel one out:ints\nout = VALUE\n"
                         : "kernel one out:ints\nout = 1\n";
}

static kiln_status expect_status(void)
{
    if (real.fails) {
        return KILN_E_COMPILE;
    }
    return real.loads != KILN_E_REJECTED ? real.loads : KILN_OK;
}

static void compile_program(bool other)
{
    const char *dirs[] = {directory};
    const char *option = "-file=a";
    kn_build_extra extra = {.seen = see_build};
    kiln_program *program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_source source = rig_source(choose_text(other));
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    source.options = &option;
    source.option_count = real.odd ? 1 : 0;
    const kiln_status expected = expect_status();
    const kiln_status status = kn_build_program(kiln_runtime_device(runtime_now, 0), &source, NULL,
                                                &extra, &program, &diag);
    rig_expect(status, expected, &diag, "kn_build_program", __FILE__, __LINE__);
    if (status == KILN_OK) {
        check_program(program, other);
        kiln_program_release(program);
    } else {
        kn_text_put(origin_now, sizeof(origin_now), "failed");
    }
    if (real.odd || real.fails) { /* two threads only read them */
        real.odd = real.fails = false;
    }
    kiln_diag_clear(&diag);
}

static unsigned count_compiles(void)
{
    return real.compiles;
}

static void call_during(void (*call)(void))
{
    real.during = call;
}

static const char *find_origin(void)
{
    return origin_now;
}

/* --- events ----------------------------------------------------------------------------------- */

static void refuse_load(void)
{
    real.loads = KILN_E_REJECTED;
}

static void fail_load(void)
{
    real.loads = KILN_E_DEVICE_LOST;
}

static void write_header(void)
{
    kt_file_write(header, "#define VALUE 200\n", 18);
}

static void change_header(void)
{
    real.includes = true;
    real.during = write_header;
}

static void give_bytes_later(void)
{
    real.live = real.later = true;
}

static const kt_frontend stage = {.name = "a stage of the runtime",
                                  .target = "fake-0",
                                  .begin = begin,
                                  .end = end,
                                  .use = use_cache,
                                  .compile = compile_program,
                                  .compiles = count_compiles,
                                  .during = call_during,
                                  .origin = find_origin,
                                  .flags = {[KT_COMPILER] = &real.replaced,
                                            [KT_PRIVATE] = &real.live,
                                            [KT_FAILS] = &real.fails,
                                            [KT_BYPASSES] = &real.odd},
                                  .events = {[KT_REFUSES] = refuse_load,
                                             [KT_LOAD_FAILS] = fail_load,
                                             [KT_HEADER] = change_header,
                                             [KT_DEFERS] = give_bytes_later}};

static void the_runtime_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        the_runtime_passes_every_situation, register_backend, rig_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
