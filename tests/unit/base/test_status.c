/* Names and texts of status codes. */
#include "kiln/status.h"

#include <string.h>

#include "support/cmocka.h"

static void every_status_has_its_name_and_a_text(void **state)
{
    (void)state;
#define CHECK(name, value, text)                                                                   \
    assert_int_equal(name, value);                                                                 \
    assert_string_equal(kiln_status_name(name), #name);                                            \
    assert_string_equal(kiln_status_text(name), text);
    KILN_STATUS_MAP(CHECK)
#undef CHECK
    assert_string_equal(kiln_status_name(KILN_E_IO), "KILN_E_IO");
    assert_int_equal(KILN_OK, 0);
}

static void texts_are_all_different(void **state)
{
    const kiln_status all[] = {
#define VALUE(name, value, text) name,
        KILN_STATUS_MAP(VALUE)
#undef VALUE
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(kiln_status_text(all[i]), kiln_status_text(all[j]));
        }
    }
}

static void unknown_values_are_named_so(void **state)
{
    (void)state;
    assert_string_equal(kiln_status_name((kiln_status)9999), "KILN_E_UNKNOWN");
    assert_string_equal(kiln_status_text((kiln_status)-1), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name_and_a_text),
        cmocka_unit_test(texts_are_all_different),
        cmocka_unit_test(unknown_values_are_named_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
