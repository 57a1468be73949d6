/* Writing into a recording: what is there is not written again, and what cannot be written fails
 * nobody. */
#include "record/recorder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kiln/unstable/admin.h"
#include "kiln/unstable/counters.h"
#include "record/recording.h"
#include "support/cmocka.h"
#include "support/faultfs.h"
#include "support/tmpdir.h"
#include "unit/headers/closure_world.h"
#include "unit/record/recorder_world.h"

static char lines[4096];

static void keep_lines(void *user, kiln_log_level level, const char *line)
{
    const size_t used = strlen(lines);
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", line);
}

static size_t count_lines(const char *part)
{
    size_t count = 0;
    for (const char *at = lines; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

static int setup(void **state)
{
    lines[0] = '\0';
    kiln_log_set(keep_lines, NULL, KILN_LOG_INFO);
    return rw_setup(state);
}

static int teardown(void **state)
{
    kiln_log_set(NULL, NULL, KILN_LOG_WARN);
    return rw_teardown(state);
}

/* --- what is written -------------------------------------------------------------------------- */

static void a_program_is_recorded_once(void **state)
{
    recorder_world *w = *state;
    kn_recording recording;
    kn_recorded program;
    char *bytes = NULL;
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "k", "text", "header"));
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), 1);
    rw_close(w);
    rw_open(w, 0); /* as the next process */
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), 0);
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 0);

    assert_int_equal(rw_count_uses(w->recording), 1);
    assert_int_equal(kn_recording_open(w->recording, &recording, NULL), KILN_OK);
    const kiln_key key = rw_key("k");
    assert_memory_equal(&recording.uses[0].key, &key, sizeof key);
    assert_string_equal(recording.uses[0].target, "opencl:test");
    assert_int_equal(recording.uses[0].compile_ns, 7);
    assert_between(recording.uses[0].first_ns / 1000000000, time(NULL) - 100, time(NULL) + 100);
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL),
        KILN_OK);
    assert_int_equal(program.frontend, KN_FRONTEND_WALK);
    assert_string_equal(program.name, "a.cl");
    assert_string_equal(program.options[1], "-w");
    assert_string_equal(program.texts[0].headers[0].name, "h.h");
    assert_string_equal(program.dir, "");
    kn_recorded_deinit(&program);
    free(bytes);
    kn_recording_close(&recording);
    assert_string_equal(lines, "");
}

static void what_is_equal_is_stored_once(void **state)
{
    recorder_world *w = *state;
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "1", "text", "header"));
    assert_true(rw_record(w->cache, "2", "text", "header")); /* for another target, say */
    assert_true(rw_record(w->cache, "3", "other text", "header"));
    assert_int_equal(rw_count(w, "objects"), 3);
    assert_int_equal(rw_count(w, "programs"), 2);
    assert_int_equal(rw_count(w, "uses"), 3);
    assert_int_equal(rw_count_uses(w->recording), 3);
}

static void assert_private(const char *path, mode_t mode)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, mode);
}

static void nobody_else_may_read_a_recording(void **state)
{
    recorder_world *w = *state;
    const mode_t mask = umask(0);
    char *objects = kt_at(w->recording, "objects");
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "k", "text", "header"));
    (void)umask(mask);
    const kiln_key key = rw_key("k");
    char *use = kn_object_path(w->recording, "uses", key.bytes);
    assert_private(w->recording, 0700);
    assert_private(objects, 0700);
    assert_private(use, 0600);
    free(use);
}

static uint32_t days_of_only_use(const char *root)
{
    kn_recording recording;
    assert_int_equal(kn_recording_open(root, &recording, NULL), KILN_OK);
    assert_int_equal(recording.use_count, 1);
    const uint32_t days = recording.uses[0].days;
    kn_recording_close(&recording);
    return days;
}

static void the_last_use_is_stamped_once_a_day(void **state)
{
    recorder_world *w = *state;
    struct stat facts;
    const time_t now = time(NULL);
    const kiln_key key = rw_key("k");
    const struct timespec days[2] = {{now - 200000, 0}, {now - 200000, 0}};
    const struct timespec hours[2] = {{now - 7200, 0}, {now - 7200, 0}};
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "k", "text", "header"));
    rw_close(w);
    char *use = kn_object_path(w->recording, "uses", key.bytes);
    assert_int_equal(utimensat(AT_FDCWD, use, hours, 0), 0);
    rw_open(w, 0);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    rw_close(w);
    assert_int_equal(stat(use, &facts), 0);
    assert_int_equal(facts.st_mtime, now - 7200);
    assert_int_equal(days_of_only_use(w->recording), 1);
    assert_int_equal(utimensat(AT_FDCWD, use, days, 0), 0);
    rw_open(w, 0);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_int_equal(stat(use, &facts), 0);
    assert_between(facts.st_mtime, now - 100, now + 100);
    assert_int_equal(days_of_only_use(w->recording), 2);
    assert_int_equal(utimensat(AT_FDCWD, use, days, 0), 0);
    rw_close(w);
    rw_open(w, 0);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_int_equal(days_of_only_use(w->recording), 3);
    free(use);
}

/* --- headers in files ------------------------------------------------------------------------- */

static bool record_world(world *source, kiln_cache *cache, const char *key, const char *change)
{
    kn_draft draft;
    kn_closure *closure = NULL;
    const kiln_key digest = rw_key(key);
    assert_int_equal(kn_closure_find(&source->request, &closure, NULL), KILN_OK);
    if (change != NULL) {
        cw_write_text(source, "inc/a.h", change);
    }
    const bool begun = kn_draft_begin(&draft, cache, &digest);
    if (begun) {
        draft.program.frontend = KN_FRONTEND_WALK;
        draft.program.language = source->source.language;
        kn_draft_add_text(&draft, source->source.text, source->source.length, "", NULL, 0);
        kn_draft_add_closure(&draft, closure);
        kn_draft_end(&draft, "cpu:test", 0);
    }
    kn_closure_destroy(closure);
    return begun;
}

static void headers_are_recorded_by_their_paths(void **state)
{
    recorder_world *w = *state;
    void *made = NULL;
    kn_recording recording;
    kn_recorded program;
    char *bytes = NULL, *text = NULL;
    assert_int_equal(cw_setup(&made), 0);
    world *source = made;
    cw_add_dir(source, "inc");
    cw_add_system(source, "system");
    cw_write_text(source, "inc/a.h", "#include <b.h>\nint a;\n");
    cw_write_text(source, "system/b.h", "");
    cw_set_source(source, "#include \"a.h\"\n#include <b.h>\nint k;\n");
    rw_open(w, 0);
    assert_true(record_world(source, w->cache, "k", NULL));
    assert_int_equal(rw_count_uses(w->recording), 1);
    assert_int_equal(rw_count(w, "objects"), 3);
    assert_int_equal(kn_recording_open(w->recording, &recording, NULL), KILN_OK);
    assert_int_equal(
        kn_recording_program(&recording, recording.uses[0].program, &bytes, &program, NULL),
        KILN_OK);
    assert_int_equal(program.file_count, 2);
    char *path = kt_at(source->root, "inc/a.h");
    assert_string_equal(program.files[0].path, path);
    assert_false(program.files[0].system);
    assert_true(program.files[1].system);
    assert_int_equal(program.files[1].content.size, 0);
    assert_string_equal(program.dir, "");
    assert_int_equal(kn_object_get(w->recording, &program.files[0].content, &text, NULL), KILN_OK);
    assert_string_equal(text, "#include <b.h>\nint a;\n");
    free(text);
    kn_recorded_deinit(&program);
    free(bytes);
    kn_recording_close(&recording);
    (void)cw_teardown(&made);
}

static void a_header_that_changed_meanwhile_is_not_recorded(void **state)
{
    recorder_world *w = *state;
    void *made = NULL;
    assert_int_equal(cw_setup(&made), 0);
    world *source = made;
    cw_add_dir(source, "inc");
    cw_write_text(source, "inc/a.h", "int a;\n");
    cw_set_source(source, "#include \"a.h\"\nint k;\n");
    rw_open(w, 0);
    assert_true(record_world(source, w->cache, "k", "int another;\n"));
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), 0);
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 1);
    assert_int_equal(rw_count_uses(w->recording), 0);
    assert_non_null(strstr(lines, "inc/a.h is no longer what it was"));
    /* The next program is none the worse for it. */
    assert_true(record_world(source, w->cache, "k2", NULL));
    assert_int_equal(rw_count_uses(w->recording), 1);
    (void)cw_teardown(&made);
}

/* --- trouble ---------------------------------------------------------------------------------- */

static void a_recording_stops_at_its_largest_size(void **state)
{
    recorder_world *w = *state;
    enum { MOST = 20000, SIZE = 3000 };
    char text[SIZE + 1];
    char key[16];
    uint32_t word = 1;
    rw_open(w, MOST);
    for (int i = 0; i < 20; i++) {
        for (size_t k = 0; k < SIZE; k++) {
            word = word * 1664525u + 1013904223u;
            text[k] = (char)(' ' + (word >> 24) % 90);
        }
        text[SIZE] = '\0';
        (void)snprintf(key, sizeof key, "%d", i);
        (void)rw_record(w->cache, key, text, "header");
    }
    const size_t uses = rw_count_uses(w->recording);
    assert_between(uses, 3, 7);
    assert_between(kn_recording_bytes(w->recording), 1, MOST);
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), uses);
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 20 - uses);
    assert_int_equal(count_lines("larger than 20000 bytes"), 1);
    assert_int_equal(count_lines("KILN_RECORD_MAX_SIZE"), 1);
    rw_close(w);
    rw_open(w, MOST); /* what is there stays known, and nothing is evicted */
    assert_false(rw_record(w->cache, "0", "text", "header"));
    assert_int_equal(rw_count_uses(w->recording), uses);
}

static void expect_refusal(recorder_world *w, const char *why)
{
    const size_t before = kt_file_count(w->recording);
    rw_open(w, 0);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_false(rw_record(w->cache, "k", "text", "header"));
    assert_false(rw_record(w->cache, "other", "text", "header"));
    assert_int_equal(rw_counter(w, KILN_COUNTER_RECORDED), 0);
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 2);
    assert_int_equal(count_lines("programs are not recorded"), 1);
    assert_int_equal(count_lines(why), 1);
    assert_int_equal(kt_file_count(w->recording), before);
}

static void a_recording_of_a_newer_kiln_is_left_alone(void **state)
{
    recorder_world *w = *state;
    char *marker = kt_at(w->recording, KN_RECORDING_MARKER);
    assert_int_equal(mkdir(w->recording, 0700), 0);
    kt_file_write(marker, "kiln-recording 2\n", 17);
    expect_refusal(w, "newer kiln");
}

static void a_directory_of_something_else_is_left_alone(void **state)
{
    recorder_world *w = *state;
    char *thesis = kt_at(w->recording, "thesis.tex");
    assert_int_equal(mkdir(w->recording, 0700), 0);
    kt_file_write(thesis, "x", 1);
    expect_refusal(w, "something else");
}

static void a_file_in_the_place_of_the_directory_is_left_alone(void **state)
{
    recorder_world *w = *state;
    kt_file_write(w->recording, "x", 1);
    expect_refusal(w, "Not a directory");
}

/* As nobody, who may not write there. */
static int use_read_only(recorder_world *w)
{
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 2;
    }
    rw_open(w, 0);
    const bool known = !rw_record(w->cache, "k", "text", "header") &&
                       rw_counter(w, KILN_COUNTER_UNRECORDED) == 0 &&
                       count_lines("programs are not recorded") == 0;
    const bool unknown = rw_record(w->cache, "new", "text", "header") &&
                         rw_counter(w, KILN_COUNTER_UNRECORDED) == 1 &&
                         count_lines("programs are not recorded") == 1;
    /* What follows at once is not even tried. */
    const bool later = !rw_record(w->cache, "newer", "text", "header") &&
                       rw_counter(w, KILN_COUNTER_UNRECORDED) == 2;
    rw_close(w);
    return known && unknown && later ? 0 : 1;
}

static void a_read_only_recording_is_logged_once(void **state)
{
    recorder_world *w = *state;
    int status = 0;
    if (geteuid() != 0) {
        skip(); /* only root can take the rights of another user */
    }
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "k", "text", "header"));
    rw_close(w);
    char command[8192];
    (void)snprintf(command, sizeof command, "chmod -R a+rX '%s'", w->root);
    assert_int_equal(system(command), 0);
    const pid_t child = fork();
    if (child == 0) {
        _exit(use_read_only(w));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(rw_count_uses(w->recording), 1);
}

static void a_full_disk_is_logged_once_and_tried_again_later(void **state)
{
    recorder_world *w = *state;
    if (!kt_faultfs_available()) {
        skip(); /* a sanitizer's build */
    }
    rw_open(w, 0);
    assert_true(rw_record(w->cache, "before", "text", "header"));
    kt_faultfs_set(w->recording, "write:*:ENOSPC");
    assert_true(rw_record(w->cache, "1", "text 1", "header"));
    assert_false(rw_record(w->cache, "2", "text 2", "header"));
    kt_faultfs_set(NULL, NULL);
    assert_int_equal(rw_counter(w, KILN_COUNTER_UNRECORDED), 2);
    assert_int_equal(count_lines("programs are not recorded"), 1);
    rw_close(w);
    assert_int_equal(rw_count_uses(w->recording), 1);
    rw_open(w, 0); /* as the next process */
    assert_true(rw_record(w->cache, "1", "text 1", "header"));
    assert_int_equal(rw_count_uses(w->recording), 2);
}

/* --- off, and by itself ----------------------------------------------------------------------- */

static void nothing_is_recorded_unless_it_is_asked_for(void **state)
{
    recorder_world *w = *state;
    kiln_cache_options options;
    char *root = kt_path(w->root, "cache");
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    assert_null(options.record);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    rw_close(w);
    options.record = w->recording;
    options.flags = KILN_CACHE_DISABLED;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    assert_false(rw_record(w->cache, "k", "text", "header"));
    rw_close(w);
    char *kept = kt_at(root, "recording");
    assert_false(kt_file_exists(kept));
    assert_false(kt_file_exists(w->recording));
    options.record = "relative";
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_E_INVALID);
    free(root);
}

static void a_cache_keeps_a_recording_by_itself(void **state)
{
    recorder_world *w = *state;
    kiln_cache_options options;
    kiln_prune_result pruned = {.struct_size = sizeof pruned};
    kiln_verify_result verified = {.struct_size = sizeof verified};
    const kiln_prune_options all = {.struct_size = sizeof all, .max_bytes = 1};
    kiln_blob *blob = NULL;
    kiln_recipe *recipe = NULL;
    char *root = kt_path(w->root, "cache");
    char *kept = kt_at(root, "recording");
    char *tag = kt_at(root, "CACHEDIR.TAG");
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.flags = KILN_CACHE_KEEP_SOURCES;
    options.disk_max_bytes = 100000;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    char large[90000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_true(rw_record(w->cache, "k", large, "header"));
    assert_int_equal(rw_count_uses(kept), 1);
    /* It is not part of the store: it counts for no size, and no entry is looked for in it. */
    assert_int_equal(kiln_recipe_create("test", 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "t");
    assert_int_equal(kiln_blob_create(large, 50000, NULL, 0, &blob, NULL), KILN_OK);
    assert_int_equal(kiln_cache_put(w->cache, recipe, blob, 1, NULL), KILN_OK);
    assert_true(kt_file_exists(tag));
    assert_int_equal(kiln_cache_verify(w->cache, true, &verified, NULL), KILN_OK);
    assert_int_equal(verified.entries_good, 1);
    assert_int_equal(verified.entries_bad, 0);
    assert_int_equal(kiln_cache_prune(w->cache, &all, &pruned, NULL), KILN_OK);
    assert_int_equal(kiln_cache_clear(w->cache, &pruned, NULL), KILN_OK);
    assert_int_equal(kiln_cache_examine(w->cache, NULL), KILN_OK);
    assert_int_equal(rw_count_uses(kept), 1);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    rw_close(w);
    options.flags = KILN_CACHE_KEEP_SOURCES | KILN_CACHE_READONLY; /* writes nothing */
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    assert_false(rw_record(w->cache, "k2", "text", "header"));
    assert_int_equal(rw_count_uses(kept), 1);
    free(root);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_program_is_recorded_once),
        TEST(what_is_equal_is_stored_once),
        TEST(nobody_else_may_read_a_recording),
        TEST(the_last_use_is_stamped_once_a_day),
        TEST(headers_are_recorded_by_their_paths),
        TEST(a_header_that_changed_meanwhile_is_not_recorded),
        TEST(a_recording_stops_at_its_largest_size),
        TEST(a_recording_of_a_newer_kiln_is_left_alone),
        TEST(a_directory_of_something_else_is_left_alone),
        TEST(a_file_in_the_place_of_the_directory_is_left_alone),
        TEST(a_read_only_recording_is_logged_once),
        TEST(a_full_disk_is_logged_once_and_tried_again_later),
        TEST(nothing_is_recorded_unless_it_is_asked_for),
        TEST(a_cache_keeps_a_recording_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
