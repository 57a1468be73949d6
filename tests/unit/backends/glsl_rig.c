#include "unit/backends/glsl_rig.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/counters.h"
#include "support/skip.h"
#include "support/tmpdir.h"

const char glsl_increment[] = "#version 450\n"
                              "#include <kiln.glsl>\n"
                              "layout(local_size_x_id = 0) in;\n"
                              "KILN_VALUES_BEGIN\n"
                              "KILN_VALUE(0, uint, amount)\n"
                              "KILN_VALUES_END\n"
                              "KILN_BUFFER(0, uint, data)\n"
                              "void main() { data[gl_GlobalInvocationID.x] += amount; }\n";

static const char two_views[] = "#version 450\n"
                                "#include <kiln.glsl>\n"
                                "layout(local_size_x_id = 0) in;\n"
                                "KILN_VALUES_BEGIN\n"
                                "KILN_VALUE(0, uint, amount)\n"
                                "KILN_VALUES_END\n"
                                "KILN_BUFFER(0, uint, data)\n"
                                "KILN_BUFFER(0, int, view)\n"
                                "void main() { data[gl_GlobalInvocationID.x] = "
                                "uint(view[gl_GlobalInvocationID.x]) + amount; }\n";

static void ok(kiln_status status, kiln_diag *diag)
{
    if (status != KILN_OK) {
        char line[2048];
        (void)kiln_diag_format(diag, line, sizeof(line));
        print_error("%s: %s\n%s\n", kiln_status_name(status), line,
                    diag->log != NULL ? diag->log : "");
    }
    assert_int_equal(status, KILN_OK);
    kiln_diag_clear(diag);
}

void glsl_open(glsl_rig *rig, const char *backend, const char *cache_dir)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    ok(kiln_cache_options_init(&cache_options, &diag), &diag);
    cache_options.root = cache_dir;
    ok(kiln_cache_create(&cache_options, &rig->cache, &diag), &diag);
    ok(kiln_runtime_options_init(&options, &diag), &diag);
    options.backend = backend;
    options.strict = true;
    options.cache = rig->cache;
    if (kiln_runtime_create(&options, &rig->runtime, &diag) != KILN_OK) {
        kn_test_skip(backend, diag.why);
    }
    rig->device = kiln_runtime_device(rig->runtime, 0);
}

void glsl_close(glsl_rig *rig)
{
    kiln_runtime_destroy(rig->runtime);
    kiln_cache_destroy(rig->cache);
}

kiln_source glsl_source(const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_GLSL;
    source.name = "test.comp";
    source.text = text;
    source.length = strlen(text);
    return source;
}

kiln_program *glsl_build(glsl_rig *rig, const char *text)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_source source = glsl_source(text);
    kiln_status status = kiln_program_build(rig->device, &source, 1, NULL, &program, &diag);
    if (status == KILN_E_UNAVAILABLE) {
        kn_test_skip("shaderc", diag.why);
    }
    ok(status, &diag);
    return program;
}

void glsl_run(glsl_rig *rig, kiln_program *program, uint64_t local)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    uint32_t data[64];
    const uint32_t amount = 5;
    ok(kiln_queue_create(rig->device, &queue, &diag), &diag);
    ok(kiln_buffer_create(rig->device, sizeof(data), &buffer, &diag), &diag);
    for (uint32_t i = 0; i < 64; i++) {
        data[i] = i;
    }
    ok(kiln_queue_write(queue, buffer, 0, data, sizeof(data), &diag), &diag);
    const kiln_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &amount, .size = sizeof(amount)},
        {.kind = KILN_ARG_BUFFER, .buffer = buffer},
    };
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 1,
                                .global = {64},
                                .local = {local},
                                .args = args,
                                .arg_count = 2};
    ok(kiln_queue_launch(queue, program, "main", &launch, NULL, &diag), &diag);
    ok(kiln_queue_read(queue, buffer, 0, data, sizeof(data), &diag), &diag);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(data[i], i + amount);
    }
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
}

void glsl_two_views_are_one_buffer(const char *backend)
{
    char *dir = kt_tmpdir_create();
    glsl_rig rig;
    glsl_open(&rig, backend, dir);
    kiln_program *program = glsl_build(&rig, two_views);
    glsl_run(&rig, program, 8);
    kiln_program_release(program);
    glsl_close(&rig);
    kt_tmpdir_remove(dir);
}

/* --- damage ----------------------------------------------------------------------------------- */

static const char *damaged_target;
static unsigned int damage_round, damaged;

static int damage(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)place;
    if (kind == FTW_F && strstr(path, damaged_target) != NULL && strstr(path, ".kiln") != NULL) {
        size_t size = 0;
        char *bytes = kt_file_read(path, &size);
        assert_non_null(bytes);
        assert_true(size > 64);
        if (damage_round % 2 == 0) {
            bytes[(size_t)damage_round * 37 % size] ^= (char)(1 << damage_round % 8);
        } else {
            size = size * damage_round / 24;
        }
        kt_file_write(path, bytes, size);
        free(bytes);
        damaged++;
    }
    return 0;
}

/* Another process builds and runs it; how often that compiled. */
static uint64_t build_again(const char *backend, const char *dir, kt_counters *out_stats)
{
    glsl_rig rig;
    glsl_open(&rig, backend, dir);
    kiln_program *program = glsl_build(&rig, glsl_increment);
    kt_counters_own(rig.cache, out_stats);
    const uint64_t compiles = kiln_program_get_info(program)->compiles;
    glsl_run(&rig, program, 16);
    kiln_program_release(program);
    glsl_close(&rig);
    return compiles;
}

void glsl_damaged_entries_are_made_again(const char *backend, const char *target)
{
    char *dir = kt_tmpdir_create();
    kt_counters stats;
    damaged_target = target;
    (void)build_again(backend, dir, &stats);
    for (damage_round = 0; damage_round < 24; damage_round++) {
        damaged = 0;
        assert_int_equal(nftw(dir, damage, 8, FTW_PHYS), 0);
        assert_true(damaged > 0);
        assert_true(build_again(backend, dir, &stats) > 0);
        assert_true(stats.corrupt > 0);
        assert_int_equal(stats.rejected, 0); /* the driver never saw it */
    }
    assert_int_equal(build_again(backend, dir, &stats), 0);
    kt_tmpdir_remove(dir);
}

/* --- the backend alone ------------------------------------------------------------------------ */

void glsl_compile(const kiln_backend *backend, void *instance, void *device,
                  const kiln_source *source, kn_artifact *out_artifact)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_target target = {.has_device = false};
    size_t count = 0;
    ok(backend->compiler->target_of_device(instance, 0, &target, &diag), &diag);
    const kiln_stage *stages =
        backend->compiler->stages(instance, &target, source->language, &count);
    assert_int_equal(count, 1);
    const kiln_compile_request request = {
        .stage = stages, .target = &target, .source = source, .device = device};
    kn_artifact_init(out_artifact);
    ok(backend->compiler->compile(instance, &request, &out_artifact->base, NULL, &diag), &diag);
}

kiln_status glsl_load(const kiln_backend *backend, void *device, const kiln_source *source,
                      const void *bytes, size_t size, kiln_diag *diag)
{
    const kiln_artifact artifact = {.data = bytes, .size = size};
    const kiln_artifact *list[] = {&artifact};
    const kiln_load_request request = {.source = source, .artifacts = list, .artifact_count = 1};
    void *program = NULL;
    kiln_status status = backend->device->program_load(device, &request, &program, diag);
    if (status == KILN_OK) {
        backend->device->program_unload(device, program);
    }
    return status;
}

/* --- one launch ------------------------------------------------------------------------------- */

enum { NUMBERS = 256 };

void glsl_bed_init(glsl_bed *bed, const char *backend, const char *text)
{
    kiln_diag diag = KILN_DIAG_INIT;
    memset(bed, 0, sizeof(*bed));
    bed->dir = kt_tmpdir_create();
    glsl_open(&bed->rig, backend, bed->dir);
    bed->program = glsl_build(&bed->rig, text);
    assert_int_equal(kiln_queue_create(bed->rig.device, &bed->queue, &diag), KILN_OK);
    assert_int_equal(
        kiln_buffer_create(bed->rig.device, NUMBERS * sizeof(uint32_t), &bed->buffer, &diag),
        KILN_OK);
    bed->arg = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = bed->buffer};
}

uint32_t glsl_bed_run(glsl_bed *bed, const kiln_launch *launch)
{
    kiln_diag diag = KILN_DIAG_INIT;
    uint32_t data[NUMBERS] = {0};
    assert_int_equal(kiln_queue_launch(bed->queue, bed->program, "main", launch, NULL, &diag),
                     KILN_OK);
    assert_int_equal(kiln_queue_read(bed->queue, bed->buffer, 0, data, sizeof(data), &diag),
                     KILN_OK);
    return data[NUMBERS - 1];
}

void glsl_bed_deinit(glsl_bed *bed)
{
    kiln_buffer_destroy(bed->buffer);
    kiln_queue_destroy(bed->queue);
    kiln_program_release(bed->program);
    glsl_close(&bed->rig);
    kt_tmpdir_remove(bed->dir);
}
