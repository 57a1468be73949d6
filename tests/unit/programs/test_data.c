/* Numbers of eleven types: halves, ranges, generated values, comparison. */
#include "kernel/data.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

static void halves_survive_the_way_there_and_back(void **state)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++) {
        double value = data_f16_to((uint16_t)bits);
        if (!isnan(value)) {
            assert_int_equal(data_f16_from(value), bits);
        } else {
            assert_true(isnan(data_f16_to(data_f16_from(value))));
        }
    }
}

static void halves_are_rounded_to_even(void **state)
{
    assert_int_equal(data_f16_from(1.0 + 0x1p-11), 0x3C00); /* halfway: even is below */
    assert_int_equal(data_f16_from(1.0 + 0x1p-11 + 0x1p-30), 0x3C01);
    assert_int_equal(data_f16_from(1.0 + 3 * 0x1p-11), 0x3C02);
    assert_int_equal(data_f16_from(65519.9), 0x7BFF);
    assert_int_equal(data_f16_from(65520.0), 0x7C00);
    assert_int_equal(data_f16_from(-0x1p-25), 0x8000);
    assert_int_equal(data_f16_from(0x1p-14 - 0x1p-26), 0x0400); /* rounds up to a normal number */
    assert_int_equal(data_f16_from(2.0 - 0x1p-12), 0x4000);     /* carries into the exponent */
}

static void types_hold_what_they_can(void **state)
{
    static const struct {
        data_type type;
        int64_t least, most;
    } rows[] = {{DATA_I8, -128, 127},
                {DATA_U8, 0, 255},
                {DATA_I16, -32768, 32767},
                {DATA_U16, 0, 65535},
                {DATA_I32, INT32_MIN, INT32_MAX},
                {DATA_U32, 0, UINT32_MAX}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t cell = 0;
        assert_true(data_put(rows[i].type, &cell, 0, data_of_integer(rows[i].least)));
        assert_true(data_get(rows[i].type, &cell, 0) == (double)rows[i].least);
        assert_true(data_put(rows[i].type, &cell, 0, data_of_integer(rows[i].most)));
        assert_true(data_get(rows[i].type, &cell, 0) == (double)rows[i].most);
        assert_false(data_put(rows[i].type, &cell, 0, data_of_integer(rows[i].least - 1)));
        assert_false(data_put(rows[i].type, &cell, 0, data_of_integer(rows[i].most + 1)));
        assert_false(data_put(rows[i].type, &cell, 0, data_of_real(0.5)));
    }
    assert_false(data_fits(DATA_F32, data_of_real(1e39)));
    assert_false(data_fits(DATA_F16, data_of_real(70000)));
    assert_true(data_fits(DATA_F64, data_of_real(1e300)));
    assert_false(data_fits(DATA_U64, data_of_integer(-1)));
}

static void numbers_are_read_strictly(void **state)
{
    data_number number;
    assert_true(data_parse_number("-9223372036854775808", &number));
    assert_true(!number.is_real && number.integer == INT64_MIN);
    assert_true(data_parse_number("2.5e-3", &number));
    assert_true(number.is_real);
    static const char *const bad[] = {"",    "x",  "1x", "0x10",  "inf",
                                      "nan", " 1", "1 ", "1e999", "--1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(data_parse_number(bad[i], &number));
    }
}

static void filled_values_are_all_there(void **state)
{
    enum { MOST = 1000, GUARD = 0x5A };
    static const size_t counts[] = {0, 1, 2, 3, 7, MOST};
    const data_init inits[] = {{.kind = DATA_FILL}, {.kind = DATA_FILL, .a = data_of_integer(3)}};
    unsigned char values[MOST * 8 + 1];
    for (unsigned type = 0; type < DATA_TYPE_COUNT; type++) {
        for (size_t n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
            for (size_t k = 0; k < 2; k++) {
                const size_t end = counts[n] * data_type_size((data_type)type);
                memset(values, GUARD, sizeof(values));
                assert_int_equal(
                    data_generate(&inits[k], "x", (data_type)type, counts[n], values, NULL),
                    KILN_OK);
                for (size_t i = 0; i < counts[n]; i++) {
                    assert_true(data_get((data_type)type, values, i) == (k == 0 ? 0.0 : 3.0));
                }
                assert_int_equal(values[end], GUARD);
            }
        }
    }
}

static void generated_values_stay_the_same(void **state)
{
    /* The first outputs of splitmix64 for seed 1234567, as published with it, over 2^64. */
    const data_init init = {DATA_RANDOM, data_of_real(0.0), data_of_real(1.0), 1234567, NULL};
    double values[3];
    assert_int_equal(data_generate(&init, "x", DATA_F64, 3, values, NULL), KILN_OK);
    static const uint64_t outputs[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                       UINT64_C(9817491932198370423)};
    for (size_t i = 0; i < 3; i++) {
        assert_true(values[i] == (double)(outputs[i] >> 11) * 0x1p-53);
    }
}

static void random_integers_reach_both_ends(void **state)
{
    const data_init init = {DATA_RANDOM, data_of_integer(-2), data_of_integer(2), 7, NULL};
    int8_t values[1000];
    int seen[5] = {0};
    assert_int_equal(data_generate(&init, "x", DATA_I8, 1000, values, NULL), KILN_OK);
    for (size_t i = 0; i < 1000; i++) {
        assert_between(values[i], -2, 2);
        seen[values[i] + 2]++;
    }
    for (size_t i = 0; i < 5; i++) {
        assert_between(seen[i], 100, 300);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    data_init init = {DATA_FILL, data_of_integer(255), data_of_integer(0), 0, NULL};
    uint8_t values[7];
    assert_int_equal(data_generate(&init, "x", DATA_U8, 7, values, &diag), KILN_OK);
    assert_int_equal(values[6], 255);
    init.a = data_of_integer(256);
    assert_int_equal(data_generate(&init, "x", DATA_U8, 7, values, &diag), KILN_E_INVALID);
    assert_string_equal(diag.what, "x");
    assert_non_null(strstr(diag.why, "u8 cannot hold 256, element 0"));
}

static data_difference compare(float got, double want, double absolute, double relative)
{
    data_difference difference = {0};
    data_compare(DATA_F32, &got, DATA_F64, &want, 1, (data_tolerance){absolute, relative},
                 &difference);
    return difference;
}

static void tolerance_is_absolute_plus_relative(void **state)
{
    assert_int_equal(compare(1.5F, 1.0, 0.5, 0).wrong, 0);
    assert_int_equal(compare(1.5F, 1.0, 0.25, 0.25).wrong, 0);
    assert_int_equal(compare(1.5F, 1.0, 0.25, 0.2).wrong, 1);
    assert_true(compare(1.5F, 1.0, 0, 0).max_abs == 0.5);
    assert_true(compare(3.0F, 2.0, 0, 0).max_rel == 0.5);
}

static void what_is_no_number_is_wrong(void **state)
{
    assert_int_equal(compare(NAN, 1.0, 1e9, 1e9).wrong, 1);
    assert_true(isnan(compare(NAN, 1.0, 0, 0).max_abs));
    assert_int_equal(compare(1.0F, NAN, 1e9, 1e9).wrong, 1);
    assert_int_equal(compare(NAN, NAN, 0, 0).wrong, 0);
    assert_int_equal(compare(INFINITY, 1.0, 1e9, 1e9).wrong, 1);
    assert_int_equal(compare(1.0F, INFINITY, 1e9, 1e9).wrong, 1);
    assert_int_equal(compare(INFINITY, INFINITY, 0, 0).wrong, 0);
    assert_int_equal(compare(-INFINITY, INFINITY, 1e9, 1e9).wrong, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_survive_the_way_there_and_back),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(types_hold_what_they_can),
        cmocka_unit_test(numbers_are_read_strictly),
        cmocka_unit_test(filled_values_are_all_there),
        cmocka_unit_test(generated_values_stay_the_same),
        cmocka_unit_test(random_integers_reach_both_ends),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(tolerance_is_absolute_plus_relative),
        cmocka_unit_test(what_is_no_number_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
