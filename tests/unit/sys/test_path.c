/* Paths as text. */
#include <stdlib.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "sys/file.h"

static void join_puts_one_separator(void **state)
{
    static const char *const rows[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"},      {"a", "/b", "a/b"}, {"a//", "//b", "a/b"},
        {"/", "b", "/b"},  {"/a", "b/c", "/a/b/c"}, {"a", "", "a/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *path = kn_path_join(rows[i][0], rows[i][1]);
        assert_string_equal(path, rows[i][2]);
        free(path);
    }
}

static void dir_and_name_take_apart(void **state)
{
    static const char *const rows[][3] = {
        {"a/b", "a", "b"}, {"/a/b/c", "/a/b", "c"}, {"a", ".", "a"},
        {"/a", "/", "a"},  {"a/", "a", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *dir = kn_path_dir(rows[i][0]);
        assert_string_equal(dir, rows[i][1]);
        assert_string_equal(kn_path_name(rows[i][0]), rows[i][2]);
        free(dir);
    }
#ifdef _WIN32
    assert_true(kn_path_is_absolute("C:/a"));
    assert_true(kn_path_is_absolute("c:\\a"));
    assert_true(kn_path_is_absolute("\\\\server\\share"));
    assert_false(kn_path_is_absolute("/a")); /* of the current drive */
    assert_false(kn_path_is_absolute("C:a"));
    assert_string_equal(kn_path_name("C:\\a/b"), "b");
    assert_string_equal(kn_path_name("C:/a\\b"), "b");
#else
    assert_true(kn_path_is_absolute("/a"));
#endif
    assert_false(kn_path_is_absolute("a"));
    assert_false(kn_path_is_absolute(""));
}

static void want_of_memory_gives_null(void **state)
{
    kt_failalloc_arm(1, true);
    assert_null(kn_path_join("a", "b"));
    assert_null(kn_path_dir("a/b"));
    assert_null(kn_path_dir("/"));
    assert_null(kn_path_dir("a"));
    kt_failalloc_disarm();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_puts_one_separator),
        cmocka_unit_test(dir_and_name_take_apart),
        cmocka_unit_test(want_of_memory_gives_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
