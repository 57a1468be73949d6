/* What the URL of a remote and the rights of its user make of it, over Redis and nginx: names,
 * sizes, who may only read or write, and what kiln remote check says of it. */
#include "remote/fixture.h"

/* Database, prefix and TTL of the URL are those of the server's names. */
KS_REDIS(names_are_as_the_url_says)
{
    fixture *f = *state;
    char command[1024], url[256];
    ks_compile compile = {0};
    (void)snprintf(url, sizeof url,
                   "redis://:s3cr3t@127.0.0.1:%d/5?prefix=team%%20a:&ttl=1h&" PATIENT,
                   f->server.port);
    kiln_cache *cache = ks_machine(f->roots[0], url);
    (void)ks_get(cache, "a", &compile);
    kiln_cache_destroy(cache);
    (void)snprintf(command, sizeof command,
                   "r='redis-cli -p %d -a s3cr3t --no-auth-warning -n 5'; $r ping >/dev/null || "
                   "exit 1; [ \"$($r --scan | cut -c1-7 | sort -u)\" = 'team a:' ] || exit 2; "
                   "ttl=$($r pttl \"$($r --scan | grep -v lease)\"); "
                   "[ \"$ttl\" -gt 0 ] && [ \"$ttl\" -le 3600000 ] || exit 2",
                   f->server.port);
    int code = system(command);
    if (WEXITSTATUS(code) == 1) {
        kn_test_skip("redis", "redis-cli is not installed");
    }
    assert_int_equal(code, 0);
}

/* The rights that docs/operate/remotes.md names are enough. */
KS_REDIS(a_user_of_few_rights_does)
{
    fixture *f = *state;
    char command[512], url[256];
    ks_compile compile = {0};
    (void)snprintf(command, sizeof command,
                   "redis-cli -p %d -a s3cr3t --no-auth-warning acl setuser kiln on '>pw' "
                   "'~kiln:*' +get +set +del +eval +pexpire +select +time >/dev/null",
                   f->server.port);
    if (system(command) != 0) {
        kn_test_skip("redis", "redis-cli is not installed");
    }
    (void)snprintf(url, sizeof url, "redis://kiln:pw@127.0.0.1:%d/3?ttl=1h&" PATIENT,
                   f->server.port);
    for (int i = 0; i < 2; i++) {
        kiln_cache *cache = ks_machine(f->roots[i], url);
        (void)ks_get(cache, "a", &compile);
        assert_int_equal(ks_own(cache).remote_errors, 0);
        kiln_cache_destroy(cache);
    }
    assert_int_equal(compile.runs, 1);
    kiln_remote_report report = check(url);
    assert_string_equal(report.why, "");
    assert_true(report.readable && report.writable);
}

/* And of one who only writes: it is not asked for what it need not be able to do. */
KS_REDIS(who_only_writes_need_not_read)
{
    fixture *f = *state;
    char command[512], url[256];
    (void)snprintf(command, sizeof command,
                   "redis-cli -p %d -a s3cr3t --no-auth-warning acl setuser giver on '>pw' "
                   "'~kiln:*' +set +del +select +time >/dev/null",
                   f->server.port);
    if (system(command) != 0) {
        kn_test_skip("redis", "redis-cli is not installed");
    }
    (void)snprintf(url, sizeof url, "redis://giver:pw@127.0.0.1:%d/3?write-only&" PATIENT,
                   f->server.port);
    const kiln_remote_report report = check(url);
    assert_string_equal(report.why, "");
    assert_true(report.reachable && report.writable && !report.readable);
}

KS_BOTH(a_check_tells_what_works)
{
    fixture *f = *state;
    char url[300];
    kiln_remote_report report = check(f->url);
    assert_string_equal(report.why, "");
    assert_true(report.reachable && report.readable && report.writable);
    assert_true(report.leases == f->redis && report.has_clock);
    assert_true(report.latency_ns > 0);
    assert_true(llabs(report.clock_ahead_ns) < 60 * INT64_C(1000000000));
    if (!f->redis) {
        /* Its configuration, its pid and what it says. */
        assert_int_equal(kt_file_count(f->server.dir), 3);
    }
    assert_null(strstr(report.name, "s3cr3t"));
    (void)snprintf(url, sizeof url, "%s&read-only", f->url);
    report = check(url);
    assert_true(report.reachable && report.readable && !report.writable);
    ks_kill(&f->server);
    report = check(f->url);
    assert_false(report.reachable);
    assert_true(report.why[0] != '\0');
}

/* Entries that are too large for this machine are misses, and the others are taken as usual. */
KS_BOTH(what_is_too_large_is_a_miss)
{
    fixture *f = *state;
    enum { LARGE = 5, SIZE = 300000 };
    ks_compile compile = {0};
    char url[300], *names[LARGE];
    kiln_cache *giver = ks_machine(f->roots[0], f->url);
    uint64_t random = 1;
    for (int i = 0; i < LARGE;
         i++) { /* what is compiled is the name, in letters that do not pack */
        names[i] = malloc(SIZE + 1);
        for (size_t n = 0; n < SIZE; n++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            names[i][n] = (char)('!' + (random >> 33) % 90);
        }
        names[i][SIZE] = '\0';
        (void)ks_get(giver, names[i], &compile);
    }
    (void)ks_get(giver, "small", &compile);
    kiln_cache_destroy(giver);
    for (int much = 0; much < 2;
         much++) { /* too large by a little, and by so much that it is not read */
        const int before = compile.runs;
        (void)snprintf(url, sizeof url, "%s&read-only&max-bytes=%s", f->url,
                       much == 0 ? "220K" : "20K");
        kiln_cache *taker = ks_machine(f->roots[1 + much], url);
        for (int i = 0; i < LARGE; i++) {
            assert_int_equal(ks_get(taker, names[i], &compile), KILN_ORIGIN_COMPILED);
        }
        assert_int_equal(ks_get(taker, "small", &compile), KILN_ORIGIN_REMOTE);
        assert_int_equal(compile.runs, before + LARGE);
        assert_int_equal(ks_own(taker).remote_errors + ks_own(taker).corrupt, 0);
        kiln_cache_destroy(taker);
    }
    for (int i = 0; i < LARGE; i++) {
        free(names[i]);
    }
}

KT_MAIN(NULL, NULL)
