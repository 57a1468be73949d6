/* A cluster starts cold: processes with disk caches of their own and one Redis between them compile
 * a kernel once. Prints how long each waited: docs/benchmarks.md has the table. */
#include "remote/cluster.h"
#include "support/suite.h"

static bool share(void *user, int number, char url[256])
{
    (void)number;
    (void)snprintf(url, 256, "%s", (const char *)user);
    return true;
}

KT_TEST(C6_a_cluster_compiles_once)
{
    static const int sizes[] = {1, 4, 8, KC_MOST};
    char url[256];
    for (int i = 0; i < 4; i++) {
        ks_server server = {0};
        char *dir = kt_tmpdir_create();
        ks_redis(&server);
        (void)snprintf(url, sizeof url,
                       "redis://:s3cr3t@127.0.0.1:%d?timeout=20s&connect-timeout=20s&flush=20s",
                       server.port);
        kc_outcome with = kc_run(dir, "with", sizes[i], share, url);
        kc_outcome without = kc_run(dir, "without", sizes[i], NULL, NULL);
        (void)printf("%2d machines: %d compile with Redis, slowest %d ms, %d waited; without: %d "
                     "compiles, slowest %d ms\n",
                     sizes[i], with.compiles, with.slowest_ms, with.waits, without.compiles,
                     without.slowest_ms);
        assert_int_equal(with.wrong + without.wrong, 0);
        assert_int_equal(with.compiles, 1);
        assert_int_equal(without.compiles, sizes[i]);
        ks_end(&server);
        kt_tmpdir_remove(dir);
    }
}

KT_MAIN(NULL, NULL)
