/* Opening libraries: what is missing, what is there and unusable, and binding their symbols. */
#include "sys/dylib.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"

typedef struct toy {
    int (*value)(void);
    int (*extra)(void);
} toy;

static const kn_symbol symbols[] = {
    {"toy_value", offsetof(toy, value), 0, KN_REQUIRED},
    {"toy_extra", offsetof(toy, extra), 20, KN_REQUIRED},
};
static const kn_symbol optional[] = {
    {"toy_value", offsetof(toy, value), 0, KN_REQUIRED},
    {"toy_extra", offsetof(toy, extra), 0, KN_OPTIONAL},
};

static kn_dylib *open_one(const char *name)
{
    const char *const names[] = {"libkiln-nowhere.so.1", name, NULL};
    kiln_probe_outcome outcome;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_dylib *lib;
    if (kn_dylib_open(names, &lib, &outcome, &diag) != KILN_OK) {
        fail_msg("%s: %s", diag.what, diag.why);
    }
    assert_int_equal(outcome, KILN_PROBE_READY);
    return lib;
}

static void the_first_that_loads_is_bound(void **state)
{
    toy table = {0};
    kn_dylib *lib = open_one(KT_TOP);
    assert_string_equal(kn_dylib_path(lib), KT_TOP);
    assert_int_equal(kn_dylib_bind(lib, symbols, 2, 0, &table, NULL), KILN_OK);
    assert_int_equal(table.value(), 3);
    assert_int_equal(table.extra(), 30);
    assert_non_null(kn_dylib_symbol(lib, "toy_value"));
    assert_null(kn_dylib_symbol(lib, "toy_nobody_has_this"));
    kn_dylib_close(lib);
    kn_dylib_close(NULL);
}

static void P5_an_absent_symbol_is_named_unless_the_library_is_older(void **state)
{
    toy table;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_dylib *lib = open_one(KT_OLD);
    memset(&table, 0xff, sizeof table);
    assert_int_equal(kn_dylib_bind(lib, symbols, 2, 0, &table, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "toy_extra"));
    assert_non_null(strstr(diag.what, "kt_old"));
    assert_true(table.value == NULL && table.extra == NULL);
    assert_int_equal(kn_dylib_bind(lib, symbols, 2, 20, &table, &diag), KILN_E_UNAVAILABLE);
    assert_int_equal(kn_dylib_bind(lib, symbols, 2, 19, &table, &diag), KILN_OK);
    assert_true(table.value() == 4 && table.extra == NULL);
    assert_int_equal(kn_dylib_bind(lib, optional, 2, 0, &table, &diag), KILN_OK);
    assert_true(table.value() == 4 && table.extra == NULL);
    kn_dylib_close(lib);
    kiln_diag_clear(&diag);
}

/* Opens what cannot be opened; the diag is the caller's to clear. */
static kiln_probe_outcome refuse(const char *const *names, kiln_diag *diag)
{
    kiln_probe_outcome outcome;
    kn_dylib *lib;
    assert_int_equal(kn_dylib_open(names, &lib, &outcome, diag), KILN_E_UNAVAILABLE);
    assert_null(lib);
    assert_true(diag->why[0] != '\0' && diag->fix[0] != '\0');
    return outcome;
}

static void assert_says(const kiln_diag *diag, const char *word)
{
    if (strstr(diag->why, word) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", word, diag->why);
    }
}

static void P5_missing_lists_what_was_looked_for(void **state)
{
    static const char *const names[] = {"libkiln-nowhere.so.1", "libkiln-nowhere.so",
                                        "/nowhere/libx.so", NULL};
    static const char *const none[] = {NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_MISSING);
    assert_says(&diag, "libkiln-nowhere.so.1, libkiln-nowhere.so, /nowhere/libx.so");
    assert_int_equal(refuse(none, &diag), KILN_PROBE_LIBRARY_MISSING);
    kiln_diag_clear(&diag);
}

static void P5_an_unresolved_symbol_is_named(void **state)
{
    static const char *const names[] = {"libkiln-nowhere.so", KT_BROKEN, "libkiln-nowhere.so.2",
                                        NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, "toy_nobody_has_this");
    assert_says(&diag, KT_BROKEN);
    kiln_diag_clear(&diag);
}

static void P5_a_missing_dependency_is_no_missing_library(void **state)
{
    static const char *const names[] = {KT_ORPHAN, NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, "found " KT_ORPHAN);
    assert_says(&diag, "kt_gone");
    kiln_diag_clear(&diag);
}

static void P5_the_wrong_kind_of_file_is_named(void **state)
{
    union {
        unsigned char bytes[64];
        uint16_t fields[32]; /* in this machine's byte order: [8] the type, [9] the machine */
    } header = {{0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT}};
    char *path = kt_at(*state, "libkiln-toy.so");
    const char *const names[] = {path, NULL};
    const char *const bare[] = {"libkiln-toy.so", NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    header.fields[8] = 1;
    header.bytes[EI_DATA] = header.bytes[16] == 1 ? ELFDATA2LSB : ELFDATA2MSB;
    if (sizeof(void *) == 4) {
        header.bytes[EI_CLASS] = ELFCLASS64;
    }
    kt_file_write(path, header.bytes, sizeof header);
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, path);
    assert_says(&diag, "32-bit");
    /* The same for a soname, in a directory where one would look for it. */
    (void)setenv("LD_LIBRARY_PATH", *state, 1);
    assert_int_equal(refuse(bare, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, path);
    (void)unsetenv("LD_LIBRARY_PATH");

    header.bytes[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    header.fields[8] = ET_DYN;
    header.fields[9] = EM_SPARCV9;
    kt_file_write(path, header.bytes, sizeof header);
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, "another kind of processor");

    kt_file_write(path, "", 0);
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, "empty");
    kt_file_write(path, "INPUT(-lfoo) a linker script", 28);
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_UNUSABLE);
    assert_says(&diag, "not a shared library");
    kiln_diag_clear(&diag);
}

static void P5_a_library_beside_the_loaders_way_is_pointed_at(void **state)
{
    char *path = kt_at(*state, "libkiln-aside.so");
    const char *const names[] = {"libkiln-aside.so", NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(symlink(KT_TOP, path), 0);
    (void)setenv("LD_LIBRARY_PATH", *state,
                 1); /* too late for the loader, which read it at start */
    assert_int_equal(refuse(names, &diag), KILN_PROBE_LIBRARY_MISSING);
    (void)unsetenv("LD_LIBRARY_PATH");
    assert_says(&diag, path);
    assert_non_null(strstr(diag.fix, "LD_LIBRARY_PATH"));
    kiln_diag_clear(&diag);
}

static void relative_paths_are_refused(void **state)
{
    static const char *const names[][2] = {{"./libx.so", NULL}, {"lib/libx.so", NULL}, {"", NULL}};
    for (size_t i = 0; i < 3; i++) {
        kiln_probe_outcome outcome;
        kn_dylib *lib;
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(kn_dylib_open(names[i], &lib, &outcome, &diag), KILN_E_INVALID);
        assert_null(lib);
        kiln_diag_clear(&diag);
    }
}

static bool open_top(void *user)
{
    static const char *const names[] = {KT_TOP, NULL};
    kiln_probe_outcome outcome;
    kn_dylib *lib;
    kiln_status status = kn_dylib_open(names, &lib, &outcome, NULL);
    assert_int_equal(status == KILN_OK, lib != NULL);
    kn_dylib_close(lib);
    return status == KILN_OK;
}

static void want_of_memory_is_said(void **state)
{
    assert_int_equal(kt_failalloc_each(open_top, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_loads_is_bound),
        cmocka_unit_test(P5_an_absent_symbol_is_named_unless_the_library_is_older),
        cmocka_unit_test(P5_missing_lists_what_was_looked_for),
        cmocka_unit_test(P5_an_unresolved_symbol_is_named),
        cmocka_unit_test(P5_a_missing_dependency_is_no_missing_library),
        kt_dir_test(P5_the_wrong_kind_of_file_is_named),
        kt_dir_test(P5_a_library_beside_the_loaders_way_is_pointed_at),
        cmocka_unit_test(relative_paths_are_refused),
        cmocka_unit_test(want_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
