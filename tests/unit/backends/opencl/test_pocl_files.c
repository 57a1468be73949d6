/* PoCL's own headers and libraries are part of what a key says of it (TORTURE E10): the files of a
 * directory made here, and those of a copy of the PoCL that is installed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/opencl/backend/opencl.h"
#include "base/text.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/process.h"
#include "unit/backends/opencl/rig.h"

static char program_path[4096];

/* --- a host that remembers ------------------------------------------------------------------- */

static struct {
    char *name, *data;
    size_t size;
    unsigned puts;
} memory;

static kiln_status recall(void *memo, const char *name, void **out_data, size_t *out_size)
{
    if (memory.name == NULL || strcmp(memory.name, name) != 0) {
        return KILN_MISS;
    }
    *out_data = kn_text_copy_n(memory.data, memory.size);
    *out_size = memory.size;
    return *out_data != NULL ? KILN_OK : KILN_E_NOMEM;
}

static void remember(void *memo, const char *name, const void *data, size_t size)
{
    free(memory.name);
    free(memory.data);
    memory.name = kn_text_copy(name);
    memory.data = kn_text_copy_n((const char *)data, size);
    memory.size = size;
    memory.puts++;
}

static kiln_host remembering_host(void)
{
    kiln_host host = kn_host;
    host.memo_get = recall;
    host.memo_put = remember;
    return host;
}

static void forget(void)
{
    free(memory.name);
    free(memory.data);
    memory.name = NULL;
    memory.data = NULL;
    memory.puts = 0;
}

/* --- a directory as PoCL has one -------------------------------------------------------------- */

static void write_text(const char *dir, const char *name, const char *text)
{
    char *path = kt_at(dir, name);
    kt_file_write(path, text, strlen(text));
}

static void make_files(const char *dir)
{
    char *include = kt_at(dir, "include");
    assert_int_equal(mkdir(include, 0700), 0);
    write_text(dir, "include/_kernel.h", "#define A 1\n");
    write_text(dir, "include/pocl.h", "#define B 1\n");
    write_text(dir, "kernel-x86_64-pc-linux-gnu-sse2.bc", "BC2");
    write_text(dir, "kernel-x86_64-pc-linux-gnu-avx512.bc", "BC512");
}

static void digest_of(const char *dir, char digest[KN_POCL_DIGEST])
{
    const kiln_host host = remembering_host();
    assert_true(kn_pocl_files_digest(dir, &host, digest));
    assert_int_equal(strlen(digest), KN_POCL_DIGEST - 1);
}

static void E10_what_the_files_hold_is_their_digest(void **state)
{
    const char *dir = (const char *)*state;
    static const char *const names[] = {"include/_kernel.h", "include/new.h",
                                        "kernel-x86_64-pc-linux-gnu-avx512.bc"};
    char before[KN_POCL_DIGEST], after[KN_POCL_DIGEST];
    make_files(dir);
    digest_of(dir, before);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        write_text(dir, names[i], "#define A 2\n");
        digest_of(dir, after);
        assert_string_not_equal(before, after);
        memcpy(before, after, sizeof(before));
    }
    forget();
}

static void E10_the_same_files_elsewhere_are_the_same(void **state)
{
    const char *dir = (const char *)*state;
    char *one = kt_at(dir, "one"), *other = kt_at(dir, "other");
    char first[KN_POCL_DIGEST], second[KN_POCL_DIGEST];
    assert_int_equal(mkdir(one, 0700), 0);
    assert_int_equal(mkdir(other, 0700), 0);
    make_files(one);
    make_files(other);
    digest_of(one, first);
    digest_of(other, second);
    assert_string_equal(first, second);
    forget();
}

static void files_are_read_once_while_the_system_says_the_same_of_them(void **state)
{
    const char *dir = (const char *)*state;
    char first[KN_POCL_DIGEST], second[KN_POCL_DIGEST];
    make_files(dir);
    digest_of(dir, first);
    assert_int_equal(memory.puts, 1);
    memory.data[0] = memory.data[0] == 'a' ? 'b' : 'a'; /* to see who answers */
    digest_of(dir, second);
    assert_int_equal(memory.puts, 1);
    assert_int_equal(second[0], memory.data[0]);
    write_text(dir, "include/pocl.h", "#define B 22\n");
    digest_of(dir, second);
    assert_int_equal(memory.puts, 2);
    forget();
}

static void E10_a_named_library_of_functions_is_read_whichever_it_is(void **state)
{
    const char *dir = (const char *)*state;
    char before[KN_POCL_DIGEST], after[KN_POCL_DIGEST];
    make_files(dir);
    assert_int_equal(setenv("POCL_KERNELLIB_NAME", "sse2", 1), 0);
    digest_of(dir, before);
    write_text(dir, "kernel-x86_64-pc-linux-gnu-sse2.bc", "BC3");
    digest_of(dir, after);
    assert_int_equal(unsetenv("POCL_KERNELLIB_NAME"), 0);
    assert_string_not_equal(before, after);
    forget();
}

static void a_missing_directory_is_a_digest_and_no_failure(void **state)
{
    char *missing = kt_at((const char *)*state, "missing");
    char digest[KN_POCL_DIGEST];
    digest_of(missing, digest);
    forget();
}

static void files_of_a_source_tree_are_not_known(void **state)
{
    assert_null(kn_pocl_files_reason());
    assert_int_equal(setenv("POCL_BUILDING", "1", 1), 0);
    assert_non_null(kn_pocl_files_reason());
    assert_int_equal(setenv("POCL_BUILDING", "0", 1), 0);
    assert_null(kn_pocl_files_reason());
    assert_int_equal(unsetenv("POCL_BUILDING"), 0);
}

/* --- a copy of the installed PoCL ------------------------------------------------------------- */

/* In a child: the line of the files, and the library that they belong to. */
static void say_library(void *user, const char *path, const char *build_id)
{
    if (kn_text_starts(kn_path_name(path), "libpocl.so")) {
        (void)printf("library=%s\n", path);
    }
}

static int say_identity(void)
{
    rig r;
    if (!rig_open(&r, "Portable Computing Language")) {
        return 77;
    }
    char *text = rig_identity(&r);
    const char *line = strstr(text, "opencl.files=");
    (void)printf("%.*s\n", line != NULL ? (int)strcspn(line, "\n") : 0, line != NULL ? line : "");
    (void)kn_module_each(say_library, NULL);
    free(text);
    rig_close(&r);
    return 0;
}

/* What the child printed, malloc'ed; NULL: there is no PoCL. */
static char *ask_child(const char *vendors)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char variable[4200];
    const char *const argv[] = {program_path, "identity", NULL};
    const char *const environment[] = {vendors != NULL ? variable : NULL, NULL};
    (void)snprintf(variable, sizeof(variable), "OCL_ICD_VENDORS=%s",
                   vendors != NULL ? vendors : "");
    const kn_process_request request = {
        .argv = argv, .environment = environment, .limit_ns = 120000000000U};
    kn_process_result result = {0};
    rig_ok(kn_process_run(&request, &result, &diag), &diag);
    char *said = result.exit_code == 77 ? NULL : kn_text_copy(result.out != NULL ? result.out : "");
    assert_true(result.exit_code == 77 || result.exit_code == 0);
    kn_process_result_deinit(&result);
    return said;
}

/* Everything by a link but the headers, which are copied: they are to be changed. */
static void copy_pocl(const char *dir, const char *library)
{
    static const char script[] =
        "set -e; L=$1; D=$(dirname \"$L\"); S=$D/../../share/pocl; [ -d \"$S\" ] || "
        "S=$D/../share/pocl; [ -d \"$S\" ]; cd \"$0\"; mkdir -p p/lib/arch p/share/pocl v; "
        "cp -L \"$L\" p/lib/arch/; if [ -d \"$D/pocl\" ]; then ln -s \"$D/pocl\" p/lib/arch/pocl; "
        "fi; cp -r \"$S/include\" p/share/pocl/; ln -s \"$S\"/*.bc p/share/pocl/; "
        "echo \"$0/p/lib/arch/$(basename \"$L\")\" > v/pocl.icd";
    const char *const argv[] = {"/bin/sh", "-c", script, dir, library, NULL};
    const kn_process_request request = {.argv = argv, .limit_ns = 60000000000U};
    kn_process_result result = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    rig_ok(kn_process_run(&request, &result, &diag), &diag);
    if (result.exit_code != 0) {
        print_error("%s\n", result.err);
    }
    assert_int_equal(result.exit_code, 0);
    kn_process_result_deinit(&result);
}

static void E10_a_header_of_PoCLs_own_is_in_the_key(void **state)
{
    const char *dir = (const char *)*state;
    char *installed = ask_child(NULL);
    if (installed == NULL) {
        assert_false(kn_test_required("opencl"));
        skip();
    }
    char *library = strstr(installed, "library=");
    assert_non_null(library);
    library += strlen("library=");
    library[strcspn(library, "\n")] = '\0';
    copy_pocl(dir, library);
    char *vendors = kt_at(dir, "v");
    char *first = ask_child(vendors);
    char *second = ask_child(vendors);
    assert_non_null(first);
    assert_non_null(strstr(first, dir)); /* the copy's library */
    assert_non_null(strstr(first, "opencl.files="));
    assert_null(strstr(first, "opencl.files=none"));
    assert_string_equal(first, second);
    assert_memory_equal(first, installed, strcspn(first, "\n")); /* paths are in no key */
    write_text(dir, "p/share/pocl/include/_kernel.h", "#define CHANGED 1\n");
    char *changed = ask_child(vendors);
    assert_non_null(changed);
    assert_string_not_equal(first, changed);
    free(changed);
    free(second);
    free(first);
    free(installed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(E10_what_the_files_hold_is_their_digest),
        kt_dir_test(E10_the_same_files_elsewhere_are_the_same),
        kt_dir_test(files_are_read_once_while_the_system_says_the_same_of_them),
        kt_dir_test(E10_a_named_library_of_functions_is_read_whichever_it_is),
        kt_dir_test(a_missing_directory_is_a_digest_and_no_failure),
        cmocka_unit_test(files_of_a_source_tree_are_not_known),
        kt_dir_test(E10_a_header_of_PoCLs_own_is_in_the_key),
    };
    if (argc == 2 && strcmp(argv[1], "identity") == 0) {
        return say_identity();
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
