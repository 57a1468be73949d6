/* Computed includes on real files: what they name is in the key, whichever branch defines the
 * macro, and a header that is missing is in it as missing. */
#include "closure_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "base/strbuf.h"
#include "support/tmpdir.h"

/* Whether an edit of each file changes the key, and nothing else does. */
static void expect_in_key(world *w, const char *file, bool in_key)
{
    cw_write_text(w, file, "// 1\n");
    const answer before = cw_find_good(w);
    cw_write_text(w, file, "// 2\n");
    const answer after = cw_find_good(w);
    assert_int_equal(cw_same(before, after), !in_key);
    cw_write_text(w, file, "// 1\n");
    assert_true(cw_same(before, cw_find_good(w)));
}

static void K1_a_path_from_the_options_is_followed(void **state)
{
    world *w = *state;
    kn_strbuf path;
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "-D INCLUDE_PATH=%s/lib -D XM2S(x)=#x -D M2S(x)=XM2S(x)", w->root);
    const char *options[] = {kn_strbuf_text(&path)};
    w->source.language = KILN_LANG_OPENCL_C;
    w->source.options = options;
    w->source.option_count = 1;
    w->names_root = true;
    cw_add_cache(w);
    cw_write_text(w, "lib/b.cl", "#include M2S(INCLUDE_PATH/c.h)\n");
    cw_write_text(w, "lib/c.h", "// 1\n");
    cw_write_text(w, "lib/d.h", "// 1\n");
    cw_set_source(w, "#ifdef STATIC\n#include M2S(INCLUDE_PATH/a.h)\n"
                     "#  include  M2S( INCLUDE_PATH/b.cl ) // why\n#endif\n");
    expect_in_key(w, "lib/a.h", true);
    expect_in_key(w, "lib/c.h", true);
    expect_in_key(w, "lib/d.h", false);
    cw_write_text(w, "lib/b.cl", "\n#include M2S(INCLUDE_PATH/none.h)\n");
    const answer absent = cw_find(w);
    assert_true(absent.facts.bypass);
    assert_non_null(strstr(absent.facts.reason, "/lib/b.cl:2: computed #include "
                                                "M2S(INCLUDE_PATH/none.h): it does not name"));
    cw_write_text(w, "lib/none.h", "");
    (void)cw_find_good(w);
    kn_strbuf_deinit(&path);
}

static void K1_definitions_count_wherever_they_stand(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_write_text(w, "inc/config.h",
                  "#if defined(A) && \\\n  B\n# define PICK \\\n  <one.h>\n#else\n"
                  "#define PICK /* the */ \"two.h\" /* other */\n#endif\n");
    cw_write_text(w, "inc/one.h", "");
    cw_write_text(w, "inc/two.h", "");
    cw_write_text(w, "inc/three.h", "#undef PICK\n#define PICK <four.h>\n");
    cw_write_text(w, "inc/four.h", "#include PICK\n");
    cw_set_source(w, "#include \"config.h\"\n#include PICK\n");
    expect_in_key(w, "inc/one.h", true);
    expect_in_key(w, "inc/two.h", true);
    expect_in_key(w, "inc/four.h", false);
    /* One that is found by following a computed include defines the macro again. */
    cw_write_text(w, "inc/two.h", "#include <three.h>\n");
    expect_in_key(w, "inc/one.h", true);
    cw_write_text(w, "inc/two.h", "#include <three.h>\n");
    expect_in_key(w, "inc/four.h", true);
}

static void K1_a_definition_in_a_define_of_the_request_counts(void **state)
{
    world *w = *state;
    kiln_define defines[] = {{"NAME(x)", "<x.h>"}, {"WHAT", "kernel"}};
    w->source.defines = defines;
    w->source.define_count = 2;
    cw_add_dir(w, "inc");
    cw_set_source(w, "#include NAME(WHAT)\n#include \"plain.h\"\n");
    cw_write_text(w, "src/plain.h", "");
    expect_in_key(w, "inc/kernel.h", true);
    cw_write_text(w, "inc/WHAT.h", "");
    expect_in_key(w, "inc/WHAT.h", false);
    cw_write_text(w, "src/plain.h", "#undef WHAT\n");
    expect_in_key(w, "inc/WHAT.h", true);
}

static void K1_a_computed_probe_is_looked_at(void **state)
{
    world *w = *state;
    cw_add_dir(w, "inc");
    cw_add_cache(w);
    cw_set_source(w, "#define OTHER <other.h>\n#if defined(X) && __has_include(OTHER) && 1\n"
                     "int x;\n#endif\n");
    const answer before = cw_find_good(w);
    assert_int_equal(before.facts.headers, 0);
    cw_write_text(w, "inc/other.h", "");
    assert_false(cw_same(before, cw_find_good(w)));
    cw_remove_file(w, "inc/other.h");
    assert_true(cw_same(before, cw_find_good(w)));
    cw_set_source(w, "#if __has_include(UNKNOWN)\n#endif\n");
    cw_expect_bypass(w, "kernel.c:1: computed __has_include UNKNOWN: UNKNOWN is not defined");
}

static void K1_a_missing_header_is_in_the_key_as_missing(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    cw_add_dir(w, "inc");
    cw_add_system(w, "sys");
    w->rules.complete = true;
    w->source.language = KILN_LANG_OPENCL_C;
    cw_set_source(w, "#if defined IS_METAL\n#include <metal_stdlib>\n#endif\n#include \"a.h\"\n");
    cw_write_text(w, "src/a.h", "// 1\n");
    const answer missing = cw_find_good(w);
    assert_int_equal(missing.facts.headers, 1);
    static const char *const places[] = {"inc/metal_stdlib", "sys/metal_stdlib"};
    for (size_t i = 0; i < 2; i++) {
        cw_write_text(w, places[i], "");
        const answer there = cw_find_good(w);
        assert_false(there.facts.from_list);
        assert_false(cw_same(missing, there));
        assert_int_equal(there.facts.headers, 2);
        cw_remove_file(w, places[i]);
        assert_true(cw_same(missing, cw_find_good(w)));
    }
}

static void a_source_of_computed_includes_alone_has_a_list_that_is_kept(void **state)
{
    world *w = *state;
    cw_add_cache(w);
    cw_set_source(w, "#define A \"a.h\"\n#include A\n");
    cw_write_text(w, "src/a.h", "// 1\n");
    cw_set_mtime(w, "src/a.h", 1000000000);
    const answer first = cw_find_good(w);
    assert_false(first.facts.from_list);
    assert_int_equal(first.facts.headers, 1);
    const answer second = cw_find_good(w);
    assert_true(second.facts.from_list);
    assert_true(cw_same(first, second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cw_test(K1_a_path_from_the_options_is_followed),
        cw_test(K1_definitions_count_wherever_they_stand),
        cw_test(K1_a_definition_in_a_define_of_the_request_counts),
        cw_test(K1_a_computed_probe_is_looked_at),
        cw_test(K1_a_missing_header_is_in_the_key_as_missing),
        cw_test(a_source_of_computed_includes_alone_has_a_list_that_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
