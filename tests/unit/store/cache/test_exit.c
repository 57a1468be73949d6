/* Counters of processes that leave without kiln_cache_destroy. */
#include "unit/store/support.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "support/counters.h"
#include "support/suite.h"

/* Reachable to the end, so that a leak checker has nothing to say. */
static kiln_cache *left;

static void hit_twice(const char *root)
{
    ks_compile compile = {0};
    left = ks_cache(root);
    const kiln_origin first = ks_get(left, "x", &compile);
    const kiln_origin second = ks_get(left, "x", &compile);
    if (first != KILN_ORIGIN_DISK || second != KILN_ORIGIN_MEMORY) {
        _exit(9);
    }
}

/* Runs `work` in a child that ends with exit(0), or with _exit(0). */
static void end_after(void (*work)(const char *root), const char *root, bool in_order)
{
    int status = 0;
    (void)fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        work(root);
        (void)fclose(stdout); /* what the runner holds back is not the child's to print */
        if (in_order) {
            exit(0);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void fill(const char *root)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(ks_get(cache, "x", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
}

static kt_counters total(const char *root)
{
    kt_counters stats;
    kiln_cache *cache = ks_cache(root);
    assert_int_equal(kt_counters_total(cache, &stats, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    return stats;
}

KT_TEST_IN_DIR(hits_count_where_nobody_destroys_the_cache)
{
    fill(*state);
    for (int i = 0; i < 3; i++) {
        end_after(hit_twice, *state, true);
    }
    const kt_counters stats = total(*state);
    assert_int_equal(stats.hits_disk, 3);
    assert_int_equal(stats.hits_memory, 3);
    assert_int_equal(stats.compiles, 1);
}

/* Of which nobody can know: the guide says so. */
KT_TEST_IN_DIR(after_an_end_at_once_nothing_is_written)
{
    fill(*state);
    end_after(hit_twice, *state, false);
    assert_int_equal(total(*state).hits_disk, 0);
}

static void do_nothing(const char *root)
{
    (void)root;
}

/* A child leaves the parent's parts where they are, and a leak checker is to find them. */
static void *volatile parents;

static void hit_once_more(const char *root)
{
    ks_compile compile = {0};
    (void)root;
    parents = malloc(sizeof *left);
    if (parents != NULL) {
        memcpy(parents, left, sizeof *left);
    }
    (void)ks_get(left, "x", &compile);
}

/* What the parent has counted is the parent's; a child that uses the cache counts for itself. */
KT_TEST_IN_DIR(a_child_counts_what_it_did_and_no_more)
{
    fill(*state);
    hit_twice(*state);
    end_after(do_nothing, *state, true);
    assert_int_equal(total(*state).hits_disk, 0);
    end_after(hit_once_more, *state, true);
    assert_int_equal(total(*state).hits_disk, 1);
    kiln_cache_destroy(left);
    left = NULL;
    assert_int_equal(total(*state).hits_disk, 2);
    assert_int_equal(total(*state).hits_memory, 1);
}

static void hold_every_lock(const char *root)
{
    hit_twice(root);
    (void)alarm(20); /* a hang is a failure */
    kn_mutex_lock(&left->stats->mutex);
    kn_mutex_lock(&left->disk->mutex);
}

static void hold_the_lock_of_the_counters(const char *root)
{
    hit_twice(root);
    (void)alarm(20);
    kn_mutex_lock(&left->stats->mutex);
}

/* As when a log sink, called by kiln, calls exit(). */
KT_TEST_IN_DIR(an_end_in_the_middle_of_a_flush_waits_for_nobody)
{
    fill(*state);
    end_after(hold_every_lock, *state, true);
    end_after(hold_the_lock_of_the_counters, *state, true);
    assert_int_equal(total(*state).hits_disk, 0);
}

static void lose_the_root(const char *root)
{
    char moved[1024];
    hit_twice(root);
    (void)snprintf(moved, sizeof moved, "%s.moved", root);
    if (rename(root, moved) != 0) {
        _exit(8);
    }
}

KT_TEST_IN_DIR(a_root_that_went_is_not_made_again)
{
    char moved[1024];
    char *root = kt_at(*state, "root");
    fill(root);
    end_after(lose_the_root, root, true);
    assert_false(kt_file_exists(root));
    (void)snprintf(moved, sizeof moved, "%s.moved", root);
    assert_int_equal(rename(moved, root), 0);
    assert_int_equal(total(root).hits_disk, 0);
}

static void make_too_many(const char *root)
{
    static kiln_cache *many[80];
    ks_compile compile = {0};
    for (size_t i = 0; i < 80; i++) {
        many[i] = ks_cache(root);
        (void)ks_get(many[i], "x", &compile);
    }
    for (size_t i = 0; i < 80; i += 2) { /* of those in the table and of those that are not */
        kiln_cache_destroy(many[i]);
        many[i] = NULL;
    }
}

KT_TEST_IN_DIR(there_is_a_bound_to_what_is_flushed_at_the_end)
{
    fill(*state);
    end_after(make_too_many, *state, true);
    assert_int_equal(total(*state).hits_disk, 40 + 32); /* destroyed, and left in 64 places */
}

#ifdef __GLIBC__ /* musl unloads nothing, and counts at the end as in the other cases */
/* With the shared library: loaded, used and unloaded, it counts then, and the end is quiet. */
static void load_and_unload(const char *root)
{
    void *library = dlopen(KILN_SHARED, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        _exit(7);
    }
    kiln_status (*create)(const kiln_cache_options *, kiln_cache **, kiln_diag *) = NULL;
    kiln_status (*find)(kiln_cache *, const kiln_key *, kiln_blob **, kiln_origin *, kiln_diag *) =
        NULL;
    void (*release)(kiln_blob *) = NULL;
    *(void **)(&create) = dlsym(library, "kiln_cache_create");
    *(void **)(&find) = dlsym(library, "kiln_cache_get");
    *(void **)(&release) = dlsym(library, "kiln_blob_release");
    kiln_cache_options options;
    kiln_blob *blob = NULL;
    kiln_recipe *recipe = ks_recipe("x");
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        _exit(6);
    }
    options.root = root;
    if (create(&options, &left, NULL) != KILN_OK ||
        find(left, &key, &blob, NULL, NULL) != KILN_OK) {
        _exit(5);
    }
    release(blob);
    (void)dlclose(library);
    if (total(root).hits_disk != 1) {
        _exit(4);
    }
}

KT_TEST_IN_DIR(an_unloaded_library_has_counted)
{
    fill(*state);
    end_after(load_and_unload, *state, true);
    assert_int_equal(total(*state).hits_disk, 1);
}
#endif

KT_MAIN(NULL, NULL)
