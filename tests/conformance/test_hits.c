/* A hit gives back what the compile gave: every question that can be asked about a program, and
 * what its kernels compute, after a compile and after a hit in memory, on disk and in a pack, for
 * each of a list of options that change either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/pack.h>
#include <kiln/unstable/reflect.h>

#include "conformance/options.h"
#include "conformance/suite.h"

#define WORDS 32

/* --- building --------------------------------------------------------------------------------- */

static kiln_status build_with(kiln_device *device, const char *options, kiln_program **out_program,
                              kiln_diag *diag)
{
    static const kiln_define value = {"VALUE", "5"};
    suite_sources sources;
    suite_load("sense", &sources);
    for (size_t i = 0; i < sources.count; i++) {
        sources.sources[i].options = &options;
        sources.sources[i].option_count = options[0] != '\0' ? 1 : 0;
        if (strstr(options, "VALUE") == NULL) {
            sources.sources[i].defines = &value;
            sources.sources[i].define_count = 1;
        }
    }
    static const char *const entry[] = {"sense"};
    for (size_t i = 0; i < sources.count; i++) {
        if (sources.sources[i].language == KILN_LANG_CUDA) { /* found by its name only */
            sources.sources[i].entries = entry;
            sources.sources[i].entry_count = 1;
        }
    }
    kiln_status status =
        kiln_program_build(device, sources.sources, sources.count, NULL, out_program, diag);
    suite_unload(&sources);
    return status;
}

/* --- everything that can be asked ------------------------------------------------------------- */

static void note_results(FILE *out, kiln_device *device, kiln_program *program)
{
    static const unsigned values[16] = {
        0x000002ca, /* 1e-42 */
        0x60ad78ec, /* 1e20 */
        0x3f800800, /* 1 + 2^-12 */
        0x3f7ff000, /* 1 - 2^-12 */
        0xbf800000, /* -1 */
        0x7fc00000, /* not a number */
        0x7f800000, /* infinite */
        0x80000000, /* -0 */
        0x7149f2ca, /* 1e30 */
        0x3f800000, /* 1 */
        0x40400000, /* 3 */
        0x3dcccccd, /* 0.1 */
    };
    unsigned words[WORDS] = {0};
    kiln_buffer *buffers[2] = {NULL, NULL};
    kiln_queue *queue = NULL;
    OK(kiln_queue_create(device, &queue, &diag));
    OK(kiln_buffer_create(device, sizeof(values), &buffers[0], &diag));
    OK(kiln_buffer_create(device, sizeof(words), &buffers[1], &diag));
    OK(kiln_queue_write(queue, buffers[0], 0, values, sizeof(values), &diag));
    OK(kiln_queue_write(queue, buffers[1], 0, words, sizeof(words), &diag));
    const kiln_arg args[] = {{.kind = KILN_ARG_BUFFER, .buffer = buffers[0]},
                             {.kind = KILN_ARG_BUFFER, .buffer = buffers[1]}};
    const kiln_launch launch = {.struct_size = sizeof(launch),
                                .dims = 1,
                                .global = {8},
                                .local = {8},
                                .args = args,
                                .arg_count = 2};
    OK(kiln_queue_launch(queue, program, suite_entry(device, "sense"), &launch, NULL, &diag));
    OK(kiln_queue_read(queue, buffers[1], 0, words, sizeof(words), &diag));
    for (size_t i = 0; i < WORDS; i++) {
        (void)fprintf(out, "word %zu: %08x\n", i, words[i]);
    }
    kiln_buffer_destroy(buffers[1]);
    kiln_buffer_destroy(buffers[0]);
    kiln_queue_destroy(queue);
}

static void note_entry(FILE *out, kiln_program *program, const char *entry)
{
    const kiln_param *const *params = NULL;
    const char *attributes = kiln_program_attributes(program, entry);
    size_t count = 0;
    OK(kiln_program_get_params(program, entry, &params, &count, &diag));
    (void)fprintf(out, "kernel %s: %zu parameters, attributes %s\n", entry, count,
                  attributes != NULL ? attributes : "unknown");
    for (size_t i = 0; i < count; i++) {
        const char *qualifiers = kiln_program_qualifiers(program, entry, i);
        (void)fprintf(out, "kernel %s, parameter %zu: %s %s, kind %d, %zu bytes, %s\n", entry, i,
                      params[i]->type, params[i]->name, (int)params[i]->kind, params[i]->size,
                      qualifiers != NULL ? qualifiers : "qualifiers unknown");
    }
}

/* The program in text; free it. */
static char *describe(kiln_device *device, kiln_program *program)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    const kiln_build_info *info = kiln_program_get_info(program);
    (void)fprintf(out, "stages: %u\nlog: %s\n", info->stage_count, info->log);
    for (size_t i = 0; i < sizeof(info->key.bytes); i++) {
        (void)fprintf(out, "%02x", info->key.bytes[i]);
    }
    (void)fprintf(out, "\nentries: %zu\n", kiln_program_entry_count(program));
    for (size_t i = 0; i < kiln_program_entry_count(program); i++) {
        note_entry(out, program, kiln_program_entry(program, i));
    }
    note_results(out, device, program);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* --- from one place after the other ----------------------------------------------------------- */

static void check_same(const char *options, kiln_origin origin, const char *expected, char *got)
{
    if (strcmp(expected, got) != 0) {
        print_error("'%s': from %s it is\n%s\nand compiled it was\n%s\n", options,
                    kiln_origin_name(origin), got, expected);
        fail();
    }
    free(got);
}

/* Builds, checks where it came from, and that it is what it was. */
static void check_hit(suite_fresh *on, const char *options, kiln_origin origin,
                      const char *expected)
{
    kiln_program *program = NULL;
    OK(build_with(on->device, options, &program, &diag));
    assert_int_equal(kiln_program_get_info(program)->origin, origin);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    check_same(options, origin, expected, describe(on->device, program));
    kiln_program_release(program);
}

static void write_pack(kiln_cache *cache, const char *path)
{
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    OK(kiln_pack_writer_create(path, NULL, &writer, &diag));
    OK(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, &diag));
    assert_true(copied.added > 0);
    OK(kiln_pack_writer_finish(writer, NULL, &diag));
    kiln_pack_writer_destroy(writer);
}

static void open_on_pack(suite *s, const char *pack, const char *name, suite_fresh *out)
{
    (void)setenv("KILN_PACKS", pack, 1);
    suite_open(s, name, 0, out);
    (void)unsetenv("KILN_PACKS");
}

/* False where the compiler does not take the options. */
static bool try_options(suite *s, size_t index, const char *options)
{
    char names[3][48];
    suite_fresh fresh;
    kiln_program *program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)snprintf(names[0], sizeof(names[0]), "hits-%zu", index);
    (void)snprintf(names[1], sizeof(names[1]), "hits-%zu-of-pack", index);
    (void)snprintf(names[2], sizeof(names[2]), "hits-%zu.kpack", index);
    suite_open(s, names[0], 0, &fresh);
    kiln_status status = build_with(fresh.device, options, &program, &diag);
    kiln_diag_clear(&diag);
    if (status != KILN_OK) {
        suite_close(&fresh);
        return false;
    }
    assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_COMPILED);
    char *compiled = describe(fresh.device, program);
    assert_null(kiln_program_qualifiers(program, "sense", 9));
    if (strcmp(s->backend, "opencl") == 0) { /* and what is known is right */
        assert_string_equal(kiln_program_qualifiers(program, "sense", 0), "global const restrict");
        assert_string_equal(kiln_program_qualifiers(program, "sense", 1), "global");
        assert_string_equal(kiln_program_qualifiers(program, "fixed", 1), "local");
    }
    kiln_program_release(program);
    suite_restart(s, &fresh); /* what the first still had to capture is stored */
    check_hit(&fresh, options, KILN_ORIGIN_MEMORY, compiled);
    suite_close(&fresh);

    suite_open(s, names[0], 0, &fresh);
    check_hit(&fresh, options, KILN_ORIGIN_DISK, compiled);
    char *pack = kt_at(s->dir, names[2]);
    write_pack(fresh.cache, pack);
    suite_close(&fresh);

    open_on_pack(s, pack, names[1], &fresh);
    check_hit(&fresh, options, KILN_ORIGIN_PACK, compiled);
    suite_close(&fresh);
    free(compiled);
    return true;
}

void a_hit_is_what_the_compile_was(suite *s)
{
    const char *const *options = conformance_options(s->backend);
    for (size_t i = 0; options[i] != NULL; i++) {
        if (!try_options(s, i, options[i])) {
            assert_string_not_equal(options[i], "");
            print_message("not taken: %s\n", options[i]);
        }
    }
}
