/* Parts in one piece: what was appended is found, and what is not whole is said. */
#include "interpose/parts.h"

#include "support/cmocka.h"

static void parts_come_back(void **state)
{
    kn_strbuf payload;
    kn_span bytes;
    uint32_t code = 0;
    kn_strbuf_init(&payload, 0);
    kn_parts_append(&payload, 3, 7, kn_span_of("abc", 3));
    kn_parts_append(&payload, 1, 0, kn_span_of(NULL, 0));
    const kn_span whole = kn_span_of(payload.data, payload.length);
    assert_true(kn_strbuf_ok(&payload) && kn_parts_are_whole(whole));
    assert_true(kn_parts_get(whole, 3, &code, &bytes));
    assert_int_equal(code, 7);
    assert_true(kn_span_equal(bytes, kn_span_of("abc", 3)));
    assert_true(kn_parts_get(whole, 1, NULL, &bytes));
    assert_int_equal(bytes.length, 0);
    assert_false(kn_parts_get(whole, 2, &code, &bytes));
    kn_strbuf_deinit(&payload);
}

static void each_cut_is_seen(void **state)
{
    kn_strbuf payload;
    kn_strbuf_init(&payload, 0);
    kn_parts_append(&payload, 3, 7, kn_span_of("abcdef", 6));
    for (size_t length = 1; length < payload.length; length++) {
        kn_span bytes;
        assert_false(kn_parts_are_whole(kn_span_of(payload.data, length)));
        assert_false(kn_parts_get(kn_span_of(payload.data, length), 3, NULL, &bytes));
    }
    /* a length that would wrap */
    for (int i = 8; i < 16; i++) {
        payload.data[i] = (char)0xff;
    }
    assert_false(kn_parts_are_whole(kn_span_of(payload.data, payload.length)));
    assert_true(kn_parts_are_whole(kn_span_of(NULL, 0)));
    kn_strbuf_deinit(&payload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_come_back),
        cmocka_unit_test(each_cut_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
