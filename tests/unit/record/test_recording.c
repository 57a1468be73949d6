/* A recording on disk: what is written is read, in order; what is damaged is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/text.h"
#include "record/recording.h"
#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "unit/record/program.h"

static kiln_key key_of(const char *text)
{
    kiln_key key;
    assert_true(kn_digest_of(text, strlen(text), key.bytes));
    return key;
}

static void put_text(const char *root, const char *text)
{
    kn_object object;
    uint64_t written = 0;
    assert_int_equal(kn_object_put(root, text, strlen(text), &object, &written, NULL), KILN_OK);
}

/* One program, used for a target. */
static void record(const char *root, const char *key_text, const char *target, int64_t first_ns)
{
    uint64_t written = 0;
    const kn_recorded program = ks_recorded();
    const kiln_key key = key_of(key_text);
    kn_recorded_use use = {.target = target, .first_ns = first_ns, .compile_ns = 5};
    assert_int_equal(kn_recording_prepare(root, NULL), KILN_OK);
    put_text(root, KS_PROGRAM_TEXT);
    put_text(root, KS_PROGRAM_HEADER);
    assert_int_equal(kn_object_put_program(root, &program, use.program, &written, NULL), KILN_OK);
    assert_int_equal(kn_object_put_use(root, &key, &use, &written, NULL), KILN_OK);
}

static void what_was_recorded_is_read_in_order_of_first_use(void **state)
{
    const char *root = *state;
    kn_recording recording;
    kn_recorded program;
    char *bytes = NULL, *text = NULL;
    record(root, "second", "cuda:sm_90", 20);
    record(root, "first", "opencl:0", 10);
    record(root, "third", "cuda:sm_80", 30);
    assert_true(kn_recording_is(root));
    assert_int_equal(kn_recording_open(root, &recording, NULL), KILN_OK);
    assert_int_equal(recording.use_count, 3);
    assert_int_equal(recording.damaged, 0);
    assert_string_equal(recording.uses[0].target, "opencl:0");
    assert_string_equal(recording.uses[1].target, "cuda:sm_90");
    assert_string_equal(recording.uses[2].target, "cuda:sm_80");
    const kiln_key first = key_of("first");
    assert_memory_equal(recording.uses[0].key.bytes, first.bytes, sizeof first.bytes);
    assert_true(recording.uses[0].last_ns > INT64_C(1000000000000000000));
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL),
        KILN_OK);
    const kn_recorded same = ks_recorded();
    ks_assert_same_program(&program, &same);
    assert_int_equal(kn_object_get(root, &program.texts[0].text, &text, NULL), KILN_OK);
    assert_string_equal(text, KS_PROGRAM_TEXT);
    free(text);
    kn_recorded_deinit(&program);
    free(bytes);
    kn_recording_close(&recording);
}

/* Written by the first version that had recordings: every later one reads them. */
static void a_recording_of_version_1_stays_readable(void **state)
{
    static const char root[] = KILN_GOLDEN "/recording-v1";
    kn_recording recording;
    kn_recorded program;
    kn_object large = {.size = 8192};
    char *bytes = NULL, *text = NULL;
    char expected[8192];
    memset(expected, 'x', sizeof expected);
    assert_true(kn_digest_of(expected, sizeof expected, large.digest));
    assert_int_equal(kn_recording_open(root, &recording, NULL), KILN_OK);
    assert_int_equal(recording.damaged, 0);
    assert_int_equal(recording.use_count, 2);
    assert_string_equal(recording.uses[0].target, "opencl:0");
    assert_string_equal(recording.uses[1].target, "cuda:sm_90");
    const kiln_key second = key_of("second");
    assert_memory_equal(recording.uses[1].key.bytes, second.bytes, sizeof second.bytes);
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[1].program, &bytes, &program, NULL),
        KILN_OK);
    const kn_recorded same = ks_recorded();
    ks_assert_same_program(&program, &same);
    assert_int_equal(kn_object_get(root, &program.texts[0].text, &text, NULL), KILN_OK);
    assert_string_equal(text, KS_PROGRAM_TEXT);
    free(text);
    assert_int_equal(kn_object_get(root, &large, &text, NULL), KILN_OK); /* a packed one */
    assert_memory_equal(text, expected, sizeof expected);
    free(text);
    kn_recorded_deinit(&program);
    free(bytes);
    kn_recording_close(&recording);
}

static void the_same_text_is_kept_once(void **state)
{
    const char *root = *state;
    kn_object a, b;
    uint64_t written = 0;
    char *text = NULL;
    char large[4096];
    memset(large, 'x', sizeof large);
    assert_int_equal(kn_object_put(root, large, sizeof large, &a, &written, NULL), KILN_OK);
    assert_between(written, 1, 200); /* packed */
    assert_int_equal(kn_object_put(root, large, sizeof large, &b, &written, NULL), KILN_OK);
    assert_int_equal(written, 0);
    assert_memory_equal(a.digest, b.digest, sizeof a.digest);
    assert_int_equal(kt_file_count(root), 1);
    assert_int_equal(kn_object_get(root, &b, &text, NULL), KILN_OK);
    assert_memory_equal(text, large, sizeof large);
    free(text);
    assert_int_equal(kn_object_put(root, "", 0, &a, &written, NULL), KILN_OK);
    assert_int_equal(kn_object_get(root, &a, &text, NULL), KILN_OK);
    assert_string_equal(text, "");
    free(text);
}

/* Where a crash of the system left an empty file, the next one that has the text writes it. */
static void an_emptied_object_is_written_again(void **state)
{
    const char *root = *state;
    kn_object object;
    uint64_t written = 0;
    char *text = NULL;
    put_text(root, "some text");
    assert_int_equal(kn_object_put(root, "some text", 9, &object, &written, NULL), KILN_OK);
    char *path = kn_object_path(root, "objects", object.digest);
    kt_file_write(path, "", 0);
    assert_int_equal(kn_object_get(root, &object, &text, NULL), KILN_E_CORRUPT);
    put_text(root, "some text");
    assert_int_equal(kn_object_get(root, &object, &text, NULL), KILN_OK);
    free(text);
    free(path);
}

static void another_objects_bytes_are_refused(void **state)
{
    const char *root = *state;
    kn_object a, b;
    uint64_t written = 0;
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(kn_object_put(root, "aaaa", 4, &a, &written, NULL), KILN_OK);
    assert_int_equal(kn_object_put(root, "bbbb", 4, &b, &written, NULL), KILN_OK);
    char *path_a = kn_object_path(root, "objects", a.digest);
    char *path_b = kn_object_path(root, "objects", b.digest);
    char *bytes = kt_file_read(path_b, &size);
    assert_non_null(bytes);
    kt_file_write(path_a, bytes, size);
    assert_int_equal(kn_object_get(root, &a, &text, NULL), KILN_E_CORRUPT);
    assert_null(text);
    assert_int_equal(remove(path_a), 0);
    assert_int_equal(kn_object_get(root, &a, &text, NULL), KILN_MISS);
    free(bytes);
    free(path_a);
    free(path_b);
}

static void what_is_damaged_is_left_out_and_counted(void **state)
{
    const char *root = *state;
    kn_recording recording;
    kn_recorded program;
    char *bytes = NULL;
    record(root, "good", "cuda:sm_90", 1);
    record(root, "bad", "cuda:sm_80", 2);
    const kiln_key bad = key_of("bad");
    char *path = kn_object_path(root, "uses", bad.bytes);
    kt_file_write(path, "junk", 4);
    assert_int_equal(kn_recording_open(root, &recording, NULL), KILN_OK);
    assert_int_equal(recording.use_count, 1);
    assert_int_equal(recording.damaged, 1);
    assert_true(kn_text_starts(recording.damage, "uses/"));
    assert_non_null(strstr(recording.damage, "shorter"));
    free(path);
    path = kn_object_path(root, "programs", recording.uses[0].program);
    kt_file_write(path, "junk", 4);
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL),
        KILN_E_CORRUPT);
    assert_int_equal(remove(path), 0);
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL),
        KILN_MISS);
    assert_null(bytes);
    kn_recording_close(&recording);
    free(path);
}

static void a_newer_kilns_recording_is_refused_with_that_reason(void **state)
{
    const char *root = *state;
    kn_recording recording;
    kiln_diag diag = KILN_DIAG_INIT;
    char *marker = kt_at(root, KN_RECORDING_MARKER);
    kt_file_write(marker, "kiln-recording 2\n", 17);
    assert_int_equal(kn_recording_open(root, &recording, &diag), KILN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.why, "newer kiln"));
    assert_int_equal(kn_recording_prepare(root, &diag), KILN_E_UNSUPPORTED);
    assert_true(kn_recording_is(root));
    kt_file_write(marker, "something else\n", 15);
    assert_int_equal(kn_recording_open(root, &recording, &diag), KILN_E_INVALID);
    assert_int_equal(kn_recording_prepare(root, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

static void a_foreign_directory_is_refused(void **state)
{
    const char *root = *state;
    kn_recording recording;
    char *file = kt_at(root, "letter.txt");
    kt_file_write(file, "dear", 4);
    assert_int_equal(kn_recording_open(root, &recording, NULL), KILN_E_INVALID);
    assert_int_equal(kn_recording_prepare(root, NULL), KILN_E_INVALID);
    assert_false(kn_recording_is(root));
    assert_int_equal(kt_file_count(root), 1);
}

static void a_recording_is_private(void **state)
{
    char *root = kt_at(*state, "new/recording");
    struct stat facts;
    kn_object object;
    uint64_t written = 0;
    assert_int_equal(kn_recording_prepare(root, NULL), KILN_OK);
    assert_int_equal(kn_recording_prepare(root, NULL), KILN_OK);
    assert_int_equal(stat(root, &facts), 0);
    assert_int_equal(facts.st_mode & 0777u, 0700);
    assert_int_equal(kn_object_put(root, "text", 4, &object, &written, NULL), KILN_OK);
    char *path = kn_object_path(root, "objects", object.digest);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777u, 0600);
    assert_true(kn_recording_bytes(root) == (uint64_t)facts.st_size);
    free(path);
}

static void a_use_is_found_and_touched(void **state)
{
    const char *root = *state;
    uint64_t age = 99;
    const kiln_key key = key_of("key"), other = key_of("other");
    record(root, "key", "cuda:sm_90", 1);
    assert_true(kn_object_has_use(root, &key, &age));
    assert_true(age <= 60);
    assert_true(kn_object_stamp_use(root, &key));
    assert_false(kn_object_has_use(root, &other, NULL));
    assert_false(kn_object_stamp_use(root, &other));
}

static bool read_all(void *user)
{
    kn_recording recording;
    kn_recorded program;
    char *bytes = NULL, *text = NULL;
    kiln_status status = kn_recording_open(user, &recording, NULL);
    if (status != KILN_OK) {
        return false;
    }
    if (recording.use_count == 1) {
        status =
            kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL);
        if (status == KILN_OK) {
            status = kn_object_get(user, &program.texts[0].text, &text, NULL);
            kn_recorded_deinit(&program);
        }
    }
    const bool whole = status == KILN_OK && recording.use_count == 1;
    free(text);
    free(bytes);
    kn_recording_close(&recording);
    return whole;
}

static void reading_survives_failing_allocations(void **state)
{
    record(*state, "key", "cuda:sm_90", 1);
    assert_true(kt_failalloc_each(read_all, *state) > 5);
}

#define TEST(name) kt_dir_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_recorded_is_read_in_order_of_first_use),
        cmocka_unit_test(a_recording_of_version_1_stays_readable),
        TEST(the_same_text_is_kept_once),
        TEST(an_emptied_object_is_written_again),
        TEST(another_objects_bytes_are_refused),
        TEST(what_is_damaged_is_left_out_and_counted),
        TEST(a_newer_kilns_recording_is_refused_with_that_reason),
        TEST(a_foreign_directory_is_refused),
        TEST(a_recording_is_private),
        TEST(a_use_is_found_and_touched),
        TEST(reading_survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
