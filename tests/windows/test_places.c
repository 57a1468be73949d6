/* Where the cache is under Windows, and which directories are refused. */
#include <string.h>
#include <windows.h>

#include <aclapi.h>

#include "kiln/unstable/pack.h"

#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/guarded.h"
#include "sys/map_file.h"
#include "sys/paths.h"
#include "sys/process.h"
#include "sys/windows/wide.h"

static void assert_root(const char *expected)
{
    char *root = NULL;
    assert_int_equal(kn_paths_cache_root(&root, NULL), KILN_OK);
    assert_string_equal(root, expected);
    free(root);
}

static void the_root_is_the_users_own(void **state)
{
    char *root = NULL;
    assert_int_equal(unsetenv("KILN_CACHE_DIR"), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(setenv("LOCALAPPDATA", "E:\\People\\\xc3\xa9\\Local", 1), 0);
    assert_root("E:/People/\xc3\xa9/Local/kiln");
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_root("E:/People/\xc3\xa9/Local/kiln");
    assert_int_equal(setenv("XDG_CACHE_HOME", "D:/caches", 1), 0);
    assert_root("D:/caches/kiln");
    assert_int_equal(setenv("KILN_CACHE_DIR", "\\\\server\\share\\kiln", 1), 0);
    assert_root("//server/share/kiln");
    assert_int_equal(setenv("KILN_CACHE_DIR", "\\kiln", 1), 0); /* of which drive? */
    assert_int_equal(kn_paths_cache_root(&root, NULL), KILN_E_INVALID);
    assert_null(root);
    assert_int_equal(unsetenv("KILN_CACHE_DIR"), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("LOCALAPPDATA"), 0); /* then the system knows */
    assert_int_equal(kn_paths_cache_root(&root, NULL), KILN_OK);
    assert_true(kn_path_is_absolute(root));
    assert_string_equal(kn_path_name(root), "kiln");
    free(root);
}

static void variables_are_utf8(void **state)
{
    static const char value[] = "\xe6\xb5\x8b \xf0\x9f\x94\xa5";
    assert_int_equal(setenv("KILN_TEST_VALUE", value, 1), 0);
    const char *first = kn_env_get("KILN_TEST_VALUE");
    assert_string_equal(first, value);
    assert_int_equal(setenv("KILN_TEST_VALUE", "other", 1), 0);
    assert_string_equal(kn_env_get("KILN_TEST_VALUE"), "other");
    assert_string_equal(first, value); /* what was lent stays */
    assert_int_equal(unsetenv("KILN_TEST_VALUE"), 0);
    assert_null(kn_env_get("KILN_TEST_VALUE"));
}

/* Gives everybody these rights, besides those that are given. */
static void allow_everybody(const char *path, DWORD rights, DWORD inheritance)
{
    EXPLICIT_ACCESSW entry = {.grfAccessPermissions = rights,
                              .grfAccessMode = GRANT_ACCESS,
                              .grfInheritance = inheritance};
    BYTE everybody[SECURITY_MAX_SID_SIZE];
    DWORD size = sizeof everybody;
    PACL before = NULL, list = NULL;
    PSECURITY_DESCRIPTOR whole = NULL;
    wchar_t *wide = kn_wide_path(path);
    assert_int_equal(GetNamedSecurityInfoW(wide, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL,
                                           NULL, &before, NULL, &whole),
                     ERROR_SUCCESS);
    assert_true(CreateWellKnownSid(WinWorldSid, NULL, everybody, &size));
    entry.Trustee.TrusteeForm = TRUSTEE_IS_SID;
    entry.Trustee.ptstrName = (wchar_t *)(void *)everybody;
    assert_int_equal(SetEntriesInAclW(1, &entry, before, &list), ERROR_SUCCESS);
    assert_int_equal(
        SetNamedSecurityInfoW(wide, SE_FILE_OBJECT,
                              DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION, NULL,
                              NULL, list, NULL),
        ERROR_SUCCESS);
    (void)LocalFree(list);
    (void)LocalFree(whole);
    free(wide);
}

static void open_to_everybody(const char *path)
{
    allow_everybody(path, GENERIC_ALL, NO_INHERITANCE);
}

static kn_exposure exposure_of(const char *path)
{
    void *data = NULL;
    size_t size = 0;
    kn_exposure exposure = KN_EXPOSED_TO_NOBODY;
    assert_int_equal(kn_guarded_read(path, 64, &data, &size, &exposure, NULL), KILN_OK);
    assert_int_equal(size, 6);
    assert_string_equal(data, "secret");
    free(data);
    return exposure;
}

/* Whatever its directory hands down. */
static void a_secret_is_read_by_nobody_else(void **state)
{
    void *data = NULL;
    size_t size = 0;
    kn_exposure exposure = KN_EXPOSED_TO_NOBODY;
    char *dir = kt_at(*state, "public"), *path = kt_at(dir, "key");
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    allow_everybody(dir, GENERIC_ALL, SUB_CONTAINERS_AND_OBJECTS_INHERIT);
    assert_int_equal(kn_guarded_read(path, 64, &data, &size, &exposure, NULL), KILN_MISS);
    assert_int_equal(kn_guarded_make(path, "secret", 6, NULL), KILN_OK);
    assert_int_equal(exposure_of(path), KN_EXPOSED_TO_NOBODY);
    assert_int_equal(kn_guarded_make(path, "other", 5, NULL), KILN_E_IO);
    assert_int_equal(exposure_of(path), KN_EXPOSED_TO_NOBODY);
    assert_int_equal(kn_guarded_read(path, 5, &data, &size, &exposure, NULL), KILN_E_INVALID);
    assert_int_equal(kn_guarded_read(dir, 64, &data, &size, &exposure, NULL), KILN_E_INVALID);
    path = kt_at(*state, "key"); /* Wine gives the other one what its directory hands down */
    assert_int_equal(kn_guarded_make(path, "secret", 6, NULL), KILN_OK);
    allow_everybody(path, GENERIC_READ, NO_INHERITANCE);
    assert_int_equal(exposure_of(path), KN_EXPOSED_TO_READERS);
    open_to_everybody(path);
    assert_int_equal(exposure_of(path), KN_EXPOSED_TO_WRITERS);
}

static void S1_a_root_that_others_may_write_is_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *root = kt_at(*state, "cache");
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_OK);
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_OK); /* made, and there already */
    open_to_everybody(root);
    assert_int_equal(kn_paths_claim_root(root, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "can be written to by"));
    assert_non_null(strstr(diag.fix, "KILN_CACHE_DIR"));
    kiln_diag_clear(&diag);
    assert_int_equal(kn_paths_claim_root("relative", NULL), KILN_E_UNAVAILABLE);
    char *file = kt_at(*state, "file");
    kt_file_write(file, "x", 1);
    assert_int_equal(kn_paths_claim_root(file, NULL), KILN_E_UNAVAILABLE);
}

static void a_pack_that_everybody_may_write_is_refused(void **state)
{
    char *path = kt_at(*state, "a.kpack");
    kiln_pack_writer *writer = NULL;
    kiln_pack *pack = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    assert_int_equal(kiln_pack_open(path, &pack, NULL), KILN_OK);
    kiln_pack_close(pack);
    open_to_everybody(path);
    assert_int_equal(kiln_pack_open(path, &pack, &diag), KILN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.why, "world-writable"));
    kiln_diag_clear(&diag);
}

static void programs_are_found(void **state)
{
    char rights[128];
    char *cmd = kn_paths_find_program("cmd");
    assert_non_null(cmd);
    assert_true(kn_path_is_absolute(cmd));
    free(cmd);
    assert_null(kn_paths_find_program("kiln-no-such-program"));
    assert_null(kn_paths_find_program("./cmd"));
    char *own = kn_paths_own_module();
    assert_non_null(own);
    assert_string_equal(kn_path_name(own), "win_places.exe");
    free(own);
    assert_null(kn_paths_helper("kiln-no-such-helper"));
    kn_process_rights(rights, sizeof rights);
    assert_true(strncmp(rights, "S-1-5-", 6) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_is_the_users_own),
        cmocka_unit_test(variables_are_utf8),
        kt_dir_test(S1_a_root_that_others_may_write_is_refused),
        kt_dir_test(a_secret_is_read_by_nobody_else),
        kt_dir_test(a_pack_that_everybody_may_write_is_refused),
        cmocka_unit_test(programs_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
