/* Comparing results, records as bytes, buckets of sizes. */
#include "tune/compare.h"
#include "tune/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/failalloc.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static kiln_tune_output exact(kiln_element element)
{
    return (kiln_tune_output){.element = element};
}

static void what_is_off_is_told_with_its_place(void **state)
{
    const float wanted[] = {1, 2, 3, 4};
    const float got[] = {1, 2.5F, 3, 6};
    kiln_tune_output output = exact(KILN_ELEMENT_F32);
    kn_difference difference = kn_compare(&output, got, wanted, 4);
    assert_int_equal(difference.wrong, 2);
    assert_int_equal(difference.first, 1);
    assert_true(difference.got == 2.5 && difference.wanted == 2 && difference.largest == 2);
    output.absolute = 0.5;
    assert_int_equal(kn_compare(&output, got, wanted, 4).first, 3);
    output.relative = 0.4; /* 0.5 + 0.4 * 4 */
    assert_int_equal(kn_compare(&output, got, wanted, 4).wrong, 0);
    assert_true(kn_compare(&output, got, wanted, 4).largest == 2);
    assert_int_equal(kn_compare(&output, wanted, wanted, 4).wrong, 0);
}

/* A tolerance, however large, does not let a NaN through. */
static void only_equal_nans_and_infinities_are_equal(void **state)
{
    const double wanted[] = {NAN, INFINITY, -INFINITY, 1, -0.0, INFINITY};
    const double same[] = {-NAN, INFINITY, -INFINITY, 1, 0.0, INFINITY};
    const double other[] = {0, -INFINITY, 1, NAN, NAN, NAN};
    kiln_tune_output output = exact(KILN_ELEMENT_F64);
    assert_int_equal(kn_compare(&output, same, wanted, 6).wrong, 0);
    output.absolute = 1e300;
    output.relative = 1e3;
    kn_difference difference = kn_compare(&output, other, wanted, 6);
    assert_int_equal(difference.wrong, 6);
    assert_true(isinf(difference.largest));
}

static void every_element_has_its_value(void **state)
{
    const int8_t i8[] = {-100, 1};
    const uint8_t u8[] = {200, 1};
    const int16_t i16[] = {-30000, 1};
    const uint16_t u16[] = {60000, 1};
    const int32_t i32[] = {-2000000000, 1};
    const uint32_t u32[] = {4000000000U, 1};
    const int64_t i64[] = {INT64_MIN, 1};
    const uint64_t u64[] = {UINT64_MAX, 1};
    const uint16_t f16[] = {0xc000, 0x3c00};  /* -2, 1 */
    const uint16_t bf16[] = {0xc000, 0x3f80}; /* -2, 1 */
    const struct {
        kiln_element element;
        const void *data;
        size_t size;
        double value;
    } rows[] = {
        {KILN_ELEMENT_I8, i8, 1, -100},      {KILN_ELEMENT_U8, u8, 1, 200},
        {KILN_ELEMENT_I16, i16, 2, -30000},  {KILN_ELEMENT_U16, u16, 2, 60000},
        {KILN_ELEMENT_I32, i32, 4, -2e9},    {KILN_ELEMENT_U32, u32, 4, 4e9},
        {KILN_ELEMENT_I64, i64, 8, -0x1p63}, {KILN_ELEMENT_U64, u64, 8, 0x1p64},
        {KILN_ELEMENT_F16, f16, 2, -2},      {KILN_ELEMENT_BF16, bf16, 2, -2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *data = rows[i].data;
        kiln_tune_output output = exact(rows[i].element);
        assert_int_equal(kn_element_size(rows[i].element), rows[i].size);
        kn_difference difference = kn_compare(&output, data, data + rows[i].size, 1);
        assert_int_equal(difference.wrong, 1);
        assert_true(difference.got == rows[i].value && difference.wanted == 1);
    }
    assert_int_equal(kn_element_size((kiln_element)99), 0);
}

/* Half floats: the least one, the largest, what is none. */
static void halves_are_read_whole(void **state)
{
    const uint16_t got[] = {0x0001, 0x7bff, 0x7c00, 0x7e00};
    const uint16_t wanted[] = {0, 0, 0, 0};
    const double values[] = {0x1p-24, 65504, (double)INFINITY, (double)NAN};
    kiln_tune_output output = exact(KILN_ELEMENT_F16);
    for (size_t i = 0; i < 4; i++) {
        kn_difference difference = kn_compare(&output, &got[i], &wanted[i], 1);
        assert_int_equal(difference.wrong, 1);
        assert_true(difference.got == values[i] || (isnan(values[i]) && isnan(difference.got)));
    }
}

/* Two neighbours that a double cannot tell apart. */
static void large_integers_are_exact(void **state)
{
    const uint64_t wanted[] = {UINT64_MAX, 5};
    const uint64_t got[] = {UINT64_MAX - 1, 5};
    const int64_t low[] = {INT64_MIN};
    const int64_t high[] = {INT64_MAX};
    kiln_tune_output output = exact(KILN_ELEMENT_U64);
    kn_difference difference = kn_compare(&output, got, wanted, 2);
    assert_int_equal(difference.wrong, 1);
    assert_true(difference.largest == 1);
    output.element = KILN_ELEMENT_I64;
    assert_true(kn_compare(&output, low, high, 1).largest == 0x1p64);
}

static kn_tune_record record_of(const char *variant)
{
    kn_tune_record record = {.ns = 1234567890123,
                             .baseline_ns = 2,
                             .flops_per_s = 1.5e9,
                             .bytes_per_s = 0,
                             .has_program = true};
    memset(record.program.bytes, 0x5a, sizeof(record.program.bytes));
    strcpy(record.variant, variant);
    return record;
}

static void a_record_comes_back(void **state)
{
    kn_tune_record back;
    kn_tune_record record = record_of("tile 32 of 4");
    kiln_blob *blob = NULL;
    assert_int_equal(kn_tune_record_write(&record, kn_span_of(NULL, 0), &blob, NULL), KILN_OK);
    assert_true(kn_tune_record_read(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), &back));
    assert_memory_equal(&back, &record, sizeof(back));
    kiln_blob_release(blob);
}

/* Cut anywhere, or with any byte of its frame changed, it is not a record or is one that is
 * safe. */
static void a_damaged_record_is_none(void **state)
{
    kn_tune_record back;
    kn_tune_record record = record_of("v");
    kiln_blob *blob = NULL;
    assert_int_equal(kn_tune_record_write(&record, kn_span_of(NULL, 0), &blob, NULL), KILN_OK);
    const size_t size = kiln_blob_size(blob);
    char *copy = malloc(size);
    assert_non_null(copy);
    for (size_t i = 0; i < size; i++) {
        memcpy(copy, kiln_blob_data(blob), size);
        assert_false(kn_tune_record_read(kn_span_of(copy, i), &back));
    }
    copy[0] ^= 1;
    assert_false(kn_tune_record_read(kn_span_of(copy, size), &back));
    copy[0] ^= 1;
    copy[72] = 0; /* a name of no length, too long, beyond the end, with an end in it */
    assert_false(kn_tune_record_read(kn_span_of(copy, size), &back));
    copy[72] = 2;
    assert_false(kn_tune_record_read(kn_span_of(copy, size), &back));
    copy[72] = 1;
    copy[75] = 1;
    assert_false(kn_tune_record_read(kn_span_of(copy, size), &back));
    copy[75] = 0;
    copy[76] = 0;
    assert_false(kn_tune_record_read(kn_span_of(copy, size), &back));
    copy[76] = 'v';
    memset(copy + 24, 0xff, 8); /* a rate that is none */
    assert_true(kn_tune_record_read(kn_span_of(copy, size), &back));
    assert_true(back.flops_per_s == 0);
    free(copy);
    kiln_blob_release(blob);
}

static void rows_come_back_by_their_names(void **state)
{
    static const kiln_variant written[] = {{.name = "a"}, {.name = "b"}, {.name = "other"}};
    static const kiln_variant read[] = {{.name = "other"}, {.name = "new"}, {.name = "b"}};
    const kiln_kernel from = {.variants = written, .variant_count = 3};
    const kiln_kernel to = {.variants = read, .variant_count = 3};
    const kiln_tune_row rows[] = {
        {.outcome = KILN_TUNE_CHOSEN, .samples = 8, .median_ns = 5, .low_ns = 4, .high_ns = 6},
        {.outcome = KILN_TUNE_DIFFERS, .status = KILN_E_INVALID, .reason = "element 1 is 4"},
        {.outcome = KILN_TUNE_PASSED_OVER}};
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_tune_rows_write(&from, rows, &bytes);
    assert_true(kn_strbuf_ok(&bytes));
    for (size_t length = 0; length <= bytes.length; length++) {
        kiln_tune_row back[3] = {{.outcome = KILN_TUNE_NOT_MEASURED},
                                 {.outcome = KILN_TUNE_NOT_MEASURED},
                                 {.outcome = KILN_TUNE_NOT_MEASURED}};
        char *exact = malloc(length + 1);
        assert_non_null(exact);
        memcpy(exact, bytes.data, length);
        kn_tune_rows_read(kn_span_of(exact, length), &to, back);
        assert_int_equal(back[0].outcome, KILN_TUNE_NOT_MEASURED);
        assert_int_equal(back[1].outcome, KILN_TUNE_NOT_MEASURED);
        if (length == bytes.length) {
            assert_int_equal(back[2].outcome, KILN_TUNE_DIFFERS);
            assert_int_equal(back[2].status, KILN_E_INVALID);
            assert_string_equal(back[2].reason, "element 1 is 4");
        } else { /* cut off */
            assert_int_equal(back[2].outcome, KILN_TUNE_NOT_MEASURED);
        }
        free(exact);
    }
    for (size_t i = 0; i < bytes.length; i++) { /* every byte at its worst */
        kiln_tune_row back[3] = {{.outcome = KILN_TUNE_NOT_MEASURED}};
        char kept = bytes.data[i];
        bytes.data[i] = (char)0xff;
        kn_tune_rows_read(kn_span_of(bytes.data, bytes.length), &to, back);
        bytes.data[i] = kept;
    }
    kn_strbuf_deinit(&bytes);
}

static bool write_body(void *user)
{
    kiln_blob *blob = NULL;
    if (kn_tune_record_write(user, kn_span_of(NULL, 0), &blob, NULL) != KILN_OK) {
        return false;
    }
    kiln_blob_release(blob);
    return true;
}

static void a_record_may_find_no_memory(void **state)
{
    kn_tune_record record = record_of("v");
    assert_true(kt_failalloc_each(write_body, &record) >= 1);
}

static void buckets_are_powers_of_two(void **state)
{
    const uint64_t rows[][2] = {{0, 0},
                                {1, 1},
                                {2, 2},
                                {3, 4},
                                {1000, 1024},
                                {1024, 1024},
                                {1025, 2048},
                                {UINT64_C(1) << 63, UINT64_C(1) << 63},
                                {(UINT64_C(1) << 63) + 1, UINT64_MAX}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(kn_tune_bucket(rows[i][0]) == rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_off_is_told_with_its_place),
        cmocka_unit_test(only_equal_nans_and_infinities_are_equal),
        cmocka_unit_test(every_element_has_its_value),
        cmocka_unit_test(halves_are_read_whole),
        cmocka_unit_test(large_integers_are_exact),
        cmocka_unit_test(a_record_comes_back),
        cmocka_unit_test(a_damaged_record_is_none),
        cmocka_unit_test(rows_come_back_by_their_names),
        cmocka_unit_test(a_record_may_find_no_memory),
        cmocka_unit_test(buckets_are_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
