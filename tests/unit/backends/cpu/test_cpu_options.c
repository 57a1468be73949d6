/* The options of gcc and clang: what is known to name no file, and nothing else, is cached. */
#include <string.h>

#include "apis/cpu/backend/compiler.h"
#include "support/cmocka.h"

static kn_cpu_option_facts read_one(const char *option)
{
    kn_cpu_option_facts facts;
    kn_cpu_options_read(&option, 1, &facts);
    return facts;
}

static const char *const unlisted[] = {
    "-I.",
    "-Idir",
    "-isystem",
    "-include",
    "-includef.h",
    "-imacros",
    "-iquotedir",
    "-idirafter",
    "-iprefix",
    "-isysroot",
    "--sysroot=/x",
    "-B/x",
    "@f",
    "-x",
    "-",
    "f.c",
    "",
    "-Wl,-rpath,/x",
    "-Wa,-I/x",
    "-Wp,-include,f.h",
    "-Xclang",
    "-Xlinker",
    "-mllvm",
    "-fplugin=f.so",
    "-fpass-plugin=f.so",
    "-fprofile-use",
    "-fprofile-use=f",
    "-fauto-profile",
    "-fbranch-probabilities",
    "-fsanitize=address",
    "-fmodules",
    "-fmodule-file=f",
    "-fmodule-map-file=f",
    "-fbasic-block-sections=list=f",
    "-frandomize-layout-seed-file=f",
    "-fembed-offload-object=f",
    "-fthinlto-index=f",
    "-fmemory-profile=f",
    "-fuse-ld=gold",
    "-fdump-tree-all",
    "-fcallgraph-info",
    "-fsave-optimization-record",
    "-ftime-trace",
    "-fopt-info-all=f",
    "-ftest-coverage",
    "-fstack-usage",
    "-gsplit-dwarf",
    "-grecord-gcc-switches",
    "-frecord-command-line",
    "-frecord-gcc-switches",
    "-fself-test=d",
    "-fcompare-debug",
    "-fworking-directory",
    "-ffile-prefix-map=a=b",
    "-fdebug-prefix-map=a=b",
    "-fmacro-prefix-map=a=b",
    "-fopenmp",
    "-foffload=x",
    "-flto",
    "-fsymbol-file",
    "-specs=f",
    "-wrapper",
    "-M",
    "-MD",
    "-MF",
    "-save-temps",
    "-dumpversion",
    "-E",
    "-S",
    "-c",
    "-o",
    "-L.",
    "-lfoo",
    "-l:f.a",
    "-static",
    "-nostdinc",
    "-nostdlib",
    "-march=native",
    "-mtune=native",
    "-mcpu=native",
    "-mmcu=x",
    "-std=/x",
    "-falign-functions=/x",
    "-mtune=a/b",
    "-mtune-ctrl=x",
    "-mdump-tune-features",
    "-Wfoo=/x",
    "--param=x=1",
    "-fno-",
    "-f",
    "-m",
    "-fnot-there",
    "-ivfsoverlay",
    "-fsanitize-blacklist=f",
    "-fxray-always-instrument=f",
    "-fuse-cuid=x",
    "-D",
    "-U",
};

static void K1_what_is_not_listed_goes_past_the_cache(void **state)
{
    for (size_t i = 0; i < sizeof(unlisted) / sizeof(unlisted[0]); i++) {
        if (read_one(unlisted[i]).reason == NULL) {
            fail_msg("%s is not known to name no file", unlisted[i]);
        }
    }
}

static void what_is_listed_is_cached(void **state)
{
    static const char *const options[] = {
        "-DN=4",
        "-DN=/a/b c",
        "-UN",
        "-O",
        "-O2",
        "-Ofast",
        "-w",
        "-W",
        "-Wall",
        "-Wno-unused",
        "-Werror=shadow",
        "-Wframe-larger-than=100",
        "-ffast-math",
        "-fno-math-errno",
        "-funroll-loops",
        "-falign-functions=32",
        "-fvect-cost-model=dynamic",
        "-fno-builtin",
        "-ffp-contract=off",
        "-fvectorize",
        "-mavx2",
        "-mno-fma",
        "-msse4.2",
        "-march=x86-64-v3",
        "-mtune=generic",
        "-mprefer-vector-width=256",
        "-std=gnu11",
        "-pthread",
        "-lm",
        "-pedantic",
        "-g",
        "-g0",
        "-fwrapv",
        "-fno-strict-aliasing",
        "-fomit-frame-pointer",
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (read_one(options[i]).reason != NULL) {
            fail_msg("%s: %s", options[i], read_one(options[i]).reason);
        }
    }
}

static void a_value_may_be_the_next_option(void **state)
{
    static const char *const good[] = {"-D", "N=4", "-U", "M", "-w"};
    static const char *const bad[] = {"-D", "N=4", "-include", "f.h"};
    kn_cpu_option_facts facts;
    kn_cpu_options_read(good, 5, &facts);
    assert_null(facts.reason);
    kn_cpu_options_read(bad, 4, &facts);
    assert_non_null(facts.reason);
}

static void debug_information_holds_names(void **state)
{
    assert_true(read_one("-g").names);
    assert_true(read_one("-ggdb3").names);
    assert_true(read_one("-gdwarf-5").names);
    assert_true(read_one("-gline-tables-only").names);
    assert_false(read_one("-g0").names);
    assert_false(read_one("-O2").names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K1_what_is_not_listed_goes_past_the_cache),
        cmocka_unit_test(what_is_listed_is_cached),
        cmocka_unit_test(a_value_may_be_the_next_option),
        cmocka_unit_test(debug_information_holds_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
