/* What texts hold in pieces: words that ## joins, and assembler text in several literals. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "headers/include_scan.h"

#define CAT "#define CAT(a, b) a##b\n"
static const char joins[] = "words that ## may join to __TIME__ or __has_include";
static const char assembles[] = "assembler text in pieces that may read a file";

static kiln_status pass_over(void *user, const kn_scan_event *event)
{
    return KILN_OK;
}

/* Why the scan of one text stops, itself or for what it holds in pieces; NULL if it does not. */
static const char *scan(const char *text, bool *out_names)
{
    kn_scan_stop stop;
    kn_pieces pieces = {.marks = 0};
    const kn_scan_reader reader = {.report = pass_over, .pieces = &pieces};
    assert_int_equal(kn_include_scan(kn_span_of_text(text), true, &reader, &stop), KILN_OK);
    *out_names = stop.names || kn_pieces_name_file(&pieces);
    return stop.why != NULL ? stop.why : kn_pieces_stop(&pieces);
}

/* The reason as text, with the text it should be found in. */
static const char *found(const char *text)
{
    bool names = false;
    const char *why = scan(text, &names);
    if (why == NULL) {
        print_error("nothing is found in %s\n", text);
    }
    return why != NULL ? why : "";
}

static bool is_letter(const char *piece, size_t length)
{
    return length == 1 && piece[0] != '_';
}

/* Every reserved word, in two and in three pieces. */
static void E8_reserved_words_are_seen_in_pieces(void **state)
{
    char text[300];
    size_t count = 0;
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        const char *word = kn_reserved_words[i].word;
        const size_t length = strlen(word);
        assert_true(length < KN_RESERVED_LENGTH);
        for (size_t a = 1; a < length; a++) {
            for (size_t b = a; b < length; b++) {
                if (is_letter(word, a) || (b > a && is_letter(word + a, b - a)) ||
                    is_letter(word + b, length - b)) {
                    continue;
                }
                bool names = false;
                (void)snprintf(text, sizeof text,
                               CAT "#define FIRST %.*s\nint x = CAT(CAT(FIRST, %.*s), %s);\n",
                               (int)a, word, (int)(b - a), word + a, word + b);
                const char *why = scan(text, &names);
                if (kn_reserved_words[i].names) {
                    assert_null(why);
                    assert_true(names);
                } else {
                    assert_non_null(why); /* one of the pieces may be a reserved word itself */
                }
                count++;
            }
        }
    }
    assert_true(count > 1000);
}

static void E8_other_words_are_joined_freely(void **state)
{
    static const char *const texts[] = {
        "int __TI, ME__;\n", /* nothing is joined */
        "#define __STR(x) #x\nint __TI, ME__;\n",
        CAT "int T, I, M, E, a, s, e, r, t; int __##x;\n", /* letters do not count */
        CAT "#define PRE(x) __##x##__\nint TIMER, DATES, timestamp;\n",
        CAT "const char *t = \"__TI\", *u = \"ME__\"; /* __TI ME__ */ // __TI ME__\n",
        CAT "#include <__TI>\nint ME__;\n",
        CAT "#define _X_HAS_INCLUDE(x) __has_include(x)\n#if _X_HAS_INCLUDE(<a.h>)\n#endif\n",
        "#if defined(_X_HAS_INCLUDE) && defined ( __has_include)\n#endif\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool names = false;
        assert_null(scan(texts[i], &names));
        assert_false(names);
    }
}

/* A digraph, a line splice, and the macros that ask for a file for others. */
static void E8_other_spellings_are_seen(void **state)
{
    static const char *const texts[] = {
        "%:define P(a, b) a %:%: b\nint x = P(__TI, ME__);\n",
        CAT "int x = CAT(__T\\\nI, ME__);\n",
        CAT "#if CAT(CAT(CAT(__ha, s_), in), clude)(\"n.h\")\n#endif\n",
        CAT "#if CAT(CAT(CAT(CAT(CAT(__, has), _), in), clu), de)(\"n.h\")\n#endif\n",
        CAT
        "#define MY_HAS_INCLUDE(x) __has_include(x)\n#if CAT(MY_HAS_, INCLUDE)(\"n.h\")\n#endif\n",
    };
    static const char *const handed[] = {
        "#define AP(f, x) f(x)\n#if AP(MY_HAS_INCLUDE, \"n.h\")\n#endif\n",
        "#define AP(f, x) f(x)\n#if AP(__has_include, \"n.h\")\n#endif\n",
        "#define AP(x, f) f(x)\n#if AP(\"n.h\", __has_include )\n#endif\n",
    };
    bool names = false;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_string_equal(scan(texts[i], &names), joins);
    }
    for (size_t i = 0; i < sizeof handed / sizeof handed[0]; i++) {
        assert_string_equal(scan(handed[i], &names), "computed __has_include");
    }
}

static void K4_assembler_text_is_read_as_one(void **state)
{
    static const char *const reads[] = {
        "asm(\".inc\" \"bin \\\"x\\\"\");", "asm(\".inc\"\n  /* a */ \"bin \\\"x\\\"\");",
        "asm(\"\\056incbin \\\"x\\\"\");",  "asm(\"\\x2eincbin \\\"x\\\"\");",
        "asm(\".INCBIN \\\"x\\\"\");",      "asm(\".include\" \" \\\"x\\\"\");",
        "asm(\".include\\t\\\"x\\\"\");",   "asm(R\"(.incbin \"x\")\");",
        "asm(\".i\\\nncbin \\\"x\\\"\");",
    };
    static const char *const pieces[] = {
        "#define B \"bin \\\"x\\\"\"\nasm(\".inc\" B);",
        "#define A \".INC\"\nasm(A \"bin \\\"x\\\"\");",
        "#define DOT \".\"\n__asm__(DOT \"incbin \\\"x\\\"\");",
        "#define NAME \"include\"\n__asm(\".\" NAME \" \\\"x\\\"\");",
    };
    static const char *const fine[] = {
        "asm(\"mov.u32 %0, 1;\" : \"=r\"(x));",
        "asm(\"nop\");",
        "char *s = \".inc\", *t = \"bin\";",
        "asm(\"a.\"); char *s = \"end.\" WORD; char *t = \"info\";",
        "asm(\".included x\"); asm(\".align 4\");",
    };
    bool names = false;
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        assert_string_equal(found(reads[i]), "assembler text that reads a file");
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        assert_string_equal(found(pieces[i]), assembles);
    }
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        assert_null(scan(fine[i], &names));
    }
    assert_string_equal(scan("asm(\".macro a b\\n.\\\\b\\n.endm\");", &names),
                        "macros of an assembler");
}

/* The pieces may lie in several texts: the source, a header, an option. */
static void E8_pieces_of_several_texts_meet(void **state)
{
    static const char *const value[] = {"1", "ME__"};
    world *w = *state;
    kiln_define define = {"HALF", NULL};
    cw_add_dir(w, "inc");
    cw_write_text(w, "inc/cat.h", CAT);
    cw_write_text(w, "inc/half.h", "#define FIRST __TI\n");
    cw_set_source(w, "#include <cat.h>\n#include <half.h>\nint x = CAT(FIRST, HALF);\n");
    w->source.defines = &define;
    w->source.define_count = 1;
    for (size_t i = 0; i < 2; i++) {
        define.value = value[i];
        if (i == 0) {
            (void)cw_find_good(w);
        } else {
            cw_expect_bypass(w, "kernel.c: words that ## may join to __TIME__ or __has_include");
        }
    }
    w->source.define_count = 0;
    cw_set_source(w, CAT "int x = CAT(__TI, ME__);\n");
    cw_expect_bypass(w, "kernel.c: words that ## may join to __TIME__ or __has_include");
    cw_set_source(w, CAT "int x = CAT(__TI, M);\n");
    (void)cw_find_good(w);
}

static void E8_a_file_name_in_pieces_is_in_the_key(void **state)
{
    world *w = *state;
    cw_set_source(w, CAT "const char *x = CAT(__FI, LE__);\n");
    w->source.name = "a.c";
    const answer a = cw_find_good(w);
    w->source.name = "b.c";
    assert_false(cw_same(a, cw_find_good(w)));
    cw_set_source(w, "const char *x = CAT(__FI, LE__);\n");
    const answer b = cw_find_good(w);
    w->source.name = "a.c";
    assert_true(cw_same(b, cw_find_good(w)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(E8_reserved_words_are_seen_in_pieces),
        cmocka_unit_test(E8_other_words_are_joined_freely),
        cmocka_unit_test(E8_other_spellings_are_seen),
        cmocka_unit_test(K4_assembler_text_is_read_as_one),
        cmocka_unit_test_setup_teardown(E8_pieces_of_several_texts_meet, cw_setup, cw_teardown),
        cmocka_unit_test_setup_teardown(E8_a_file_name_in_pieces_is_in_the_key, cw_setup,
                                        cw_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
