/* The option parser: every form, every refusal. */
#include "cli/opt.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

typedef struct fields {
    bool json;
    bool all;
    const char *name;
    opt_list dirs;
    opt_number count, size, age;
} fields;

static const opt_spec specs[] = {
    {"json", 'j', OPT_FLAG, offsetof(fields, json), NULL, "print JSON"},
    {"all", 'a', OPT_FLAG, offsetof(fields, all), NULL, "all of it"},
    {"name", 'n', OPT_TEXT, offsetof(fields, name), "NAME", "a name"},
    {NULL, 'I', OPT_LIST, offsetof(fields, dirs), "DIR", "a folder"},
    {"count", 0, OPT_COUNT, offsetof(fields, count), "N", "a number"},
    {"size", 0, OPT_SIZE, offsetof(fields, size), "BYTES", "a size"},
    {"age", 0, OPT_DURATION, offsetof(fields, age), "TIME", "a time"},
    OPT_END};

typedef struct outcome {
    cli_pool pool;
    fields fields;
    opt_list arguments;
    bool help;
    kiln_status status;
    kiln_diag diag;
} outcome;

/* Parses up to 8 words; NULL ends them. */
static void parse(outcome *parsed, const char *const *words)
{
    char *argv[9] = {NULL};
    int argc = 0;
    memset(parsed, 0, sizeof(*parsed));
    for (; words[argc] != NULL; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc];
    }
    parsed->status = opt_parse(specs, argc, argv, &parsed->pool, &parsed->fields,
                               &parsed->arguments, &parsed->help, &parsed->diag);
}

#define PARSE(parsed, ...) parse((parsed), (const char *const[]){__VA_ARGS__, NULL})

static void forms_are_equal(void **state)
{
    outcome parsed;
    PARSE(&parsed, "-ja", "--name=x", "-Iinc", "-I", "more", "file", "--count", "7");
    assert_int_equal(parsed.status, KILN_OK);
    assert_true(parsed.fields.json && parsed.fields.all);
    assert_string_equal(parsed.fields.name, "x");
    assert_int_equal(parsed.fields.dirs.count, 2);
    assert_string_equal(parsed.fields.dirs.items[0], "inc");
    assert_string_equal(parsed.fields.dirs.items[1], "more");
    assert_int_equal(parsed.arguments.count, 1);
    assert_true(parsed.fields.count.given);
    assert_int_equal(parsed.fields.count.value, 7);
    assert_false(parsed.fields.size.given);
    pool_deinit(&parsed.pool);
}

static void two_dashes_end_the_options(void **state)
{
    outcome parsed;
    PARSE(&parsed, "-", "--", "--json", "-x");
    assert_int_equal(parsed.status, KILN_OK);
    assert_false(parsed.fields.json);
    assert_int_equal(parsed.arguments.count, 3);
    assert_string_equal(parsed.arguments.items[0], "-");
    pool_deinit(&parsed.pool);
}

static void help_is_found_anywhere(void **state)
{
    outcome parsed;
    PARSE(&parsed, "file", "--help", "--nonsense");
    assert_int_equal(parsed.status, KILN_OK);
    assert_true(parsed.help);
    pool_deinit(&parsed.pool);
    PARSE(&parsed, "-jh");
    assert_true(parsed.help);
    pool_deinit(&parsed.pool);
}

static void refuses(const char *word, const char *what, const char *why, const char *fix)
{
    outcome parsed;
    PARSE(&parsed, word);
    assert_int_equal(parsed.status, KILN_E_INVALID);
    assert_string_equal(parsed.diag.what, what);
    assert_non_null(strstr(parsed.diag.why, why));
    assert_non_null(strstr(parsed.diag.fix, fix));
    pool_deinit(&parsed.pool);
}

static void what_is_wrong_is_refused(void **state)
{
    refuses("--jsno", "", "unknown option --jsno", "--json");
    refuses("--zzzzzzzz=1", "", "unknown option --zzzzzzzz", "--help");
    refuses("-q", "", "unknown option -q", "--help");
    refuses("--json=1", "--json", "takes no value", "");
    refuses("--name", "--name", "needs a value", "write --name NAME");
    refuses("-I", "-I", "needs a value", "write -I DIR");
    refuses("-json", "", "unknown option -json", "did you mean --json?");
    refuses("-qjson", "", "unknown option -qjson", "--help");
    refuses("--count=-1", "--count", "\"-1\"", "whole number");
    refuses("--size=12X", "--size", "\"12X\"", "bytes");
    refuses("--age=12", "--age", "\"12\"", "number with");
}

static void numbers_are_exact(void **state)
{
    uint64_t value = 0;
    assert_true(opt_parse_count("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    assert_false(opt_parse_count("18446744073709551616", &value));
    assert_false(opt_parse_count("", &value));
    assert_true(opt_parse_size("1.5K", &value));
    assert_int_equal(value, 1536);
    assert_true(opt_parse_size("2GiB", &value));
    assert_true(value == UINT64_C(2) << 30);
    assert_false(opt_parse_size("99999999999T", &value));
    assert_false(opt_parse_size("1e3", &value));
    assert_false(opt_parse_size("0x10", &value));
    assert_false(opt_parse_size(".5K", &value));
    assert_false(opt_parse_size("nan", &value));
    assert_true(opt_parse_duration("1.5h", &value));
    assert_true(value == UINT64_C(5400) * 1000000000u);
    assert_true(opt_parse_duration("500ms", &value));
    assert_int_equal(value, 500000000);
    assert_false(opt_parse_duration("9", &value));
}

static void near_names_are_proposed(void **state)
{
    static const char *const names[] = {"devices", "doctor", "run", NULL};
    assert_string_equal(opt_nearest(names, "device"), "devices");
    assert_string_equal(opt_nearest(names, "docter"), "doctor");
    assert_null(opt_nearest(names, "banana"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_equal),        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(help_is_found_anywhere), cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(numbers_are_exact),      cmocka_unit_test(near_names_are_proposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
