/* hipRTC's options: what reaches for files, what does not, and what is not given at all. */
#include <string.h>

#include "apis/hip/options/hiprtc_options.h"
#include "support/cmocka.h"

#define MOST 4

static kn_hiprtc_option_facts read_row(const char *const row[MOST])
{
    size_t count = 0;
    while (count < MOST && row[count] != NULL) {
        count++;
    }
    kn_hiprtc_option_facts facts;
    kn_hiprtc_options_read(row, count, &facts);
    return facts;
}

static void K1_options_that_reach_for_files_bypass_the_cache(void **state)
{
    static const char *const rows[][MOST] = {
        {"-Idir"},
        {"-I", "dir"},
        {"-isystem", "dir"},
        {"-isystemdir"},
        {"-iquote", "dir"},
        {"-idirafter", "dir"},
        {"--include-directory=dir"},
        {"-include", "f.h"},
        {"-includef.h"},
        {"--include=f.h"},
        {"-imacros", "f.h"},
        {"-DA=1", "-include", "f.h"},
        {"-D", "-include"},
        {"-D"},
        {"-D", ""},
        {"-Xclang", "-include", "-Xclang", "f.h"},
        {"-Xpreprocessor", "-include"},
        {"-mllvm", "-amdgpu-early-inline-all=true"},
        {"-Wp,-include,f.h"},
        {"-Wl,-T,f"},
        {"-Wa,f"},
        {"-MD"},
        {"-MF", "f.d"},
        {"-o", "f"},
        {"-save-temps"},
        {"--save-temps=obj"},
        {"-ftime-trace"},
        {"-fgpu-rdc"},
        {"-emit-llvm"},
        {"@f"},
        {"-fprofile-use=f"},
        {"-fmodules"},
        {"-std="},
        {"-std", "c++17"},
        {"-resource-dir=d"},
        {"--rocm-path=d"},
        {"-O4"},
        {"-gsplit-dwarf"},
        {" -O3"},
        {"-O3 "},
        {"-DA=1 -include f.h"},
        {"-D", "A -include"},
        {"-DA=\t1"},
        {"f.hip"},
        {"-"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (read_row(rows[i]).reason == NULL) {
            fail_msg("%s is not known to read no file", rows[i][0]);
        }
    }
}

static void options_that_leave_files_alone_are_cached(void **state)
{
    static const char *const rows[][MOST] = {
        {NULL},
        {"-DN=4"},
        {"-DN"},
        {"-D", "N=4"},
        {"-UN"},
        {"-U", "N"},
        {"-O0", "-O1", "-O2", "-O3"},
        {"-std=c++17"},
        {"--std=c++20"},
        {"-ffast-math", "-fno-signed-zeros"},
        {"-ffp-contract=fast"},
        {"-fgpu-flush-denormals-to-zero"},
        {"-munsafe-fp-atomics", "-mcumode", "-mwavefrontsize64"},
        {"-w", "-Wall", "-Wno-unused", "-Werror"},
        {"-fno-gpu-rdc", ""},
        {"-g", "-gline-tables-only"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const kn_hiprtc_option_facts facts = read_row(rows[i]);
        if (facts.reason != NULL) {
            fail_msg("%s: %s", rows[i][0], facts.reason);
        }
    }
}

static void line_information_names_files(void **state)
{
    static const char *const with[][MOST] = {
        {"-g"}, {"-O3", "-ggdb"}, {"-gline-tables-only"}, {"-g3"}};
    static const char *const without[][MOST] = {{"-g0"}, {"-O3"}, {NULL}};
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        assert_true(read_row(with[i]).names);
    }
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        assert_false(read_row(without[i]).names);
    }
}

static void a_target_is_seen_wherever_it_stands(void **state)
{
    static const char *const with[][MOST] = {{"--offload-arch=gfx900"},
                                             {"-bogus", "--offload-arch=gfx900"},
                                             {"--gpu-architecture=gfx900"},
                                             {"--offload-arch", "gfx900"},
                                             {"--cuda-gpu-arch=gfx900"}};
    static const char *const without[][MOST] = {{"-O3"}, {"-DN=--offload-arch"}, {NULL}};
    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        assert_true(read_row(with[i]).target);
        assert_non_null(read_row(with[i]).reason);
    }
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        assert_false(read_row(without[i]).target);
    }
}

static void options_of_a_variable_are_split(void **state)
{
    kn_hiprtc_option_facts facts;
    kn_hiprtc_options_read_text("  -O3\t-g ", &facts);
    assert_null(facts.reason);
    assert_true(facts.names);
    kn_hiprtc_options_read_text("", &facts);
    assert_null(facts.reason);
    kn_hiprtc_options_read_text("-O3 -include f.h", &facts);
    assert_non_null(facts.reason);
    kn_hiprtc_options_read_text("-DA=\"b\"", &facts);
    assert_non_null(facts.reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K1_options_that_reach_for_files_bypass_the_cache),
        cmocka_unit_test(options_that_leave_files_alone_are_cached),
        cmocka_unit_test(line_information_names_files),
        cmocka_unit_test(a_target_is_seen_wherever_it_stands),
        cmocka_unit_test(options_of_a_variable_are_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
