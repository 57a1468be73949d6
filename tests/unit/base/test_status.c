/* Names and texts of status codes. */
#include "kiln/status.h"

#include <string.h>

#include "support/suite.h"

KT_TEST(every_status_has_its_name_and_a_text)
{
#define CHECK(name, value, text)                                                                   \
    assert_int_equal(name, value);                                                                 \
    assert_string_equal(kiln_status_name(name), #name);                                            \
    assert_string_equal(kiln_status_text(name), text);
    KILN_STATUS_MAP(CHECK)
#undef CHECK
    assert_string_equal(kiln_status_name(KILN_E_IO), "KILN_E_IO");
    assert_int_equal(KILN_OK, 0);
}

KT_TEST(texts_are_all_different)
{
    const kiln_status all[] = {
#define VALUE(name, value, text) name,
        KILN_STATUS_MAP(VALUE)
#undef VALUE
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(kiln_status_text(all[i]), kiln_status_text(all[j]));
        }
    }
}

KT_TEST(unknown_values_are_named_so)
{
    assert_string_equal(kiln_status_name((kiln_status)9999), "KILN_E_UNKNOWN");
    assert_string_equal(kiln_status_text((kiln_status)-1), "unknown status");
}

KT_MAIN(NULL, NULL)
