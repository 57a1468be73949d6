/* Remotes over real servers, Redis and nginx, and over one that behaves badly: the bytes are always
 * right, the delay is bounded, everything is counted. */
#include "remote/fixture.h"
#include "support/counters.h"
#include "sys/guarded.h"

/* --- sharing ---------------------------------------------------------------------------------- */

KS_BOTH(another_machine_does_not_compile)
{
    fixture *f = *state;
    ks_compile compile = {0};
    kiln_cache *first = ks_machine(f->roots[0], f->url);
    assert_int_equal(ks_get(first, "a", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(first);
    kiln_cache *second = ks_machine(f->roots[1], f->url);
    assert_int_equal(ks_get(second, "a", &compile), KILN_ORIGIN_REMOTE);
    kt_counters own = ks_own(second);
    assert_int_equal(own.hits_remote, 1);
    assert_int_equal(own.compiles, 0);
    assert_int_equal(own.remote_errors + own.remote_timeouts + own.remote_refused, 0);
    assert_true(own.remote_bytes_in > 0);
    kiln_cache_destroy(second);
    /* It was promoted to the disk. */
    second = ks_machine(f->roots[1], NULL);
    assert_int_equal(ks_get(second, "a", &compile), KILN_ORIGIN_DISK);
    kiln_cache_destroy(second);
    assert_int_equal(compile.runs, 1);
}

KS_BOTH(a_large_entry_travels)
{
    fixture *f = *state;
    const size_t size = (size_t)3 << 20;
    char *text = malloc(size + 1);
    uint32_t seed = 1;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = (char)('!' + (seed >> 24) % 90);
    }
    text[size] = '\0';
    for (int i = 0; i < 2; i++) {
        kiln_recipe *recipe = ks_recipe("large");
        kiln_blob *blob = NULL;
        kiln_origin origin;
        ks_compile compile = {.text = text};
        kiln_cache *cache = ks_machine(f->roots[i], f->url);
        assert_int_equal(kiln_cache_get_or_compile(cache, recipe, ks_compile_run, &compile, &blob,
                                                   &origin, NULL),
                         KILN_OK);
        assert_int_equal(origin, i == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_REMOTE);
        assert_int_equal(kiln_blob_size(blob), size);
        assert_memory_equal(kiln_blob_data(blob), text, size);
        kiln_blob_release(blob);
        kiln_cache_destroy(cache);
        kiln_recipe_destroy(recipe);
    }
    free(text);
}

/* Every entry of nginx's directory with one byte changed. */
KS_NGINX(a_tampered_entry_is_compiled_again)
{
    fixture *f = *state;
    char command[512];
    ks_compile compile = {0};
    kiln_cache *cache = ks_machine(f->roots[0], f->url);
    (void)ks_get(cache, "a", &compile);
    kiln_cache_destroy(cache);
    (void)snprintf(command, sizeof command,
                   "for e in $(find %s/files -type f); do printf x | dd of=$e bs=1 seek=40 "
                   "conv=notrunc 2>/dev/null; done",
                   f->server.dir);
    assert_int_equal(system(command), 0);
    cache = ks_machine(f->roots[1], f->url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).corrupt >= 1);
    kiln_cache_destroy(cache);
    assert_int_equal(compile.runs, 2);
}

KS_NGINX(a_token_is_needed_and_taken)
{
    fixture *f = *state;
    char url[512];
    ks_compile compile = {0};
    char *token = kt_at(f->dir, "token");
    assert_int_equal(kn_guarded_make(token, "s3cr3t\n", 7, NULL), KILN_OK);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/token?token-file=%s&" PATIENT,
                   f->server.port, token);
    kiln_cache *cache = ks_machine(f->roots[0], url);
    (void)ks_get(cache, "a", &compile);
    kiln_cache_destroy(cache);
    cache = ks_machine(f->roots[1], url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_REMOTE);
    kiln_cache_destroy(cache);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/token?" PATIENT, f->server.port);
    cache = ks_machine(f->roots[2], url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).remote_errors > 0);
    kiln_cache_destroy(cache);
}

/* The names that other stores want. */
KS_NGINX(layouts_are_kept)
{
    static const char *const layouts[] = {"subdirs", "flat", "bazel"};
    fixture *f = *state;
    char hex[KILN_KEY_TEXT_SIZE], url[256], path[512];
    kiln_recipe *recipe = ks_recipe("a");
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_key_format(&key, hex);
    for (int i = 0; i < 3; i++) {
        ks_compile compile = {0};
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/l%d?layout=%s&" PATIENT,
                       f->server.port, i, layouts[i]);
        kiln_cache *cache = ks_machine(f->roots[i], url);
        (void)ks_get(cache, "a", &compile);
        kiln_cache_destroy(cache);
        (void)snprintf(path, sizeof path, "%s/files/l%d/%s%.2s%s%s", f->server.dir, i,
                       i == 2 ? "ac/" : "", hex, i == 0 ? "/" : "", hex + 2);
        assert_int_equal(access(path, R_OK), 0);
    }
    kiln_recipe_destroy(recipe);
}

KS_NGINX(a_server_that_refuses_is_let_be)
{
    static const char *const places[] = {"closed", "broken", "moved"};
    fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        char url[256], name[16];
        ks_compile compile = {0};
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/%s?" PATIENT, f->server.port,
                       places[i]);
        kiln_cache *cache = ks_machine(f->roots[i], url);
        for (int n = 0; n < 20; n++) {
            (void)snprintf(name, sizeof name, "%d", n);
            assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        }
        kt_counters own = ks_own(cache);
        assert_true(own.remote_errors >= 1 && own.remote_errors <= 20); /* not one for each of 40 */
        assert_int_equal(own.remote_uploads, 0);
        kiln_cache_destroy(cache);
    }
}

KS_REDIS(a_wrong_password_is_let_be)
{
    fixture *f = *state;
    char url[256];
    ks_compile compile = {0};
    (void)snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d?" PATIENT, f->server.port);
    kiln_cache *cache = ks_machine(f->roots[0], url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).remote_errors >= 1);
    kiln_cache_destroy(cache);
    const kiln_remote_report report = check(url);
    assert_true(report.reachable); /* it answers that it does not know who asks */
    assert_false(report.readable || report.writable || report.leases);
    assert_non_null(strstr(report.why, "WRONGPASS"));
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?" PATIENT, f->server.port);
    assert_true(check(url).reachable);
    assert_non_null(strstr(check(url).takes, "code for GPUs"));
}

/* --- trust ------------------------------------------------------------------------------------ */

/* What a machine with this signing key ("": none) makes of "a". */
static kt_counters ask_as(fixture *f, int machine, const char *key_file, ks_compile *compile)
{
    assert_int_equal(setenv("KILN_SIGNING_KEY", key_file, 1), 0);
    kiln_cache *cache = ks_machine(f->roots[machine], f->url);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
    (void)ks_get(cache, "a", compile);
    kt_counters own = ks_own(cache);
    kiln_cache_destroy(cache);
    return own;
}

KS_BOTH(S7_only_trusted_signatures_are_taken)
{
    fixture *f = *state;
    char line[KILN_PUBLIC_KEY_TEXT_SIZE];
    ks_compile compile = {0};
    char *ours = kt_at(f->dir, "ours.pem"), *theirs = kt_at(f->dir, "theirs.pem");
    assert_int_equal(kiln_signing_key_generate(ours, line, NULL), KILN_OK);
    assert_int_equal(kiln_signing_key_generate(theirs, line, NULL), KILN_OK);
    (void)ask_as(f, 0, "", &compile); /* unsigned */
    kt_counters own = ask_as(f, 1, ours, &compile);
    assert_true(own.remote_refused >= 1);
    assert_int_equal(own.compiles, 1); /* and puts its own there */
    own = ask_as(f, 2, theirs, &compile);
    assert_true(own.remote_refused >= 1);
    assert_int_equal(own.compiles, 1);
    own = ask_as(f, 3, theirs, &compile);
    assert_int_equal(own.hits_remote, 1);
    assert_int_equal(own.remote_refused + own.compiles, 0);
}

/* Exchanges the two entries that are there. */
static void exchange(const fixture *f)
{
    char command[512];
    (void)snprintf(command, sizeof command,
                   "set -- $(find %s/files -type f); [ $# = 2 ] && mv $1 %s/x && mv $2 $1 && "
                   "mv %s/x $2",
                   f->server.dir, f->dir, f->dir);
    assert_int_equal(system(command), 0);
}

static void expect_two_compiles(fixture *f, int machine, bool signed_)
{
    ks_compile compile = {0};
    kiln_cache *cache = ks_machine(f->roots[machine], f->url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_int_equal(ks_get(cache, "b", &compile), KILN_ORIGIN_COMPILED);
    kt_counters own = ks_own(cache);
    assert_true((signed_ ? own.remote_refused : own.corrupt) >= 2);
    kiln_cache_destroy(cache);
}

KS_NGINX(S7_an_entry_moved_to_another_key_is_refused)
{
    fixture *f = *state;
    ks_compile compile = {0};
    kiln_cache *cache = ks_machine(f->roots[0], f->url);
    (void)ks_get(cache, "a", &compile);
    (void)ks_get(cache, "b", &compile);
    kiln_cache_destroy(cache);
    exchange(f);
    expect_two_compiles(f, 1, false);
}

KS_NGINX(S7_a_signed_entry_moved_to_another_key_is_refused)
{
    fixture *f = *state;
    char line[KILN_PUBLIC_KEY_TEXT_SIZE];
    char *key_file = kt_at(f->dir, "key.pem");
    assert_int_equal(kiln_signing_key_generate(key_file, line, NULL), KILN_OK);
    assert_int_equal(setenv("KILN_SIGNING_KEY", key_file, 1), 0);
    ks_compile compile = {0};
    kiln_cache *cache = ks_machine(f->roots[0], f->url);
    (void)ks_get(cache, "a", &compile);
    (void)ks_get(cache, "b", &compile);
    kiln_cache_destroy(cache);
    exchange(f);
    expect_two_compiles(f, 1, true);
    assert_int_equal(unsetenv("KILN_SIGNING_KEY"), 0);
}

/* --- looking at them -------------------------------------------------------------------------- */

/* bazel-remote knows no DELETE: what it is asked to remove without success does not count against
 * it. */
KS_NGINX(a_server_that_removes_nothing_is_in_order)
{
    fixture *f = *state;
    char url[256], name[16];
    ks_compile compile = {0};
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/keeps?" PATIENT, f->server.port);
    kiln_remote_report report = check(url);
    assert_string_equal(report.why, "");
    assert_true(report.readable && report.writable);
    kiln_recipe *recipe = ks_recipe("a");
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_cache *cache = ks_machine(f->roots[0], url);
    for (int n = 0; n < 20; n++) {
        assert_int_equal(kiln_cache_remove(cache, &key, NULL), KILN_MISS);
    }
    kiln_cache_destroy(cache); /* all are sent */
    cache = ks_machine(f->roots[0], url);
    for (int n = 0; n < 20; n++) {
        kiln_status status = kiln_cache_remove(cache, &key, NULL);
        assert_true(status == KILN_OK || status == KILN_MISS);
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    assert_int_equal(ks_own(cache).remote_errors, 0);
    kiln_cache_destroy(cache);
    cache = ks_machine(f->roots[1], url);
    for (int n = 0; n < 20; n++) {
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_REMOTE);
    }
    kiln_cache_destroy(cache);
    kiln_recipe_destroy(recipe);
}

/* --- trouble ---------------------------------------------------------------------------------- */

KS_BOTH(a_server_killed_in_the_middle_harms_nobody)
{
    fixture *f = *state;
    ks_compile compile = {0};
    char name[16];
    kiln_cache *cache = ks_machine(f->roots[0], f->url);
    for (int n = 0; n < 30; n++) {
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        if (n == 10) {
            ks_kill(&f->server);
        }
    }
    assert_true(ks_own(cache).remote_errors + ks_own(cache).remote_upload_failures >= 1);
    kiln_cache_destroy(cache);
    assert_int_equal(compile.runs, 30);
}

KS_BOTH(a_stopped_server_costs_its_timeout_once)
{
    fixture *f = *state;
    ks_compile compile = {0};
    char name[16], url[256];
    (void)snprintf(url, sizeof url, "%.*s%s", (int)(strchr(f->url, '?') - f->url), f->url,
                   "?timeout=300ms&connect-timeout=300ms&upload-timeout=300ms&flush=300ms");
    assert_int_equal(kill(f->server.process, SIGSTOP), 0);
    kiln_cache *cache = ks_machine(f->roots[0], url);
    for (int n = 0; n < 30; n++) {
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    /* Not one for each: one, and those of a machine so slow that the server is tried again. */
    assert_true(ks_own(cache).remote_timeouts >= 1 && ks_own(cache).remote_timeouts < 15);
    kiln_cache_destroy(cache);
    assert_int_equal(compile.runs, 30);
}

KS_REDIS(a_full_server_costs_nothing)
{
    fixture *f = *state;
    char command[256], name[16];
    ks_compile compile = {0};
    (void)snprintf(command, sizeof command,
                   "redis-cli -p %d -a s3cr3t --no-auth-warning config set maxmemory 1 >/dev/null",
                   f->server.port);
    if (system(command) != 0) {
        kn_test_skip("redis", "redis-cli is not installed");
    }
    kiln_cache *cache = ks_machine(f->roots[0], f->url);
    for (int n = 0; n < 20; n++) {
        (void)snprintf(name, sizeof name, "%d", n);
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    kt_counters own = ks_own(cache);
    assert_int_equal(own.remote_uploads, 0);
    assert_true(own.remote_errors >= 1);
    kiln_cache_destroy(cache);
}

static const struct misdeed {
    const char *scheme;
    ks_manner manner;
    const char *text;
} misdeeds[] = {
    {"redis", KS_SILENT, NULL},
    {"redis", KS_CLOSES, NULL},
    {"redis", KS_SLOW, "$100000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
    {"redis", KS_GARBAGE, "HTTP/1.1 200 OK\r\n\r\n"},
    {"redis", KS_GARBAGE, "*2000000000\r\n"},
    {"redis", KS_GARBAGE, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"},
    {"redis", KS_GARBAGE, "$5\r\nhello\r\n"},
    {"redis", KS_GARBAGE, "$-5\r\n"},
    {"redis", KS_GARBAGE, ":1\r\n"},
    {"redis", KS_GARBAGE, "-ERR no\r\n"},
    {"redis", KS_CUTS, "$10\r\nhellohello\r\n"},
    {"redis", KS_FLOOD, "$2000000000\r\n"},
    {"http", KS_SILENT, NULL},
    {"http", KS_CLOSES, NULL},
    {"http", KS_SLOW, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nxxxxxxxxxxxxxxxxxxxxx"},
    {"http", KS_GARBAGE, "+PONG\r\n$5\r\nhello\r\n"},
    {"http", KS_GARBAGE, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
    {"http", KS_GARBAGE, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
    {"http", KS_CUTS, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"},
    {"http", KS_FLOOD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n"},
};

KT_TEST_WITH(setup_none, teardown, a_misbehaving_server_changes_nothing)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        ks_rogue rogue;
        char url[256], name[32];
        ks_compile compile = {0};
        ks_rogue_start(&rogue, misdeeds[i].manner, misdeeds[i].text);
        (void)snprintf(url, sizeof url,
                       "%s://127.0.0.1:%d?timeout=200ms&connect-timeout=200ms&upload-timeout=200ms&"
                       "flush=100ms&max-bytes=1M",
                       misdeeds[i].scheme, rogue.port);
        kiln_cache *cache = ks_machine(f->roots[0], url);
        for (int n = 0; n < 20; n++) {
            (void)snprintf(name, sizeof name, "%zu-%d", i, n);
            assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
        }
        kt_counters own = ks_own(cache);
        const uint64_t trouble = own.remote_errors + own.remote_timeouts + own.corrupt;
        assert_true(trouble >= 1 && trouble < 15); /* not paid each time */
        assert_int_equal(own.hits_remote, 0);
        kiln_cache_destroy(cache);
        ks_rogue_end(&rogue);
    }
}

KT_TEST_WITH(setup_none, teardown, a_wrong_url_is_told_and_a_missing_module_is_not_fatal)
{
    fixture *f = *state;
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    ks_compile compile = {0};
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = f->roots[0];
    options.remote = "redis://host?no-such-option";
    assert_int_equal(kiln_cache_create(&options, &cache, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "no-such-option"));
    kiln_diag_clear(&diag);
    cache = ks_machine(f->roots[0], "gopher://host");
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
