/* Variants in manifests: what is read, every mistake with its place, the amounts, and the library's
 * list that is made of them. */
#include "kernel/kernel_variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/expression.h"
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
    "  \"size\": [\"x[1]\", 100], \"flops\": \"2 * y\", \"bytes\": 3072}]}\n";

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
    assert_true(kernel_has_variants(kernel));
    const kernel_form *opencl = &kernel->forms[0];
    assert_int_equal(opencl->variant_count, 2);
    const kernel_variant *tile = &opencl->variants[0];
    assert_string_equal(tile->name, "tile8");
    assert_string_equal(tile->path, "k.cl");
    assert_string_equal(tile->entry, "saxpy");
    assert_int_equal(tile->shape.local[0], 16);
    assert_int_equal(tile->option_count, 1);
    assert_int_equal(tile->define_count, 2); /* its TILE, the kernel's ROUND */
    assert_string_equal(tile->defines[0].value, "8");
    assert_string_equal(tile->defines[1].name, "ROUND");
    const kernel_variant *flat = &opencl->variants[1];
    assert_string_equal(flat->path, "flat.cl");
    assert_string_equal(flat->entry, "g");
    assert_string_equal(flat->options[0], "-O");
    assert_int_equal(flat->shape.dims, 1);
    assert_int_equal(flat->shape.global[0], 256);
    assert_int_equal(flat->shape.global[1], 0);
    assert_int_equal(kernel->forms[1].variant_count, 1);
    assert_string_equal(kernel->forms[1].variants[0].name, "narrow");
    assert_int_equal(kernel->forms[1].variants[0].shape.global[1], 4);
    assert_int_equal(kernel->forms[2].variant_count, 1); /* not "*": it is compiled already */
    assert_string_equal(kernel->forms[2].variants[0].name, "wide");
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
    broken("\"x[1]\"", "\"x[2]\"", "m.json:15:12", "size[0]: character 1: x has no such dimension");
    broken("\"2 * y\"", "\"2 * z\"", "m.json:15:35",
           "flops: character 5: no argument is called \"z\"");
    broken("\"2 * y\"", "[1]", "m.json:15:35", "flops: must be text");
    broken("3072", "-1", "m.json:15:53", "bytes: character 1: expected a number");
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

/* --- expressions ------------------------------------------------------------------------------ */

static void amounts_follow_from_arguments(void **state)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    assert_int_equal(parse(whole, &pool, &manifest, &diag), KILN_OK);
    const struct {
        const char *text;
        double value;
    } good[] = {
        {"7", 7},          {"1e3", 1000}, {" 1 + 2 * 3 - 4 / 2 ", 5}, {"(1 + 2) * (3 - 1)", 6},
        {"10 - 2 - 3", 5}, {"x", 256},    {"x[0] * x[ 1 ]", 256},     {"a*a", 4},
        {"((((7))))", 7}};
    const struct {
        const char *text;
        size_t at;
        const char *why;
    } bad[] = {{"", 0, "expected a number, an argument"},
               {"1 +", 3, "expected a number, an argument"},
               {"1 2", 2, "an operator or the end"},
               {"(1", 2, "expected \")\""},
               {"xx", 0, "no argument is called \"xx\""},
               {"x[", 2, "a dimension"},
               {"x[0", 3, "a dimension"},
               {"x[9999999999999999999999]", 3, "a dimension"},
               {"a[0]", 0, "a has no such dimension"},
               {"1 - 2", 0, "negative"},
               {"1 / 0", 0, "not a number"},
               {"-1", 0, "expected a number"},
               {"2 ^ 3", 2, "an operator or the end"}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        double value = -1;
        expression_error error = {0, ""};
        assert_true(expression_evaluate(good[i].text, manifest.kernels, &value, &error));
        assert_true(value == good[i].value);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        double value = -1;
        expression_error error = {0, ""};
        assert_false(expression_evaluate(bad[i].text, manifest.kernels, &value, &error));
        assert_true(value == 0);
        if (strstr(error.why, bad[i].why) == NULL || error.at != bad[i].at) {
            fail_msg("\"%s\": character %zu: %s", bad[i].text, error.at, error.why);
        }
    }
    char deep[200];
    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    double value = 0;
    expression_error error = {0, ""};
    assert_false(expression_evaluate(deep, manifest.kernels, &value, &error));
    assert_non_null(strstr(error.why, "too deep"));
    pool_deinit(&pool);
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
    assert_int_equal(list->file_count, 3);
    assert_ptr_equal(list->sources[0].text, list->sources[1].text);
    assert_memory_equal(list->sources[2].text, "flat.cl", 7);
    assert_string_equal(list->variants[2].entry, "g");
    assert_string_equal(list->sources[2].entries[0], "g");
    assert_int_equal(list->variants[2].launch.dims, 1);
    assert_int_equal(list->variants[2].launch.global[1], 1);
    assert_string_equal(list->sources[1].defines[0].value, "8");
    assert_int_equal(list->sources[5].language, KILN_LANG_BUILTIN);
    assert_ptr_equal(list->sources[5].builtin[0], list->sources[6].builtin[0]);
    assert_int_equal(list->kernel.size_count, 2);
    assert_int_equal(list->sizes[0], 32);
    assert_int_equal(list->sizes[1], 100);
    assert_true(list->kernel.flops == 512 && list->kernel.bytes == 3072);
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
    manifest.kernels->bytes = NULL;
    assert_int_equal(kernel_variants_create(manifest.kernels, &list, &diag), KILN_OK);
    assert_int_equal(list->kernel.size_count, 2);
    assert_int_equal(list->sizes[0], 64);
    assert_int_equal(list->sizes[1], 4);
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
        cmocka_unit_test(amounts_follow_from_arguments),
        cmocka_unit_test(the_list_is_forms_and_variants),
        cmocka_unit_test(without_sizes_the_launch_and_the_buffers_count),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
