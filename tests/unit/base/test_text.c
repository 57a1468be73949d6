/* Small text helpers. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "support/failalloc.h"
#include "support/suite.h"

KT_TEST(copies_are_terminated_and_may_fail)
{
    char *a = kn_text_copy("abc");
    char *b = kn_text_copy_n("abc", 2);
    char *c = kn_bytes_copy("a\0c", 3);
    char *d = kn_text_copy_n(NULL, 0);
    assert_string_equal(a, "abc");
    assert_string_equal(b, "ab");
    assert_memory_equal(c, "a\0c", 3);
    assert_string_equal(d, "");
    free(a);
    free(b);
    free(c);
    free(d);
    assert_null(kn_text_copy_n("x", SIZE_MAX));
    kt_failalloc_arm(1, true);
    assert_null(kn_text_copy("abc"));
    assert_null(kn_text_copy_n("abc", 1));
    assert_null(kn_bytes_copy("abc", 0));
    kt_failalloc_disarm();
}

KT_TEST(a_field_is_cut_between_characters)
{
    static const struct {
        const char *text;
        size_t size;
        const char *field;
    } rows[] = {
        {"abc", 4, "abc"},
        {"abcd", 4, "abc"},
        {"abc", 1, ""},
        {"", 3, ""},
        {"a\xc3\xa4", 4, "a\xc3\xa4"},
        {"a\xc3\xa4", 3, "a"},
        {"a\xc3\xa4x", 4, "a\xc3\xa4"},
        {"\xe2\x82\xac\xe2\x82\xac", 6, "\xe2\x82\xac"},
        {"\xe2\x82\xac\xe2\x82\xac", 5, "\xe2\x82\xac"},
        {"\xf0\x9f\x94\xa5", 4, ""},
        {"\xf0\x9f\x94\xa5", 5, "\xf0\x9f\x94\xa5"},
        {"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80"}, /* no UTF-8 at all */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char field[16];
        memset(field, 'Z', sizeof field);
        kn_text_put(field, rows[i].size, rows[i].text);
        assert_string_equal(field, rows[i].field);
        assert_int_equal(field[rows[i].size], 'Z');
        memset(field, 'Z', sizeof field);
        kn_text_putf(field, rows[i].size, "%s", rows[i].text);
        assert_string_equal(field, rows[i].field);
        assert_int_equal(field[rows[i].size], 'Z');
    }
    char untouched = 'Z';
    kn_text_put(&untouched, 0, "abc");
    kn_text_putf(&untouched, 0, "%s", "abc");
    char number[24];
    kn_text_put_number(number, sizeof number, "sm_", 90);
    assert_string_equal(number, "sm_90");
    kn_text_put_number(number, sizeof number, "", 0);
    assert_string_equal(number, "0");
    kn_text_put_number(number, sizeof number, "", UINT64_MAX);
    assert_string_equal(number, "18446744073709551615");
    kn_text_put_number(number, 4, "sm_", 90);
    assert_string_equal(number, "sm_");
    kn_text_put_number(number, 5, "sm_", 90);
    assert_string_equal(number, "sm_9");
    assert_int_equal(untouched, 'Z');

    char own[8] = "abcdef";
    kn_text_put(own, 4, own);
    assert_string_equal(own, "abc");
}

KT_TEST(starts_and_ends)
{
    assert_true(kn_text_starts("kernel.cl", "kern"));
    assert_true(kn_text_starts("kernel.cl", ""));
    assert_false(kn_text_starts("ker", "kern"));
    assert_true(kn_text_ends("kernel.cl", ".cl"));
    assert_true(kn_text_ends("kernel.cl", ""));
    assert_false(kn_text_ends("cl", ".cl"));
    assert_false(kn_text_ends("kernel.cl", ".c"));
}

KT_TEST(control_characters_become_blanks)
{
    char line[] = "a\r\nb\tc\x01\x7f\xc3\xa4";
    kn_text_flatten(line);
    assert_string_equal(line, "a  b c  \xc3\xa4");
}

KT_TEST(numbers_are_whole_or_refused)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "-1", "+1", "0x10", "1.5", "1e3", "K", "1a", "18446744073709551616"};
    uint64_t value = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(kn_text_to_u64(bad[i], &value));
        assert_false(kn_text_to_size(bad[i], &value));
    }
    assert_false(kn_text_to_u64("1K", &value));
    assert_true(value == 7);
    assert_true(kn_text_to_u64("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    assert_true(kn_text_to_u64("007", &value));
    assert_true(value == 7);
}

KT_TEST(sizes_have_units_of_1024)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"100", 100},
                {"1K", 1024},
                {"512M", UINT64_C(512) << 20},
                {"2G", UINT64_C(2) << 30},
                {"3T", UINT64_C(3) << 40},
                {"16777215T", UINT64_C(16777215) << 40},
                {"0T", 0}};
    static const char *const bad[] = {"16777216T", "1KB", "1KK", "1P", "1k", "2 G", "G2", "1.5G"};
    uint64_t bytes = 7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(kn_text_to_size(bad[i], &bytes));
        assert_true(bytes == 7);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(kn_text_to_size(good[i].text, &bytes));
        assert_true(bytes == good[i].bytes);
    }
}

KT_TEST(hex_goes_both_ways)
{
    unsigned char bytes[256];
    unsigned char back[256];
    char text[513];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)i;
    }
    kn_hex_encode(bytes, sizeof bytes, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102030405060708090a0b", 24);
    assert_true(kn_hex_decode(text, back, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    assert_true(kn_hex_decode("aBFf", back, 2));
    assert_memory_equal(back, "\xab\xff", 2);
    assert_true(kn_hex_decode("", back, 0));
    assert_false(kn_hex_decode("abf", back, 2));
    assert_false(kn_hex_decode("abff0", back, 2));
    assert_false(kn_hex_decode("abfg", back, 2));
    assert_false(kn_hex_decode("ab f", back, 2));
    assert_false(kn_hex_decode("", back, 1));
}

KT_TEST(words_apart)
{
    const char *const apart[][2] = {{"vulcan", "vulkan"}, {"opencl", "opncl"}, {"cuda", "cudaa"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kn_text_distance(apart[i][0], apart[i][1]), 1);
        assert_int_equal(kn_text_distance(apart[i][1], apart[i][0]), 1);
    }
    assert_int_equal(kn_text_distance("", "cpu"), 3);
    assert_int_equal(kn_text_distance("cpu", ""), 3);
    assert_int_equal(kn_text_distance("cpu", "cpu"), 0);
    assert_int_equal(kn_text_distance("pocl", "opencl"), 3);
    assert_true(kn_text_distance("a word of more than thirty-two bytes", "cpu") == SIZE_MAX);
}

KT_MAIN(NULL, NULL)
