/* Places where a cache can be, and that do not take it: a full file system, one without inodes, a
 * read-only mount. Each is one line of log and a working program. In a mount namespace of its own;
 * where none can be had, skipped. */
#include "unit/store/support.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/skip.h"
#include "support/suite.h"

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd >= 0) {
        (void)!write(fd, text, strlen(text));
        (void)close(fd);
    }
}

/* As root, or as the root of a user namespace. */
static bool enter_namespace(void)
{
    char map[64];
    unsigned uid = (unsigned)geteuid();
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            return false;
        }
        write_text("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof map, "0 %u 1", uid);
        write_text("/proc/self/uid_map", map);
        write_text("/proc/self/gid_map", map);
    }
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The log's lines, warnings and worse. */
typedef struct lines {
    int count;
    char last[1024];
} lines;

static void listen(void *user, kiln_log_level level, const char *line)
{
    lines *l = user;
    if (level <= KILN_LOG_WARN) {
        l->count++;
        (void)snprintf(l->last, sizeof l->last, "%s", line);
    }
}

static char *mount_small(const char *dir, const char *options)
{
    char *place = kt_path(dir, "place");
    assert_int_equal(mkdir(place, 0700), 0);
    assert_int_equal(mount("none", place, "tmpfs", 0, options), 0);
    assert_int_equal(chmod(place, 0700), 0);
    return place;
}

static void leave(char *place)
{
    assert_int_equal(umount2(place, MNT_DETACH), 0);
    free(place);
}

static kiln_cache *open_at(const char *root, uint64_t min_free)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.disk_min_free = min_free;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    return cache;
}

enum { KEYS = 30 };

/* Every key is compiled and comes out right; then every key is a hit in memory. */
static void expect_working(kiln_cache *cache)
{
    ks_compile compile = {0};
    char name[16];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            (void)snprintf(name, sizeof name, "n%d", i);
            assert_int_equal(ks_get(cache, name, &compile),
                             round == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_MEMORY);
        }
    }
}

static void fill_to_the_last_byte(const char *place)
{
    static const char zeros[4096];
    char *path = kt_at(place, "filler");
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    assert_int_equal(close(fd), 0);
}

static void expect_one_line_on_a_full_disk(const char *dir, uint64_t min_free, bool has_dirs)
{
    lines log = {0};
    char *place = mount_small(dir, "size=256k");
    char *root = kt_at(place, "root"), *tmp = kt_at(place, "root/tmp");
    if (has_dirs) { /* it was filled while the cache was in use */
        ks_compile compile = {0};
        kiln_cache *before = open_at(root, UINT64_MAX);
        (void)ks_get(before, "before", &compile);
        kiln_cache_destroy(before);
    }
    fill_to_the_last_byte(place);
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    kiln_cache *cache = open_at(root, min_free);
    expect_working(cache);
    assert_int_equal(log.count, 1);
    assert_non_null(strstr(log.last, root));
    assert_int_equal(ks_own(cache).put_failures, KEYS);
    assert_int_equal(kt_file_count(tmp), 0); /* no halves */
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    leave(place);
}

KT_TEST_IN_DIR(S4_D5_a_file_system_full_to_the_last_byte_is_one_line)
{
    expect_one_line_on_a_full_disk(*state, UINT64_MAX, true); /* found by writing */
}

KT_TEST_IN_DIR(S1_S4_a_file_system_below_the_floor_is_one_line)
{
    expect_one_line_on_a_full_disk(*state, 0, true); /* found by looking */
}

KT_TEST_IN_DIR(S1_the_floor_leaves_a_twentieth_free)
{
    ks_compile compile = {0};
    char *place = mount_small(*state, "size=2m"), *v1 = kt_at(place, "root/v1"), name[16];
    char *root = kt_at(place, "root"), *filler = kt_at(place, "filler");
    kiln_cache *cache = open_at(root, 0);
    for (int i = 0; i < 600; i++) { /* of 4 KiB each: more than 2 MiB */
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)ks_get(cache, name, &compile);
    }
    assert_true(ks_own(cache).puts > 300);
    assert_true(ks_own(cache).put_failures > 0);
    kt_file_write(filler, v1, 1); /* others can still write */
    assert_true(kt_file_exists(filler));
    kiln_cache_destroy(cache);
    leave(place);
}

KT_TEST_IN_DIR(S1_S4_a_file_system_without_inodes_is_one_line)
{
    lines log = {0};
    char *place = mount_small(*state, "nr_inodes=1"), *root = kt_at(place, "root");
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    kiln_cache *cache = open_at(root, 0);
    expect_working(cache);
    assert_int_equal(log.count, 1);
    assert_non_null(strstr(log.last, root));
    assert_string_equal(kiln_cache_root(cache), "");
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    leave(place);
}

KT_TEST_IN_DIR(S4_S8_a_read_only_mount_is_read_and_is_one_line)
{
    ks_compile compile = {0};
    lines log = {0};
    char *place = mount_small(*state, "size=1m"), *root = kt_at(place, "root");
    kiln_cache *cache = open_at(root, UINT64_MAX);
    (void)ks_get(cache, "kept", &compile);
    size_t files = kt_file_count(place);
    kiln_cache_destroy(cache);
    assert_int_equal(mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    cache = open_at(root, 0);
    assert_int_equal(ks_get(cache, "kept", &compile), KILN_ORIGIN_DISK);
    expect_working(cache);
    assert_int_equal(log.count, 1);
    assert_non_null(strstr(log.last, root));
    assert_non_null(strstr(kiln_cache_disk_reason(cache), root));
    assert_int_equal(ks_own(cache).put_failures, 0); /* nothing is tried */
    assert_int_equal(kt_file_count(place), files);
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    leave(place);
}

KT_TEST_IN_DIR(S4_a_mount_that_turns_read_only_under_a_running_program_is_one_line)
{
    ks_compile compile = {0};
    lines log = {0};
    char *place = mount_small(*state, "size=1m"), *root = kt_at(place, "root");
    kiln_cache *cache = open_at(root, UINT64_MAX);
    (void)ks_get(cache, "kept", &compile);
    assert_int_equal(mount(NULL, place, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    kiln_log_set(listen, &log, KILN_LOG_WARN);
    expect_working(cache);
    assert_int_equal(log.count, 1);
    assert_int_equal(ks_own(cache).put_failures, KEYS);
    kiln_cache_destroy(cache);
    kiln_log_set(NULL, NULL, KILN_LOG_OFF);
    leave(place);
}

int main(void)
{
    if (!enter_namespace()) {
        kn_test_skip("mounts", "no mount namespace can be made here");
    }
    return cmocka_run_group_tests(kt_cases, NULL, NULL);
}
