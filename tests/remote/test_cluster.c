/* A cluster starts cold: processes with disk caches of their own and one Redis between them compile
 * a kernel once. Prints how long each waited: docs/benchmarks.md has the table. */
#include "remote/servers.h"

#include "sys/clock.h"

#define MS UINT64_C(1000000)
enum { PROCESSES = 32 };

static kiln_status compile_slowly(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    (void)user;
    kn_clock_sleep(500 * MS);
    return kiln_blob_create("a", 1, "facts", 5, out_blob, diag);
}

typedef struct outcome {
    int compiles, wrong, waits, slowest_ms;
} outcome;

/* One machine: 0, or what went wrong. */
static int be_a_machine(const char *root, const char *url, int start, int result)
{
    char go;
    kiln_blob *blob = NULL;
    kiln_origin origin;
    kiln_cache *cache = ks_machine(root, url);
    kiln_recipe *recipe = ks_recipe("cluster");
    (void)!read(start, &go, 1); /* until the other end is closed */
    uint64_t begin = kn_clock_now();
    kiln_status status =
        kiln_cache_get_or_compile(cache, recipe, compile_slowly, NULL, &blob, &origin, NULL);
    outcome mine = {.slowest_ms = (int)((kn_clock_now() - begin) / MS)};
    mine.wrong = status != KILN_OK || kiln_blob_size(blob) != 1;
    kiln_cache_stats own = ks_own(cache);
    mine.compiles = (int)own.compiles;
    mine.waits = (int)own.remote_waits;
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
    return write(result, &mine, sizeof mine) == sizeof mine ? 0 : 1;
}

static outcome run_cluster(const char *folder, const char *url, int processes)
{
    int start[2], results[2];
    pid_t children[PROCESSES];
    outcome total = {0};
    assert_int_equal(pipe(start), 0);
    assert_int_equal(pipe(results), 0);
    for (int i = 0; i < processes; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            char root[512];
            (void)snprintf(root, sizeof root, "%s/%d-%s-%d", folder, processes,
                           url != NULL ? "r" : "n", i);
            (void)close(start[1]);
            _exit(be_a_machine(root, url, start[0], results[1]));
        }
    }
    (void)close(start[0]);
    (void)close(results[1]);
    kn_clock_sleep(1000 * MS); /* for all to stand at the start */
    (void)close(start[1]);
    for (int i = 0; i < processes; i++) {
        outcome one;
        assert_int_equal(read(results[0], &one, sizeof one), sizeof one);
        total.compiles += one.compiles;
        total.wrong += one.wrong;
        total.waits += one.waits;
        total.slowest_ms = one.slowest_ms > total.slowest_ms ? one.slowest_ms : total.slowest_ms;
    }
    for (int i = 0; i < processes; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    (void)close(results[0]);
    return total;
}

static void C6_a_cluster_compiles_once(void **state)
{
    static const int sizes[] = {1, 4, 8, PROCESSES};
    char url[256];
    (void)state;
    for (int i = 0; i < 4; i++) {
        ks_server server = {0};
        char *folder = kt_tmpdir_create();
        ks_redis(&server);
        (void)snprintf(url, sizeof url,
                       "redis://:s3cr3t@127.0.0.1:%d?timeout=20s&connect-timeout=20s&flush=20s",
                       server.port);
        outcome with = run_cluster(folder, url, sizes[i]);
        outcome without = run_cluster(folder, NULL, sizes[i]);
        (void)printf("%2d machines: %d compile with Redis, slowest %d ms, %d waited; without: %d "
                     "compiles, slowest %d ms\n",
                     sizes[i], with.compiles, with.slowest_ms, with.waits, without.compiles,
                     without.slowest_ms);
        assert_int_equal(with.wrong + without.wrong, 0);
        assert_int_equal(with.compiles, 1);
        assert_int_equal(without.compiles, sizes[i]);
        ks_end(&server);
        kt_tmpdir_remove(folder);
    }
}

/* In the middle of a compile. */
static kiln_status die(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    (void)user;
    (void)out_blob;
    (void)diag;
    (void)kill(getpid(), SIGKILL);
    return KILN_E_INTERNAL;
}

static void C6_a_dead_holders_lease_runs_out(void **state)
{
    ks_server server = {0};
    char url[256];
    char *folder = kt_tmpdir_create(), *one = kt_path(folder, "one"), *two = kt_path(folder, "two");
    ks_compile compile = {0};
    (void)state;
    ks_redis(&server);
    (void)snprintf(url, sizeof url,
                   "redis://:s3cr3t@127.0.0.1:%d?timeout=20s&connect-timeout=20s&lease=1s",
                   server.port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kiln_cache *cache = ks_machine(one, url);
        kiln_recipe *recipe = ks_recipe("a");
        kiln_blob *blob = NULL;
        (void)!kiln_cache_get_or_compile(cache, recipe, die, NULL, &blob, NULL, NULL);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    kiln_cache *cache = ks_machine(two, url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_own(cache).remote_waits, 1); /* until it had run out */
    kiln_cache_destroy(cache);
    ks_end(&server);
    free(one);
    free(two);
    kt_tmpdir_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(C6_a_cluster_compiles_once),
        cmocka_unit_test(C6_a_dead_holders_lease_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
