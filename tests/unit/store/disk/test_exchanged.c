/* A root that is exchanged, or made, under a running program: below one that is not ours nothing is
 * written, removed or judged. */
#include "support/counters.h"
#include "support/suite.h"
#include "unit/store/support.h"

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

typedef struct world {
    char *dir, *root, *aside, *other;
} world;

static int begin(void **state)
{
    static world w;
    w.dir = kt_tmpdir_create();
    w.root = kt_path(w.dir, "root");
    w.aside = kt_path(w.dir, "aside");
    w.other = kt_path(w.dir, "other");
    assert_int_equal(chmod(w.dir, 0777), 0); /* who else it is has to get through */
    *state = &w;
    return 0;
}

static int end(void **state)
{
    world *w = *state;
    free(w->root);
    free(w->aside);
    free(w->other);
    kt_tmpdir_remove(w->dir);
    return 0;
}

static void run_shell(const char *format, const char *a, const char *b)
{
    char command[16384];
    (void)snprintf(command, sizeof command, format, a, b);
    assert_int_equal(system(command), 0);
}

/* A cache of eight entries that the memory tier does not keep. */
static kiln_cache *open_filled(const char *root)
{
    ks_compile compile = {0};
    char name[24];
    kiln_cache_options options = ks_options(root);
    options.memory_max_count = 1;
    kiln_cache *cache = ks_open(&options);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof name, "e%d", i);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    return cache;
}

/* All that a program does with a cache. */
static void use_all(kiln_cache *cache)
{
    ks_compile compile = {0};
    char name[24];
    kiln_prune_result pruned = {.struct_size = sizeof(pruned)};
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    const kiln_prune_options all = {.struct_size = sizeof(all), .max_bytes = 1};
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "e%d", i);
        (void)ks_get(cache, name, &compile);
        kiln_recipe *recipe = ks_recipe(name);
        const kiln_key key = kiln_recipe_key(recipe);
        (void)!kiln_cache_remove(cache, &key, NULL);
        kiln_recipe_destroy(recipe);
    }
    assert_int_equal(kiln_cache_prune(cache, &all, &pruned, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(kiln_cache_clear(cache, &pruned, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(kiln_cache_verify(cache, true, &verified, NULL), KILN_E_UNAVAILABLE);
    kiln_cache_count_bypass(cache, "a kernel", "a test");
    kiln_cache_destroy(cache);
}

static void remember_tree(const char *root, const char *to)
{
    run_shell("find -L '%s' -printf '%%p %%s %%T@ %%u\\n' | sort >'%s'", root, to);
}

static void expect_unchanged(const char *root, const char *before)
{
    char after[4300];
    (void)snprintf(after, sizeof after, "%s.after", before);
    remember_tree(root, after);
    run_shell("diff '%s' '%s'", before, after);
}

#define TEST(name) KT_TEST_WITH(begin, end, name)

/* Entries that are damaged, old, and of this user, behind a link. */
TEST(S6_nothing_is_changed_behind_a_link)
{
    const world *w = *state;
    char before[4200];
    (void)snprintf(before, sizeof before, "%s.before", w->other);
    kiln_cache *cache = open_filled(w->root);
    run_shell("cp -a '%s' '%s'", w->root, w->other);
    run_shell(
        "cd '%s' && rm -rf stats lock losses kin uses tmp CACHEDIR.TAG && find v1 -name '*.kiln' "
        "-exec sh -c 'echo damaged >\"$1\"; touch -d \"3 hours ago\" \"$1\"' _ {} \\;%.0s",
        w->other, "");
    assert_int_equal(rename(w->root, w->aside), 0);
    assert_int_equal(symlink(w->other, w->root), 0);
    remember_tree(w->other, before);
    use_all(cache);
    expect_unchanged(w->other, before);
}

TEST(S6_nothing_is_changed_in_a_strangers_dir)
{
    const world *w = *state;
    char before[4200];
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    (void)snprintf(before, sizeof before, "%s.before", w->other);
    kiln_cache *cache = open_filled(w->root);
    run_shell("cp -a '%s' '%s'", w->root, w->other);
    assert_int_equal(rename(w->root, w->aside), 0);
    assert_int_equal(rename(w->other, w->root), 0);
    run_shell(
        "cd '%s' && rm -rf stats lock losses kin uses tmp CACHEDIR.TAG && chown -R 65534 . && "
        "chmod 777 .%.0s",
        w->root, "");
    remember_tree(w->root, before);
    use_all(cache);
    expect_unchanged(w->root, before);
}

/* In a process that is not root's: 0 when all was well. */
static int read_what_another_made(const char *root)
{
    ks_compile compile = {0};
    if (geteuid() == 0 && setuid(NOBODY) != 0) {
        return 1;
    }
    kiln_cache *cache = ks_cache(root);
    /* Gone before the child looks; another process makes it again. */
    run_shell("rm -rf '%s'%.0s", root, "");
    const pid_t child = fork();
    if (child == 0) {
        kt_counters stats;
        uint64_t files = 0, bytes = 0;
        kiln_cache_get_temporaries(cache, &files, &bytes); /* the child makes its parts here */
        kiln_cache *other = ks_cache(root);
        (void)ks_get(other, "x", &compile);
        kiln_cache_destroy(other);
        const kiln_origin origin = ks_get(cache, "x", &compile);
        stats = ks_own(cache);
        _exit(origin == KILN_ORIGIN_DISK && stats.corrupt == 0 ? 0 : 2);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

TEST(S6_a_root_that_comes_later_has_an_owner)
{
    const world *w = *state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(read_what_another_made(w->root));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

enum { FINE, NOT_FOUND, DAMAGED, NO_NAMESPACE };

/* In a process of its own, which enters a user namespace: the owner of each file is another number
 * from then on, and again when the namespace has a map. */
static int read_in_namespace(const char *root)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(root);
    char map[64];
    if (ks_get(cache, "e0", &compile) != KILN_ORIGIN_DISK) {
        return NOT_FOUND;
    }
    (void)snprintf(map, sizeof map, "7 %lu 1\n", (unsigned long)geteuid());
    if (unshare(CLONE_NEWUSER) != 0) {
        return NO_NAMESPACE;
    }
    if (ks_get(cache, "e1", &compile) != KILN_ORIGIN_DISK) {
        return NOT_FOUND;
    }
    FILE *file = fopen("/proc/self/uid_map", "w");
    if (file == NULL || fputs(map, file) == EOF || fclose(file) != 0) {
        return NO_NAMESPACE;
    }
    if (ks_get(cache, "e2", &compile) != KILN_ORIGIN_DISK) {
        return NOT_FOUND;
    }
    const kt_counters own = ks_own(cache);
    kiln_cache_destroy(cache);
    return own.corrupt == 0 ? FINE : DAMAGED;
}

TEST(E14_entries_are_good_in_a_user_namespace)
{
    const world *w = *state;
    int status = 0;
    kiln_cache_destroy(open_filled(w->root));
    const pid_t child = fork();
    if (child == 0) {
        _exit(read_in_namespace(w->root));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_NAMESPACE) {
        skip(); /* containers forbid it, and a sanitizer has a thread */
    }
    assert_int_equal(WEXITSTATUS(status), FINE);
}

/* A file of another user's in a root that is ours is damage. */
TEST(S6_a_strangers_file_is_not_an_entry)
{
    const world *w = *state;
    ks_compile compile = {0};
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    kiln_cache_destroy(open_filled(w->root));
    run_shell("find '%s/v1' -name '*.kiln' -exec chown 65534 '{}' +%.0s", w->root, "");
    kiln_cache *cache = ks_cache(w->root);
    assert_int_equal(ks_get(cache, "e0", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).corrupt, 1);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
