/* A language is one row of base/languages.def: the library and the command know what it says. */
#include <stdio.h>

#include <kiln/kiln.h>
#include <kiln/unstable/names.h>

#include "kernel/source_file.h"
#include "support/cmocka.h"

static size_t check_row(kiln_language language, const char *name, const char *ending)
{
    char path[32];
    assert_string_equal(kiln_language_name(language), name);
    assert_int_equal(kiln_language_parse(name), language);
    (void)snprintf(path, sizeof(path), "kernel%s", ending != NULL ? ending : "");
    assert_int_equal(kiln_language_of_path(path), ending != NULL ? language : KILN_LANG_NONE);
    return 1;
}

static void every_alias_suggests_its_language(const char *name, const char *aliases)
{
    char alias[32];
    char text[160];
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "did you mean %s?", name);
    for (int length = 0; sscanf(aliases, "%31s%n", alias, &length) == 1; aliases += length) {
        source_file_suggest(alias, text, sizeof(text));
        assert_string_equal(text, expected);
    }
}

static void a_row_is_all_that_a_language_needs(void **state)
{
    size_t rows = 0;
#define KN_LANGUAGE(id, name, ending, other, form, backends, target, aliases)                      \
    rows += check_row(KILN_LANG_##id, name, ending);                                               \
    check_row(KILN_LANG_##id, name, (other) != NULL ? (other) : (ending));                         \
    every_alias_suggests_its_language(name, aliases);
#define KN_LANGUAGE_INTERNAL(id, name, ending, form)                                               \
    rows += check_row(KILN_LANG_##id, name, ending);
#include "base/languages.def"
    assert_string_equal(kiln_language_name((kiln_language)(rows + 1)), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_row_is_all_that_a_language_needs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
