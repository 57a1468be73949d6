/* Tables, units, JSON, and text that came from drivers. */
#include "cli/out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

static void tables_line_up(void **state)
{
    cli_pool pool = POOL_INIT;
    char text[256] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    assert_non_null(file);
    out_table table = out_table_make(&pool, "name|>size|");
    out_table_add(&table, (const char *const[]){"Gr\xC3\xB6\xC3\x9F"
                                                "e",
                                                "1", "x"});
    out_table_add(&table, (const char *const[]){"a\tb", "12345", "y\n"});
    assert_true(out_table_print(&table, file));
    (void)fclose(file);
    assert_string_equal(text, "name    size  \n"
                              "Gr\xC3\xB6\xC3\x9F"
                              "e      1  x\n"
                              "a b    12345  y \n");
    pool_deinit(&pool);
}

static void a_missing_cell_is_not_hidden(void **state)
{
    cli_pool pool = POOL_INIT;
    out_table table = out_table_make(&pool, "name");
    out_table_add(&table, (const char *const[]){NULL});
    assert_false(out_table_print(&table, stdout));
    pool_deinit(&pool);
}

static void units_fit(void **state)
{
    cli_pool pool = POOL_INIT;
    assert_string_equal(out_bytes(&pool, 0), "0 B");
    assert_string_equal(out_bytes(&pool, 1023), "1023 B");
    assert_string_equal(out_bytes(&pool, 1024), "1.0 KiB");
    assert_string_equal(out_bytes(&pool, 1048575), "1.0 MiB");
    assert_string_equal(out_bytes(&pool, UINT64_C(5) << 40), "5.0 TiB");
    assert_string_equal(out_ms(&pool, 1234567), "1.235");
    assert_string_equal(out_time(&pool, 1500), "1.5 us");
    assert_string_equal(out_time(&pool, 75000000), "75.0 ms");
    assert_string_equal(out_time(&pool, 90000000000u), "90.0 s");
    assert_string_equal(out_ago(&pool, 0), "never");
    pool_deinit(&pool);
}

static void bad_text_is_cleaned(void **state)
{
    cli_pool pool = POOL_INIT;
    assert_string_equal(out_clean(&pool, "a\x1B[31mb"), "a [31mb");
    assert_string_equal(out_clean(&pool, "\xC0\x80\xED\xA0\x80\xF5x\xE2\x82"), "??????x??");
    assert_string_equal(out_clean(&pool, "\xE2\x82\xAC"), "\xE2\x82\xAC");
    pool_deinit(&pool);
}

static char *printed(const char *format, ...)
{
    static char text[2048];
    va_list args;
    memset(text, 0, sizeof(text));
    FILE *file = fmemopen(text, sizeof(text), "w");
    assert_non_null(file);
    va_start(args, format);
    out_vprint(file, format, args);
    va_end(args);
    (void)fclose(file);
    return text;
}

/* E20: a path may have a line break; what looks like a line of kiln's is one. */
static void lines_are_the_formats_alone(void **state)
{
    char all[64] = "", wanted[2048], longer[1500];
    assert_string_equal(printed("cache %s\nentries %d\n", "/a\nentries 7\n\x1b[2J", 3),
                        "cache /a entries 7  [2J\nentries 3\n");
    assert_string_equal(printed("\n%s\n\n", "\n"), "\n \n\n");
    assert_string_equal(printed("%s\t%s", "\x01\n", "\x02\x03"), "  \t  ");
    assert_string_equal(printed("%s", ""), "");
    /* Each control character that could stand for the format's line breaks is in the value. */
    for (char c = 1; c < 32; c++) {
        all[c - 1] = c;
    }
    assert_null(strchr(printed("%s", all), '\n'));
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    (void)snprintf(wanted, sizeof(wanted), "%s\n", longer);
    assert_string_equal(printed("%s\n", longer), wanted);
}

static void json_takes_anything(void **state)
{
    char text[256] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    assert_non_null(file);
    json_t *root = json_object();
    out_json_set(&root, "z", out_json_text("\xFF"));
    out_json_set(&root, "a", out_json_real(NAN));
    out_json_set(&root, "m", out_json_ms(1234567));
    out_json_set(&root, "u", out_json_u64(UINT64_MAX));
    assert_true(out_json(file, root));
    (void)fclose(file);
    assert_string_equal(text, "{\n  \"z\": \"?\",\n  \"a\": null,\n  \"m\": 1.234567,\n"
                              "  \"u\": 9223372036854775807\n}\n");
}

static void json_without_memory_is_told(void **state)
{
    json_t *root = json_object();
    out_json_set(&root, "a", NULL);
    assert_null(root);
    out_json_set(&root, "b", json_true());
    assert_false(out_json(stdout, root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_line_up),
        cmocka_unit_test(a_missing_cell_is_not_hidden),
        cmocka_unit_test(units_fit),
        cmocka_unit_test(bad_text_is_cleaned),
        cmocka_unit_test(lines_are_the_formats_alone),
        cmocka_unit_test(json_takes_anything),
        cmocka_unit_test(json_without_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
