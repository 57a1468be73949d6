/* The parts of the OpenCL backend that need no driver: option strings, the request made ready,
 * error names, the outside of PoCL's binary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/input.h"
#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/options.h"
#include "apis/opencl/backend/status.h"
#include "base/checked.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

static void check_tokens(const char *text, const char *expected, bool odd_expected)
{
    kn_strbuf token, all;
    bool odd = false;
    kn_strbuf_init(&token, 0);
    kn_strbuf_init(&all, 0);
    while (kn_opencl_option_next(&text, &token, &odd)) {
        kn_strbuf_printf(&all, "[%s]", kn_strbuf_text(&token));
    }
    assert_string_equal(kn_strbuf_text(&all), expected);
    assert_int_equal(odd, odd_expected);
    kn_strbuf_deinit(&all);
    kn_strbuf_deinit(&token);
}

static void K3_option_strings_are_split_as_drivers_split_them(void **state)
{
    check_tokens("", "", false);
    check_tokens("  -DA=1\t-I  x ", "[-DA=1][-I][x]", false);
    check_tokens("-I \"a b\" -DT=\"c d\"", "[-I][a b][-DT=c d]", false);
    check_tokens("\"\" x", "[][x]", false);
    check_tokens("-I \"a b", "[-I][a b]", true);
    check_tokens("-DX='a b'", "[-DX='a][b']", true);
    check_tokens("-DX=a\\ b", "[-DX=a\\][b]", true);
}

/* [token|directory|as it stands] of each option. */
static void check_read(const char *text, const char *expected, bool odd)
{
    kn_strbuf all;
    kn_opencl_option option;
    kn_opencl_option_reader reader;
    kn_strbuf_init(&all, 0);
    kn_opencl_option_reader_init(&reader, text);
    while (kn_opencl_option_read(&reader, &option)) {
        kn_strbuf_printf(&all, "[%s|%s|%.*s]%s", option.token,
                         option.dir != NULL ? option.dir : "none", (int)option.whole.length,
                         option.whole.data, option.quoted_before ? "!" : "");
    }
    assert_true(kn_opencl_option_reader_ok(&reader));
    assert_string_equal(kn_strbuf_text(&all), expected);
    assert_int_equal(reader.odd, odd);
    kn_opencl_option_reader_deinit(&reader);
    kn_strbuf_deinit(&all);
}

static void include_directories_are_read_in_each_spelling(void **state)
{
    check_read(" -w -I a\t-Ib -w", "[-w|none|-w][a|a|-I a][-Ib|b|-Ib][-w|none|-w]", false);
    check_read("-I  \"a b\" -I\"c d\"", "[a b|a b|-I  \"a b\"][-Ic d|c d|-I\"c d\"]", false);
    check_read("\"-I\" a \"-Ib\"", "[a|a|\"-I\" a]![-Ib|b|\"-Ib\"]!", false);
    check_read("-I -Ia -I \"\"", "[-Ia|-Ia|-I -Ia][||-I \"\"]", false);
    check_read("-w -I ", "[-w|none|-w][|none|-I ]", true);
}

static void options_that_reach_for_files_are_known(void **state)
{
    const char *const reaching[] = {"-I a",
                                    "-Ifoo",
                                    "-include x",
                                    "-isystem x",
                                    "-Xclang -load",
                                    "-s x",
                                    "@file",
                                    "--config",
                                    "-fplugin=x.so",
                                    "-save-temps",
                                    "-D -include x",
                                    "file.cl",
                                    "-mllvm -x",
                                    "-DX=\"a -include b\"",
                                    "-DX='a @file",
                                    "-Wl,-x",
                                    "-cl-std=/etc/x",
                                    "-something-new",
                                    "-fsanitize-blacklist=x",
                                    "-ivfsoverlay x"};
    const char *const harmless[] = {"-DI",
                                    "-cl-fast-relaxed-math",
                                    "-w",
                                    "-Werror",
                                    "-cl-std=CL2.0",
                                    "-g",
                                    "-D I -U J",
                                    "-cl-nv-maxrregcount 32",
                                    "-cl-nv-maxrregcount=32",
                                    "",
                                    "  ",
                                    "-DX=\"a b\"",
                                    "-x spir",
                                    "-Wno-unused -O2 -cl-mad-enable",
                                    "\"-cl-opt-disable\""};
    for (size_t i = 0; i < sizeof(reaching) / sizeof(reaching[0]); i++) {
        if (kn_opencl_options_reason(reaching[i]) == NULL) {
            fail_msg("%s is not known to read no file", reaching[i]);
        }
    }
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        if (kn_opencl_options_reason(harmless[i]) != NULL) {
            fail_msg("%s: %s", harmless[i], kn_opencl_options_reason(harmless[i]));
        }
    }
    assert_true(kn_opencl_options_name_files("-w -g"));
    assert_false(kn_opencl_options_name_files("-w -g0 -DX-g"));
}

static void options_of_the_front_end_can_be_left_out(void **state)
{
    kn_strbuf out;
    kn_strbuf_init(&out, 0);
    kn_opencl_options_of_code(
        "-DN=3 -D M=4 -I a -I\"b c\" -w -Werror -cl-std=CL3.0 -cl-nv-maxrregcount 32 "
        "-cl-kernel-arg-info -cl-denorms-are-zero -x spir \"-cl-opt-disable\"",
        &out);
    assert_string_equal(kn_strbuf_text(&out), "-cl-nv-maxrregcount 32 -cl-denorms-are-zero "
                                              "\"-cl-opt-disable\"");
    kn_strbuf_deinit(&out);
}

static void a_load_takes_the_options_of_the_build(void **state)
{
    const kiln_define defines[] = {{"N", "3"}, {"ODD", "a b"}, {"BARE", NULL}};
    const char *const options[] = {"-cl-denorms-are-zero", "-w"};
    const char *const dirs[] = {"include"};
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.defines = defines;
    source.define_count = 3;
    source.options = options;
    source.option_count = 2;
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    char *text = kn_opencl_input_load_options(&source);
    assert_string_equal(text, "-DN=3 -DBARE -cl-denorms-are-zero -w -cl-kernel-arg-info");
    free(text);
    source.language = KILN_LANG_SPIRV; /* has no text to define anything for */
    text = kn_opencl_input_load_options(&source);
    assert_string_equal(text, "-cl-denorms-are-zero -w ");
    free(text);
}

static void every_error_has_a_name_and_a_status(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_string_equal(kn_opencl_error_name(-42), "CL_INVALID_BINARY");
    assert_string_equal(kn_opencl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(kn_opencl_error_name(-4242), "unknown error");
    assert_int_equal(kn_opencl_error_status(CL_OUT_OF_HOST_MEMORY), KILN_E_NOMEM);
    for (cl_int code = -72; code <= 0; code++) {
        bool gap = (code > -30 && code < -19);
        assert_int_equal(strcmp(kn_opencl_error_name(code), "unknown error") == 0, gap);
    }
    assert_int_equal(kn_opencl_fail(&diag, "a thing", "clThing", -5), KILN_E_NOMEM);
    assert_int_equal(diag.vendor_code, -5);
    assert_string_equal(diag.why, "clThing returned CL_OUT_OF_RESOURCES (-5)");
    assert_int_equal(kn_opencl_fail_run(&diag, "a thing", "clFinish", -5), KILN_E_DEVICE_LOST);
    assert_int_equal(kn_opencl_fail(&diag, "a thing", "clThing", CL_SUCCESS), KILN_E_INTERNAL);
    kiln_diag_clear(&diag);
}

static kiln_source source_of(const char *text)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_OPENCL_C;
    source.text = text;
    source.length = strlen(text);
    return source;
}

static void a_request_becomes_one_text_and_one_option_string(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_opencl_input input;
    const kiln_define defines[] = {{"A", "1"}, {"B", NULL}, {"C", "x y"}, {"D(x)", "x"}};
    const char *const dirs[] = {"inc", "", "/usr/include"};
    const char *const options[] = {"-w", "-cl-mad-enable"};
    kiln_source source = source_of("text");
    source.defines = defines;
    source.define_count = 4;
    source.include_dirs = dirs;
    source.include_dir_count = 3;
    source.options = options;
    source.option_count = 2;
    assert_int_equal(kn_opencl_input_init(&input, &source, NULL, &diag), KILN_OK);
    assert_string_equal(input.options, "-I inc -I /usr/include -DA=1 -DB -w -cl-mad-enable "
                                       "-cl-kernel-arg-info");
    assert_string_equal(input.text, "#define C x y\n#define D(x) x\n#line 1\ntext");
    assert_null(input.dir);
    kn_opencl_input_deinit(&input);
}

static void line_breaks_are_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_opencl_input input;
    const kiln_define define = {"A", "1\n#include \"x\""};
    const char *const option = "-w\n-I x";
    kiln_source source = source_of("text");
    source.defines = &define;
    source.define_count = 1;
    assert_int_equal(kn_opencl_input_init(&input, &source, NULL, &diag), KILN_E_INVALID);
    source.define_count = 0;
    source.options = &option;
    source.option_count = 1;
    assert_int_equal(kn_opencl_input_init(&input, &source, NULL, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

static void the_private_dir_comes_and_goes(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_opencl_input input;
    char *dir = kt_at((const char *)*state, "private");
    char *header = kt_at(dir, "h/a/b.h");
    char *link = kt_at(dir, "i0");
    const kiln_header headers[] = {{"a/b.h", "inside", 6}, {"c.h", "", 0}};
    const char *const dirs[] = {"with blank"};
    kiln_source source = source_of("text");
    source.headers = headers;
    source.header_count = 2;
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_int_equal(kn_opencl_input_init(&input, &source, dir, &diag), KILN_OK);
    assert_false(kt_file_exists(dir));
    assert_int_equal(kn_opencl_input_enter(&input, &diag), KILN_OK);
    char *text = kt_file_read(header, NULL);
    assert_string_equal(text, "inside");
    assert_true(kt_file_exists(link));
    kn_opencl_input_leave(&input);
    assert_false(kt_file_exists(dir));
    kn_opencl_input_deinit(&input);
    free(text);
}

/* A binary as PoCL 3.1 makes them, with one file and two records. */
static size_t make_pocl(unsigned char *bytes)
{
    memset(bytes, 0, 300);
    memcpy(bytes, "poclbin", 8);
    kn_put_u32(bytes + 16, 9);
    kn_put_u32(bytes + 20, 2);
    kn_put_u32(bytes + 32, 1);
    kn_put_u64(bytes + 77, 20);
    kn_put_u64(bytes + 77 + 28, 40);
    kn_put_u64(bytes + 77 + 28 + 40, 60);
    return 77 + 28 + 40 + 60;
}

static void a_library_tells_which_kernel_was_launched(void **state)
{
    static const char dir[] = "/c/pocl/kcache/AB/CDEFG";
    static const struct {
        const char *end;
        bool is_code;
    } rows[] = {
        {"/add/64-1-1-goffs0-smallgrid/add.so", true},
        {"/mul/0-0-0/mul.so", true},
        {"/add/64-1-1/mul.so", false},
        {"/sub/64-1-1/sub.so", false},
        {"/ad/64-1-1/ad.so", false},
        {"/add/lib/add.so", false},
        {"/add/64-1-1/add.bc", false},
        {"/add.so", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s%s", dir, rows[i].end);
        assert_int_equal(kn_pocl_is_code_of(path, "add;mul"), rows[i].is_code);
        assert_false(kn_pocl_is_code_of(path, ""));
    }
    assert_false(kn_pocl_is_code_of("", "add"));
    assert_false(kn_pocl_is_code_of(".so", "add"));
}

static void D1_lengths_in_a_pocl_binary_must_lead_to_its_end(void **state)
{
    unsigned char bytes[300];
    size_t size = make_pocl(bytes);
    assert_true(kn_pocl_binary_is_sound(bytes, size));
    for (size_t cut = 0; cut < size; cut++) {
        assert_false(kn_pocl_binary_is_sound(bytes, cut));
    }
    assert_false(kn_pocl_binary_is_sound(bytes, size + 1));
    const size_t lengths[] = {77, 77 + 28, 77 + 28 + 40};
    const uint64_t wrong[] = {0, 1, 1000, UINT64_MAX, UINT64_MAX - 76};
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 5; k++) {
            (void)make_pocl(bytes);
            kn_put_u64(bytes + lengths[i], wrong[k]);
            assert_false(kn_pocl_binary_is_sound(bytes, size));
        }
    }
    (void)make_pocl(bytes);
    kn_put_u32(bytes + 20, UINT32_MAX); /* kernels */
    assert_false(kn_pocl_binary_is_sound(bytes, size));
    kn_put_u32(bytes + 16, 12); /* another layout: not ours to judge */
    assert_true(kn_pocl_binary_is_sound(bytes, size));
    (void)make_pocl(bytes);
    memmove(bytes + 85, bytes + 77, size - 77);
    kn_put_u32(bytes + 16, 11);
    kn_put_u64(bytes + 24, 2);
    assert_true(kn_pocl_binary_is_sound(bytes, size + 8));
    assert_false(kn_pocl_binary_is_sound(bytes, size));
    bytes[0] = 'P';
    assert_false(kn_pocl_binary_is_sound(bytes, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K3_option_strings_are_split_as_drivers_split_them),
        cmocka_unit_test(include_directories_are_read_in_each_spelling),
        cmocka_unit_test(options_that_reach_for_files_are_known),
        cmocka_unit_test(options_of_the_front_end_can_be_left_out),
        cmocka_unit_test(a_load_takes_the_options_of_the_build),
        cmocka_unit_test(every_error_has_a_name_and_a_status),
        cmocka_unit_test(a_request_becomes_one_text_and_one_option_string),
        cmocka_unit_test(line_breaks_are_refused),
        kt_dir_test(the_private_dir_comes_and_goes),
        cmocka_unit_test(a_library_tells_which_kernel_was_launched),
        cmocka_unit_test(D1_lengths_in_a_pocl_binary_must_lead_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
