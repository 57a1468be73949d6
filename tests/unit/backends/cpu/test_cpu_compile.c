/* Compiling: what works, and every way in which a compiler can fail. Compilers that misbehave are
 * scripts that answer -v like the real one. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "apis/cpu/backend/compiler.h"
#include "apis/cpu/backend/object.h"
#include "apis/cpu/backend/target.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "unit/backends/cpu/rig.h"

#define SAXPY                                                                                      \
    "#include <kiln_kernel.h>\n"                                                                   \
    "KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(float, y))\n"          \
    "{\n    KILN_ITEMS_X(i)\n    {\n        y[i] = a * x[i] + y[i];\n    }\n}\n"
#define NOTHING "#include <kiln_kernel.h>\nKILN_KERNEL(nothing) {}\n"

static bool contains(const void *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

static int open_rig(void **state)
{
    rig *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    rig_open(r, NULL);
    *state = r;
    return 0;
}

static int close_rig(void **state)
{
    rig *r = *state;
    rig_close(r);
    free(r);
    unsetenv("KILN_CC");
    unsetenv("KILN_CC_TIMEOUT");
    return 0;
}

static void an_object_comes_out(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    const char *why = NULL;
    const kiln_source source = rig_source("saxpy.c", SAXPY);
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_OK);
    assert_true(kn_cpu_object_check(artifact.base.data, artifact.base.size,
                                    rig_cpu(r)->native.architecture, &why));
    assert_string_equal(kn_cpu_object_kernel(artifact.base.data, artifact.base.size, 0), "saxpy");
    assert_null(kn_cpu_object_kernel(artifact.base.data, artifact.base.size, 1));
    assert_null(artifact.base.log);
    kn_artifact_deinit(&artifact);
}

/* One source compiled in two places under two names gives the same bytes, and none of the
 * directories is in them, not even through __FILE__ or debug information. */
static void expect_no_path(rig *r, const char *const *options, size_t count)
{
    static const char text[] =
        "#include <kiln_kernel.h>\n#include \"part.h\"\n"
        "KILN_KERNEL(where, KILN_OUT(char, to))\n"
        "{\n    KILN_ITEMS_X(i)\n    {\n        to[i] = (__FILE__ \"|\" PART)[i];\n    }\n}\n";
    kn_artifact artifacts[2];
    char before[4096];
    assert_non_null(getcwd(before, sizeof(before)));
    for (int i = 0; i < 2; i++) {
        char *dir = kt_tmpdir_create();
        char *name = kt_at(dir, "where.c");
        char *part = kt_at(dir, "part.h");
        const char *const dirs[] = {dir};
        kt_file_write(part, "#define PART __FILE__\n", 22);
        kiln_source source = rig_source(name, text);
        source.include_dirs = dirs;
        source.include_dir_count = 1;
        source.options = options;
        source.option_count = count;
        assert_int_equal(chdir(dir), 0);
        assert_int_equal(rig_compile(r, &source, &artifacts[i]), KILN_OK);
        assert_int_equal(chdir(before), 0);
        assert_false(contains(artifacts[i].base.data, artifacts[i].base.size, dir));
        assert_false(contains(artifacts[i].base.data, artifacts[i].base.size, "kiln-cc-"));
        kt_tmpdir_remove(dir);
    }
    assert_int_equal(artifacts[0].base.size, artifacts[1].base.size);
    assert_memory_equal(artifacts[0].base.data, artifacts[1].base.data, artifacts[0].base.size);
    kn_artifact_deinit(&artifacts[0]);
    kn_artifact_deinit(&artifacts[1]);
}

static void K5_no_path_in_the_object(void **state)
{
    static const char *const debug[] = {"-g"};
    expect_no_path(*state, NULL, 0);
    expect_no_path(*state, debug, 1);
}

/* The object of a source with a header in `dir`/inc/part.h, compiled in `current`. */
static void compile_in(const char *dir, const char *current, kn_artifact *artifact)
{
    static const char *const debug[] = {"-g"};
    char *inc = kt_at(dir, "inc");
    char *before = kn_path_resolve(".");
    const char *const dirs[] = {inc};
    rig r;
    kiln_source source =
        rig_source("k.c", "#include \"part/part.h\"\n#include <kiln_kernel.h>\n"
                          "KILN_KERNEL(k, KILN_OUT(int, to))\n"
                          "{\n    KILN_ITEMS_X(i)\n    {\n        to[i] = part(i);\n    }\n}\n");
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    source.options = debug;
    source.option_count = 1;
    char *there = kt_at(dir, current);
    assert_int_equal(chdir(there), 0);
    rig_open(&r, NULL);
    assert_int_equal(rig_compile(&r, &source, artifact), KILN_OK);
    rig_close(&r);
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void E16_debug_information_does_not_depend_on_the_current_directory(void **state)
{
#ifdef __x86_64__
    static const char *const compilers[] = {"gcc", "clang"};
#else /* perhaps emulated: then cc alone makes code for the machine */
    static const char *const compilers[] = {"cc"};
#endif
    static const char *const dirs[] = {".", "inc", "inc/part", "inc/part/deep", "other"};
    static const char header[] = "static inline int part(unsigned long i) { return (int)i; }\n";
    char *dir = kt_tmpdir_create();
    for (size_t i = 1; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        char *path = kt_path(dir, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        free(path);
    }
    char *part = kt_at(dir, "inc/part/part.h");
    kt_file_write(part, header, sizeof(header) - 1);
    for (size_t c = 0; c < sizeof(compilers) / sizeof(compilers[0]); c++) {
        kn_artifact first, other;
        char *path = kn_paths_find_program(compilers[c]);
        if (path == NULL) {
            continue;
        }
        assert_int_equal(setenv("KILN_CC", path, 1), 0);
        free(path);
        compile_in(dir, dirs[0], &first);
        for (size_t i = 1; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
            compile_in(dir, dirs[i], &other);
            assert_int_equal(first.base.size, other.base.size);
            assert_memory_equal(first.base.data, other.base.data, first.base.size);
            kn_artifact_deinit(&other);
        }
        kn_artifact_deinit(&first);
    }
    unsetenv("KILN_CC");
    kt_tmpdir_remove(dir);
}

/* gcc would take "part.h.gch" for part.h, unasked. */
static void K1_files_that_no_text_names_are_not_read(void **state)
{
    static const char text[] =
        "#include \"part.h\"\n#include <kiln_kernel.h>\n"
        "KILN_KERNEL(where, KILN_OUT(char, to))\n"
        "{\n    KILN_ITEMS_X(i)\n    {\n        to[i] = PART[i];\n    }\n}\n";
    rig *r = *state;
    char *dir = kt_tmpdir_create();
    char *part = kt_at(dir, "part.h");
    char *other = kt_at(dir, "other.h");
    char *compiled = kt_at(dir, "part.h.gch");
    char *predefined = kt_at(dir, "stdc-predef.h.gch");
    const char *const dirs[] = {dir};
    kn_strbuf command;
    kn_artifact artifact;
    kt_file_write(part, "#define PART \"the header\"\n", 26);
    kt_file_write(other, "#define PART \"precompiled\"\n", 27);
    kn_strbuf_init(&command, 0);
    kn_strbuf_append_text(&command, "cc -w ");
    kn_cpu_flags_fixed("", &command);
    kn_cpu_target_flags(kn_cpu_target_of(&r->target), &command);
    for (size_t i = 0; i < command.length; i++) {
        command.data[i] = command.data[i] == '\0' ? ' ' : command.data[i];
    }
    kn_strbuf_printf(&command, " -x c-header %s -o %s 2>/dev/null", other, compiled);
    (void)!system(kn_strbuf_text(&command)); /* another compiler may make none */
    kiln_source source = rig_source("where.c", text);
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_null(kn_backend_cpu.compiler->uncacheable_option(r->instance, &source));
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_OK);
    assert_true(contains(artifact.base.data, artifact.base.size, "the header"));
    kn_artifact_deinit(&artifact);
    kt_file_write(predefined, "\n", 1);
    assert_non_null(kn_backend_cpu.compiler->uncacheable_option(r->instance, &source));
    kn_strbuf_deinit(&command);
    kt_tmpdir_remove(dir);
}

static void an_error_has_the_file_the_line_and_the_log(void **state)
{
    static const struct {
        const char *name, *text, *why, *log, *fix;
    } rows[] = {
        {"my/kernel file.c", "#include <kiln_kernel.h>\n\nint f(void) { return nosuch; }\n",
         "my/kernel file.c:3:", "nosuch", ""},
        /* a missing function is an error of the compile */
        {"k.c", "#include <kiln_kernel.h>\nvoid nowhere(void);\nKILN_KERNEL(k) { nowhere(); }\n",
         "", "nowhere", ""},
        {"k.c", "int f(void);\nint f(void) { return 1; }\n", "no kernel", NULL, "KILN_KERNEL"},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kn_artifact artifact;
        const kiln_source source = rig_source(rows[i].name, rows[i].text);
        assert_int_equal(rig_compile(r, &source, &artifact), KILN_E_COMPILE);
        assert_non_null(strstr(r->diag.why, rows[i].why));
        assert_non_null(strstr(r->diag.fix, rows[i].fix));
        if (rows[i].log != NULL) {
            assert_non_null(strstr(r->diag.log, rows[i].log));
            assert_non_null(strstr(r->diag.log, rows[i].why));
            assert_null(strstr(r->diag.log, "kiln-cc-"));
        }
        assert_int_equal(artifact.base.size, 0);
        kn_artifact_deinit(&artifact);
    }
}

static void warnings_become_the_log(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    const char *const options[] = {"-Wunused-variable"};
    kiln_source source =
        rig_source("k.c", "#include <kiln_kernel.h>\nKILN_KERNEL(k)\n{\n    int idle;\n}\n");
    source.options = options;
    source.option_count = 1;
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_OK);
    assert_non_null(artifact.base.log);
    assert_non_null(strstr(artifact.base.log, "k.c:4:"));
    kn_artifact_deinit(&artifact);
}

static void defines_headers_and_dirs_are_found(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    char *dir = kt_tmpdir_create();
    char *file = kt_at(dir, "onfile.h");
    const char *const dirs[] = {dir};
    const kiln_define defines[] = {{"ONE", NULL}, {"TWO", "(1 + 1)"}};
    const kiln_header headers[] = {{"deep/inmemory.h", "#include \"next.h\"\n", 18},
                                   {"deep/next.h", "#define FOUR 4\n", 15}};
    kt_file_write(file, "#define THREE 3\n", 16);
    kiln_source source =
        rig_source("k.c", "#include <kiln_kernel.h>\n#include <math.h>\n#include \"onfile.h\"\n"
                          "#include \"deep/inmemory.h\"\n"
                          "_Static_assert(ONE + TWO + THREE + FOUR == 10, \"all are there\");\n"
                          "KILN_KERNEL(k, KILN_INOUT(float, x))\n"
                          "{\n    KILN_ITEMS_X(i)\n    {\n        x[i] = expf(x[i]);\n    }\n}\n");
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    source.defines = defines;
    source.define_count = 2;
    source.headers = headers;
    source.header_count = 2;
    void *program = rig_build(r, &source);
    kn_backend_cpu.device->program_unload(r->device, program);

    const kiln_header outside = {"../escape.h", "", 0};
    source.headers = &outside;
    source.header_count = 1;
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_E_INVALID);
    assert_non_null(strstr(r->diag.why, "../escape.h"));
    kn_artifact_deinit(&artifact);
    kt_tmpdir_remove(dir);
}

static void nothing_is_left_behind(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    char *dir = kt_tmpdir_create();
    const kiln_source good = rig_source("k.c", NOTHING);
    const kiln_source bad = rig_source("k.c", "nonsense");
    const char *before = getenv("TMPDIR");
    char *keep = before != NULL ? kn_text_copy(before) : NULL;
    setenv("TMPDIR", dir, 1);
    assert_int_equal(rig_compile(r, &good, &artifact), KILN_OK);
    kn_artifact_deinit(&artifact);
    assert_int_equal(rig_compile(r, &bad, &artifact), KILN_E_COMPILE);
    kn_artifact_deinit(&artifact);
    assert_int_equal(rmdir(dir), 0);
    if (keep != NULL) {
        setenv("TMPDIR", keep, 1);
    } else {
        unsetenv("TMPDIR");
    }
    free(keep);
    free(dir);
}

/* --- compilers that misbehave ----------------------------------------------------------------- */

/* Answers questions like the real compiler; where an object is wanted (-shared), does `instead`. */
static kiln_status compile_with(const char *instead, kn_artifact *artifact, rig *r)
{
    char script[1024];
    char *dir = kt_tmpdir_create();
    const kiln_source source = rig_source("k.c", NOTHING);
    kn_text_putf(script, sizeof(script),
                 "#!/bin/sh\nout=\nlast=\nfor a in \"$@\"; do [ \"$last\" = -o ] && out=$a; "
                 "last=$a; done\ncase \" $* \" in *\" -shared \"*) %s;; esac\nexec cc \"$@\"\n",
                 instead);
    char *path = rig_script(dir, "cc", script);
    setenv("KILN_CC", path, 1);
    kiln_status status = rig_compile(r, &source, artifact);
    free(path);
    kt_tmpdir_remove(dir);
    return status;
}

static void a_wrapper_that_behaves_is_fine(void **state)
{
    kn_artifact artifact;
    assert_int_equal(compile_with("true", &artifact, *state), KILN_OK);
    kn_artifact_deinit(&artifact);
}

static void D3_success_without_an_object_is_a_failure(void **state)
{
    static const struct {
        const char *script, *why;
    } cases[] = {
        {"exit 0", "it is not there"},
        {": >\"$out\"; exit 0", "it is empty"},
        {"echo hello >\"$out\"; exit 0", "not a 64-bit ELF"},
        {"cp /bin/sh \"$out\"; exit 0", NULL}, /* a shared object or none, but without kernels */
        {"cc \"$@\"; head -c 600 \"$out\" >\"$out.2\"; mv \"$out.2\" \"$out\"; exit 0",
         "truncated"},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kn_artifact artifact;
        kiln_status status = compile_with(cases[i].script, &artifact, r);
        assert_int_not_equal(status, KILN_OK);
        if (cases[i].why != NULL) {
            assert_int_equal(status, KILN_E_UNAVAILABLE);
            assert_non_null(strstr(r->diag.why, cases[i].why));
        }
        assert_int_equal(artifact.base.size, 0);
        kn_artifact_deinit(&artifact);
    }
}

static void a_compiler_that_crashes_hangs_or_floods_is_ended(void **state)
{
    static const struct {
        const char *script;
        kiln_status status;
        const char *why, *fix, *log;
    } cases[] = {
        {"echo going down >&2; kill -SEGV $$", KILN_E_COMPILE, "SIGSEGV", "", "going down"},
        {"sleep 100", KILN_E_TIMEOUT, "", "KILN_CC_TIMEOUT", NULL},
        {"yes error: no | head -c 8000000 >&2; exit 1", KILN_E_COMPILE, "", "", "no"},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kn_artifact artifact;
        if (cases[i].status == KILN_E_TIMEOUT) {
            setenv("KILN_CC_TIMEOUT", "1", 1);
        } else {
            unsetenv("KILN_CC_TIMEOUT");
        }
        assert_int_equal(compile_with(cases[i].script, &artifact, r), cases[i].status);
        assert_non_null(strstr(r->diag.why, cases[i].why));
        assert_non_null(strstr(r->diag.fix, cases[i].fix));
        assert_true(cases[i].log == NULL || strstr(r->diag.log, cases[i].log) != NULL);
        assert_true(r->diag.log_length <= (size_t)1 << 20);
        kn_artifact_deinit(&artifact);
    }
}

static void a_malformed_time_limit_names_the_variable(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    const kiln_source source = rig_source("k.c", NOTHING);
    setenv("KILN_CC_TIMEOUT", "soon", 1);
    assert_int_equal(rig_compile(r, &source, &artifact), KILN_E_INVALID);
    assert_true(strstr(r->diag.what, "KILN_CC_TIMEOUT") || strstr(r->diag.why, "KILN_CC_TIMEOUT"));
    kn_artifact_deinit(&artifact);
}

static void a_target_of_another_machine_needs_another_compiler(void **state)
{
    rig *r = *state;
    kn_artifact artifact;
    void *live = NULL;
    const kiln_source source = rig_source("k.c", NOTHING);
    const bool x86 = rig_cpu(r)->native.architecture == KN_ARCH_X86_64;
    kiln_target target = {.handle = NULL};
    assert_int_equal(kn_backend_cpu.compiler->target_parse(r->instance, x86 ? "aarch64" : "x86-64",
                                                           &target, &r->diag),
                     KILN_OK);
    const kiln_compile_request request = {.target = &target, .source = &source};
    kn_artifact_init(&artifact);
    assert_int_equal(
        kn_backend_cpu.compiler->compile(r->instance, &request, &artifact.base, &live, &r->diag),
        KILN_E_UNSUPPORTED);
    assert_non_null(strstr(r->diag.fix, "KILN_CC"));
    kn_artifact_deinit(&artifact);
    kn_backend_cpu.compiler->target_destroy(r->instance, &target);
}

/* --- options ---------------------------------------------------------------------------------- */

static void K4_options_that_name_files_are_not_cached(void **state)
{
    static const char *const bad[] = {"-include",
                                      "@flags",
                                      "-specs=x",
                                      "-Bdir",
                                      "-Idir",
                                      "-isystem",
                                      "-imacros",
                                      "-fplugin=x.so",
                                      "-Wl,-T,x",
                                      "-Wp,-include",
                                      "-L.",
                                      "-lfoo",
                                      "other.c",
                                      "-march=native",
                                      "-mtune=native",
                                      "-fprofile-use",
                                      "--sysroot=x",
                                      "-wrapper",
                                      "-Xlinker",
                                      "-save-temps",
                                      "-fuse-ld=gold",
                                      "-MMD",
                                      "-x",
                                      "-fbasic-block-sections=list=x",
                                      "-fxray-attr-list=x",
                                      "-fembed-offload-object=x",
                                      "-fthinlto-index=x",
                                      "-fstack-usage",
                                      "-fcs-profile-generate"};
    static const char *const good[] = {"-O1",   "-ffast-math",   "-DX=1", "-D", "NAME", "-Wall",
                                       "-g",    "-std=gnu17",    "-U",    "X",  "-w",   "-lm",
                                       "-mavx", "-funroll-loops"};
    rig *r = *state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        kiln_source source = rig_source("k.c", NOTHING);
        source.options = &bad[i];
        source.option_count = 1;
        if (kn_backend_cpu.compiler->uncacheable_option(r->instance, &source) == NULL) {
            fail_msg("%s was taken for cacheable", bad[i]);
        }
    }
    kiln_source source = rig_source("k.c", NOTHING);
    source.options = good;
    source.option_count = sizeof(good) / sizeof(good[0]);
    assert_null(kn_backend_cpu.compiler->uncacheable_option(r->instance, &source));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        T(an_object_comes_out),
        T(K5_no_path_in_the_object),
        T(E16_debug_information_does_not_depend_on_the_current_directory),
        T(K1_files_that_no_text_names_are_not_read),
        T(an_error_has_the_file_the_line_and_the_log),
        T(warnings_become_the_log),
        T(defines_headers_and_dirs_are_found),
        T(nothing_is_left_behind),
        T(a_wrapper_that_behaves_is_fine),
        T(D3_success_without_an_object_is_a_failure),
        T(a_compiler_that_crashes_hangs_or_floods_is_ended),
        T(a_malformed_time_limit_names_the_variable),
        T(a_target_of_another_machine_needs_another_compiler),
        T(K4_options_that_name_files_are_not_cached),
    };
    unsetenv("KILN_CPU_FEATURES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
