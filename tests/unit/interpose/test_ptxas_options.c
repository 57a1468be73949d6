/* Command lines of ptxas: what is followed, and what is the real one's. That ptxas reads them in
 * the same way is what tests/interpose/ptxas.py is for. */
#include "apis/cuda/options/ptxas_options.h"

#include <string.h>

#include "support/cmocka.h"

enum { WORDS = 16 };

static kn_ptxas_line read_line(const char *text, char *copy, size_t size)
{
    char *argv[WORDS + 1] = {(char *)"ptxas"};
    int argc = 1;
    kn_ptxas_line line;
    assert_true(strlen(text) < size);
    memcpy(copy, text, strlen(text) + 1);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && argc < WORDS;
         word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    kn_ptxas_line_read(argc, argv, &line);
    return line;
}

static void lines_of_triton_and_xla_are_followed(void **state)
{
    char copy[256];
    kn_ptxas_line line =
        read_line("-lineinfo -v --gpu-name=sm_90a /tmp/a.ptx -o /tmp/a.ptx.o", copy, sizeof(copy));
    assert_string_equal(line.bypass, "");
    assert_int_equal(line.input_at, 4);
    assert_int_equal(line.output_at, 6);
    assert_int_equal(line.output_skip, 0);
    assert_string_equal(line.output, "/tmp/a.ptx.o");
    assert_string_equal(line.target, "cuda-sm_90a");
    assert_false(line.no_lines);
    line = read_line("/tmp/in -o /tmp/out -arch=sm_90a --warn-on-spills -O0", copy, sizeof(copy));
    assert_string_equal(line.bypass, "");
    assert_int_equal(line.input_at, 1);
    line = read_line("-lineinfo -suppress-debug-info x.ptx", copy, sizeof(copy));
    assert_true(line.no_lines);
    assert_int_equal(line.output_at, 0);
    assert_string_equal(line.output, "elf.o");
    line = read_line("--output-file=out x.ptx", copy, sizeof(copy));
    assert_int_equal(line.output_skip, strlen("--output-file="));
    assert_string_equal(line.output, "out");
    assert_true(read_line("--version", copy, sizeof(copy)).asks_version);
}

static void other_lines_are_not(void **state)
{
    static const char *const lines[] = {"",
                                        "-v",
                                        "-",
                                        "- -o out",
                                        "@file x.ptx",
                                        "a.ptx b.ptx",
                                        "x.ptx -o a -o b",
                                        "x.ptx -o=",
                                        "x.ptx -o",
                                        "x.ptx -g",
                                        "x.ptx --device-debug",
                                        "x.ptx -split-compile=2",
                                        "x.ptx -optf file",
                                        "-ias text",
                                        "x.ptx -arch=compute_90",
                                        "x.ptx -arch=sm_90/x",
                                        "x.ptx -arch",
                                        "x.ptx -maxrregcount -v",
                                        "x.ptx -O 2",
                                        "x.ptx -v=true",
                                        "x.ptx --version",
                                        "x.ptx --verb",
                                        "x.ptx -archsm_90"};
    char copy[256];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const kn_ptxas_line line = read_line(lines[i], copy, sizeof(copy));
        if (line.bypass[0] == '\0' || line.asks_version) {
            fail_msg("followed: %s", lines[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_triton_and_xla_are_followed),
        cmocka_unit_test(other_lines_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
