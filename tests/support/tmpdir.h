/* A directory of its own for each test, and small helpers to look into it. All abort on trouble,
 * for a test cannot go on then. */
#ifndef KILN_TESTS_TMPDIR_H
#define KILN_TESTS_TMPDIR_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a fresh directory (0700, absolute path, in $TMPDIR or /tmp); kt_tmpdir_remove removes it
 * with all that is in it (links are not followed) and frees the path. */
char *kt_tmpdir_create(void);
void kt_tmpdir_remove(char *path);

/* The same as cmocka's setup and teardown: *state is the path. */
int kt_tmpdir_setup(void **state);
int kt_tmpdir_teardown(void **state);
#define kt_dir_test(test) cmocka_unit_test_setup_teardown(test, kt_tmpdir_setup, kt_tmpdir_teardown)

/* "directory/name" as text that lives as long as the program, and as malloc'ed text. */
char *kt_at(const char *dir, const char *name);
char *kt_path(const char *dir, const char *name);

void kt_file_write(const char *path, const void *data, size_t size);
/* The whole file with a NUL after it, malloc'ed; NULL if there is none. out_size may be NULL. */
char *kt_file_read(const char *path, size_t *out_size);
bool kt_file_exists(const char *path);    /* of any kind, links not followed */
unsigned kt_file_lines(const char *path); /* how many it has; 0 where there is no file */
/* The number of files that are not directories below `dir`, at any depth; 0 if there is none.
 */
size_t kt_file_count(const char *dir);

#endif
