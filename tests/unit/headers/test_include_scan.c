/* What the scanner sees and does not see. Each text is next to the list of includes it must give,
 * written as q"x" (quoted), a<x> (angle), n (next), p (probe), or next to the reason it stops.
 */
#include "headers/characters.h"
#include "headers/include_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "base/strbuf.h"

static kiln_status collect(void *user, const kn_scan_event *include)
{
    kn_strbuf *list = user;
    assert_int_equal(include->text.data[include->text.length], '\0');
    kn_strbuf_printf(list, "%s%s%s%s ", include->next ? "n" : "", include->probe ? "p" : "",
                     include->quoted ? "q" : "a", include->text.data);
    return KILN_OK;
}

/* Scans a copy without a NUL, so that a sanitizer sees every step too far. */
static void expect_as(bool raw_strings, const char *text, const char *list, const char *why,
                      size_t line)
{
    size_t length = strlen(text);
    char *copy = malloc(length + (length == 0));
    assert_non_null(copy);
    memcpy(copy, text, length);
    kn_strbuf found;
    kn_strbuf_init(&found, 0);
    kn_scan_stop stop;
    const kn_scan_reader reader = {.report = collect, .user = &found};
    assert_int_equal(kn_include_scan(kn_span_of(copy, length), raw_strings, &reader, &stop),
                     KILN_OK);
    assert_string_equal(kn_strbuf_text(&found), list);
    if (why == NULL) {
        assert_null(stop.why);
    } else {
        assert_non_null(stop.why);
        assert_string_equal(stop.why, why);
        assert_int_equal(stop.line, line);
    }
    kn_strbuf_deinit(&found);
    free(copy);
}

static void expect(const char *text, const char *list)
{
    expect_as(false, text, list, NULL, 0);
}

static void expect_stop(const char *text, const char *list, const char *why, size_t line)
{
    expect_as(false, text, list, why, line);
}

static void plain_includes_are_found(void **state)
{
    expect("", "");
    expect("int x;\n", "");
    expect("#include \"a.h\"\n#include <b/c.h>\n", "qa.h ab/c.h ");
    expect("  #  include\t\"a.h\"", "qa.h ");
    expect("\xEF\xBB\xBF#include <a.h>\n", "aa.h ");
    expect("#import <a.h>\n#include_next <b.h>\n", "aa.h nab.h ");
    expect("%:include <a.h>\n  %: include \"b\"\n", "aa.h qb ");
    expect("#if 0\n#include <a.h>\n#else\n#include <b.h>\n#endif", "aa.h ab.h ");
    expect("#include \"with space.h\" // \"no.h\"\n", "qwith space.h ");
    expect("#include \"back\\slash.h\"\n", "qback\\slash.h ");
    expect("#include<a.h>\n#include\"b.h\"\n", "aa.h qb.h ");
}

static void line_ends_and_splices_are_understood(void **state)
{
    expect("#include \"a.h\"\r\n#include <b.h>\r\n", "qa.h ab.h ");
    expect("#inc\\\nlude \\\r\n \"a\\\n.h\"\n", "qa.h ");
    expect("# \\  \ninclude <a.h>", "aa.h ");
    expect("int a; \\\n#include <a.h>\n", "");
    expect("// comment \\\n#include <a.h>\n#include <b.h>\n", "ab.h ");
    expect("/\\\n/ #include \"a\"\n/\\\n* #include \"b\"\n*\\\n/\n#include \"c\"\n", "qc ");
    expect("x\\", "");
    expect("\\\n", "");
}

/* gcc and clang join lines over blanks behind a backslash, NVRTC and glslang do not; clang and
 * glslang end a line at a CR alone, gcc and NVRTC do not. What one of them includes counts. */
static void K1_where_compilers_differ_each_reading_counts(void **state)
{
    expect("// /\\ /\\ \n#include <a.h>\n", "aa.h ");
    expect("// a \\\t\r\n#include <a.h>\r\n", "aa.h ");
    expect("#define S \"x\\ \n/* \"\n#include <a.h>\n// */\n", "aa.h ");
    expect("/* a \\ \n*/\n#include <a.h>\n", "aa.h ");
    expect("#include \"a.h\"\r#include <b.h>\r", "qa.h ab.h qa.h ");
    expect("// a \r/* b\n#include <a.h>\n// */\n", "aa.h ");
    expect("// a \\\r/* b\n#include <a.h>\n// */\n", "aa.h aa.h ");
    expect_stop("// \\ \nint t = __TIME__;\n", "", "__TIME__", 2);
}

static void comments_and_literals_hide_includes(void **state)
{
    expect("/* \n#include <a.h>\n*/\n// #include <b.h>\n", "");
    expect("/* c */ #include /* d */ <a.h> /* e */\n", "aa.h ");
    expect("/* c\n */ # /* \n */ include /**/ <a.h>\n", "aa.h ");
    expect("x #include <a.h>\n", "");
    expect("const char *s = \"\\\n#include <a.h>\\\n\";\n#include <b.h>\n", "ab.h ");
    expect("char c = '\"'; /* \" */ char d = '\\''; // '\n#include <b.h>\n", "ab.h ");
    expect("char *s = \"/*\";\n#include <a.h>\nchar *t = \"*/\";\n", "aa.h ");
    expect("char *s = \"\\\\\"; /* \n#include <a.h>\n*/", "");
    expect("\"__TIME__\" '__DATE__' /* __TIME__ */ // __TIMESTAMP__\n", "");
    expect("/* never closed\n#include <a.h>\n", "");
    expect("/*/ #include <a.h> /*/\n#include <b.h>\n", "ab.h ");
}

static void an_apostrophe_ends_with_its_line(void **state)
{
    expect("#if 0\ndon't\n#endif\n#include <a.h>\n", "aa.h ");
    expect("#error don't do \"this\n#include <a.h>\n", "aa.h ");
    expect("long n = 1'000'000; /* ' */\n#include <a.h>\n", "aa.h ");
    expect("float f = .5e+3'0 + 0x1p-3; /* \n#include <a.h>\n*/\n", "");
}

static void raw_strings_hide_includes_where_they_exist(void **state)
{
    const char *multi = "auto s = R\"x(\n#include <a.h>\n)\" )x\";\n#include <b.h>\n";
    expect_as(true, multi, "ab.h ", NULL, 0);
    expect_as(false, multi, "", "text that reads differently with and without raw strings", 1);
    expect_as(false, "s = R\"(one line)\";\n#include <b.h>\n", "ab.h ", NULL, 0);
    expect_as(true, "s = u8R\"(/*)\" LR\"(\\)\";\n#include <b.h>\n", "ab.h ", NULL, 0);
    expect_as(true, "s = FOOR\"(\";\n#include <b.h>\n", "ab.h ", NULL, 0);
    expect_as(true, "s = R\"never ends\n#include <b.h>\n", "ab.h ", NULL, 0);
    expect_as(true, "s = R\"(never ends\n#include <b.h>\n", "", NULL, 0);
    expect_as(true, "s = R\"abcdefghijklmnopq(\n#include <b.h>\n", "ab.h ", NULL, 0);
}

static void K1_a_probe_counts_as_an_include(void **state)
{
    expect("#if __has_include(<a.h>) && __has_include ( \"b.h\" )\n#endif\n", "paa.h pqb.h ");
    expect("#elif __has_include_next(<a.h>)\n", "npaa.h ");
    expect("#ifdef __has_include\n#if defined(__has_include) || defined __has_include\n", "");
    expect("#ifndef __has_include\n# define __has_include(x) 0\n#endif\n#undef __has_include", "");
    expect_stop("#if __has_include(NAME)\n", "", "computed __has_include", 1);
    expect_stop("\n#define HAS(x) __has_include(x)\n", "", "computed __has_include", 2);
    expect_stop("#define HAS __has_include\n", "", "computed __has_include", 1);
    /* A wrapper is known by its name: CCCL has one, and hundreds of its headers use it. */
    expect("#define A_HAS_INCLUDE(_X) __has_include(_X)\n#if A_HAS_INCLUDE(<x.h>)\n", "pax.h ");
    expect("#define A_HAS_INCLUDE(_X) 0\n#if defined(A_HAS_INCLUDE)\n", "");
    expect_stop("#define A_HAS_INCLUDE(x) __has_include(y)\n", "", "computed __has_include", 1);
    expect_stop("#define A_HAS_INCLUDE(x) __has_include_next(x)\n", "", "computed __has_include",
                1);
    expect_stop("#define A_HAS_INCLUDE(x) 1\n#if __has_include(x)\n", "", "computed __has_include",
                2);
    expect_stop("#if A_HAS_INCLUDE(NAME)\n", "", "computed __has_include", 1);
    expect_stop("#define OTHER(x) A_HAS_INCLUDE(x)\n", "", "computed __has_include", 1);
}

static void K1_what_cannot_be_followed_stops_the_scan(void **state)
{
    expect_stop("#include <a.h>\n#include NAME\n#include <b.h>", "aa.h ", "computed #include", 2);
    expect_stop("#include\n", "", "computed #include", 1);
    expect_stop("#include \"a.h\n", "", "malformed #include", 1);
    expect_stop("#include <>\n", "", "malformed #include", 1);
    expect_stop("#include <a.h", "", "malformed #include", 1);
    expect_stop("\n\nint t = __TIME__;\n", "", "__TIME__", 3);
    expect_stop("#if 0\n__DA\\\nTE__\n", "", "__DATE__", 3);
    expect_stop("a __TIMESTAMP__", "", "__TIMESTAMP__", 1);
    expect_stop("#embed \"a.bin\"\n", "", "#embed", 1);
    expect_stop("#if __has_embed(\"a.bin\")\n", "", "__has_embed", 1);
    expect_stop("asm(\".incbin \\\"a\\\"\");", "", "assembler text that reads a file", 1);
    expect_stop("asm(\"nop; .include \\\"a\\\"\");", "", "assembler text that reads a file", 1);
    expect_stop("?\?=include <a.h>\n", "", "trigraphs", 1);
    expect_stop("import <vector>;", "", "import of a header unit", 1);
    expect("int my__TIME__, __TIME__x, __TIME; #ifdef\n#ifdef __DATE__\n", "");
    expect("import = 1; s = \"see file.includes\"; a.b.c ? ? : %> %% ", "");
}

static kiln_status refuse_second(void *user, const kn_scan_event *event)
{
    int *count = user;
    return ++*count == 2 ? KILN_E_NOMEM : KILN_OK;
}

static void a_visitor_can_end_the_scan(void **state)
{
    int count = 0;
    kn_scan_stop stop;
    const kn_scan_reader reader = {.report = refuse_second, .user = &count};
    kn_span text = kn_span_of_text("#include <a>\n#include <b>\n#include <c>\n__TIME__");
    assert_int_equal(kn_include_scan(text, false, &reader, &stop), KILN_E_NOMEM);
    assert_int_equal(count, 2);
    assert_null(stop.why);
}

static void long_names_and_words_are_bounded(void **state)
{
    char text[6000];
    memset(text, 'x', sizeof text);
    memcpy(text, "#include <", 10);
    int count = 0;
    kn_scan_stop stop;
    const kn_scan_reader reader = {.report = refuse_second, .user = &count};
    assert_int_equal(kn_include_scan(kn_span_of(text, sizeof text), false, &reader, &stop),
                     KILN_OK);
    assert_string_equal(stop.why, "malformed #include");
    memset(text, '_', sizeof text);
    assert_int_equal(kn_include_scan(kn_span_of(text, sizeof text), false, &reader, &stop),
                     KILN_OK);
    assert_null(stop.why);
    assert_int_equal(count, 0);
}

static void words_in_options_are_found(void **state)
{
    assert_null(kn_include_scan_words(kn_span_of_text(NULL)));
    assert_null(kn_include_scan_words(kn_span_of_text("-DN=4")));
    assert_string_equal(kn_include_scan_words(kn_span_of_text("-DT=__TIME__")), "__TIME__");
}

/* The table says what its names say. */
static void each_character_is_in_its_classes(void **state)
{
    static const char dull[] = "\t\v\f !&()*+,-:;<=>?@[]^`{|}~0123456789";
    for (int c = 0; c < 256; c++) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool word = letter || is_digit(c) || c == '_' || c == '$' || c >= 0x80;
        const bool end = is_newline(c);
        assert_int_equal(in_class((unsigned char)c, CLASS_WORD), word);
        assert_int_equal(in_class((unsigned char)c, CLASS_DULL), c != 0 && strchr(dull, c) != NULL);
        assert_int_equal(in_class((unsigned char)c, CLASS_LINE), !end && c != '\\');
        assert_int_equal(in_class((unsigned char)c, CLASS_PLAIN), c != '\r' && c != '\\');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_character_is_in_its_classes),
        cmocka_unit_test(plain_includes_are_found),
        cmocka_unit_test(line_ends_and_splices_are_understood),
        cmocka_unit_test(K1_where_compilers_differ_each_reading_counts),
        cmocka_unit_test(comments_and_literals_hide_includes),
        cmocka_unit_test(an_apostrophe_ends_with_its_line),
        cmocka_unit_test(raw_strings_hide_includes_where_they_exist),
        cmocka_unit_test(K1_a_probe_counts_as_an_include),
        cmocka_unit_test(K1_what_cannot_be_followed_stops_the_scan),
        cmocka_unit_test(a_visitor_can_end_the_scan),
        cmocka_unit_test(long_names_and_words_are_bounded),
        cmocka_unit_test(words_in_options_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
