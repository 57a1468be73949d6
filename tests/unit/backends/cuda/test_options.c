/* NVRTC's options, in each spelling that NVRTC takes: what reaches for files, what does not, and
 * what changes the search for headers. */
#include <string.h>

#include "backends/cuda/options.h"
#include "support/cmocka.h"

#define MOST 4

static kn_cuda_option_facts read_row(const char *const row[MOST])
{
    size_t count = 0;
    while (count < MOST && row[count] != NULL) {
        count++;
    }
    kn_cuda_option_facts facts;
    kn_cuda_options_read(row, count, &facts);
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
    (void)state;
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
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const kn_cuda_option_facts facts = read_row(rows[i]);
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
    (void)state;
    for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
        assert_true(read_row(beside[i]).not_beside);
        assert_false(read_row(beside[i]).names);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_true(read_row(names[i]).names);
        assert_false(read_row(names[i]).not_beside);
    }
}

static void options_of_the_environment_are_read_like_others(void **state)
{
    kn_cuda_option_facts facts;
    (void)state;
    kn_cuda_options_read_text(" -lineinfo\t-D N=4 ", &facts);
    assert_null(facts.reason);
    assert_true(facts.names);
    kn_cuda_options_read_text("", &facts);
    assert_null(facts.reason);
    kn_cuda_options_read_text("-w -include f.h", &facts);
    assert_non_null(facts.reason);
    kn_cuda_options_read_text("-DX=\"a b\"", &facts);
    assert_non_null(facts.reason); /* quotes: nobody says how they are read */
    char many[1024] = "";
    for (int i = 0; i < 100; i++) {
        strcat(many, "-w ");
    }
    kn_cuda_options_read_text(many, &facts);
    assert_non_null(facts.reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K1_options_that_reach_for_files_go_past_the_cache),
        cmocka_unit_test(options_that_leave_files_alone_are_cached),
        cmocka_unit_test(effects_are_seen_in_each_spelling),
        cmocka_unit_test(options_of_the_environment_are_read_like_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
