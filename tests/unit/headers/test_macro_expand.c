/* What a computed include may name: every name that some branch leads to, and a doubt wherever the
 * names cannot be known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "headers/macro_expand.h"

/* The macros of one test: lines such as "#define A(x) x", "#undef A", and options. */
typedef struct bed {
    kn_macros macros;
    bool trusted;
} bed;

static int setup(void **state)
{
    bed *b = calloc(1, sizeof *b);
    assert_non_null(b);
    kn_macros_init(&b->macros);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bed *b = *state;
    kn_macros_deinit(&b->macros);
    free(b);
    return 0;
}

static void define(bed *b, const char *name, const char *rest)
{
    assert_int_equal(kn_macros_define(&b->macros, kn_span_of_text(name), kn_span_of_text(rest)),
                     KILN_OK);
}

static void give(bed *b, kiln_language language, const char *const *options, size_t count)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = language;
    source.options = options;
    source.option_count = count;
    assert_int_equal(kn_macros_give(&b->macros, &source), KILN_OK);
}

static void give_words(bed *b, const char *options)
{
    give(b, KILN_LANG_OPENCL_C, &options, 1);
}

static kiln_status collect(void *user, kn_span name, bool quoted)
{
    assert_int_equal(strlen(name.data), name.length);
    kn_strbuf_append_char(user, quoted ? '"' : '<');
    kn_strbuf_append(user, name.data, name.length);
    kn_strbuf_append_char(user, ' ');
    return KILN_OK;
}

/* `doubt` of a name that varies begins with "*". */
static void expect_as(bed *b, const char *text, const char *names, const char *doubt)
{
    kn_strbuf found;
    kn_macro_doubt why;
    kn_strbuf_init(&found, 0);
    assert_int_equal(
        kn_macros_names(&b->macros, kn_span_of_text(text), b->trusted, collect, &found, &why),
        KILN_OK);
    if (doubt[0] == '*' && strlen(why.why) >= strlen(doubt + 1)) {
        assert_string_equal(why.why + strlen(why.why) - strlen(doubt + 1), doubt + 1);
    } else {
        assert_string_equal(why.why, doubt);
    }
    if (names != NULL) {
        assert_string_equal(kn_strbuf_text(&found), names);
    }
    kn_strbuf_deinit(&found);
}

static void expect(bed *b, const char *text, const char *names)
{
    expect_as(b, text, names, "");
}

static void expect_doubt(bed *b, const char *text, const char *doubt)
{
    expect_as(b, text, NULL, doubt);
}

/* --- one definition each ---------------------------------------------------------------------- */

static void K1_hashcats_includes_are_read(void **state)
{
    bed *b = *state;
    give_words(b, "-D INCLUDE_PATH=/usr/share/hashcat/OpenCL -D XM2S(x)=#x -D M2S(x)=XM2S(x) "
                  "-DVECT_SIZE=1 -cl-std=CL1.2 -w");
    expect(b, "M2S(INCLUDE_PATH/inc_vendor.h)", "\"/usr/share/hashcat/OpenCL/inc_vendor.h ");
    expect(b, "XM2S(INCLUDE_PATH/a.h)", "\"INCLUDE_PATH/a.h ");
    expect(b, "M2S ( INCLUDE_PATH/inc-2.5e+x/a.h )", "\"/usr/share/hashcat/OpenCL/inc-2.5e+x/a.h ");
    define(b, "COMPARE_M", " M2S(INCLUDE_PATH/inc_comp_multi.cl)");
    expect(b, "COMPARE_M", "\"/usr/share/hashcat/OpenCL/inc_comp_multi.cl ");
}

static void options_are_read_in_every_spelling(void **state)
{
    bed *b = *state;
    static const char *const options[] = {
        "-DA=\"a.h\"", "-D",  "B=<b c.h>", "--define-macro=C=<c>", "--define-macro", "D=<d>", "-DE",
        "-I.",         "-D=", "-UF"};
    give(b, KILN_LANG_CUDA, options, 8);
    expect(b, "A", "\"a.h ");
    expect(b, "B", "<b c.h ");
    expect(b, "C", "<c ");
    expect(b, "D", "<d ");
    expect(b, "E", "");
    assert_false(b->macros.doubtful);
    give(b, KILN_LANG_CUDA, options + 9, 1);
    define(b, "F", " <f>");
    expect(b, "F", "<f ");
    give(b, KILN_LANG_CUDA, options + 8, 1);
    expect_doubt(b, "A", "the options may define more than kiln can read");
}

static void quotes_in_a_drivers_options_are_a_doubt(void **state)
{
    bed *b = *state;
    give_words(b, "-DA=<a.h> -DB=\"b c\"");
    expect_doubt(b, "A", "the options may define more than kiln can read");
}

static void operators_work_as_the_standard_says(void **state)
{
    bed *b = *state;
    give_words(b, "-DS(x)=#x -DX(x)=S(x) -DJ(a,b)=a##b -DK(a,b)=J(a,b) -DV(...)=#__VA_ARGS__ "
                  "-DG(args...)=X(args) -DN=7 -DE= -DF()=<f.h> -DO=J(a,N)");
    expect(b, "X(dir/J(a,b).h)", "\"dir/ab.h ");
    expect(b, "X(K(v,N).h)", "\"v7.h ");
    expect(b, "X(J(v,N).h)", "\"vN.h ");
    expect(b, "X(J(,b)/J(a,)/J(,)x)", "\"b/a/x ");
    expect(b, "V(a, b)", "\"a, b ");
    expect(b, "V(a,b)", "\"a,b ");
    expect(b, "G(N.h)", "\"7.h ");
    expect(b, "F()", "<f.h ");
    expect(b, "X(O)", "\"aN ");
    expect(b, "X((a,b))", "\"(a,b) ");
    expect(b, "X()", "");
    expect_doubt(b, "X(J(-,>))", "a ## does not make one token");
    expect_doubt(b, "X(\"a\")", "its name has a backslash");
    give_words(b, "-DR=R/x -DP=S(Q) -DQ=P");
    expect(b, "X(J(R,))", "\"R/x ");
}

static void what_is_no_name_names_nothing(void **state)
{
    bed *b = *state;
    give_words(b, "-DS(x)=#x -DA= -DN=5 -DT(a,b)=<a/b> -DL=< -DM=L<");
    expect(b, "A", "");
    expect(b, "N", "");
    expect(b, "S", "");
    expect(b, "S(a,b)", "");
    expect(b, "T(a)", "");
    expect(b, "T(a,b", "");
    expect(b, "S()", "");
    expect(b, "(<a.h>)", "");
    expect(b, "L a.h", "");
    expect(b, "L >", "");
}

/* --- several definitions ---------------------------------------------------------------------- */

static void K1_every_definition_of_a_macro_counts(void **state)
{
    bed *b = *state;
    define(b, "FILE_A", " \"one.h\"");
    expect(b, "FILE_A", "\"one.h ");
    define(b, "FILE_A", " <two.h>");
    expect(b, "FILE_A", "\"one.h <two.h ");
    give_words(b, "-DS(x)=#x -DX(x)=S(x) -DNAME=x");
    expect(b, "X(NAME.h)", "\"x.h ");
    define(b, "NAME", " y");
    expect(b, "X(NAME.h)", "\"x.h \"y.h ");
    assert_int_equal(kn_macros_undefine(&b->macros, kn_span_of_text("NAME")), KILN_OK);
    expect(b, "X(NAME.h)", "\"x.h \"y.h \"NAME.h ");
    define(b, "LATER", " z");
    expect(b, "X(LATER.h)", "\"z.h \"LATER.h ");
    define(b, "BOTH", " LATER/LATER");
    expect(b, "X(BOTH)", "\"z/z \"LATER/LATER \"BOTH ");
    define(b, "X", "(x) <x>");
    expect(b, "X(y)", "\"y <y ");
}

static void K1_a_system_macro_without_an_underscore_counts_both_ways(void **state)
{
    bed *b = *state;
    give_words(b, "-DS(x)=#x -DX(x)=S(x) -DP=/usr/linux/cl_khr_fp64");
    expect(b, "X(P)", "\"/usr/linux/cl_khr_fp64 \"/usr/linux/1 \"/usr/1/cl_khr_fp64 \"/usr/1/1 ");
    give_words(b, "-Dlinux=arm");
    define(b, "arm", " 8");
    assert_int_equal(kn_macros_undefine(&b->macros, kn_span_of_text("arm")), KILN_OK);
    expect(b, "X(linux)", "\"8 \"arm \"1 ");
}

static void too_many_are_a_doubt(void **state)
{
    bed *b = *state;
    char text[64];
    for (unsigned i = 0; i < 1100; i++) {
        (void)snprintf(text, sizeof text, " \"%u.h\"", i);
        define(b, "MANY", text);
    }
    expect_doubt(b, "MANY", "a macro has too many definitions");
    give_words(b, "-DS(x)=#x -DX(x)=S(x)");
    for (unsigned i = 0; i < 26; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        define(b, name, " 1");
    }
    expect_doubt(b, "X(a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z)",
                 "it can stand for too many names");
}

/* --- doubts ----------------------------------------------------------------------------------- */

static void K1_what_a_compiler_may_define_is_a_doubt(void **state)
{
    bed *b = *state;
    give_words(b, "-DS(x)=#x -DX(x)=S(x) -D__GIVEN=g");
    expect_doubt(b, "NAME", "NAME is not defined");
    expect_doubt(b, "NAME(x)", "NAME is not defined");
    expect_doubt(b, "X(v__OPENCL_VERSION__/__OPENCL_VERSION__)",
                 "__OPENCL_VERSION__ may be a macro of the compiler's own");
    expect_doubt(b, "X(_Bool)", "_Bool may be a macro of the compiler's own");
    define(b, "__FROM_TEXT", " <t.h>");
    expect_doubt(b, "__FROM_TEXT", "__FROM_TEXT may be a macro of the compiler's own");
    expect(b, "X(__GIVEN)", "\"g ");
    b->trusted = true;
    expect(b, "__FROM_TEXT", "<t.h ");
    expect(b, "X(__OTHER)", "\"__OTHER ");
}

static void what_compilers_read_differently_is_a_doubt(void **state)
{
    bed *b = *state;
    static const struct {
        const char *rest, *text, *doubt;
    } rows[] = {
        {" \"a.h\" \"b.h\"", "A", "it expands to several strings"},
        {" L\"a.h\"", "Q", "L is not defined"},
        {" \"a\\b.h\"", "B", "its name has a backslash"},
        {" a\\b", "C", "C has a definition that compilers read differently"},
        {" it's", "D", "D has a definition that compilers read differently"},
        {" /*c*/ <a>", "E", "E has a definition that compilers read differently"},
        {"(x,", "F(1)", "F has a definition that compilers read differently"},
        {"(x...,y) x", "G(1)", "G has a definition that compilers read differently"},
        {"(x) ## x", "H(1)", "H has a definition that compilers read differently"},
        {"(x, ...) <x, ## __VA_ARGS__>", "I(1,2)", "a macro has , ## in it"},
        {"(...) __VA_OPT__(<a>)", "J(1)", "J has __VA_OPT__ in its definition"},
        {" <\"a.h>", "K", "K has a definition that compilers read differently"},
        {" <<a.h>", "M", "it begins with two punctuators"},
        {" < a.h>", "N", "its name begins or ends with a space"},
        {" <a\"b\">", "O", "its name has quotes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char name[] = {rows[i].text[0], '\0'};
        define(b, name, rows[i].rest);
        expect_doubt(b, rows[i].text, rows[i].doubt);
    }
    assert_int_equal(kn_macros_define(&b->macros, kn_span_of_text("LONG"), kn_span_of(NULL, 5000)),
                     KILN_OK);
    expect_doubt(b, "LONG", "LONG has a long definition");
    expect_doubt(b, "<it's>", "an apostrophe or a backslash, which compilers read differently");
}

static void what_grows_without_end_is_a_doubt(void **state)
{
    bed *b = *state;
    char options[600] = "-DS(x)=#x -DX(x)=S(x) -DA0=aaaaaaaa";
    for (unsigned i = 1; i < 20; i++) {
        char more[40];
        (void)snprintf(more, sizeof more, " -DA%u=A%u/A%u", i, i - 1, i - 1);
        strncat(options, more, sizeof options - strlen(options) - 1);
    }
    give_words(b, options);
    /* Which step meets the limit depends on the machine's alignment of memory. */
    expect_doubt(b, "X(A19)", "* takes too much memory");
    give_words(b, "-DI(x)=x");
    kn_strbuf deep;
    kn_strbuf_init(&deep, 0);
    for (unsigned i = 0; i < 40; i++) {
        kn_strbuf_append_text(&deep, "I(");
    }
    kn_strbuf_append_text(&deep, "<a>");
    for (unsigned i = 0; i < 40; i++) {
        kn_strbuf_append_text(&deep, ")");
    }
    expect_doubt(b, kn_strbuf_text(&deep), "macros are nested too deep");
    kn_strbuf_deinit(&deep);
}

static kiln_status refuse_second(void *user, kn_span name, bool quoted)
{
    return ++*(int *)user == 2 ? KILN_E_NOMEM : KILN_OK;
}

static void the_one_who_is_asked_can_end_it(void **state)
{
    bed *b = *state;
    int count = 0;
    kn_macro_doubt doubt;
    for (const char *rest = "<a>\0<b>\0<c>\0"; *rest != '\0'; rest += 4) {
        define(b, "A", rest);
    }
    assert_int_equal(
        kn_macros_names(&b->macros, kn_span_of_text("A"), false, refuse_second, &count, &doubt),
        KILN_E_NOMEM);
    assert_int_equal(count, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(K1_hashcats_includes_are_read),
        TEST(options_are_read_in_every_spelling),
        TEST(quotes_in_a_drivers_options_are_a_doubt),
        TEST(operators_work_as_the_standard_says),
        TEST(what_is_no_name_names_nothing),
        TEST(K1_every_definition_of_a_macro_counts),
        TEST(K1_a_system_macro_without_an_underscore_counts_both_ways),
        TEST(too_many_are_a_doubt),
        TEST(K1_what_a_compiler_may_define_is_a_doubt),
        TEST(what_compilers_read_differently_is_a_doubt),
        TEST(what_grows_without_end_is_a_doubt),
        TEST(the_one_who_is_asked_can_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
