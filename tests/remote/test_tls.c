/* TLS to real servers, Redis and nginx: with an authority of the test's own a machine shares, and a
 * server that cannot prove its identity is refused in one clear line. HTTP/2, and logging in. */
#include "remote/servers.h"

#include "kiln/unstable/remote.h"

#include "remote/certificates.h"

#define YEAR (365L * 24 * 3600)

typedef struct fixture {
    ks_server server;
    char *dir, *root, *other_root;
    kc_identity ca, stranger_ca, server_id, wrong_id, old_id, stranger_id, client_id;
    bool redis;
    char options[512]; /* of a URL: patience, and whom to trust */
} fixture;

static int make(void **state, bool redis)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->redis = redis;
    f->dir = kt_tmpdir_create();
    f->root = kt_path(f->dir, "m0");
    f->other_root = kt_path(f->dir, "m1");
    f->ca = kc_make(f->dir, "ca", NULL, NULL, YEAR);
    f->stranger_ca = kc_make(f->dir, "stranger-ca", NULL, NULL, YEAR);
    f->server_id = kc_make(f->dir, "server", &f->ca, "IP:127.0.0.1,DNS:localhost", YEAR);
    f->wrong_id = kc_make(f->dir, "wrong", &f->ca, "DNS:elsewhere.example", YEAR);
    f->old_id = kc_make(f->dir, "old", &f->ca, "IP:127.0.0.1", -3600);
    f->stranger_id = kc_make(f->dir, "stranger", &f->stranger_ca, "IP:127.0.0.1", YEAR);
    f->client_id = kc_make(f->dir, "client", &f->ca, NULL, YEAR);
    (void)snprintf(f->options, sizeof f->options, KS_PATIENT "&ca-file=%s", f->ca.cert_file);
    return 0;
}

static int setup_redis(void **state)
{
    return make(state, true);
}

static int setup_nginx(void **state)
{
    return make(state, false);
}

static int teardown(void **state)
{
    fixture *f = *state;
    kc_identity *all[] = {&f->ca,     &f->stranger_ca, &f->server_id, &f->wrong_id,
                          &f->old_id, &f->stranger_id, &f->client_id};
    ks_end(&f->server);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        kc_end(all[i]);
    }
    free(f->root);
    free(f->other_root);
    kt_tmpdir_remove(f->dir);
    free(f);
    return 0;
}

/* --- servers ---------------------------------------------------------------------------------- */

static void start_redis(fixture *f, const kc_identity *as, bool asks_clients)
{
    char port[16];
    if (access("/usr/bin/redis-server", X_OK) != 0) {
        kn_test_skip("redis", "redis-server is not installed");
    }
    (void)snprintf(port, sizeof port, "%d", f->server.port);
    const char *argv[] = {"/usr/bin/redis-server",
                          "--port",
                          "0",
                          "--tls-port",
                          port,
                          "--bind",
                          "127.0.0.1",
                          "--save",
                          "",
                          "--tls-cert-file",
                          as->cert_file,
                          "--tls-key-file",
                          as->key_file,
                          "--tls-ca-cert-file",
                          f->ca.cert_file,
                          "--tls-auth-clients",
                          asks_clients ? "yes" : "no",
                          "--dir",
                          f->server.dir,
                          NULL};
    ks_start(&f->server, argv);
}

static void start_nginx(fixture *f, const kc_identity *as, bool asks_clients)
{
    char text[3072], *path = kt_at(f->server.dir, "nginx.conf");
    char *files = kt_at(f->server.dir, "files");
    const char *dir = f->server.dir;
    if (access("/usr/sbin/nginx", X_OK) != 0) {
        kn_test_skip("nginx", "nginx is not installed");
    }
    (void)snprintf(
        text, sizeof text,
        "daemon off; master_process off; pid %s/pid; error_log stderr;\n"
        "events { worker_connections 64; }\n"
        "http { access_log off; client_body_temp_path %s/body; proxy_temp_path %s/p;\n"
        "fastcgi_temp_path %s/f; uwsgi_temp_path %s/u; scgi_temp_path %s/s;\n"
        "client_max_body_size 64m; server { listen 127.0.0.1:%d ssl http2; root %s/files;\n"
        "ssl_certificate %s; ssl_certificate_key %s; ssl_client_certificate %s;\n"
        "ssl_verify_client %s;\n"
        "location / { dav_methods PUT DELETE; create_full_put_path on; }\n"
        "location /two/ { if ($server_protocol != \"HTTP/2.0\") { return 403; }\n"
        " dav_methods PUT DELETE; create_full_put_path on; }\n"
        "location /login/ { if ($http_authorization != \"Basic a2lsbjpzM2NyM3Q=\") {\n"
        " return 401; } dav_methods PUT DELETE; create_full_put_path on; } } }\n",
        dir, dir, dir, dir, dir, dir, f->server.port, dir, as->cert_file, as->key_file,
        f->ca.cert_file, asks_clients ? "on" : "off");
    (void)mkdir(files, 0755);
    (void)chmod(dir, 0755);
    kt_file_write(path, text, strlen(text));
    const char *argv[] = {"/usr/sbin/nginx", "-p", dir, "-c", path, NULL};
    ks_start(&f->server, argv);
}

static void start(fixture *f, const kc_identity *as, bool asks_clients)
{
    f->server.dir = kt_tmpdir_create();
    f->server.port = ks_free_port();
    if (f->redis) {
        start_redis(f, as, asks_clients);
    } else {
        start_nginx(f, as, asks_clients);
    }
}

/* --- looking ---------------------------------------------------------------------------------- */

static kiln_status keep_report(void *user, const kiln_remote_report *report)
{
    *(kiln_remote_report *)user = *report;
    return KILN_OK;
}

static kiln_remote_report check(const fixture *f, const char *host, const char *path,
                                const char *options)
{
    char url[2048];
    kiln_remote_report report;
    memset(&report, 0, sizeof report);
    (void)snprintf(url, sizeof url, "%s://%s:%d%s?%s", f->redis ? "rediss" : "https", host,
                   f->server.port, path, options);
    assert_int_equal(kiln_remote_check(url, keep_report, &report, NULL), KILN_OK);
    return report;
}

static void expect_refused(const kiln_remote_report *report)
{
    assert_false(report->reachable);
    assert_non_null(strstr(report->why, "ertificate"));
    assert_null(strchr(report->why, '\n'));
}

/* One machine compiles, the other takes it; and 300 KB, so that there are many records. */
static void expect_shared(fixture *f, const char *path, const char *options)
{
    char url[1024], name[16];
    const size_t size = 300000;
    char *large = malloc(size + 1);
    ks_compile compile = {0};
    for (size_t i = 0; i < size; i++) {
        large[i] = (char)('a' + (i * i / 7) % 26);
    }
    large[size] = '\0';
    (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d%s?%s", f->redis ? "rediss" : "https",
                   f->server.port, path, options);
    for (int machine = 0; machine < 2; machine++) {
        kiln_cache *cache = ks_machine(machine == 0 ? f->root : f->other_root, url);
        kiln_origin origin = machine == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_REMOTE;
        for (int i = 0; i < 5; i++) {
            (void)snprintf(name, sizeof name, "%d", i);
            assert_int_equal(ks_get(cache, name, &compile), origin);
        }
        assert_int_equal(ks_get(cache, large, &compile), origin);
        assert_int_equal(ks_own(cache).remote_errors + ks_own(cache).remote_timeouts, 0);
        kiln_cache_destroy(cache);
    }
    assert_int_equal(compile.runs, 6);
    free(large);
}

/* --- tests ------------------------------------------------------------------------------------ */

KS_BOTH(machines_share_over_tls)
{
    fixture *f = *state;
    start(f, &f->server_id, false);
    kiln_remote_report report = check(f, "127.0.0.1", "", f->options);
    assert_string_equal(report.why, "");
    assert_true(report.reachable && report.readable && report.writable);
    report = check(f, "localhost", "", f->options);
    assert_string_equal(report.why, "");
    expect_shared(f, "", f->options);
}

KS_BOTH(a_strangers_certificate_is_refused)
{
    fixture *f = *state;
    ks_compile compile = {0};
    char url[2048];
    start(f, &f->stranger_id, false);
    kiln_remote_report report = check(f, "127.0.0.1", "", f->options);
    expect_refused(&report);
    (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d?%s", f->redis ? "rediss" : "https",
                   f->server.port, f->options);
    kiln_cache *cache = ks_machine(f->root, url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).remote_errors >= 1);
    assert_int_equal(ks_own(cache).remote_uploads, 0);
    kiln_cache_destroy(cache);
}

KS_BOTH(a_certificate_of_another_host_is_refused)
{
    fixture *f = *state;
    start(f, &f->wrong_id, false);
    kiln_remote_report report = check(f, "127.0.0.1", "", f->options);
    assert_false(report.reachable);
    /* libcurl and OpenSSL word it each in their own way. */
    assert_true(report.why[0] != '\0');
    report = check(f, "localhost", "", f->options);
    assert_false(report.reachable);
}

KS_BOTH(an_old_certificate_is_refused)
{
    fixture *f = *state;
    start(f, &f->old_id, false);
    kiln_remote_report report = check(f, "127.0.0.1", "", f->options);
    expect_refused(&report);
}

KS_BOTH(the_systems_list_does_not_know_a_private_authority)
{
    fixture *f = *state;
    start(f, &f->server_id, false);
    kiln_remote_report report = check(f, "127.0.0.1", "", KS_PATIENT);
    expect_refused(&report);
}

KS_BOTH(a_ca_file_that_is_none_is_told)
{
    fixture *f = *state;
    char options[256];
    start(f, &f->server_id, false);
    (void)snprintf(options, sizeof options, KS_PATIENT "&ca-file=%s/nothing.pem", f->dir);
    kiln_remote_report report = check(f, "127.0.0.1", "", options);
    assert_false(report.reachable);
    assert_true(report.why[0] != '\0');
}

KS_BOTH(a_client_shows_its_own_certificate)
{
    fixture *f = *state;
    char options[1024];
    start(f, &f->server_id, true);
    kiln_remote_report report = check(f, "127.0.0.1", "", f->options);
    assert_false(report.readable && report.writable);
    (void)snprintf(options, sizeof options, "%s&cert-file=%s&key-file=%s", f->options,
                   f->client_id.cert_file, f->client_id.key_file);
    report = check(f, "127.0.0.1", "", options);
    assert_string_equal(report.why, "");
    expect_shared(f, "", options);
}

/* TLS to a server that speaks none, and none to one that wants it: reported, and never hung up
 * on. */
KS_REDIS(tls_and_plain_do_not_meet)
{
    fixture *f = *state;
    char url[256];
    kiln_remote_report report;
    start(f, &f->server_id, false);
    memset(&report, 0, sizeof report);
    /* Each waits for the other to begin: only the limit ends it. */
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?upload-timeout=200ms", f->server.port);
    assert_int_equal(kiln_remote_check(url, keep_report, &report, NULL), KILN_OK);
    assert_false(report.reachable);
    ks_end(&f->server);
    ks_redis(&f->server);
    (void)snprintf(url, sizeof url, "ca-file=%s&upload-timeout=200ms", f->ca.cert_file);
    report = check(f, "127.0.0.1", "", url);
    assert_false(report.reachable);
    assert_true(report.why[0] != '\0');
}

KS_BOTH(a_tls_server_killed_in_the_middle_harms_nobody)
{
    fixture *f = *state;
    ks_compile compile = {0};
    char url[1024], name[16];
    start(f, &f->server_id, false);
    (void)snprintf(url, sizeof url, "%s://127.0.0.1:%d?%s", f->redis ? "rediss" : "https",
                   f->server.port, f->options);
    kiln_cache *cache = ks_machine(f->root, url);
    for (int n = 0; n < 20; n++) {
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        if (n == 10) {
            ks_kill(&f->server);
        }
    }
    assert_true(ks_own(cache).remote_errors + ks_own(cache).remote_upload_failures >= 1);
    kiln_cache_destroy(cache);
}

KS_NGINX(http_two_is_spoken)
{
    fixture *f = *state;
    start(f, &f->server_id, false);
    expect_shared(f, "/two", f->options);
}

KS_NGINX(netrc_tells_user_and_password)
{
    static const char text[] = "machine 127.0.0.1 login kiln password s3cr3t\n";
    fixture *f = *state;
    char options[600], *path = kt_at(f->dir, ".netrc");
    start(f, &f->server_id, false);
    kt_file_write(path, text, sizeof text - 1);
    (void)chmod(path, 0600);
    kiln_remote_report report = check(f, "127.0.0.1", "/login", f->options);
    assert_false(report.writable);
    assert_null(strstr(report.why, "s3cr3t"));
    assert_int_equal(setenv("HOME", f->dir, 1), 0);
    (void)snprintf(options, sizeof options, "%s&netrc", f->options);
    expect_shared(f, "/login", options);
}

KT_MAIN(NULL, NULL)
