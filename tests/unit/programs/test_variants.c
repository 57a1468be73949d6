/* Variants in manifests: what is read, every mistake with its place, the amounts, and the library's
 * list that is made of them. */
#include "kernel/kernel_variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"
#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "unit/programs/manifest_broken.h"

static const char whole[] =
    "{\"kiln_manifest\": 1, \"kernels\": [{\n"
    "  \"name\": \"k\", \"sources\": {\"opencl-c\": \"k.cl\", \"cuda\": \"k.cu\"}, \"builtin\": "
    "true,\n"
    "  \"entry\": \"saxpy\", \"defines\": {\"TILE\": \"16\", \"ROUND\": \"1\"},\n"
    "  \"options\": {\"opencl-c\": [\"-cl-mad-enable\"]},\n"
    "  \"args\": [{\"name\": \"a\", \"kind\": \"value\", \"type\": \"f32\", \"value\": 2},\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"shape\": [8, 32]},\n"
    "    {\"name\": \"y\", \"kind\": \"inout\", \"type\": \"f32\", \"shape\": [256]}],\n"
    "  \"launch\": {\"global\": [64, 4], \"local\": [16, 1]},\n"
    "  \"variants\": {\n"
    "    \"opencl-c\": [{\"name\": \"tile8\", \"defines\": {\"TILE\": \"8\"}},\n"
    "      {\"name\": \"flat\", \"source\": \"flat.cl\", \"entry\": \"g\", \"options\": [\"-O\"],\n"
    "       \"launch\": {\"global\": [256], \"local\": [32]}}],\n"
    "    \"*\": [{\"name\": \"narrow\", \"launch\": {\"local\": [8, 1]}}],\n"
    "    \"builtin\": [{\"name\": \"wide\", \"launch\": {\"local\": [64, 1]}}]},\n"
    "  \"size\": [\"x[1]\", 100], \"flops\": \"2 * y\"}]}\n";

static kiln_status parse(const char *text, cli_pool *pool, cli_manifest *manifest, kiln_diag *diag)
{
    return manifest_parse(text, strlen(text), "m.json", pool, manifest, diag);
}

static void variants_complete_their_form(void **state)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    assert_int_equal(parse(whole, &pool, &manifest, &diag), KILN_OK);
    const cli_kernel *kernel = manifest.kernels;
    assert_int_equal(kernel->form_count, 3);
    assert_int_equal(kernel->variant_count, 4); /* "*" is not for what is compiled already */
    const kernel_form *tile = &kernel->forms[3];
    assert_string_equal(tile->name, "opencl-c/tile8");
    assert_string_equal(tile->path, "k.cl");
    assert_string_equal(tile->entry, "saxpy");
    assert_int_equal(tile->shape.local[0], 16);
    assert_int_equal(tile->option_count, 1);
    assert_int_equal(tile->define_count, 2); /* its TILE, the kernel's ROUND */
    assert_string_equal(tile->defines[0].value, "8");
    assert_string_equal(tile->defines[1].name, "ROUND");
    const kernel_form *flat = &kernel->forms[4];
    assert_string_equal(flat->path, "flat.cl");
    assert_string_equal(flat->entry, "g");
    assert_string_equal(flat->options[0], "-O");
    assert_int_equal(flat->shape.dims, 1);
    assert_int_equal(flat->shape.global[0], 256);
    assert_int_equal(flat->shape.global[1], 0);
    assert_string_equal(kernel->forms[5].name, "cuda/narrow");
    assert_int_equal(kernel->forms[5].shape.global[1], 4);
    assert_string_equal(kernel->forms[6].name, "builtin/wide");
    assert_int_equal(kernel->size_count, 2);
    pool_deinit(&pool);
}

/* --- mistakes --------------------------------------------------------------------------------- */

static void broken(const char *from, const char *to, const char *place, const char *why)
{
    manifest_broken(whole, from, to, place, why);
}

static void mistakes_are_told_with_their_place(void **state)
{
    broken("\"variants\": {\n", "\"variants\": [3], \"defines_\": {\n", "m.json:9:32",
           "kernels[0].defines_: is not a key");
    broken("\"opencl-c\": [{\"name\"", "\"opencl\": [{\"name\"", "m.json:10:15",
           "kernels[0].variants.opencl: is not a key that a manifest has here, nor a language");
    broken("[{\"name\": \"wide\", \"launch\": {\"local\": [64, 1]}}]", "[]", "m.json:14:16",
           "kernels[0].variants.builtin: must be an array of variants, and not empty");
    broken("[{\"name\": \"wide\", \"launch\": {\"local\": [64, 1]}}]", "{}", "m.json:14:16",
           "must be an array of variants");
    broken("{\"name\": \"tile8\", \"defines\": {\"TILE\": \"8\"}}", "7", "m.json:10:18",
           "kernels[0].variants.opencl-c[0]: must be an object");
    broken("\"name\": \"tile8\", ", "", "m.json:10:18",
           "kernels[0].variants.opencl-c[0].name: is missing");
    broken("\"name\": \"flat\"", "\"name\": \"tile8\"", "m.json:11:16",
           "kernels[0].variants.opencl-c[1].name: is the name of another variant");
    broken("\"defines\": {\"TILE\": \"8\"}", "\"define\": {\"TILE\": \"8\"}", "m.json:10:46",
           "variants.opencl-c[0].define: is not a key");
    broken(", \"defines\": {\"TILE\": \"8\"}", "", "m.json:10:18", "changes nothing");
    broken("{\"TILE\": \"8\"}", "{\"TILE\": 8}", "m.json:10:56", "defines.TILE: must be text");
    broken("{\"TILE\": \"8\"}", "3", "m.json:10:47", "defines: must be an object of text");
    broken("\"source\": \"flat.cl\"", "\"source\": 1", "m.json:11:34", "source: must be text");
    broken("[\"-O\"]", "\"-O\"", "m.json:11:70", "options: must be an array of text");
    broken("{\"global\": [256], \"local\": [32]}", "{\"global\": [256]}", "m.json:12:29",
           "launch.global: has other dimensions than the local");
    broken("{\"global\": [256], \"local\": [32]}", "{\"global\": [256], \"local\": [3, 2]}",
           "m.json:12:45", "launch.local: must have as many dimensions");
    broken("{\"global\": [256], \"local\": [32]}", "{\"globl\": [256]}", "m.json:12:28",
           "launch.globl: is not a key");
    broken("{\"global\": [256], \"local\": [32]}", "{\"global\": [0]}", "m.json:12:30",
           "global[0]: must be a whole number");
    broken("\"name\": \"wide\", \"launch\"", "\"name\": \"wide\", \"defines\": {}, \"launch\"",
           "m.json:14:45", "has no meaning for a built-in kernel");
    broken("\"name\": \"k\"", "\"name\": \"k k\"", "m.json:2:11", "where there are variants");
    broken("[\"x[1]\", 100]", "[]", "m.json:15:11", "size: must be an array of 1 to 8");
    broken("[\"x[1]\", 100]", "7", "m.json:15:11", "size: must be an array of 1 to 8");
    broken("\"x[1]\"", "\"x[2]\"", "m.json:15:12", "size[0]: character 1: expected a number");
    broken("\"2 * y\"", "\"2 * z\"", "m.json:15:35", "flops: character 5: expected a number");
    broken("\"2 * y\"", "[1]", "m.json:15:35", "flops: must be text");
    broken("\"2 * y\"", "-1", "m.json:15:35", "flops: is negative or not a number");
}

static void too_many_variants_are_refused(void **state)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    char *list = pool_text(&pool, "", 0);
    for (int i = 0; i < 60 && list != NULL; i++) {
        list = pool_format(&pool, "%s%s{\"name\": \"v%d\", \"entry\": \"e\"}", list,
                           i > 0 ? ", " : "", i);
    }
    assert_non_null(list);
    const char *at = strstr(whole, "{\"name\": \"narrow\"");
    const char *end = strchr(at, ']') + 1; /* of "local" */
    char *text = pool_format(&pool, "%.*s%s%s", (int)(at - whole), whole, list, end + strlen("}}"));
    assert_non_null(text);
    assert_int_equal(parse(text, &pool, &manifest, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "is too much: 64 variants"));
    pool_deinit(&pool);
}

/* --- amounts ---------------------------------------------------------------------------------- */

static void amounts_are_products(void **state)
{
    const struct {
        const char *text;
        double value;
    } good[] = {{"7", 7},   {"1e3", 1000}, {" 2 * 3*4 ", 24},
                {"x", 256}, {"a*a", 4},    {"x[0] * x[1] * 2", 512}};
    const struct {
        const char *text, *why;
    } bad[] = {{"1 *", "character 4: expected a number, an argument"},
               {" ", "character 2: expected a number"},
               {"1 2", "character 3: expected \"*\" or the end"},
               {"xx", "character 1: expected a number"},
               {"x[", "character 1"},
               {"x[0", "character 1"},
               {"x[01]", "character 1"},
               {"a[0]", "character 1"},
               {"a * [0]", "character 5"},
               {"1e999", "not a number"},
               {"2 ^ 3", "character 3: expected \"*\""},
               {"(1)", "character 1: expected a number"}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cli_pool pool = POOL_INIT;
        cli_manifest manifest;
        const char *at = strstr(whole, "2 * y");
        char *text = pool_format(&pool, "%.*s%s%s", (int)(at - whole), whole, good[i].text, at + 5);
        assert_non_null(text);
        assert_int_equal(parse(text, &pool, &manifest, NULL), KILN_OK);
        assert_true(manifest.kernels->flops == good[i].value);
        pool_deinit(&pool);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        broken("2 * y", bad[i].text, "m.json:15:35", bad[i].why);
    }
}

/* --- the list --------------------------------------------------------------------------------- */

/* The manifest with its sources in a directory. */
typedef struct place {
    char *dir, *manifest;
} place;

static void place_init(place *p)
{
    p->dir = kt_tmpdir_create();
    p->manifest = kt_path(p->dir, "m.json");
    const char *names[] = {"k.cl", "k.cu", "flat.cl"};
    kt_file_write(p->manifest, whole, strlen(whole));
    for (size_t i = 0; i < 3; i++) {
        char *path = kt_at(p->dir, names[i]);
        kt_file_write(path, names[i], strlen(names[i]));
    }
}

static void place_deinit(place *p)
{
    free(p->manifest);
    kt_tmpdir_remove(p->dir);
}

static void the_list_is_forms_and_variants(void **state)
{
    static const char *const names[] = {"opencl-c",    "opencl-c/tile8", "opencl-c/flat", "cuda",
                                        "cuda/narrow", "builtin",        "builtin/wide"};
    place p;
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    kernel_variants *list = NULL;
    place_init(&p);
    assert_int_equal(manifest_read(p.manifest, &pool, &manifest, &diag), KILN_OK);
    assert_int_equal(kernel_variants_create(manifest.kernels, &list, &diag), KILN_OK);
    assert_int_equal(list->kernel.variant_count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(list->variants[i].name, names[i]);
    }
    const kiln_source *sources[7];
    for (size_t i = 0; i < 7; i++) {
        sources[i] = list->variants[i].source;
    }
    assert_memory_equal(sources[1]->text, "k.cl", 4);
    assert_memory_equal(sources[2]->text, "flat.cl", 7);
    assert_string_equal(list->variants[2].entry, "g");
    assert_string_equal(sources[2]->entries[0], "g");
    assert_int_equal(list->variants[2].launch.dims, 1);
    assert_int_equal(list->variants[2].launch.global[1], 1);
    assert_string_equal(sources[1]->defines[0].value, "8");
    assert_int_equal(sources[5]->language, KILN_LANG_BUILTIN);
    assert_ptr_equal(sources[5]->builtin[0], sources[6]->builtin[0]);
    assert_int_equal(list->kernel.size_count, 2);
    assert_int_equal(list->kernel.sizes[0], 32);
    assert_int_equal(list->kernel.sizes[1], 100);
    assert_true(list->kernel.flops == 512);
    kernel_variants_destroy(list);
    kernel_variants_destroy(NULL);
    pool_deinit(&pool);
    place_deinit(&p);
}

static void without_sizes_the_launch_and_the_buffers_count(void **state)
{
    place p;
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    kernel_variants *list = NULL;
    place_init(&p);
    assert_int_equal(manifest_read(p.manifest, &pool, &manifest, &diag), KILN_OK);
    manifest.kernels->size_count = 0;
    assert_int_equal(kernel_variants_create(manifest.kernels, &list, &diag), KILN_OK);
    assert_int_equal(list->kernel.size_count, 2);
    assert_int_equal(list->kernel.sizes[0], 64);
    assert_int_equal(list->kernel.sizes[1], 4);
    assert_true(list->kernel.bytes == 3 * 1024); /* x once, y read and written */
    kernel_variants_destroy(list);
    char *lost = kt_at(p.dir, "flat.cl");
    assert_int_equal(remove(lost), 0);
    assert_int_equal(kernel_variants_create(manifest.kernels, &list, &diag), KILN_E_INVALID);
    assert_null(list);
    assert_non_null(strstr(diag.what, "flat.cl"));
    pool_deinit(&pool);
    place_deinit(&p);
}

static bool read_body(void *user)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    kernel_variants *list = NULL;
    kiln_status status = manifest_read(user, &pool, &manifest, &diag);
    if (status == KILN_OK) {
        status = kernel_variants_create(manifest.kernels, &list, &diag);
    }
    kernel_variants_destroy(list);
    pool_deinit(&pool);
    kiln_diag_clear(&diag);
    assert_true(status == KILN_OK || kt_failalloc_fired());
    return status == KILN_OK;
}

static void memory_may_run_out(void **state)
{
    place p;
    place_init(&p);
    assert_true(kt_failalloc_each(read_body, p.manifest) > 20);
    place_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_complete_their_form),
        cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(too_many_variants_are_refused),
        cmocka_unit_test(amounts_are_products),
        cmocka_unit_test(the_list_is_forms_and_variants),
        cmocka_unit_test(without_sizes_the_launch_and_the_buffers_count),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
