/* Trouble in the middle of traffic with real servers: the bytes are always right, what goes wrong
 * is counted, and when a server is well again it is used again. */
#include "remote/turncoat.h"

#include <sys/mount.h>

#include "kiln/unstable/remote.h"
#include "support/counters.h"

#define HASTY "timeout=300ms&connect-timeout=300ms&upload-timeout=300ms&flush=300ms"
enum { ENTRIES = 30 };

typedef struct fixture {
    ks_server server;
    char *dir, *roots[8];
    bool redis;
} fixture;

static int make(void **state, bool redis)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->redis = redis;
    f->dir = ks_roots_create(f->roots, 8);
    if (redis) {
        ks_redis(&f->server);
    } else {
        ks_nginx(&f->server);
    }
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
    ks_end(&f->server);
    ks_roots_remove(f->dir, f->roots, 8);
    free(f);
    return 0;
}

static kiln_cache *machine(const fixture *f, int number, int port, const char *options)
{
    char url[512];
    (void)snprintf(url, sizeof url,
                   f->redis ? "redis://:s3cr3t@127.0.0.1:%d?%s" : "http://127.0.0.1:%d/kiln?%s",
                   port, options);
    return ks_machine(f->roots[number], url);
}

static const char *name_of(int number)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "%d %050d", number, number);
    return name;
}

/* Entries 0 to `count`, whose bytes ks_get checks; returns how many of them were compiled. */
static int ask(kiln_cache *cache, int count)
{
    ks_compile compile = {0};
    for (int i = 0; i < count; i++) {
        (void)ks_get(cache, name_of(i), &compile);
    }
    return compile.runs;
}

static void fill(const fixture *f)
{
    kiln_cache *cache = machine(f, 0, f->server.port, KS_PATIENT);
    assert_int_equal(ask(cache, ENTRIES), ENTRIES);
    kiln_cache_destroy(cache);
}

KS_BOTH(a_server_that_turns_bad_harms_nobody)
{
    /* Where nothing is said any more, only a timeout shows it: that may run out earlier, too. */
    static const struct {
        kt_turn turn;
        bool by_time;
    } turns[] = {
        {KT_GARBAGE, false}, {KT_CUT, false}, {KT_SILENCE, true}, {KT_SLOW, true}, {KT_FLIP, true}};
    fixture *f = *state;
    fill(f);
    for (int i = 0; i < 5; i++) {
        kt_turncoat turncoat;
        kt_turncoat_start(&turncoat, turns[i].turn, f->server.port, 10);
        kiln_cache *cache = machine(f, 1 + i, turncoat.port, turns[i].by_time ? HASTY : KS_PATIENT);
        (void)ask(cache, ENTRIES); /* which looks at every byte */
        kt_counters own = ks_own(cache);
        kiln_cache_destroy(cache);
        assert_true(turns[i].by_time || atomic_load(&turncoat.turned) > 0);
        kt_turncoat_end(&turncoat);
        assert_true(own.remote_errors + own.remote_timeouts + own.corrupt >= 1);
        assert_int_equal(own.compiles + own.hits_remote, ENTRIES);
    }
}

/* One for the lookups and one for the uploads, however many there are. */
KS_BOTH(connections_are_kept)
{
    fixture *f = *state;
    kt_turncoat honest;
    kt_turncoat_start(&honest, KT_CUT, f->server.port, 1 << 30);
    kiln_cache *cache = machine(f, 1, honest.port, KS_PATIENT);
    assert_int_equal(ask(cache, ENTRIES), ENTRIES);
    kt_counters own = ks_own(cache);
    kiln_cache_destroy(cache);
    assert_int_equal(own.remote_errors + own.remote_timeouts, 0);
    assert_true(atomic_load(&honest.accepted) <= 2);
    kt_turncoat_end(&honest);
}

KS_BOTH(a_server_stopped_and_continued_is_used_again)
{
    fixture *f = *state;
    fill(f);
    kiln_cache *cache = machine(f, 1, f->server.port, HASTY);
    (void)ask(cache, 5);
    assert_int_equal(kill(f->server.process, SIGSTOP), 0);
    (void)ask(cache, 10);
    assert_true(ks_own(cache).remote_timeouts >= 1);
    assert_int_equal(kill(f->server.process, SIGCONT), 0);
    /* Sooner or later its thread finds out. */
    kiln_recipe *recipe = ks_recipe(name_of(ENTRIES - 1));
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = NULL;
    while (kiln_cache_get(cache, &key, &blob, NULL, NULL) != KILN_OK) {
        (void)usleep(20000);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* nginx's files on a file system of 64 KB. */
KS_NGINX(a_full_disk_at_the_server_costs_nothing)
{
    fixture *f = *state;
    char *files = kt_at(f->server.dir, "files");
    if (mount("kiln-test", files, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755") != 0) {
        kn_test_skip("mount", "no tmpfs can be mounted here (no root)");
    }
    kiln_cache *cache = machine(f, 0, f->server.port, KS_PATIENT);
    static char name[8000];
    ks_compile compile = {0};
    uint32_t seed = 1;
    for (int i = 0; i < ENTRIES; i++) {
        for (size_t at = 0; at < sizeof name - 1; at++) { /* that nothing packs */
            seed = seed * 1664525u + 1013904223u;
            name[at] = (char)('!' + (seed >> 24) % 90);
        }
        assert_int_equal(ks_get(cache, name, &compile), KILN_ORIGIN_COMPILED);
    }
    kiln_cache_destroy(cache);
    cache = ks_machine(f->roots[0], NULL);
    kt_counters total;
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_true(total.remote_uploads >= 1 && total.remote_upload_failures >= 1);
    kiln_cache_destroy(cache);
    /* What is there is whole. */
    seed = 1;
    cache = machine(f, 1, f->server.port, KS_PATIENT "&read-only");
    for (int i = 0; i < ENTRIES; i++) {
        for (size_t at = 0; at < sizeof name - 1; at++) {
            seed = seed * 1664525u + 1013904223u;
            name[at] = (char)('!' + (seed >> 24) % 90);
        }
        (void)ks_get(cache, name, &compile);
    }
    assert_true(ks_own(cache).hits_remote >= 1);
    assert_int_equal(ks_own(cache).corrupt, 0);
    kiln_cache_destroy(cache);
    ks_kill(&f->server);
    (void)umount2(files, MNT_DETACH);
}

KT_MAIN(NULL, NULL)
