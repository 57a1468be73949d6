/* URLs of remotes: what they mean, what is refused, and that no secret is shown. */
#include "unit/store/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/remote/remote_url.h"
#include "support/suite.h"
#include "sys/guarded.h"

static kiln_status parse(const char *text, kn_remote_url *url, kiln_diag *diag)
{
    return kn_remote_url_parse(text, strlen(text), url, diag);
}

KT_TEST(a_whole_url_is_taken_apart)
{
    kn_remote_url url;
    assert_int_equal(
        parse(
            "redis://us%65r:p%40ss:w@[::1]:6380/3?read-only&timeout=1500ms&connect-"
            "timeout=2s&max-bytes=3M&prefix=a%20b:&ttl=2h&flush=0&budget=7s&lease=5s&layout=bazel&"
            "ca-file=/ca.pem&cert-file=/me.pem&key-file=/me.key",
            &url, NULL),
        KILN_OK);
    assert_string_equal(url.server.scheme, "redis");
    assert_string_equal(url.server.user, "user");
    assert_string_equal(url.server.password, "p@ss:w");
    assert_string_equal(url.server.host, "::1");
    assert_int_equal(url.server.port, 6380);
    assert_string_equal(url.server.path, "/3");
    assert_string_equal(url.server.prefix, "a b:");
    assert_string_equal(url.server.layout, "bazel");
    assert_string_equal(url.server.ca_file, "/ca.pem");
    assert_string_equal(url.server.cert_file, "/me.pem");
    assert_string_equal(url.server.key_file, "/me.key");
    assert_int_equal(url.server.connect_ms, 2000);
    assert_int_equal(url.server.ttl_ms, 2 * 3600 * 1000);
    assert_int_equal(url.server.max_bytes, 3 << 20);
    assert_int_equal(url.limit_ms, 1500);
    assert_int_equal(url.flush_ms, 0);
    assert_int_equal(url.budget_ms, 7000);
    assert_int_equal(url.lease_ms, 5000);
    assert_true(url.reads);
    assert_false(url.writes);
    assert_null(strstr(url.shown, "p@ss"));
    assert_null(strstr(url.shown, "user"));
    kn_remote_url_deinit(&url);
}

KT_TEST(without_options_the_defaults_hold)
{
    kn_remote_url url;
    assert_int_equal(parse("https://cache.example/a/b/", &url, NULL), KILN_OK);
    assert_string_equal(url.shown, "https://cache.example/a/b");
    assert_string_equal(url.server.path, "/a/b");
    assert_int_equal(url.server.port, 0);
    assert_int_equal(url.limit_ms, 250);
    assert_int_equal(url.budget_ms, 2000);
    assert_int_equal(url.server.connect_ms, 100);
    assert_true(url.reads && url.writes);
    assert_false(url.unsigned_native);
    kn_remote_url_deinit(&url);
}

KT_TEST(a_token_comes_from_a_file)
{
    char text[512];
    kn_remote_url url;
    char *path = kt_at(*state, "token");
    assert_int_equal(kn_guarded_make(path, "s3cr3t\nrest", 11, NULL), KILN_OK);
    (void)snprintf(text, sizeof text, "http://h/?token-file=%s", path);
    assert_int_equal(parse(text, &url, NULL), KILN_OK);
    assert_string_equal(url.server.token, "s3cr3t");
    kn_remote_url_deinit(&url);
    assert_int_equal(unlink(path), 0);
    /* A token is not a URL. */
    assert_int_equal(kn_guarded_make(path, "100%41 % and %4\nmore", 20, NULL), KILN_OK);
    assert_int_equal(parse(text, &url, NULL), KILN_OK);
    assert_string_equal(url.server.token, "100%41 % and %4");
    kn_remote_url_deinit(&url);
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(parse("http://h/?token-file=/nowhere/at/all", &url, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "readable file"));
    kiln_diag_clear(&diag);
}

#ifndef _WIN32 /* where files have no modes; tests/windows/remotes.py */
/* The group may read it: a password that root gives to the users of a service. */
KT_TEST(a_token_that_strangers_may_read_is_refused)
{
    static const mode_t refused[] = {0644, 0604, 0606, 0620, 0660, 0602};
    static const mode_t taken[] = {0600, 0400, 0640, 0440};
    char text[512];
    kn_remote_url url;
    char *path = kt_at(*state, "token");
    kt_file_write(path, "s3cr3t\n", 7);
    (void)snprintf(text, sizeof text, "http://h/?token-file=%s", path);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(chmod(path, refused[i]), 0);
        assert_int_equal(parse(text, &url, &diag), KILN_E_INVALID);
        assert_non_null(strstr(diag.what, path));
        assert_non_null(strstr(diag.why, "others may read"));
        assert_non_null(strstr(diag.fix, "chmod"));
        assert_null(strstr(diag.why, "s3cr3t"));
        kiln_diag_clear(&diag);
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_int_equal(chmod(path, taken[i]), 0);
        assert_int_equal(parse(text, &url, NULL), KILN_OK);
        assert_string_equal(url.server.token, "s3cr3t");
        kn_remote_url_deinit(&url);
    }
}
#endif

KT_TEST(what_is_wrong_is_refused_without_telling_secrets)
{
    static const char *const wrong[] = {
        "",
        "redis",
        "redis:/",
        "://host",
        "redis://",
        "redis://user:hunter2@",
        "redis://user:hunter2@host:0",
        "redis://user:hunter2@host:65536",
        "redis://user:hunter2@host:x",
        "redis://user:hunter2@[::1",
        "redis://user:hunter2@[::1]x",
        "redis://user:hunter2@host/%0a",
        "redis://user:hunter2@host/%4",
        "redis://user:hunter2%00@host/",
        "redis://host?no-such=hunter2",
        "redis://host?timeout=hunter2",
        "redis://host?timeout=0",
        "redis://host?timeout=99999999999999999999s",
        "redis://host?max-bytes=0",
        "redis://host?read-only=hunter2",
        "redis://host?read-only&write-only",
        "http://host?layout=hunter2",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        kn_remote_url url;
        char line[1536];
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(parse(wrong[i], &url, &diag), KILN_E_INVALID);
        assert_null(url.text);
        (void)kiln_diag_format(&diag, line, sizeof line);
        assert_null(strstr(line, "hunter2"));
        kiln_diag_clear(&diag);
    }
}

KT_TEST(a_list_is_separated_by_blanks)
{
    const char *list = "  a://b \t c://d\n", *text = NULL;
    size_t length = 0;
    assert_true(kn_remote_url_next(&list, &text, &length));
    assert_true(length == 5 && memcmp(text, "a://b", 5) == 0);
    assert_true(kn_remote_url_next(&list, &text, &length));
    assert_true(length == 5 && memcmp(text, "c://d", 5) == 0);
    assert_false(kn_remote_url_next(&list, &text, &length));
}

KT_MAIN(kt_tmpdir_setup, kt_tmpdir_teardown)
