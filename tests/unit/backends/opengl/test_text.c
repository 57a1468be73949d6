/* GLSL put into one text, and the bytes of the backend's artifact: no driver is needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opengl/backend/container.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

#define TEXT(text) text, sizeof(text) - 1

static const char *flatten(const kiln_source *source, kn_gl_text *text)
{
    kn_gl_text_init(text);
    assert_int_equal(kn_gl_flatten(source, text, NULL), KILN_OK);
    return kn_strbuf_text(&text->text);
}

static kiln_source source_of(const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_GLSL;
    source.name = "/some/where/top.comp";
    source.text = text;
    source.length = strlen(text);
    return source;
}

static const char *name_at(const kn_gl_text *text, size_t index)
{
    size_t at = 0;
    while (index-- > 0) {
        at += strlen(text->names.data + at) + 1;
        assert_true(at < text->names.length);
    }
    return text->names.data + at;
}

static void includes_are_put_in_their_places(void **state)
{
    const char *dir = (const char *)*state;
    char *path = kt_at(dir, "file.glsl");
    kt_file_write(path, "int from_file;", 14); /* no line break at its end */
    const kiln_header memory = {"memory.glsl", TEXT("int a;\n#include \"file.glsl\"\nint b;\n")};
    kiln_source source = source_of("/* first */\n#version 430 core\nint before;\n"
                                   "#  include <memory.glsl> // why\nint after;\n");
    kn_gl_text text;
    source.headers = &memory;
    source.header_count = 1;
    source.include_dirs = &dir;
    source.include_dir_count = 1;
    assert_string_equal(flatten(&source, &text), "#version 430 core\n"
                                                 "#line 1 0\n/* first */\n\nint before;\n"
                                                 "#line 1 1\nint a;\n"
                                                 "#line 1 2\nint from_file;\n"
                                                 "#line 3 1\nint b;\n\n"
                                                 "#line 5 0\nint after;\n\n");
    assert_int_equal(text.head, strlen("#version 430 core\n"));
    assert_string_equal(name_at(&text, 0), "top.comp");
    assert_string_equal(name_at(&text, 1), "memory.glsl");
    assert_string_equal(name_at(&text, 2), "file.glsl");
    kn_gl_text_deinit(&text);
}

static void what_is_missing_harms_only_where_it_is_used(void **state)
{
    kiln_source source = source_of("#if 0\n#include \"none.glsl\"\n#include MACRO\n#endif\n");
    kn_gl_text text;
    const char *got = flatten(&source, &text);
    assert_non_null(strstr(got, "#error file not found in the include directories: none.glsl\n"));
    assert_non_null(strstr(got, "#error kiln cannot follow a computed #include\n"));
    kn_gl_text_deinit(&text);
}

static void circles_and_pragma_once_end(void **state)
{
    const kiln_header headers[] = {
        {"a.glsl", TEXT("#ifndef A\n#define A\n#include \"b.glsl\"\nint a;\n#endif\n")},
        {"b.glsl", TEXT("#include \"a.glsl\"\nint b;\n")},
        {"once.glsl", TEXT("#pragma once\nint once;\n")},
    };
    kiln_source source = source_of("#include \"a.glsl\"\n#include \"once.glsl\"\n"
                                   "#include \"once.glsl\"\n");
    kn_gl_text text;
    source.headers = headers;
    source.header_count = 3;
    const char *got = flatten(&source, &text);
    const char *found = strstr(got, "int once;");
    assert_non_null(found);
    assert_null(strstr(found + 1, "int once;"));
    found = strstr(got, "int a;");
    assert_non_null(found);
    assert_null(strstr(found + 1, "int a;"));
    kn_gl_text_deinit(&text);
}

static void deep_nesting_is_refused(void **state)
{
    kiln_header headers[100];
    char names[100][16];
    char texts[100][32];
    kiln_diag diag = KILN_DIAG_INIT;
    kn_gl_text text;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "h%d", i);
        (void)snprintf(texts[i], sizeof(texts[i]), "#include \"h%d\"\n", i + 1);
        headers[i] = (kiln_header){names[i], texts[i], strlen(texts[i])};
    }
    kiln_source source = source_of("#include \"h0\"\n");
    source.headers = headers;
    source.header_count = 100;
    kn_gl_text_init(&text);
    assert_int_equal(kn_gl_flatten(&source, &text, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "64"));
    kiln_diag_clear(&diag);
    kn_gl_text_deinit(&text);
}

static void comments_and_splices_hide_directives(void **state)
{
    kiln_source source = source_of("/*\n#include \"none\"\n*/ int x; // #include \"none\"\n"
                                   "#define M a\\\n#include \"none\"\n"
                                   "#extension GL_GOOGLE_include_directive : require /* a\n b */\n"
                                   "int y;\n");
    kn_gl_text text;
    const char *got = flatten(&source, &text);
    assert_null(strstr(got, "#error"));
    assert_null(strstr(got, "GOOGLE"));
    assert_non_null(strstr(got, "\n/*\n b */\nint y;\n") != NULL ? got
                                                                 : strstr(got, "/* b */\nint y;"));
    kn_gl_text_deinit(&text);
}

static void defines_follow_the_version(void **state)
{
    const kiln_define defines[] = {{"A", "1 + 2"}, {"B", NULL}};
    kiln_source source = source_of("#version 450\nint a = A;\n");
    kn_gl_text text;
    source.defines = defines;
    source.define_count = 2;
    assert_string_equal(flatten(&source, &text), "#version 450\n#define A 1 + 2\n#define B 1\n"
                                                 "#line 1 0\n\nint a = A;\n\n");
    kn_gl_text_deinit(&text);
}

static void layouts_of_vulkan_are_rewritten(void **state)
{
    static const struct {
        const char *from, *to;
        bool open[3];
    } rows[] = {
        {"layout(local_size_x_id = 0) in;",
         "layout(local_size_x = KILN_LOCAL_SIZE_X) in;",
         {true, false, false}},
        {"layout(local_size_x = 64, local_size_y_id=7, local_size_x_id = ID) in;",
         "layout(local_size_y = KILN_LOCAL_SIZE_Y, local_size_x = KILN_LOCAL_SIZE_X) in;",
         {true, true, false}},
        {"layout (\n local_size_z_id = 2\n) in;",
         "layout(local_size_z = KILN_LOCAL_SIZE_Z)\n\n in;",
         {false, false, true}},
        {"layout(constant_id = 3) const int a = f(1, 2);",
         " const int a = f(1, 2);",
         {false, false, false}},
        {"layout(set = 0, binding = 1) buffer b;",
         "layout(binding = 1) buffer b;",
         {false, false, false}},
        {"layout(set = 1, binding = 1) buffer b;",
         "layout(set = 1, binding = 1) buffer b;",
         {false, false, false}},
        {"layout(local_size_x = N * (2)) in;",
         "layout(local_size_x = N * (2)) in;",
         {false, false, false}},
        {"// layout(local_size_x_id = 0)\n/* layout(set = 0) */ my_layout(set = 0)",
         "// layout(local_size_x_id = 0)\n/* layout(set = 0) */ my_layout(set = 0)",
         {false, false, false}},
        {"layout(local_size_x_id = 0", "layout(local_size_x_id = 0", {false, false, false}},
        {"layout", "layout", {false, false, false}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kn_strbuf out;
        bool open[3] = {false, false, false};
        kn_strbuf_init(&out, 0);
        kn_gl_rewrite_layouts(rows[i].from, strlen(rows[i].from), &out, open);
        assert_string_equal(kn_strbuf_text(&out), rows[i].to);
        assert_memory_equal(open, rows[i].open, sizeof(open));
        kn_strbuf_deinit(&out);
    }
}

/* --- the artifact ----------------------------------------------------------------------------- */

static void make(kn_strbuf *bytes)
{
    const kn_gl_container container = {
        .text = "#version 430\nvoid main() {}\n",
        .text_size = 28,
        .head = 13,
        .names = "top.comp\0x.glsl",
        .names_size = 16,
        .local_open = {true, false, true},
        .parts = {{{8, 0, 1}, 0x875f, "binary", 6}, {{16, 0, 1}, 0x875f, "another one", 11}},
        .part_count = 2,
    };
    kn_strbuf_init(bytes, 0);
    kn_gl_container_write(&container, bytes);
    assert_true(kn_strbuf_ok(bytes));
}

static void an_artifact_says_what_was_written(void **state)
{
    kn_strbuf bytes;
    kn_gl_container got;
    make(&bytes);
    assert_true(kn_gl_container_read(bytes.data, bytes.length, &got));
    assert_int_equal(got.head, 13);
    assert_int_equal(got.part_count, 2);
    assert_memory_equal(got.parts[1].data, "another one", 11);
    assert_int_equal(((const char *)got.parts[1].data - bytes.data) % 16, 0);
    assert_int_equal(got.parts[0].local[0], 8);
    assert_int_equal(got.parts[0].format, 0x875f);
    assert_true(got.local_open[0] && !got.local_open[1] && got.local_open[2]);
    kn_strbuf_deinit(&bytes);
}

static bool read_copy(const char *bytes, size_t size)
{
    kn_gl_container got;
    size_t sum = 0;
    char *copy = (char *)malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const bool sound = kn_gl_container_read(copy, size, &got);
    for (size_t i = 0; sound && i < got.part_count; i++) {
        for (size_t at = 0; at < got.parts[i].size; at++) {
            sum += ((const unsigned char *)got.parts[i].data)[at];
        }
    }
    sum += sound ? strlen(got.names) + (size_t)got.text[got.head] : 0;
    free(copy);
    return sound && sum > 0;
}

static void a_damaged_artifact_does_no_harm(void **state)
{
    kn_strbuf bytes;
    make(&bytes);
    for (size_t size = 0; size < bytes.length; size++) {
        assert_false(read_copy(bytes.data, size));
    }
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << bit % 8));
        const bool sound = read_copy(bytes.data, bytes.length);
        assert_false(bit < 64 && sound); /* the magic number */
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ (1 << bit % 8));
    }
    assert_true(read_copy(bytes.data, bytes.length));
    kn_strbuf_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(includes_are_put_in_their_places),
        cmocka_unit_test(what_is_missing_harms_only_where_it_is_used),
        cmocka_unit_test(circles_and_pragma_once_end),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(comments_and_splices_hide_directives),
        cmocka_unit_test(defines_follow_the_version),
        cmocka_unit_test(layouts_of_vulkan_are_rewritten),
        cmocka_unit_test(an_artifact_says_what_was_written),
        cmocka_unit_test(a_damaged_artifact_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
