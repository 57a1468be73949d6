/* Manifests: the example one is read, and every mistake is reported with its place. */
#include "manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "cli/where.h"
#include "unit/programs/manifest_broken.h"

static void the_example_manifest_is_read(void **state)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    kiln_status status = manifest_read(EXAMPLE_MANIFEST, &pool, &manifest, &diag);
    assert_string_equal(diag.why, "");
    assert_int_equal(status, KILN_OK);
    assert_true(manifest.count >= 10);
    for (size_t i = 0; i < manifest.count; i++) {
        assert_non_null(manifest.kernels[i].reference);
        assert_true(manifest.kernels[i].form_count >= 2);
        assert_true(manifest.kernels[i].arg_count > 0);
    }
    pool_deinit(&pool);
}

static const char whole[] =
    "{\"kiln_manifest\": 1, \"kernels\": [{\n"
    "  \"name\": \"k\", \"sources\": {\"c\": \"a/k.c\", \"opencl-c\": \"/abs/k.cl\"},\n"
    "  \"builtin\": true, \"entry\": {\"c\": \"kc\", \"*\": \"kx\"},\n"
    "  \"defines\": {\"TILE\": \"16\", \"EMPTY\": \"\"}, \"include_dirs\": [\"inc\"],\n"
    "  \"options\": {\"opencl-c\": [\"-cl-mad-enable\"]},\n"
    "  \"args\": [{\"name\": \"a\", \"kind\": \"value\", \"type\": \"i32\", \"value\": 7},\n"
    "    {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"shape\": [2, 3],\n"
    "     \"init\": {\"random\": [-1, 1], \"seed\": 5}},\n"
    "    {\"name\": \"f\", \"kind\": \"in\", \"type\": \"f32\", \"shape\": [3]},\n"
    "    {\"name\": \"t\", \"kind\": \"local\", \"type\": \"f32\", \"count\": 64},\n"
    "    {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"shape\": [6],\n"
    "     \"tolerance\": {\"absolute\": 1}}],\n"
    "  \"launch\": {\"c\": {\"global\": [6]}, \"*\": {\"global\": [8, 2], \"local\": [4, 1]}},\n"
    "  \"tolerance\": {\"relative\": 0.5},\n"
    "  \"reference\": {\"file\": \"ref.c\", \"entry\": \"r\"}}]}\n";

static void every_key_is_understood(void **state)
{
    cli_pool pool = POOL_INIT;
    kiln_diag diag = KILN_DIAG_INIT;
    cli_manifest manifest;
    kiln_status status =
        manifest_parse(whole, strlen(whole), "dir/m.json", &pool, &manifest, &diag);
    assert_string_equal(diag.why, "");
    assert_int_equal(status, KILN_OK);
    const cli_kernel *kernel = &manifest.kernels[0];
    assert_int_equal(kernel->form_count, 3);
    assert_string_equal(kernel->forms[0].path, "dir/a/k.c");
    assert_string_equal(kernel->forms[0].entry, "kc");
    assert_int_equal(kernel->forms[0].shape.dims, 1);
    assert_int_equal(kernel->forms[0].shape.local[0], 0);
    assert_string_equal(kernel->forms[1].path, "/abs/k.cl");
    assert_string_equal(kernel->forms[1].entry, "kx");
    assert_int_equal(kernel->forms[1].shape.global[1], 2);
    assert_int_equal(kernel->forms[1].option_count, 1);
    assert_int_equal(kernel->forms[2].language, KILN_LANG_BUILTIN);
    assert_string_equal(kernel->forms[2].entry, "kc");
    assert_null(kernel->forms[2].path);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kernel->forms[i].define_count, 2);
        assert_string_equal(kernel->forms[i].defines[1].value, "");
    }
    assert_string_equal(kernel->include_dirs[0], "dir/inc");
    assert_int_equal(kernel->arg_count, 5);
    assert_int_equal(kernel->args[1].init.seed, 5);
    assert_int_equal(kernel->args[1].count, 6);
    assert_int_equal(kernel->args[2].count, 3);
    assert_int_equal(kernel->args[3].count, 64);
    assert_true(kernel->args[4].has_tolerance && kernel->args[4].tolerance.absolute == 1.0);
    assert_true(kernel->tolerance.relative == 0.5);
    assert_string_equal(kernel->reference_path, "dir/ref.c");
    assert_int_equal(kernel->reference_shape.global[0], 6);
    pool_deinit(&pool);
}

static void broken(const char *from, const char *to, const char *place, const char *why)
{
    manifest_broken(whole, from, to, place, why);
}

static void mistakes_are_told_with_their_place(void **state)
{
    broken("[{\n", "[\n", "m.json:2:9", "expected near ':'");
    broken("\"kiln_manifest\": 1", "\"kiln_manifest\": 2", "m.json:1:19", "version 1");
    broken("\"kiln_manifest\": 1, ", "", "m.json:1:1", "not a kiln manifest");
    broken("\"name\": \"k\"", "\"name\": 3", "m.json:2:11", "kernels[0].name: must be text");
    broken("\"builtin\"", "\"buildin\"", "m.json:3:14", "kernels[0].buildin: is not a key");
    broken("\"builtin\": true", "\"builtin\": 1", "m.json:3:14", "true or false");
    broken("\"c\": \"a/k.c\"", "\"see\": \"a/k.c\"", "m.json:2:35", "language");
    broken("{\"c\": \"kc\"", "{\"cc\": \"kc\"", "m.json:3:36", "kernels[0].entry.cc");
    broken("[2, 3]", "[2, -3]", "m.json:7:61", "kernels[0].args[1].shape[1]: must be a whole");
    broken("[2, 3]", "[2, 3.5]", "m.json:7:61", "kernels[0].args[1].shape[1]: must be a whole");
    broken("[2, 3]", "[]", "m.json:7:57", "kernels[0].args[1].shape: must be an array of 1 to 8");
    broken("\"i32\", \"value\": 7", "\"i32\", \"value\": 7.5", "m.json:6:67",
           "does not fit in i32");
    broken("\"i32\"", "\"int\"", "m.json:6:51", "kernels[0].args[0].type: must be f16");
    broken("\"kind\": \"local\"", "\"kind\": \"shared\"", "m.json:10:27", "value, in, out");
    broken("\"count\": 64", "\"count\": 0", "m.json:10:60", "at least 1");
    broken("\"count\": 64", "\"shape\": [64]", "m.json:10:60", "is not a key");
    broken("\"random\": [-1, 1]", "\"random\": [1, -1]", "m.json:8:25", "before it begins");
    broken("\"random\": [-1, 1]", "\"fill\": 1", "m.json:8:34", "goes with random only");
    broken("\"random\": [-1, 1], \"seed\": 5", "", "m.json:8:14", "must have one of");
    broken("[8, 2]", "[8, 2, 2, 2]", "m.json:13:52", "1 to 3");
    broken("\"local\": [4, 1]", "\"local\": [4]", "m.json:13:69", "as many dimensions");
    broken("{\"relative\": 0.5}", "{\"relative\": -1}", "m.json:14:29", "negative");
    broken("\"entry\": \"r\"", "\"enter\": \"r\"", "m.json:15:43", "is not a key");
    broken("\"name\": \"k\"", "\"name\": \"k\", \"name\": \"l\"", "m.json:2:21", "duplicate");
}

static void every_cut_is_refused(void **state)
{
    for (size_t cut = 0; cut + 2 < strlen(whole); cut++) {
        cli_pool pool = POOL_INIT;
        kiln_diag diag = KILN_DIAG_INIT;
        cli_manifest manifest;
        char *text = pool_text(&pool, whole, cut);
        assert_non_null(text);
        assert_int_equal(manifest_parse(text, cut, "m.json", &pool, &manifest, &diag),
                         KILN_E_INVALID);
        pool_deinit(&pool);
    }
}

static void places_are_found(void **state)
{
    static const char text[] = "{\"a\": [1, {\"b\\\"\": \"]}\",\n  \"c\": 2}]}";
    where_path path = {{{NULL, 0}}, 0};
    size_t line = 0;
    size_t column = 0;
    char name[32];
    path = where_key(where_index(where_key(path, "a"), 1), "c");
    where_format(&path, name, sizeof(name));
    assert_string_equal(name, "a[1].c");
    where_find(text, &path, &line, &column);
    assert_int_equal(line, 2);
    assert_int_equal(column, 8);
    path = where_index(path, 5); /* not there: where it would be */
    where_find(text, &path, &line, &column);
    assert_int_equal(column, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_manifest_is_read),
        cmocka_unit_test(every_key_is_understood),
        cmocka_unit_test(mistakes_are_told_with_their_place),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(places_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
