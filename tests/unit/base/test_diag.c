/* The caller's diagnostic. */
#include "base/diag.h"

#include <stdlib.h>
#include <string.h>

#include "support/failalloc.h"
#include "support/suite.h"

KT_TEST(set_fills_all_lines_and_returns_the_status)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(
        kiln_diag_set(&diag, KILN_E_IO, "free space", "cannot write x", "disk %d full", 3),
        KILN_E_IO);
    assert_int_equal(diag.status, KILN_E_IO);
    assert_string_equal(diag.what, "cannot write x");
    assert_string_equal(diag.why, "disk 3 full");
    assert_string_equal(diag.fix, "free space");
    kiln_diag_clear(&diag);
    assert_int_equal(diag.status, KILN_OK);
    assert_string_equal(diag.what, "");
}

KT_TEST(null_is_allowed_everywhere)
{
    assert_int_equal(kiln_diag_set(NULL, KILN_E_BUSY, "a", "b", "%s", "c"), KILN_E_BUSY);
    kiln_diag_set_log(NULL, "x", 1);
    kiln_diag_set_vendor_code(NULL, 5);
    kiln_diag_clear(NULL);

    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_diag_set(&diag, KILN_E_BUSY, NULL, NULL, NULL), KILN_E_BUSY);
    assert_string_equal(diag.what, "");
    assert_string_equal(diag.why, "");
    assert_string_equal(diag.fix, "");
    char line[8];
    assert_int_equal(kiln_diag_format(NULL, line, sizeof line), 0);
    assert_string_equal(line, "");
}

KT_TEST(setting_replaces_log_and_code)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_diag_set_log(&diag, "error: x", 8);
    kiln_diag_set_vendor_code(&diag, -11);
    assert_int_equal(diag.vendor_code, -11);
    assert_int_equal(diag.log_length, 8);
    assert_string_equal(diag.log, "error: x");
    (void)kiln_diag_set(&diag, KILN_E_COMPILE, NULL, "y", NULL);
    assert_int_equal(diag.vendor_code, 0);
    assert_null(diag.log);
    assert_int_equal(diag.log_length, 0);
    kiln_diag_clear(&diag);
}

KT_TEST(arguments_may_come_from_the_diag_itself)
{
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kiln_diag_set(&diag, KILN_E_IO, "fix it", "inner", "%s", "because");
    (void)kiln_diag_set(&diag, diag.status, diag.fix, "outer", "%s: %s", diag.what, diag.why);
    assert_string_equal(diag.what, "outer");
    assert_string_equal(diag.why, "inner: because");
    assert_string_equal(diag.fix, "fix it");
    kiln_diag_clear(&diag);
}

KT_TEST(line_breaks_become_blanks)
{
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kiln_diag_set(&diag, KILN_E_IO, "a\tb", "c\nd\r", "%s", "e\x1b[31m\nf\x7f");
    assert_string_equal(diag.fix, "a b");
    assert_string_equal(diag.what, "c d ");
    assert_string_equal(diag.why, "e [31m f ");
    kiln_diag_clear(&diag);
}

KT_TEST(long_lines_are_cut_between_characters)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char text[2000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof text; i += 4) {
            memcpy(text + i, "\xf0\x9f\x94\xa5", 4);
        }
        text[sizeof text - 8] = '\0';
        (void)kiln_diag_set(&diag, KILN_E_IO, text, text, "%s", text);
        const char *lines[] = {diag.what, diag.why, diag.fix};
        const size_t sizes[] = {sizeof diag.what, sizeof diag.why, sizeof diag.fix};
        for (size_t i = 0; i < 3; i++) {
            size_t length = strlen(lines[i]);
            assert_true(length < sizes[i] && length + 5 > sizes[i]);
            assert_int_equal((length - shift) % 4, 0);
        }
    }
    kiln_diag_clear(&diag);
}

KT_TEST(a_log_is_kept_as_it_is_up_to_a_bound)
{
    kiln_diag diag = KILN_DIAG_INIT;
    size_t size = ((size_t)1 << 20) + 10;
    char *big = malloc(size);
    assert_non_null(big);
    memset(big, 'x', size);
    big[1] = '\0';
    big[2] = '\n';
    kiln_diag_set_log(&diag, big, size);
    assert_int_equal(diag.log_length, 1 << 20);
    assert_memory_equal(diag.log, big, 1 << 20);
    assert_int_equal(diag.log[diag.log_length], '\0');
    kiln_diag_set_log(&diag, NULL, 5);
    assert_null(diag.log);
    assert_int_equal(diag.log_length, 0);
    kiln_diag_clear(&diag);
    free(big);
}

KT_TEST(a_log_is_dropped_for_want_of_memory)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kt_failalloc_arm(1, false);
    kiln_diag_set_log(&diag, "text", 4);
    kt_failalloc_disarm();
    assert_true(kt_failalloc_fired());
    assert_null(diag.log);
    assert_int_equal(diag.log_length, 0);
}

KT_TEST(format_joins_what_is_there)
{
    static const struct {
        const char *what, *why, *fix, *line;
    } rows[] = {
        {"a", "b", "c", "a: b (c)"}, {"a", "b", "", "a: b"},  {"a", "", "c", "a: in use (c)"},
        {"", "b", "", "b"},          {"", "b", "c", "b (c)"}, {"", "", "", "in use"},
    };
    char line[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        (void)kiln_diag_set(&diag, KILN_E_BUSY, rows[i].fix, rows[i].what, "%s", rows[i].why);
        assert_int_equal(kiln_diag_format(&diag, line, sizeof line), strlen(rows[i].line));
        assert_string_equal(line, rows[i].line);
        char small[4];
        assert_int_equal(kiln_diag_format(&diag, small, sizeof small), strlen(rows[i].line));
        assert_true(strlen(small) <= 3);
    }
    kiln_diag empty = KILN_DIAG_INIT;
    assert_int_equal(kiln_diag_format(&empty, line, sizeof line), 0);
    assert_string_equal(line, "");
    assert_int_equal(kiln_diag_format(&empty, NULL, 0), 0);
}

/* A diag that says all that one can say. */
static kiln_diag full_diag(void)
{
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kiln_diag_set(&diag, KILN_E_COMPILE, "mend it", "a.cl", "line %d", 7);
    kiln_diag_set_vendor_code(&diag, -11);
    kiln_diag_set_log(&diag, "error: x", 8);
    return diag;
}

static void expect_full(const kiln_diag *diag)
{
    assert_int_equal(diag->status, KILN_E_COMPILE);
    assert_int_equal(diag->vendor_code, -11);
    assert_string_equal(diag->what, "a.cl");
    assert_string_equal(diag->why, "line 7");
    assert_string_equal(diag->fix, "mend it");
    assert_non_null(diag->log);
    assert_string_equal(diag->log, "error: x");
    assert_int_equal(diag->log_length, 8);
}

static void expect_empty(const kiln_diag *diag)
{
    assert_int_equal(diag->status, KILN_OK);
    assert_int_equal(diag->vendor_code, 0);
    assert_string_equal(diag->what, "");
    assert_null(diag->log);
    assert_int_equal(diag->log_length, 0);
}

KT_TEST(a_move_loses_nothing)
{
    kiln_diag from = full_diag();
    kiln_diag to = full_diag(); /* whose own log must not leak */
    (void)kiln_diag_set(&to, KILN_E_IO, NULL, "older", "older");
    kn_diag_move(&to, &from);
    expect_full(&to);
    expect_empty(&from);
    kn_diag_move(NULL, &to);
    expect_empty(&to);
}

KT_TEST(a_copy_loses_nothing)
{
    kiln_diag from = full_diag();
    kiln_diag to = full_diag();
    kn_diag_copy(&to, &from);
    expect_full(&to);
    expect_full(&from);
    assert_ptr_not_equal(to.log, from.log);
    kn_diag_copy(NULL, &from);
    kiln_diag_clear(&to);
    kt_failalloc_arm(1, false);
    kn_diag_copy(&to, &from);
    kt_failalloc_disarm();
    assert_int_equal(to.vendor_code, -11);
    assert_null(to.log);
    assert_int_equal(to.log_length, 0);
    kiln_diag_clear(&to);
    kiln_diag_clear(&from);
}

KT_TEST(memory_that_ran_out_is_named)
{
    kiln_diag diag = full_diag();
    char line[64];
    assert_int_equal(kn_no_memory(&diag, "opening a cache"), KILN_E_NOMEM);
    (void)kiln_diag_format(&diag, line, sizeof line);
    assert_string_equal(line, "opening a cache: out of memory");
    assert_int_equal(kn_no_memory(NULL, "x"), KILN_E_NOMEM);
}

KT_MAIN(NULL, NULL)
