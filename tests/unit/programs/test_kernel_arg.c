/* --arg and the types that kernels declare. */
#include "kernel/kernel_arg.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "kernel/kernel_params.h"

static kernel_arg parse_good(const char *text, cli_pool *pool)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kernel_arg arg;
    kiln_status status = kernel_arg_parse(text, 3, pool, &arg, &diag);
    assert_string_equal(diag.why, "");
    assert_int_equal(status, KILN_OK);
    assert_string_equal(arg.name, "arg3");
    return arg;
}

static void every_form_is_read(void **state)
{
    cli_pool pool = POOL_INIT;
    kernel_arg arg = parse_good("value:f32=-2.5e0", &pool);
    assert_int_equal(arg.access, KERNEL_VALUE);
    assert_true(arg.value.real == -2.5 && arg.count == 1);
    arg = parse_good("in:i8:4x5=random:-3:3:9", &pool);
    assert_int_equal(arg.access, KERNEL_IN);
    assert_int_equal(arg.count, 20);
    assert_int_equal(arg.init.kind, DATA_RANDOM);
    assert_int_equal(arg.init.seed, 9);
    arg = parse_good("inout:f64:7=fill:0.5", &pool);
    assert_int_equal(arg.access, KERNEL_INOUT);
    assert_true(arg.init.kind == DATA_FILL && arg.init.a.real == 0.5);
    assert_int_equal(arg.init.seed, 4);
    arg = parse_good("in:u8:16=file:some:odd=name", &pool);
    assert_int_equal(arg.init.kind, DATA_FILE);
    assert_string_equal(arg.init.file, "some:odd=name");
    arg = parse_good("out:f16:2x3x4", &pool);
    assert_true(arg.access == KERNEL_OUT && arg.rank == 3 && arg.count == 24);
    arg = parse_good("local:f32:256", &pool);
    assert_true(arg.access == KERNEL_LOCAL && arg.count == 256);
    pool_deinit(&pool);
}

static void what_is_wrong_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "in",
                                      "x:f32:1",
                                      "in:f32",
                                      "in:f33:1",
                                      "in:f32:0",
                                      "in:f32:1x",
                                      "in:f32:1x1x1x1x1x1x1x1x1",
                                      "in:f32:99999999999999999999",
                                      "in:f64:4294967296x4294967296",
                                      "in:f32:4=fill",
                                      "in:f32:4=fill:x",
                                      "in:f32:4=random:1",
                                      "in:f32:4=random:2:1",
                                      "in:f32:4=random:0:1:-1",
                                      "in:f32:4=file:",
                                      "in:f32:4=nothing",
                                      "in:f32:1:2=fill:1",
                                      "value:f32",
                                      "value:f32=",
                                      "value:f32=abc",
                                      "value:u8=256",
                                      "value:i32=1.5",
                                      "value:f32:1=1",
                                      "out:f32:4=fill:1",
                                      "out:f32:4=file:a",
                                      "local:f32:4x4",
                                      "local:f32:0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        cli_pool pool = POOL_INIT;
        kernel_arg arg;
        if (kernel_arg_parse(bad[i], 0, &pool, &arg, &diag) != KILN_E_INVALID) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
        assert_non_null(strstr(diag.what, bad[i]));
        pool_deinit(&pool);
    }
}

static void files_name_their_argument(void **state)
{
    size_t index = 0;
    const char *file = NULL;
    assert_true(kernel_arg_parse_file("12=a=b.bin", &index, &file));
    assert_int_equal(index, 12);
    assert_string_equal(file, "a=b.bin");
    assert_false(kernel_arg_parse_file("12=", &index, &file));
    assert_false(kernel_arg_parse_file("=a", &index, &file));
    assert_false(kernel_arg_parse_file("a", &index, &file));
    assert_false(kernel_arg_parse_file("123456789=a", &index, &file));
}

static void declared_types_are_understood(void **state)
{
    assert_true(kernel_params_type_fits("float*", DATA_F32));
    assert_true(kernel_params_type_fits("const __global float4 *", DATA_F32));
    assert_false(kernel_params_type_fits("float*", DATA_I32));
    assert_false(kernel_params_type_fits("float*", DATA_F64));
    assert_true(kernel_params_type_fits("unsigned char", DATA_U8));
    assert_true(kernel_params_type_fits("unsigned char", DATA_I8));
    assert_false(kernel_params_type_fits("uint8_t", DATA_U16));
    assert_true(kernel_params_type_fits("half*", DATA_U16));
    assert_true(kernel_params_type_fits("ushort*", DATA_F16));
    assert_true(kernel_params_type_fits("struct thing *", DATA_F32));
    assert_true(kernel_params_type_fits("unsigned long", DATA_U64));
    assert_true(kernel_params_type_fits("", DATA_U64));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(files_name_their_argument),
        cmocka_unit_test(declared_types_are_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
