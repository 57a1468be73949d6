/* Who holds a lease of a real Redis and is killed: his own host goes on at once, others when the
 * lease has run out; and nobody takes it from who lives. */
#include "remote/servers.h"

#include "support/suite.h"
#include "sys/clock.h"

#define MS UINT64_C(1000000)

typedef struct place {
    ks_server server;
    char url[256];
    char *dir, *one, *two;
} place;

static void open_place(place *p, const char *lease)
{
    memset(p, 0, sizeof *p);
    p->dir = kt_tmpdir_create();
    p->one = kt_path(p->dir, "one");
    p->two = kt_path(p->dir, "two");
    ks_redis(&p->server);
    (void)snprintf(
        p->url, sizeof p->url,
        "redis://:s3cr3t@127.0.0.1:%d?timeout=20s&connect-timeout=20s&flush=20s&lease=%s",
        p->server.port, lease);
}

static void close_place(place *p)
{
    ks_end(&p->server);
    free(p->one);
    free(p->two);
    kt_tmpdir_remove(p->dir);
}

/* A compile that says when it has begun, and ends when the pipe does; or is killed in it. */
typedef struct slow {
    int begun, until;
} slow;

static kiln_status compile_slowly(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const slow *s = user;
    char byte = 0;
    (void)!write(s->begun, &byte, 1);
    (void)!read(s->until, &byte, 1);
    return kiln_blob_create("a", 1, "facts", 5, out_blob, diag);
}

typedef struct holder {
    pid_t process;
    int end;
} holder;

static holder start_holder(const char *root, const char *url)
{
    int begun[2], until[2];
    char byte;
    assert_int_equal(pipe(begun), 0);
    assert_int_equal(pipe(until), 0);
    const holder h = {fork(), until[1]};
    assert_true(h.process >= 0);
    if (h.process == 0) {
        slow s = {begun[1], until[0]};
        (void)close(until[1]);
        kiln_cache *cache = ks_machine(root, url);
        kiln_recipe *recipe = ks_recipe("a");
        kiln_blob *blob = NULL;
        const kiln_status status =
            kiln_cache_get_or_compile(cache, recipe, compile_slowly, &s, &blob, NULL, NULL);
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
        kiln_cache_destroy(cache);
        _exit(status == KILN_OK ? 0 : 1);
    }
    assert_int_equal(close(begun[1]), 0);
    assert_int_equal(close(until[0]), 0);
    assert_int_equal(read(begun[0], &byte, 1), 1);
    assert_int_equal(close(begun[0]), 0);
    return h;
}

static int end_of(const holder *h)
{
    int status = 0;
    assert_int_equal(waitpid(h->process, &status, 0), h->process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void kill_holder(const holder *h)
{
    assert_int_equal(kill(h->process, SIGKILL), 0);
    assert_int_equal(end_of(h), -SIGKILL);
    assert_int_equal(close(h->end), 0);
}

/* The lease would hold for a minute. Nobody of this host waits for it, however often it happens. */
KT_TEST(C6_a_killed_holder_does_not_delay_its_own_host)
{
    place p;
    ks_compile compile = {0};
    open_place(&p, "60s");
    for (int i = 0; i < 3; i++) {
        const holder h = start_holder(p.one, p.url);
        kill_holder(&h);
    }
    const uint64_t start = kn_clock_now();
    kiln_cache *cache = ks_machine(p.one, p.url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    print_message("the host of a killed holder waited for %.0f ms\n",
                  (double)(kn_clock_now() - start) / 1e6);
    const kt_counters own = ks_own(cache);
    assert_int_equal(own.remote_waits, 0);
    assert_int_equal(own.wait_timeouts, 0);
    kiln_cache_destroy(cache);
    /* What it compiled is for all, and the lease is given back. */
    kiln_cache *other = ks_machine(p.two, p.url);
    assert_int_equal(ks_get(other, "a", &compile), KILN_ORIGIN_REMOTE);
    assert_int_equal(ks_own(other).remote_waits, 0);
    kiln_cache_destroy(other);
    assert_int_equal(compile.runs, 1);
    close_place(&p);
}

KT_TEST(C6_a_killed_holder_delays_other_hosts_until_the_lease_ends)
{
    place p;
    ks_compile compile = {0};
    open_place(&p, "1s");
    const holder h = start_holder(p.one, p.url);
    kill_holder(&h);
    kiln_cache *cache = ks_machine(p.two, p.url);
    assert_int_equal(ks_get(cache, "a", &compile), KILN_ORIGIN_COMPILED);
    assert_true(ks_own(cache).remote_waits <= 1); /* until it had run out, if it had not yet */
    kiln_cache_destroy(cache);
    close_place(&p);
}

/* A process of the same host waits for the host's lock, one of another for the lease; both get what
 * the holder makes. */
KT_TEST(C6_a_living_holder_keeps_its_lease)
{
    place p;
    ks_compile compile = {0};
    int status = 0;
    pid_t waiters[2];
    open_place(&p, "60s");
    const holder h = start_holder(p.one, p.url);
    for (int i = 0; i < 2; i++) {
        waiters[i] = fork();
        assert_true(waiters[i] >= 0);
        if (waiters[i] == 0) {
            (void)close(h.end);
            kiln_cache *cache = ks_machine(i == 0 ? p.one : p.two, p.url);
            const kiln_origin origin = ks_get(cache, "a", &compile);
            kiln_cache_destroy(cache);
            _exit(compile.runs == 0 && origin == (i == 0 ? KILN_ORIGIN_DISK : KILN_ORIGIN_REMOTE)
                      ? 0
                      : 1);
        }
    }
    kn_clock_sleep(500 * MS);
    assert_int_equal(waitpid(waiters[0], &status, WNOHANG), 0);
    assert_int_equal(waitpid(waiters[1], &status, WNOHANG), 0);
    assert_int_equal(close(h.end), 0);
    assert_int_equal(end_of(&h), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(waiters[i], &status, 0), waiters[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    close_place(&p);
}

KT_MAIN(NULL, NULL)
