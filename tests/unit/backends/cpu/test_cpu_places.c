/* What is behind and next to the compiler (TORTURE E6): programs that appear where it looks first,
 * and compilers that start others, which are not cached. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "base/text.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "unit/backends/cpu/rig.h"

#define NOTHING "#include <kiln_kernel.h>\nKILN_KERNEL(nothing) {}\n"

static int forget_and_remove(void **state)
{
    unsetenv("KILN_CC");
    unsetenv("COMPILER_PATH");
    return kt_tmpdir_teardown(state);
}

static const char *reason_of(rig *r)
{
    const kiln_source source = rig_source("k.c", NOTHING);
    return kn_backend_cpu.compiler->uncacheable_option(r->instance, &source);
}

/* A compiler of this machine by its name; skips the test where there is none. */
static void use_compiler(const char *name)
{
    char *path = kn_paths_find_program(name);
    if (path == NULL) {
        skip();
    }
    assert_int_equal(setenv("KILN_CC", path, 1), 0);
    free(path);
}

static void make_dir(char *path)
{
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
}

/* `program` appears in `dir`, which the memo of an earlier process does not know of. */
static void appears(const char *dir, const char *program)
{
    rig_memo memo = {.count = 0};
    rig r;
    rig_open(&r, &memo);
    char *before = rig_identity(&r, &r.target);
    assert_null(reason_of(&r));
    rig_close(&r);
    rig_open(&r, &memo);
    char *same = rig_identity(&r, &r.target);
    assert_int_equal(rig_cpu(&r)->tools.asked, 0);
    assert_string_equal(before, same);
    if (!kt_file_exists(dir)) {
        make_dir(kn_text_copy(dir));
    }
    char *script = NULL;
    assert_true(asprintf(&script, "#!/bin/sh\nexec %s \"$@\"\n", program) > 0);
    free(rig_script(dir, program, script));
    char *after = rig_identity(&r, &r.target); /* in the same process */
    assert_int_equal(rig_cpu(&r)->tools.asked, 1);
    assert_string_not_equal(before, after);
    assert_non_null(reason_of(&r)); /* it is a script */
    rig_close(&r);
    rig_memo_clear(&memo);
    free(script);
    free(after);
    free(same);
    free(before);
}

static char *subdir(const char *dir, const char *name)
{
    char *list = kt_at(dir, "path");
    char *path = kt_path(list, name);
    return path;
}

static void gcc_with_a_path(const char *dir)
{
    if (kn_test_is_emulated()) {
        print_message("a cross compiler has directories of its own\n");
        skip();
    }
    use_compiler("gcc");
    char *list = kt_at(dir, "path");
    make_dir(kn_text_copy(list));
    assert_int_equal(setenv("COMPILER_PATH", list, 1), 0);
}

static void E6_an_assembler_that_appears_in_COMPILER_PATH_is_noticed(void **state)
{
    gcc_with_a_path(*state);
    char *list = kt_at(*state, "path");
    appears(list, "as");
}

static void E6_a_linker_that_appears_in_COMPILER_PATH_is_noticed(void **state)
{
    gcc_with_a_path(*state);
    char *list = kt_at(*state, "path");
    appears(list, "ld");
}

static void E6_an_assembler_of_the_machine_that_appears_is_noticed(void **state)
{
    rig r;
    gcc_with_a_path(*state);
    rig_open(&r, NULL);
    free(rig_identity(&r, &r.target));
    char *dir = subdir(*state, rig_cpu(&r)->tools.current->machine);
    rig_close(&r);
    appears(dir, "as");
    free(dir);
}

static void E6_a_list_of_programs_that_depends_on_the_directory_is_not_cached(void **state)
{
    static const char *const lists[] = {"here", ":/usr/lib/none", "/usr/lib/none:here",
                                        "/usr/lib/none:"};
    rig r;
    use_compiler("gcc");
    rig_open(&r, NULL);
    assert_null(reason_of(&r));
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        assert_int_equal(setenv("COMPILER_PATH", lists[i], 1), 0);
        assert_non_null(reason_of(&r));
    }
    assert_int_equal(setenv("COMPILER_PATH", "/usr/lib/none", 1), 0);
    assert_null(reason_of(&r));
    rig_close(&r);
}

/* gcc's or clang's own file, by a link or not. */
static void compilers_themselves_are_cached(void **state)
{
    static const char *const names[] = {"cc", "gcc", "clang"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rig r;
        char *path = kn_paths_find_program(names[i]);
        if (path == NULL) {
            continue;
        }
        char *link = kt_at(*state, names[i]);
        assert_int_equal(symlink(path, link), 0);
        const char *const called[] = {names[i], path, link};
        for (size_t k = 0; k < sizeof(called) / sizeof(called[0]); k++) {
            assert_int_equal(setenv("KILN_CC", called[k], 1), 0);
            rig_open(&r, NULL);
            assert_null(reason_of(&r));
            rig_close(&r);
        }
        free(path);
    }
}

static void E6_scripts_are_not_cached(void **state)
{
    static const char *const texts[] = {
        "#!/bin/sh\nexec gcc \"$@\"\n",
        "#!/bin/sh\nexec gcc @/dev/null \"$@\"\n",
    };
    use_compiler("gcc");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        rig_memo memo = {.count = 0};
        rig r;
        char *path = rig_script(*state, "wrapper", texts[i]);
        assert_int_equal(setenv("KILN_CC", path, 1), 0);
        rig_open(&r, &memo);
        assert_non_null(reason_of(&r));
        rig_close(&r);
        rig_open(&r, &memo); /* the memo says it, too */
        assert_non_null(reason_of(&r));
        assert_int_equal(rig_cpu(&r)->tools.asked, 0);
        rig_close(&r);
        rig_memo_clear(&memo);
        free(path);
    }
}

/* A program in the compiler's place, which starts it by the path that it was started by: gcc finds
 * its parts by that, and calls itself so. */
static void E6_a_program_that_starts_the_compiler_is_not_cached(void **state)
{
    static const char command[] =
        "cd %s && mkdir bin && for each in lib lib64 libexec include; do ln -s /usr/$each .; done; "
        "echo '#include <unistd.h>\nint main(int c, char **v) { (void)c; return execv(\"%s\", v); "
        "}' "
        "| %s -x c - -o bin/gcc && bin/gcc -v 2>&1 | grep -q COLLECT_GCC=bin/gcc";
    use_compiler("gcc");
    char *inner = kn_path_resolve(getenv("KILN_CC"));
    char *path = kt_at(*state, "bin/gcc");
    char *line = NULL;
    rig r;
    assert_true(asprintf(&line, command, (const char *)*state, inner, inner) > 0);
    assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c) */
    assert_int_equal(setenv("KILN_CC", path, 1), 0);
    rig_open(&r, NULL);
    free(rig_identity(&r, &r.target)); /* it works */
    assert_non_null(reason_of(&r));
    rig_close(&r);
    free(line);
    free(inner);
}

static void E6_ccache_is_not_cached(void **state)
{
    rig r;
    char *ccache = kn_paths_find_program("ccache");
    if (ccache == NULL || kn_test_is_emulated()) {
        free(ccache);
        skip();
    }
    use_compiler("gcc");
    char *link = kt_at(*state, "gcc");
    assert_int_equal(symlink(ccache, link), 0);
    assert_int_equal(setenv("KILN_CC", link, 1), 0);
    rig_open(&r, NULL);
    assert_non_null(reason_of(&r));
    rig_close(&r);
    free(ccache);
}

int main(void)
{
#define F(f) cmocka_unit_test_setup_teardown(f, kt_tmpdir_setup, forget_and_remove)
    const struct CMUnitTest tests[] = {
        F(E6_an_assembler_that_appears_in_COMPILER_PATH_is_noticed),
        F(E6_a_linker_that_appears_in_COMPILER_PATH_is_noticed),
        F(E6_an_assembler_of_the_machine_that_appears_is_noticed),
        F(E6_a_list_of_programs_that_depends_on_the_directory_is_not_cached),
        F(compilers_themselves_are_cached),
        F(E6_scripts_are_not_cached),
        F(E6_a_program_that_starts_the_compiler_is_not_cached),
        F(E6_ccache_is_not_cached),
    };
    unsetenv("KILN_CC");
    unsetenv("COMPILER_PATH");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
