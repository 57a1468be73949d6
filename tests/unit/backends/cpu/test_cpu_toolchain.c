/* The compiler's identity: what it is made of, when it changes, and that a warm start asks nothing.
 * Counters, not times, tell whether the compiler was asked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/text.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "unit/backends/cpu/rig.h"

#define NOTHING "#include <kiln_kernel.h>\nKILN_KERNEL(nothing) {}\n"

static int forget(void **state)
{
    unsetenv("KILN_CC");
    return 0;
}

static int forget_and_remove(void **state)
{
    (void)forget(state);
    return kt_tmpdir_teardown(state);
}

static void the_parts_are_in_the_identity(void **state)
{
    rig r;
    rig_open(&r, NULL);
    char *identity = rig_identity(&r, &r.target);
    assert_non_null(strstr(identity, "compiler="));
    assert_non_null(strstr(identity, "machine="));
    assert_non_null(strstr(identity, "tool=driver "));
    assert_non_null(strstr(identity, "tool=as "));
    assert_non_null(strstr(identity, "tool=ld "));
    assert_non_null(strstr(identity, "kiln_kernel.h="));
    free(identity);
    rig_close(&r);
}

/* Neither the compiler's own path nor any other is part of its identity. */
static void K5_no_path_in_the_identity(void **state)
{
    rig r;
    rig_open(&r, NULL);
    char *identity = rig_identity(&r, &r.target);
    assert_null(strstr(identity, "/usr"));
    assert_null(strstr(identity, "/tmp"));
    free(identity);
    rig_close(&r);
}

static void one_process_asks_once(void **state)
{
    rig r;
    rig_open(&r, NULL);
    char *first = rig_identity(&r, &r.target);
    char *second = rig_identity(&r, &r.target);
    assert_string_equal(first, second);
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    free(first);
    free(second);
    rig_close(&r);
}

static void a_warm_start_asks_nothing(void **state)
{
    rig_memo memo = {.count = 0};
    rig r;
    rig_open(&r, &memo);
    char *cold = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    const char *dir = kn_backend_cpu.compiler->system_include_dir(r.instance, &r.target, 0);
    assert_non_null(dir);
    char *cold_dir = kn_text_copy(dir);
    rig_close(&r);

    rig_open(&r, &memo);
    char *warm = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 0);
    assert_string_equal(cold, warm);
    assert_string_equal(kn_backend_cpu.compiler->system_include_dir(r.instance, &r.target, 0),
                        cold_dir);
    rig_close(&r);
    assert_int_equal(memo.puts, 1);
    free(cold);
    free(warm);
    free(cold_dir);
    rig_memo_clear(&memo);
}

static void a_damaged_memo_is_not_believed(void **state)
{
    rig_memo memo = {.count = 0};
    rig r;
    rig_open(&r, &memo);
    char *cold = rig_identity(&r, &r.target);
    rig_close(&r);
    for (size_t cut = 0; cut < memo.sizes[0]; cut += 1 + memo.sizes[0] / 7) {
        const size_t size = memo.sizes[0];
        memo.sizes[0] = cut;
        rig_open(&r, &memo);
        char *again = rig_identity(&r, &r.target);
        assert_int_equal(rig_cpu(&r)->tools.asked, 1);
        assert_string_equal(cold, again);
        free(again);
        rig_close(&r);
        assert_int_equal(memo.sizes[0], size); /* put back whole */
    }
    free(cold);
    rig_memo_clear(&memo);
}

/* A wrapper script stands for the compiler; its content changes under the same path, as an upgrade
 * does it, within one process and between two. */
static void K8_compiler_swapped_behind_same_path(void **state)
{
    rig_memo memo = {.count = 0};
    rig r;
    char *dir = *state;
    char *path = rig_script(dir, "mycc", "#!/bin/sh\nexec cc \"$@\"\n");
    setenv("KILN_CC", path, 1);

    rig_open(&r, &memo);
    char *before = rig_identity(&r, &r.target);
    free(rig_script(dir, "mycc", "#!/bin/sh\nexec cc  \"$@\"\n"));
    char *within = rig_identity(&r, &r.target);
    assert_string_not_equal(before, within);
    assert_int_equal(rig_cpu(&r)->tools.asked, 2);
    rig_close(&r);

    free(rig_script(dir, "mycc", "#!/bin/sh\nexec cc   \"$@\"\n"));
    rig_open(&r, &memo);
    char *later = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    assert_string_not_equal(within, later);
    rig_close(&r);

    /* The first one back again: known as what it is. */
    free(rig_script(dir, "mycc", "#!/bin/sh\nexec cc \"$@\"\n"));
    rig_open(&r, &memo);
    char *back = rig_identity(&r, &r.target);
    assert_string_equal(before, back);
    rig_close(&r);
    free(before);
    free(within);
    free(later);
    free(back);
    free(path);
    rig_memo_clear(&memo);
}

/* A file of options that the compiler reads by itself is edited. */
static void options_file_is_edited(const char *dir, const char *compiler, const char *option,
                                   const char *const texts[2])
{
    char command[128];
    char script[512];
    rig_memo memo = {.count = 0};
    rig r;
    kn_text_putf(command, sizeof(command), "command -v %s >/dev/null", compiler);
    if (system(command) != 0) { /* NOLINT(cert-env33-c) */
        skip();
        return;
    }
    char *file = kt_at(dir, "options");
    kn_text_putf(script, sizeof(script), "#!/bin/sh\nexec %s %s%s \"$@\"\n", compiler, option,
                 file);
    char *path = rig_script(dir, "configured", script);
    setenv("KILN_CC", path, 1);
    kt_file_write(file, texts[0], strlen(texts[0]));
    rig_open(&r, &memo);
    char *before = rig_identity(&r, &r.target);
    rig_close(&r);
    kt_file_write(file, texts[1], strlen(texts[1]));
    rig_open(&r, &memo);
    char *after = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    assert_string_not_equal(before, after);
    rig_close(&r);
    rig_memo_clear(&memo);
    free(before);
    free(after);
    free(path);
}

static void K2_edited_specs_of_gcc_are_noticed(void **state)
{
    static const char *const texts[] = {"*cc1_options:\n+ -DONE=1\n\n",
                                        "*cc1_options:\n+ -DONE=2\n\n"};
    options_file_is_edited(*state, "gcc", "-specs=", texts);
}

static void K2_an_edited_configuration_of_clang_is_noticed(void **state)
{
    static const char *const texts[] = {"-DONE=1\n", "-DONE=2\n"};
    options_file_is_edited(*state, "clang", "--config ", texts);
}

/* The driver stays, but the assembler it starts by name is another one. */
static void K2_another_assembler_on_the_path_is_noticed(void **state)
{
    char *dir = *state;
    const char *path = getenv("PATH");
    rig_memo memo = {.count = 0};
    rig r;
    char *longer = NULL;
    assert_non_null(path);
    if (kn_test_is_emulated()) {
        print_message("a cross compiler starts an assembler of its own\n");
        skip();
    }
    char *keep = kn_text_copy(path);
    assert_true(asprintf(&longer, "%s:%s", dir, path) > 0);
    setenv("KILN_CC", "gcc", 1);
    setenv("PATH", longer, 1);
    rig_open(&r, &memo);
    if (system("command -v gcc >/dev/null") != 0) { /* NOLINT(cert-env33-c) */
        rig_close(&r);
        setenv("PATH", keep, 1);
        free(keep);
        free(longer);
        skip();
        return;
    }
    char *before = rig_identity(&r, &r.target);
    rig_close(&r);
    free(rig_script(dir, "as", "#!/bin/sh\nexec /usr/bin/as \"$@\"\n"));
    rig_open(&r, &memo);
    char *after = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    assert_string_not_equal(before, after);
    rig_close(&r);
    setenv("PATH", keep, 1);
    free(before);
    free(after);
    free(keep);
    free(longer);
    rig_memo_clear(&memo);
}

static bool searches(rig *r, const char *wanted)
{
    const char *dir = NULL;
    for (size_t i = 0;
         (dir = kn_backend_cpu.compiler->system_include_dir(r->instance, &r->target, i)) != NULL;
         i++) {
        if (strcmp(dir, wanted) == 0) {
            return true;
        }
    }
    return false;
}

/* A wrapper that takes directories from the environment, as Nix has them: other values, other
 * headers.
 */
static void K1_dirs_that_a_variable_adds_are_searched(void **state)
{
    char *dir = *state;
    rig_memo memo = {.count = 0};
    rig r;
    char *path = rig_script(dir, "nixcc", "#!/bin/sh\nexec cc $NIX_CFLAGS_COMPILE \"$@\"\n");
    char *dirs[] = {kt_path(dir, "one"), kt_path(dir, "two")};
    setenv("KILN_CC", path, 1);
    rig_open(&r, &memo);
    for (size_t i = 0; i < 2; i++) {
        char flags[600];
        assert_int_equal(mkdir(dirs[i], 0700), 0);
        kn_text_putf(flags, sizeof(flags), "-isystem %s", dirs[i]);
        setenv("NIX_CFLAGS_COMPILE", flags, 1);
        free(rig_identity(&r, &r.target));
        assert_true(searches(&r, dirs[i]));
        assert_false(searches(&r, dirs[1 - i]));
    }
    rig_close(&r);
    unsetenv("NIX_CFLAGS_COMPILE");
    free(dirs[0]);
    free(dirs[1]);
    free(path);
    rig_memo_clear(&memo);
}

/* The compiler is replaced while it runs: what it made belongs to no key. */
/* clang calls a file in CPATH a directory that does not exist. */
static void a_file_in_a_list_of_directories_is_missing(void **state)
{
    char *file = kt_at((const char *)*state, "file");
    rig_memo memo = {.count = 0};
    rig r;
    if (system("clang --version >/dev/null 2>&1") != 0) {
        skip();
    }
    kt_file_write(file, "", 0);
    assert_int_equal(setenv("KILN_CC", "clang", 1), 0);
    assert_int_equal(setenv("CPATH", file, 1), 0);
    for (int start = 0; start < 3; start++) {
        if (start == 2) { /* and it becomes one */
            assert_int_equal(unlink(file), 0);
            assert_int_equal(mkdir(file, 0700), 0);
        }
        rig_open(&r, &memo);
        free(rig_identity(&r, &r.target));
        assert_int_equal(rig_cpu(&r)->tools.asked, start == 1 ? 0 : 1);
        rig_close(&r);
    }
    (void)unsetenv("CPATH");
    rig_memo_clear(&memo);
}

static void K8_replaced_during_the_compile(void **state)
{
    char script[512];
    char *dir = *state;
    rig r;
    kn_artifact artifact;
    kn_text_putf(script, sizeof(script),
                 "#!/bin/sh\ncase \" $* \" in *\" -shared \"*) echo '#' >>\"$0\";; esac\n"
                 "exec cc \"$@\"\n");
    char *path = rig_script(dir, "selfchanging", script);
    setenv("KILN_CC", path, 1);
    rig_open(&r, NULL);
    const kiln_source source = rig_source("k.c", NOTHING);
    assert_int_equal(rig_compile(&r, &source, &artifact), KILN_E_BUSY);
    assert_non_null(strstr(r.diag.why, path));
    assert_int_equal(artifact.base.size, 0);
    kn_artifact_deinit(&artifact);
    rig_close(&r);
    free(path);
}

static void expect_unavailable(rig *r, const char *why)
{
    kn_artifact artifact;
    const kiln_source source = rig_source("k.c", NOTHING);
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(r->diag.why, why));
    assert_true(r->diag.fix[0] != '\0');
    kn_artifact_deinit(&artifact);
}

static void without_a_compiler_it_is_still_ready(void **state)
{
    char *dir = *state;
    rig r;
    char *keep = kn_text_copy(getenv("PATH"));
    setenv("PATH", dir, 1);
    rig_open(&r, NULL);
    assert_int_equal(r.report.outcome, KILN_PROBE_READY);
    assert_int_equal(r.report.device_count, 1);
    assert_non_null(strstr(r.report.why, "no C compiler"));
    assert_string_equal(r.report.fix, "install gcc or set KILN_CC");
    expect_unavailable(&r, "no C compiler");
    assert_string_equal(r.diag.fix, "install gcc or set KILN_CC");
    assert_null(kn_backend_cpu.compiler->system_include_dir(r.instance, &r.target, 0));
    rig_close(&r);
    setenv("PATH", keep, 1);
    free(keep);
}

static void KILN_CC_that_is_not_there_is_told(void **state)
{
    static const char *const values[] = {"/no/such/cc", "no-such-cc", "rel/cc", "cc -O2"};
    rig r;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        setenv("KILN_CC", values[i], 1);
        rig_open(&r, NULL);
        expect_unavailable(&r, values[i]);
        rig_close(&r);
    }
}

static void what_is_no_compiler_is_told(void **state)
{
    static const char *const scripts[] = {"#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n",
                                          "#!/bin/sh\nkill -9 $$\n",
                                          "#!/bin/sh\necho hello version 1 >&2\n"};
    char *dir = *state;
    rig r;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        char *path = rig_script(dir, "false", scripts[i]);
        setenv("KILN_CC", path, 1);
        rig_open(&r, NULL);
        expect_unavailable(&r, "does not print");
        rig_close(&r);
        free(path);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, forget)
#define F(f) cmocka_unit_test_setup_teardown(f, kt_tmpdir_setup, forget_and_remove)
    const struct CMUnitTest tests[] = {
        T(the_parts_are_in_the_identity),
        T(K5_no_path_in_the_identity),
        T(one_process_asks_once),
        T(a_warm_start_asks_nothing),
        T(a_damaged_memo_is_not_believed),
        F(K8_compiler_swapped_behind_same_path),
        F(K2_another_assembler_on_the_path_is_noticed),
        F(K1_dirs_that_a_variable_adds_are_searched),
        F(a_file_in_a_list_of_directories_is_missing),
        F(K8_replaced_during_the_compile),
        F(K2_edited_specs_of_gcc_are_noticed),
        F(K2_an_edited_configuration_of_clang_is_noticed),
        F(without_a_compiler_it_is_still_ready),
        T(KILN_CC_that_is_not_there_is_told),
        F(what_is_no_compiler_is_told),
    };
    unsetenv("KILN_CC");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
