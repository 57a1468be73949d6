/* NVRTC's options, in each spelling that NVRTC takes: what reaches for files, what does not, and
 * what changes the search for headers. */
#include <string.h>

#include "apis/cuda/options/nvrtc_options.h"
#include "support/cmocka.h"

#define MOST 4

static kn_nvrtc_option_facts read_row(const char *const row[MOST])
{
    size_t count = 0;
    while (count < MOST && row[count] != NULL) {
        count++;
    }
    kn_nvrtc_option_facts facts;
    kn_nvrtc_options_read(row, count, &facts);
    return facts;
}

static void K1_options_that_reach_for_files_go_past_the_cache(void **state)
{
    static const char *const rows[][MOST] = {
        {"-Idir"},
        {"-I", "dir"},
        {"-I=dir"},
        {"-I dir"},
        {" -Idir"},
        {"-Idir "},
        {"--include-path=dir"},
        {"--include-path", "dir"},
        {"-include=f.h"},
        {"-include", "f.h"},
        {"--pre-include=f.h"},
        {"--pre-include", "f.h"},
        {"-DA=1", "-include", "f.h"},
        {"-Xcudafe", "--preinclude=f.h"},
        {"-Xcudafe=--preinclude=f.h"},
        {"-Xcudafe", "--preinclude", "-Xcudafe", "f.h"},
        {"-Xnvvm", "-opt=3"},
        {"-Xptxas", "--options-file=f"},
        {"-Xptxas=-optf=f"},
        {"-Xptxas=-v,-optf,f"},
        {"--ptxas-options=-O1,--options-file=f"},
        {"--ptxas-options", "f.ptx"},
        {"-pch"},
        {"--pch"},
        {"-use-pch=f"},
        {"--create-pch=f"},
        {"--pch-dir=d"},
        {"-time=f"},
        {"--fdevice-time-trace=f"},
        {"@f"},
        {"--options-file", "f"},
        {"-optf=f"},
        {"-D", "-include=f.h"},
        {"--fmad", "--pre-include=f.h"},
        {"-maxrregcount", "-include=f.h"},
        {"-std", "c++17"},
        {"-something-new"},
        {"--something-new=1"},
        {"---fmad=true"},
        {"f.cu"},
        {""},
        {"-"},
        {"--"},
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
        {"-D", "N=4"},
        {"-D=N=4"},
        {"-D N=4"},
        {"--define-macro=N=4"},
        {"--define-macro", "N=4"},
        {"-UN"},
        {"-U", "N"},
        {"--undefine-macro=N"},
        {"-std=c++17"},
        {"--std=c++20"},
        {"-arch=sm_90"},
        {"-arch", "sm_90"},
        {"--gpu-architecture=compute_90"},
        {"-maxrregcount=32"},
        {"--maxrregcount", "32"},
        {"-ftz=true", "--fmad", "false", "-prec-div=1"},
        {"--use_fast_math", "-w", "-restrict"},
        {"-rdc=true", "-dc"},
        {"-dlto"},
        {"-Xptxas", "-v"},
        {"-Xptxas=-O1,-dlcm=ca", "--ptxas-options", "--warn-on-spills"},
        {"-default-device"},
        {"--device-as-default-execution-space"},
        {"--diag-suppress=177", "-diag-error", "20"},
        {"-Ofc=max", "-dopt=on"},
        {"-jtd=10", "--split-compile=0"},
        {"-lineinfo"},
        {"-no-source-include"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const kn_nvrtc_option_facts facts = read_row(rows[i]);
        if (facts.reason != NULL) {
            fail_msg("%s: %s", rows[i][0], facts.reason);
        }
    }
}

static void effects_are_seen_in_each_spelling(void **state)
{
    static const char *const beside[][MOST] = {{"--no-source-include"},
                                               {"-w", "-no-source-include"}};
    static const char *const names[][MOST] = {
        {"-lineinfo"}, {"--generate-line-info"}, {"-G"}, {"-w", "--device-debug"}};
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        assert_true(read_row(beside[i]).not_beside);
        assert_false(read_row(beside[i]).names);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(read_row(names[i]).names);
        assert_false(read_row(names[i]).not_beside);
    }
}

/* "-arch" and "-I" have one dash, their long names two; blanks that NVRTC would take off make
 * another option of it. */
static void targets_and_directories_are_found_in_each_spelling(void **state)
{
    static const struct {
        const char *options[2];
        kn_option_use use;
        size_t last;
        const char *value;
    } cases[] = {
        {{"-arch=sm_90", "-w"}, KN_OPTION_TARGET, 0, "sm_90"},
        {{"--gpu-architecture", "sm_90"}, KN_OPTION_TARGET, 1, "sm_90"},
        {{"--arch=sm_90", "-w"}, KN_OPTION_OTHER, 0, NULL},
        {{"-Iinc", "-w"}, KN_OPTION_DIRECTORY, 0, "inc"},
        {{"-I=inc", "-w"}, KN_OPTION_DIRECTORY, 0, "inc"},
        {{"-Ia=b", "-w"}, KN_OPTION_DIRECTORY, 0, "a=b"},
        {{"-I", "inc"}, KN_OPTION_DIRECTORY, 1, "inc"},
        {{"--include-path=inc", "-w"}, KN_OPTION_DIRECTORY, 0, "inc"},
        {{"-include-path=inc", "-w"}, KN_OPTION_OTHER, 0, NULL},
        {{"-I inc", "-w"}, KN_OPTION_OTHER, 0, NULL},
        {{"-I", "inc "}, KN_OPTION_OTHER, 1, NULL},
        {{"-I", ""}, KN_OPTION_OTHER, 1, NULL},
        {{"-D", "-Iinc"}, KN_OPTION_OTHER, 1, NULL},
        {{"-isystem", "inc"}, KN_OPTION_OTHER, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kn_call_option option;
        kn_nvrtc_option_read(cases[i].options, 2, 0, &option);
        assert_int_equal(option.use, cases[i].use);
        assert_int_equal(option.last, cases[i].last);
        if (cases[i].value != NULL) {
            assert_string_equal(option.value, cases[i].value);
            assert_ptr_equal(cases[i].options[option.last] + option.before, option.value);
        }
    }
    kn_call_option last;
    kn_nvrtc_option_read((const char *const[]){"-I"}, 1, 0, &last);
    assert_int_equal(last.use, KN_OPTION_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K1_options_that_reach_for_files_go_past_the_cache),
        cmocka_unit_test(options_that_leave_files_alone_are_cached),
        cmocka_unit_test(effects_are_seen_in_each_spelling),
        cmocka_unit_test(targets_and_directories_are_found_in_each_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
