/* Environment variables, parsed. */
#include "sys/env.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#define NAME "KILN_TEST_VARIABLE"

static void set(const char *value)
{
    assert_int_equal(value != NULL ? setenv(NAME, value, 1) : unsetenv(NAME), 0);
}

static void unset_and_empty_leave_the_default(void **state)
{
    static const char *const values[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        bool flag = true;
        uint64_t number = 7;
        set(values[i]);
        assert_int_equal(kn_env_bool(NAME, &flag, NULL), KILN_OK);
        assert_int_equal(kn_env_size(NAME, &number, NULL), KILN_OK);
        assert_int_equal(kn_env_u64(NAME, 1, 2, &number, NULL), KILN_OK);
        assert_true(flag && number == 7);
    }
    assert_string_equal(kn_env_get(NAME), "");
    set(NULL);
    assert_null(kn_env_get(NAME));
}

static void flags_have_eight_words(void **state)
{
    static const char *const yes[] = {"1", "true", "yes", "on", "ON", "True"};
    static const char *const no[] = {"0", "false", "no", "off", "Off", "FALSE"};
    for (size_t i = 0; i < 6; i++) {
        bool flag = false;
        set(yes[i]);
        assert_int_equal(kn_env_bool(NAME, &flag, NULL), KILN_OK);
        assert_true(flag);
        set(no[i]);
        assert_int_equal(kn_env_bool(NAME, &flag, NULL), KILN_OK);
        assert_false(flag);
    }
}

static void numbers_keep_their_range(void **state)
{
    uint64_t n = 0;
    set("2G");
    assert_int_equal(kn_env_size(NAME, &n, NULL), KILN_OK);
    assert_true(n == UINT64_C(2) << 30);
    set("16");
    assert_int_equal(kn_env_u64(NAME, 1, 16, &n, NULL), KILN_OK);
    assert_true(n == 16);
    assert_int_equal(kn_env_u64(NAME, 1, 15, &n, NULL), KILN_E_INVALID);
    assert_int_equal(kn_env_u64(NAME, 17, UINT64_MAX, &n, NULL), KILN_E_INVALID);
    assert_true(n == 16);
}

static void a_malformed_value_names_the_variable(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    bool flag = true;
    uint64_t n = 7;
    set("maybe\n");
    assert_int_equal(kn_env_bool(NAME, &flag, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.what, NAME));
    assert_non_null(strstr(diag.why, "maybe"));
    assert_non_null(strstr(diag.fix, NAME));
    assert_int_equal(kn_env_size(NAME, &n, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.fix, "2G"));
    assert_int_equal(kn_env_u64(NAME, 3, 9, &n, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "from 3 to 9"));
    set("-1");
    assert_int_equal(kn_env_u64(NAME, 3, UINT64_MAX, &n, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "at least 3"));
    assert_true(flag && n == 7);
    kiln_diag_clear(&diag);
}

static void what_begins_so_is_known(void **state)
{
    assert_int_equal(setenv("ZQ_ONE", "1", 1), 0);
    assert_true(kn_env_may_have("ZQ", "x_"));
#ifndef _WIN32 /* where it says true of all */
    assert_false(kn_env_may_have("ZQ", "xO"));
    assert_false(kn_env_may_have("QZ", "_"));
    assert_int_equal(unsetenv("ZQ_ONE"), 0);
    assert_false(kn_env_may_have("ZQ", "x_"));
#endif
}

/* A library that splits a list where it lies. */
static void a_value_that_was_cut_is_mended(void **state)
{
#ifdef _WIN32
    skip(); /* kiln has a copy there, and so has everybody else */
#endif
    set("one:two:three");
    kn_env_kept kept = kn_env_keep(NAME);
    char *value = getenv(NAME);
    value[3] = '\0';
    value[7] = '\0';
    kn_env_mend(&kept);
    assert_string_equal(getenv(NAME), "one:two:three");
    kept = kn_env_keep(NAME);
    set("on"); /* another user's, in a place of its own */
    kn_env_mend(&kept);
    assert_string_equal(getenv(NAME), "on");
    set(NULL);
    kept = kn_env_keep(NAME);
    kn_env_mend(&kept);
    assert_null(getenv(NAME));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unset_and_empty_leave_the_default),
        cmocka_unit_test(flags_have_eight_words),
        cmocka_unit_test(numbers_keep_their_range),
        cmocka_unit_test(a_malformed_value_names_the_variable),
        cmocka_unit_test(what_begins_so_is_known),
        cmocka_unit_test(a_value_that_was_cut_is_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
