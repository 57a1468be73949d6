/* A cluster on a network of its own: four network namespaces, each joined to a fifth by a pair of
 * virtual interfaces, with one Redis in that fifth. 32 machines in the four start cold: one of them
 * compiles. What one host can share by other ways (its loopback, a socket) they do not have. */
#include <sched.h>

#include "remote/cluster.h"

enum { NETWORKS = 4 };

typedef struct networks {
    pid_t holders[NETWORKS]; /* each keeps a namespace alive */
    int port;
} networks;

static void run_or_fail(const char *command)
{
    if (system(command) != 0) {
        fail_msg("%s", command);
    }
}

/* A namespace of its own, whose end of the pair it sets up as soon as that is there. */
static pid_t hold(int number, int ready, int go)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char command[256], byte = 0;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)snprintf(command, sizeof command,
                       "ip link set lo up && ip addr add 10.77.%d.2/30 dev inside && "
                       "ip link set inside up",
                       number);
        bool good = unshare(CLONE_NEWNET) == 0 && write(ready, &byte, 1) == 1 &&
                    read(go, &byte, 1) == 1 && system(command) == 0 && write(ready, &byte, 1) == 1;
        if (good) {
            (void)pause(); /* until it is killed */
        }
        _exit(1);
    }
    return child;
}

static void build(networks *n)
{
    run_or_fail("ip link set lo up");
    for (int i = 0; i < NETWORKS; i++) {
        char command[256], byte = 0;
        int ready[2], go[2];
        assert_int_equal(pipe(ready), 0);
        assert_int_equal(pipe(go), 0);
        n->holders[i] = hold(i, ready[1], go[0]);
        (void)close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void)snprintf(command, sizeof command,
                       "ip link add outside%d type veth peer name inside netns %d && "
                       "ip addr add 10.77.%d.1/30 dev outside%d && ip link set outside%d up",
                       i, (int)n->holders[i], i, i, i);
        run_or_fail(command);
        assert_int_equal(write(go[1], &byte, 1), 1);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void)close(ready[0]);
        (void)close(go[0]);
        (void)close(go[1]);
    }
}

static void tear_down(networks *n)
{
    for (int i = 0; i < NETWORKS; i++) {
        (void)kill(n->holders[i], SIGKILL);
        (void)waitpid(n->holders[i], NULL, 0);
    }
}

static void start_redis(ks_server *server)
{
    char port[16];
    server->dir = kt_tmpdir_create();
    server->port = ks_free_port();
    (void)snprintf(port, sizeof port, "%d", server->port);
    const char *argv[] = {"/usr/bin/redis-server",
                          "--port",
                          port,
                          "--bind",
                          "0.0.0.0",
                          "--save",
                          "",
                          "--dir",
                          server->dir,
                          "--requirepass",
                          "s3cr3t",
                          NULL};
    ks_start(server, argv);
}

/* Moves this process into its network. */
static bool join(void *user, int number, char url[256])
{
    const networks *n = user;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)n->holders[number % NETWORKS]);
    int ns = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(ns >= 0);
    assert_int_equal(setns(ns, CLONE_NEWNET), 0);
    (void)close(ns);
    (void)snprintf(url, 256,
                   "redis://:s3cr3t@10.77.%d.1:%d?timeout=20s&connect-timeout=20s&flush=20s",
                   number % NETWORKS, n->port);
    return true;
}

static void C6_machines_on_four_networks_compile_once(void **state)
{
    static const int sizes[] = {1, 4, 8, KC_MOST};
    networks n;
    (void)state;
    build(&n);
    for (int i = 0; i < 4; i++) {
        ks_server server = {0};
        char *dir = kt_tmpdir_create();
        start_redis(&server);
        n.port = server.port;
        kc_outcome with = kc_run(dir, "with", sizes[i], join, &n);
        kc_outcome without = kc_run(dir, "without", sizes[i], NULL, NULL);
        (void)printf("%2d machines on %d networks: %d compile with Redis, slowest %d ms, %d "
                     "waited; without: %d compiles, slowest %d ms\n",
                     sizes[i], sizes[i] < NETWORKS ? sizes[i] : NETWORKS, with.compiles,
                     with.slowest_ms, with.waits, without.compiles, without.slowest_ms);
        assert_int_equal(with.wrong + without.wrong, 0);
        assert_int_equal(with.compiles, 1);
        assert_int_equal(without.compiles, sizes[i]);
        ks_end(&server);
        kt_tmpdir_remove(dir);
    }
    tear_down(&n);
}

/* This process and its children: a network that nobody else sees. */
static bool leave_the_network(void)
{
    return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(C6_machines_on_four_networks_compile_once),
    };
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        kn_test_skip("redis", "redis-server is not installed");
    }
    if (!leave_the_network()) {
        kn_test_skip("netns", "no network namespaces here (no root, and no user namespaces)");
    }
    if (system("ip link add probe type veth peer name probed 2>/dev/null && ip link del probe") !=
        0) {
        kn_test_skip("netns", "no virtual network interfaces here (iproute2, veth)");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
