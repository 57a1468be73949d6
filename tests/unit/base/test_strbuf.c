/* The growing buffer and its sticky failure. */
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

#include "support/failalloc.h"
#include "support/suite.h"

KT_TEST(it_grows_and_stays_terminated)
{
    kn_strbuf b;
    kn_strbuf_init(&b, 0);
    assert_string_equal(kn_strbuf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        kn_strbuf_printf(&b, "%03d", i);
        assert_int_equal(strlen(kn_strbuf_text(&b)), b.length);
    }
    kn_strbuf_append_text(&b, "end");
    kn_strbuf_append_char(&b, '!');
    kn_strbuf_printf(&b, "%s", "");
    kn_strbuf_append(&b, NULL, 0);
    assert_true(kn_strbuf_ok(&b));
    assert_int_equal(b.length, 3004);
    assert_memory_equal(kn_strbuf_text(&b) + 2997, "999end!", 8);
    kn_strbuf_deinit(&b);
    assert_string_equal(kn_strbuf_text(&b), "");
}

/* Memory that was used before, so that nothing looks terminated by chance. */
KT_TEST(printing_nothing_first_terminates)
{
    char *used = malloc(64);
    assert_non_null(used);
    memset(used, 'x', 64);
    free(used);
    kn_strbuf b;
    kn_strbuf_init(&b, 0);
    kn_strbuf_printf(&b, "%s", "");
    assert_true(kn_strbuf_ok(&b));
    assert_int_equal(b.length, 0);
    assert_string_equal(kn_strbuf_text(&b), "");
    kn_strbuf_deinit(&b);
}

KT_TEST(numbers_are_decimal)
{
    kn_strbuf b;
    kn_strbuf_init(&b, 0);
    kn_strbuf_reserve(&b, 100);
    assert_true(b.capacity > 100);
    assert_string_equal(kn_strbuf_text(&b), "");
    kn_strbuf_append_u64(&b, 0);
    kn_strbuf_append_char(&b, ' ');
    kn_strbuf_append_u64(&b, 1020);
    kn_strbuf_append_char(&b, ' ');
    kn_strbuf_append_u64(&b, UINT64_MAX);
    assert_string_equal(kn_strbuf_text(&b), "0 1020 18446744073709551615");
    kn_strbuf_deinit(&b);
    kn_strbuf_init(&b, 3);
    kn_strbuf_reserve(&b, 4);
    assert_false(kn_strbuf_ok(&b));
    kn_strbuf_deinit(&b);
}

KT_TEST(bytes_may_be_zero)
{
    kn_strbuf b;
    kn_strbuf_init(&b, 0);
    kn_strbuf_append(&b, "a\0b", 3);
    assert_int_equal(b.length, 3);
    assert_memory_equal(kn_strbuf_text(&b), "a\0b", 4);
    kn_strbuf_deinit(&b);
}

KT_TEST(the_limit_is_exact_and_sticky)
{
    kn_strbuf b;
    kn_strbuf_init(&b, 5);
    kn_strbuf_append_text(&b, "12345");
    assert_true(kn_strbuf_ok(&b));
    kn_strbuf_append_char(&b, '6');
    assert_false(kn_strbuf_ok(&b));
    assert_string_equal(kn_strbuf_text(&b), "12345");
    kn_strbuf_append_text(&b, "");
    assert_false(kn_strbuf_ok(&b));
    assert_null(kn_strbuf_detach(&b, NULL));

    kn_strbuf_append_text(&b, "again"); /* empty and usable after the detach */
    assert_true(kn_strbuf_ok(&b));
    kn_strbuf_printf(&b, "%d", 1);
    assert_false(kn_strbuf_ok(&b));
    kn_strbuf_clear(&b);
    assert_true(kn_strbuf_ok(&b));
    assert_string_equal(kn_strbuf_text(&b), "");
    kn_strbuf_append_text(&b, "x");
    assert_string_equal(kn_strbuf_text(&b), "x");
    kn_strbuf_deinit(&b);
}

KT_TEST(detach_hands_the_bytes_over)
{
    kn_strbuf b;
    size_t length = 9;
    kn_strbuf_init(&b, 0);
    char *text = kn_strbuf_detach(&b, &length);
    assert_string_equal(text, "");
    assert_int_equal(length, 0);
    free(text);
    kn_strbuf_append_text(&b, "hello");
    text = kn_strbuf_detach(&b, &length);
    assert_string_equal(text, "hello");
    assert_int_equal(length, 5);
    assert_int_equal(b.length, 0);
    free(text);
    kn_strbuf_deinit(&b);
}

static bool build(void *user)
{
    kn_strbuf b;
    (void)user;
    kn_strbuf_init(&b, 0);
    for (int i = 0; i < 100; i++) {
        kn_strbuf_printf(&b, "line %d\n", i);
    }
    bool ok = kn_strbuf_ok(&b);
    char *text = kn_strbuf_detach(&b, NULL);
    assert_int_equal(ok, text != NULL);
    free(text);
    kn_strbuf_deinit(&b);
    return ok;
}

KT_TEST(want_of_memory_is_a_failure_not_a_crash)
{
    assert_true(kt_failalloc_each(build, NULL) >= 3);
}

KT_MAIN(NULL, NULL)
