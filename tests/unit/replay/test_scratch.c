/* Headers of a recording in a temporary directory: where they lie, and that none leads out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "replay/scratch.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

static void expect_path(const char *dir, const char *path, const char *expected)
{
    char *got = kn_scratch_path("/tree", dir, path);
    assert_non_null(got);
    assert_string_equal(got, expected);
    free(got);
}

static void paths_lie_in_the_tree(void **state)
{
    expect_path("/srv/app", "/usr/x/a.h", "/tree/usr/x/a.h");
    expect_path("/srv/app", "include/a.h", "/tree/srv/app/include/a.h");
    expect_path("/srv/app", "./../b//a.h", "/tree/srv/b/a.h");
    expect_path("", "a.h", "/tree/a.h");
    expect_path("/srv", ".", "/tree/srv");
    expect_path("", "", "/tree");
}

static void no_path_leads_out_of_its_tree(void **state)
{
    expect_path("/srv", "../../../../etc/passwd", "/tree/etc/passwd");
    expect_path("", "/../../x", "/tree/x");
    expect_path("", "..", "/tree");
    expect_path("../..", "a/../../../b", "/tree/b");
    expect_path("", "..\\..\\x", "/tree/x");
}

static kn_recorded_file put_file(const char *root, const char *path, const char *text)
{
    kn_recorded_file file = {.path = path};
    uint64_t written = 0;
    assert_int_equal(kn_object_put(root, text, strlen(text), &file.content, &written, NULL),
                     KILN_OK);
    return file;
}

static void files_are_written_once_and_removed_at_the_end(void **state)
{
    const char *root = *state;
    kn_scratch scratch;
    char *tree = NULL, *again = NULL, *other = NULL;
    kn_recorded program = KN_RECORDED_INIT;
    kn_recorded_file files[] = {put_file(root, "/usr/x/a.h", "aa"), put_file(root, "b.h", "bb"),
                                put_file(root, "/usr/include/math.h", "mm")};
    files[2].system = true;
    program.dir = "/srv/app";
    program.files = files;
    program.file_count = 3;
    kn_scratch_init(&scratch);
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_OK);
    char *path = kt_at(tree, "srv/app/b.h");
    char *text = kt_file_read(path, NULL);
    assert_string_equal(text, "bb");
    assert_int_equal(kt_file_count(tree), 2);
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &again, NULL), KILN_OK);
    assert_string_equal(tree, again);
    program.file_count = 1;
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &other, NULL), KILN_OK);
    assert_string_not_equal(tree, other);
    assert_true(kn_scratch_has_below(&program, "/t", "/t/usr"));
    assert_false(kn_scratch_has_below(&program, "/t", "/t/us"));
    kn_scratch_deinit(&scratch);
    assert_false(kt_file_exists(tree));
    free(text);
    free(tree);
    free(again);
    free(other);
}

/* In the program's own image nothing is placed: names that code holds are as they were. */
static void files_that_are_here_stay_where_they_are(void **state)
{
    const char *root = *state;
    kn_scratch scratch;
    char *tree = NULL;
    char *path = kt_at(root, "a.h");
    kn_recorded program = KN_RECORDED_INIT;
    kn_recorded_file files[] = {put_file(root, path, "aa"), put_file(root, "a.h", "aa")};
    program.dir = root;
    program.files = files;
    program.file_count = 2;
    kn_scratch_init(&scratch);
    kt_file_write(path, "aa", 2);
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_OK);
    assert_string_equal(tree, "");
    free(tree);
    kn_scratch_deinit(&scratch);

    kn_scratch_init(&scratch);
    kt_file_write(path, "ab", 2); /* another text */
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_OK);
    assert_string_not_equal(tree, "");
    free(tree);
    kt_file_write(path, "aa", 2);
    program.dir = "/no/such/directory";
    program.file_count = 1;
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_OK);
    assert_string_not_equal(tree, "");
    free(tree);
    kn_scratch_deinit(&scratch);
}

/* A tree that lacks a file must not be taken for whole by the next program with the same list. */
static void a_missing_text_leaves_no_half_tree(void **state)
{
    const char *root = *state;
    kn_scratch scratch;
    char *tree = NULL;
    kn_recorded program = KN_RECORDED_INIT;
    kn_recorded_file files[] = {put_file(root, "/a.h", "aa"), {.path = "/b.h"}};
    files[1].content.digest[0] = 1;
    program.files = files;
    program.file_count = 2;
    kn_scratch_init(&scratch);
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_MISS);
    assert_null(tree);
    assert_int_equal(kn_scratch_fill(&scratch, root, &program, &tree, NULL), KILN_MISS);
    kn_scratch_deinit(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lie_in_the_tree),
        cmocka_unit_test(no_path_leads_out_of_its_tree),
        kt_dir_test(files_are_written_once_and_removed_at_the_end),
        kt_dir_test(files_that_are_here_stay_where_they_are),
        kt_dir_test(a_missing_text_leaves_no_half_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
