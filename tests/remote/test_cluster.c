/* A cluster starts cold: processes with disk caches of their own and one Redis between them compile
 * a kernel once. Prints how long each waited: docs/benchmarks.md has the table. */
#include "remote/cluster.h"

static bool share(void *user, int number, char url[256])
{
    (void)number;
    (void)snprintf(url, 256, "%s", (const char *)user);
    return true;
}

static void C6_a_cluster_compiles_once(void **state)
{
    static const int sizes[] = {1, 4, 8, KC_MOST};
    char url[256];
    (void)state;
    for (int i = 0; i < 4; i++) {
        ks_server server = {0};
        char *folder = kt_tmpdir_create();
        ks_redis(&server);
        (void)snprintf(url, sizeof url,
                       "redis://:s3cr3t@127.0.0.1:%d?timeout=20s&connect-timeout=20s&flush=20s",
                       server.port);
        kc_outcome with = kc_run(folder, "with", sizes[i], share, url);
        kc_outcome without = kc_run(folder, "without", sizes[i], NULL, NULL);
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
    assert_int_equal(compile.runs, 1);
    assert_true(ks_own(cache).remote_waits <= 1); /* until it had run out, if it had not yet */
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
