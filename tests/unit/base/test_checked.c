/* Size arithmetic that cannot wrap, and little-endian numbers. */
#include "base/checked.h"

#include <string.h>

#include "support/suite.h"

KT_TEST(sums_that_wrap_are_refused)
{
    size_t out = 7;
    assert_true(kn_add_size(2, 3, &out));
    assert_int_equal(out, 5);
    assert_true(kn_add_size(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
    out = 7;
    assert_false(kn_add_size(SIZE_MAX, 1, &out));
    assert_int_equal(out, 7);
}

KT_TEST(products_that_wrap_are_refused)
{
    size_t out = 7;
    assert_true(kn_mul_size(6, 7, &out));
    assert_int_equal(out, 42);
    assert_true(kn_mul_size(SIZE_MAX, 0, &out));
    assert_int_equal(out, 0);
    assert_true(kn_mul_size(0, SIZE_MAX, &out));
    assert_true(kn_mul_size(SIZE_MAX / 2, 2, &out));
    out = 7;
    assert_false(kn_mul_size(SIZE_MAX / 2 + 1, 2, &out));
    assert_int_equal(out, 7);
}

KT_TEST(numbers_are_little_endian)
{
    unsigned char bytes[8];
    kn_put_u32(bytes, UINT32_C(0x89abcdef));
    assert_memory_equal(bytes, "\xef\xcd\xab\x89", 4);
    assert_true(kn_get_u16(bytes) == UINT16_C(0xcdef));
    assert_true(kn_get_u32(bytes) == UINT32_C(0x89abcdef));
    kn_put_u64(bytes, UINT64_C(0xfedcba9876543210));
    assert_memory_equal(bytes, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
    assert_true(kn_get_u64(bytes) == UINT64_C(0xfedcba9876543210));
}

KT_MAIN(NULL, NULL)
