/* Libraries and modules under Windows: opening by name and by path, binding, and what is mapped. */
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/probe.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/dylib.h"
#include "sys/elf.h"
#include "sys/file.h"

typedef struct calls {
    void *exit_process;
    void *nothing;
} calls;

static kiln_status open_one(const char *name, kn_dylib **out_lib, kiln_probe_outcome *out_outcome,
                            kiln_diag *diag)
{
    const char *const names[] = {"kiln-no-such-library.dll", name, NULL};
    return kn_dylib_open(names, out_lib, out_outcome, diag);
}

static void a_library_is_opened_by_name_and_by_path(void **state)
{
    kn_dylib *lib = NULL, *again = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    assert_int_equal(open_one("version.dll", &lib, &outcome, NULL), KILN_OK);
    assert_int_equal(outcome, KILN_PROBE_READY);
    assert_true(kn_path_is_absolute(kn_dylib_path(lib)));
    assert_non_null(kn_dylib_symbol(lib, "GetFileVersionInfoW"));
    assert_null(kn_dylib_symbol(lib, "kiln_no_such_function"));
    assert_int_equal(open_one(kn_dylib_path(lib), &again, &outcome, NULL), KILN_OK);
    assert_string_equal(kn_dylib_path(again), kn_dylib_path(lib));
    kn_dylib_close(again);
    kn_dylib_close(lib);
}

static void missing_unusable_and_relative_are_told_apart(void **state)
{
    kn_dylib *lib = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kiln_diag diag = KILN_DIAG_INIT;
    char *text = kt_at(*state, "text.dll");
    assert_int_equal(open_one("other-missing.dll", &lib, &outcome, &diag), KILN_E_UNAVAILABLE);
    assert_int_equal(outcome, KILN_PROBE_LIBRARY_MISSING);
    assert_non_null(strstr(diag.why, "kiln-no-such-library.dll, other-missing.dll"));
    kt_file_write(text, "no library", 10);
    assert_int_equal(open_one(text, &lib, &outcome, &diag), KILN_E_UNAVAILABLE);
    assert_int_equal(outcome, KILN_PROBE_LIBRARY_UNUSABLE);
    assert_non_null(strstr(diag.why, "text.dll"));
    assert_int_equal(open_one("..\\version.dll", &lib, &outcome, &diag), KILN_E_INVALID);
    assert_int_equal(open_one("C:version.dll", &lib, &outcome, &diag), KILN_E_INVALID);
    assert_null(lib);
    kiln_diag_clear(&diag);
}

static void binding_names_what_is_absent(void **state)
{
    static const kn_symbol there[] = {{"ExitProcess", offsetof(calls, exit_process), 0, 1},
                                      {"kiln_nothing", offsetof(calls, nothing), 0, 0}};
    static const kn_symbol absent[] = {{"ExitProcess", offsetof(calls, exit_process), 0, 1},
                                       {"kiln_nothing", offsetof(calls, nothing), 0, 1}};
    calls table = {NULL, NULL};
    kn_dylib *lib = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(open_one("kernel32.dll", &lib, &outcome, NULL), KILN_OK);
    assert_int_equal(kn_dylib_bind(lib, there, 2, 0, &table, NULL), KILN_OK);
    assert_non_null(table.exit_process);
    assert_null(table.nothing);
    assert_int_equal(kn_dylib_bind(lib, absent, 2, 0, &table, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "kiln_nothing"));
    assert_null(table.exit_process);
    kiln_diag_clear(&diag);
    kn_dylib_retire(lib);
}

typedef struct seen {
    size_t count, own, version;
    char id[64];
} seen;

static void see(void *user, const char *path, const char *build_id)
{
    seen *s = user;
    s->count++;
    s->version += _stricmp(kn_path_name(path), "version.dll") == 0;
    if (strcmp(kn_path_name(path), "win_libraries.exe") == 0) {
        s->own++;
        (void)snprintf(s->id, sizeof s->id, "%s", build_id);
    }
}

static kn_module_choice choose_own(void *user, const char *path)
{
    return strcmp(kn_path_name(path), "win_libraries.exe") == 0 ? KN_MODULE_WITH_NEEDED
                                                                : KN_MODULE_NO;
}

static void modules_are_told_with_their_identity(void **state)
{
    static const char here = 0;
    char path[512], id[64];
    seen all = {0}, closure = {0}, selected = {0};
    int on_the_stack = 0;
    assert_true(kn_module_of_address(&here, path, sizeof path, id, sizeof id));
    assert_string_equal(kn_path_name(path), "win_libraries.exe");
    assert_true(strlen(id) >= 6);
    assert_false(kn_module_of_address(&on_the_stack, path, sizeof path, id, sizeof id));
    assert_true(kn_module_each(see, &all));
    assert_true(all.count > 3 && all.own == 1);
    assert_true(kn_module_of_address(&here, path, sizeof path, id, sizeof id));
    assert_string_equal(all.id, id);
    assert_true(kn_module_closure(&here, see, &closure));
    assert_true(closure.own == 1 && closure.count < all.count);
    assert_true(kn_module_select(choose_own, see, &selected));
    assert_true(selected.own == 1 && selected.count == closure.count);
}

/* Keys name a compiler by its file; what was mapped is compared with that before anything is kept.
 */
static void a_file_has_the_identity_of_its_module(void **state)
{
    static const char here = 0;
    char path[512], id[64];
    kn_elf_facts facts;
    kn_dylib *lib = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    assert_true(kn_module_of_address(&here, path, sizeof path, id, sizeof id));
    assert_int_equal(strlen(id), 40); /* linked with --build-id: a GUID and a count */
    assert_int_equal(kn_elf_inspect(path, &facts, NULL), KILN_OK);
    assert_string_equal(facts.build_id, id);
    assert_int_equal(facts.bits, 64);
    assert_int_equal(open_one("version.dll", &lib, &outcome, NULL), KILN_OK);
    assert_true(kn_module_of_address(kn_dylib_symbol(lib, "GetFileVersionInfoW"), path, sizeof path,
                                     id, sizeof id));
    assert_int_equal(kn_elf_inspect(path, &facts, NULL), KILN_OK);
    assert_string_equal(facts.build_id, id);
    kn_dylib_close(lib);
}

/* A file may be anything, and end anywhere. */
static void a_damaged_file_is_refused(void **state)
{
    static const char here = 0;
    char *path = kt_at(*state, "cut.dll");
    char own[512], id[64];
    kn_elf_facts facts;
    void *data = NULL;
    size_t size = 0;
    kn_file_facts whole;
    assert_int_equal(kn_elf_inspect(path, &facts, NULL), KILN_MISS);
    assert_true(kn_module_of_address(&here, own, sizeof own, id, sizeof id));
    assert_int_equal(kn_file_read(own, (size_t)64 << 20, false, &data, &size, &whole, NULL),
                     KILN_OK);
    for (size_t length = 1; length < 1024; length += length < 64 ? 9 : 101) {
        kt_file_write(path, data, length);
        assert_int_equal(kn_elf_inspect(path, &facts, NULL), KILN_E_INVALID);
    }
    kt_file_write(path, data, 4096); /* the headers are there, what they name is not */
    assert_int_equal(kn_elf_inspect(path, &facts, NULL), KILN_OK);
    assert_true(strlen(facts.build_id) == 24);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_is_opened_by_name_and_by_path),
        kt_dir_test(missing_unusable_and_relative_are_told_apart),
        cmocka_unit_test(binding_names_what_is_absent),
        cmocka_unit_test(modules_are_told_with_their_identity),
        cmocka_unit_test(a_file_has_the_identity_of_its_module),
        kt_dir_test(a_damaged_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
