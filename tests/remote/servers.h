/* Servers for the tests of remotes: real ones, on loopback, each with a directory and a free port
 * of its own, ended with the test; and one of our own that behaves badly. */
#ifndef KILN_TESTS_REMOTE_SERVERS_H
#define KILN_TESTS_REMOTE_SERVERS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/skip.h"
#include "support/suite.h"
#include "unit/store/support.h"

typedef struct ks_server {
    pid_t process;
    int port;
    char *dir;
} ks_server;

static inline int ks_listen(int port, int *out_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t size = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    *out_port = ntohs(address.sin_port);
    return listener;
}

static inline bool ks_answers(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = connect(s, (struct sockaddr *)&address, sizeof address) == 0;
    (void)close(s);
    return answers;
}

/* What a server that does not start has said, and how it ended. */
static inline void ks_report_start(const char *program, const char *log, bool ended, int status)
{
    char *said = kt_file_read(log, NULL);
    print_error("%s %s with status 0x%x; it said: %s\n", program,
                ended ? "ended" : "does not answer", (unsigned)status, said != NULL ? said : "");
    free(said);
}

static inline void ks_start(ks_server *server, const char *const *argv)
{
    int status = 0;
    bool ended = false, answers = false;
    char *log = kt_path(server->dir, "output");
    server->process = fork();
    assert_true(server->process >= 0);
    if (server->process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int output = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)dup2(output, 1);
        (void)dup2(output, 2);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        perror(argv[0]);
        _exit(127);
    }
    for (int i = 0; i < 2000 && !answers && !ended; i++) {
        (void)usleep(5000);
        ended = waitpid(server->process, &status, WNOHANG) == server->process;
        answers = !ended && ks_answers(server->port);
    }
    if (!answers) {
        ks_report_start(argv[0], log, ended, status);
    }
    server->process = ended ? 0 : server->process;
    free(log);
    assert_true(answers);
}

static inline void ks_kill(ks_server *server)
{
    if (server->process > 0) {
        (void)kill(server->process, SIGCONT);
        (void)kill(server->process, SIGKILL);
        (void)waitpid(server->process, NULL, 0);
        server->process = 0;
    }
}

static inline void ks_end(ks_server *server)
{
    ks_kill(server);
    if (server->dir != NULL) {
        kt_tmpdir_remove(server->dir);
    }
    server->dir = NULL;
}

/* A port that nobody has now. */
static inline int ks_free_port(void)
{
    int port = 0;
    (void)close(ks_listen(0, &port));
    return port;
}

static inline void ks_redis_start(ks_server *server)
{
    char port[16];
    (void)snprintf(port, sizeof port, "%d", server->port);
    const char *argv[] = {
        "/usr/bin/redis-server", "--port", port,    "--bind",    "127.0.0.1",     "--save", "",
        "--appendonly",          "no",     "--dir", server->dir, "--requirepass", "s3cr3t", NULL};
    ks_start(server, argv);
}

static inline void ks_redis(ks_server *server)
{
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        kn_test_skip("redis", "redis-server is not installed");
    }
    server->dir = kt_tmpdir_create();
    server->port = ks_free_port();
    ks_redis_start(server);
}

static inline void ks_nginx(ks_server *server)
{
    char text[2048];
    if (access("/usr/sbin/nginx", X_OK) != 0) {
        kn_test_skip("nginx", "nginx is not installed");
    }
    server->dir = kt_tmpdir_create();
    server->port = ks_free_port();
    (void)snprintf(text, sizeof text,
                   "daemon off; master_process off; pid %s/pid; error_log stderr;\n"
                   "events { worker_connections 64; }\n"
                   "http { access_log off; client_body_temp_path %s/body; proxy_temp_path %s/p;\n"
                   "fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
                   "client_max_body_size 64m;\n"
                   "server { listen 127.0.0.1:%d; root %s/files;\n"
                   "location / { dav_methods PUT DELETE; create_full_put_path on; }\n"
                   "location /keeps/ { dav_methods PUT; create_full_put_path on; }\n"
                   "location /closed/ { return 403; }\n"
                   "location /broken/ { return 500; }\n"
                   "location /moved/ { return 302 http://127.0.0.1:%d/; }\n"
                   "location /token/ { if ($http_authorization != \"Bearer s3cr3t\") {\n"
                   " return 401; } dav_methods PUT DELETE; create_full_put_path on; } } }\n",
                   server->dir, server->dir, server->dir, server->dir, server->dir, server->dir,
                   server->port, server->dir, server->port);
    char *path = kt_path(server->dir, "nginx.conf"), *files = kt_path(server->dir, "files");
    assert_int_equal(mkdir(files, 0755), 0);
    (void)chmod(server->dir, 0755);
    kt_file_write(path, text, strlen(text));
    const char *argv[] = {"/usr/sbin/nginx", "-p", server->dir, "-c", path, NULL};
    ks_start(server, argv);
    free(path);
    free(files);
}

/* --- one that behaves badly ------------------------------------------------------------------- */

typedef enum ks_manner {
    KS_SILENT,  /* takes the connection and never says a word */
    KS_CLOSES,  /* hangs up at once */
    KS_SLOW,    /* one byte of the answer every 20 ms */
    KS_GARBAGE, /* the text given, at once */
    KS_CUTS,    /* half of the text, then hangs up */
    KS_FLOOD,   /* the text, then bytes without an end */
} ks_manner;

typedef struct ks_rogue {
    ks_manner manner;
    const char *text;
    int port, listener;
    pthread_t thread;
    atomic_bool stop;
    atomic_int connections;
} ks_rogue;

static inline void ks_rogue_speak(ks_rogue *rogue, int s)
{
    static const char flood[4096] = {'x'};
    char heard[4096];
    size_t length = rogue->text != NULL ? strlen(rogue->text) : 0, at = 0;
    bool asked = false;
    if (rogue->manner == KS_CLOSES) {
        return;
    }
    while (!atomic_load(&rogue->stop)) {
        struct pollfd one = {.fd = s, .events = POLLIN};
        if (poll(&one, 1, 20) > 0) {
            if (recv(s, heard, sizeof heard, MSG_DONTWAIT) <= 0) {
                return;
            }
            asked = true;
        }
        if (!asked || rogue->manner == KS_SILENT) {
            continue;
        }
        size_t size = rogue->manner == KS_SLOW ? (at < length) : length - at;
        size = rogue->manner == KS_CUTS ? length / 2 : size;
        if (size > 0 && send(s, rogue->text + at, size, MSG_NOSIGNAL) < 0) {
            return;
        }
        at += size;
        if (rogue->manner == KS_CUTS) {
            return;
        }
        while (rogue->manner == KS_FLOOD && !atomic_load(&rogue->stop)) {
            if (send(s, flood, sizeof flood, MSG_NOSIGNAL) < 0) {
                return;
            }
        }
    }
}

static inline void *ks_rogue_run(void *user)
{
    ks_rogue *rogue = user;
    while (!atomic_load(&rogue->stop)) {
        struct pollfd one = {.fd = rogue->listener, .events = POLLIN};
        if (poll(&one, 1, 20) <= 0) {
            continue;
        }
        int s = accept(rogue->listener, NULL, NULL);
        if (s >= 0) {
            atomic_fetch_add(&rogue->connections, 1);
            ks_rogue_speak(rogue, s);
            (void)close(s);
        }
    }
    return NULL;
}

static inline void ks_rogue_start(ks_rogue *rogue, ks_manner manner, const char *text)
{
    rogue->manner = manner;
    rogue->text = text;
    atomic_init(&rogue->stop, false);
    atomic_init(&rogue->connections, 0);
    rogue->listener = ks_listen(0, &rogue->port);
    assert_int_equal(pthread_create(&rogue->thread, NULL, ks_rogue_run, rogue), 0);
}

static inline void ks_rogue_end(ks_rogue *rogue)
{
    atomic_store(&rogue->stop, true);
    (void)shutdown(rogue->listener, SHUT_RDWR);
    (void)pthread_join(rogue->thread, NULL);
    (void)close(rogue->listener);
}

/* --- what most of these tests begin with ------------------------------------------------------ */

#define KS_PATIENT "timeout=20s&connect-timeout=20s&upload-timeout=20s&flush=20s"

/* A test with one server, or with each: of a file with setup_redis, setup_nginx and teardown. */
#define KS_LIST(server, which, test)                                                               \
    KT_LIST(setup_##server, teardown, test, which, #server ": " #test)
#define KS_REDIS(test)                                                                             \
    KT_DECLARED(test);                                                                             \
    KS_LIST(redis, 0, test)                                                                        \
    KT_DECLARED(test)
#define KS_NGINX(test)                                                                             \
    KT_DECLARED(test);                                                                             \
    KS_LIST(nginx, 0, test)                                                                        \
    KT_DECLARED(test)
#define KS_BOTH(test)                                                                              \
    KT_DECLARED(test);                                                                             \
    KS_LIST(redis, 0, test)                                                                        \
    KS_LIST(nginx, 1, test)                                                                        \
    KT_DECLARED(test)

/* A directory with a place for the cache of each machine. */
static inline char *ks_roots_create(char **roots, int count)
{
    char *dir = kt_tmpdir_create();
    for (int i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%d", i);
        roots[i] = kt_path(dir, name);
    }
    return dir;
}

static inline void ks_roots_remove(char *dir, char **roots, int count)
{
    for (int i = 0; i < count; i++) {
        free(roots[i]);
    }
    kt_tmpdir_remove(dir);
}

/* --- a machine: a cache with a directory of its own ------------------------------------------- */

static inline kiln_cache *ks_machine(const char *root, const char *remote)
{
    kiln_cache_options options = ks_options(root);
    options.remote = remote;
    return ks_open(&options);
}

#endif
