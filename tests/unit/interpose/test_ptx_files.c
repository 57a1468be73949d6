/* .file directives of PTX, and the times that ptxas writes of the files. */
#include "apis/cuda/shim/ptx_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"

static char *make_file(const char *dir, const char *name, const char *text, time_t when)
{
    char *path = kt_path(dir, name);
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    kt_file_write(path, text, strlen(text));
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    return path;
}

static kn_ptx_files find_files(const char *text, bool understood)
{
    kn_ptx_files files;
    assert_int_equal(kn_ptx_files_find(kn_span_of_text(text), &files), understood);
    return files;
}

static void directives_are_read(void **state)
{
    kn_ptx_files files = find_files(".version 8.0\n\t.file\t1 \"/no/such/a.py\"\n"
                                    ".file 2 \"/no/such/b.py\", 1700000000, 7\n"
                                    ".file 3 \"/no/such/a.py\"\n",
                                    true);
    assert_int_equal(files.count, 1); /* b has its time with it, and 3 is a again */
    assert_string_equal(files.items[0].path, "/no/such/a.py");
    assert_false(files.items[0].there);
    kn_ptx_files_deinit(&files);
    static const char *const odd[] = {
        ".file x",        ".file 1 /x",       ".file 1 \"x",    ".file 1 \"a\\\"b\"",
        ".file\n1 \"x\"", ".file/**/1 \"x\"", ".file 1\n\"x\"", ".file 1 \"a\nb\""};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        files = find_files(odd[i], false);
        kn_ptx_files_deinit(&files);
    }
    files = find_files("ld.param.u64 %rd1, [file];", true);
    assert_int_equal(files.count, 0);
    kn_ptx_files_deinit(&files);
}

/* A row of a table of lines: NAME, NUL, directory, time, size. */
static size_t put_row(char *to, const char *name, uint64_t when, unsigned char size)
{
    size_t at = strlen(name) + 1;
    memcpy(to, name, at);
    to[at++] = 1;
    for (; when > 0x7f; when >>= 7) {
        to[at++] = (char)(when | 0x80);
    }
    to[at++] = (char)when;
    to[at++] = (char)size;
    return at;
}

static void times_are_found_and_set(void **state)
{
    char *dir = kt_tmpdir_create();
    char *path = make_file(dir, "one.py", "pass\n", 1600000000);
    char text[512];
    char code[64] = "head";
    char wanted[64] = "head";
    kn_strbuf places;
    kn_strbuf_init(&places, 0);
    (void)snprintf(text, sizeof(text), ".file 1 \"%s\"\n", path);
    kn_ptx_files files = find_files(text, true);
    assert_true(files.count == 1 && files.items[0].loose && files.items[0].size == 5);
    const size_t length = 4 + put_row(code + 4, "one.py", 1600000000, 5);
    assert_int_equal(put_row(wanted + 4, "one.py", 1700000001, 5), length - 4);
    assert_true(kn_ptx_files_locate_times(&files, kn_span_of(code, length), &places));
    assert_int_equal(places.length, 12);
    free(make_file(dir, "one.py", "pass\n", 1700000001));
    assert_false(kn_ptx_files_hold(&files));
    kn_ptx_files_deinit(&files);
    files = find_files(text, true);
    const kn_span found = kn_span_of(places.data, places.length);
    assert_true(kn_ptx_files_set_times(&files, found, code, length));
    assert_memory_equal(code, wanted, length);
    /* places of another code, or cut */
    assert_false(kn_ptx_files_set_times(&files, found, code, 8));
    assert_false(kn_ptx_files_set_times(&files, kn_span_of(places.data, 11), code, length));
    /* the time where no row is */
    assert_true(put_row(code, "other.py", 1700000001, 5) > 0);
    kn_strbuf_clear(&places);
    assert_false(kn_ptx_files_locate_times(&files, kn_span_of(code, length), &places));
    kn_strbuf_deinit(&places);
    kn_ptx_files_deinit(&files);
    free(path);
    kt_tmpdir_remove(dir);
}

static void twins_and_odd_times_are_in_the_key(void **state)
{
    char *dir = kt_tmpdir_create();
    char *old = make_file(dir, "old.py", "pass\n", 1);
    char text[1024];
    (void)snprintf(text, sizeof(text), ".file 1 \"%s\"\n.file 2 \"%s/./old.py\"\n", old, dir);
    kn_ptx_files files = find_files(text, true);
    assert_int_equal(files.count, 2);
    assert_false(files.items[0].loose || files.items[1].loose);
    kn_ptx_files_deinit(&files);
    free(make_file(dir, "old.py", "pass\n", 1600000000));
    files = find_files(text, true);
    assert_false(files.items[0].loose || files.items[1].loose); /* one name, one size */
    kn_ptx_files_deinit(&files);
    free(old);
    kt_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directives_are_read),
        cmocka_unit_test(times_are_found_and_set),
        cmocka_unit_test(twins_and_odd_times_are_in_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
