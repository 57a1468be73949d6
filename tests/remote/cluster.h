/* Processes that stand for machines: each with a disk cache of its own, all of them asking for one
 * kernel at the same moment. Its compile is a sleep of half a second, so that few processors can
 * stand for many. */
#ifndef KILN_TESTS_REMOTE_CLUSTER_H
#define KILN_TESTS_REMOTE_CLUSTER_H

#include "remote/servers.h"

#include "support/counters.h"
#include "sys/clock.h"

enum { KC_MOST = 32 };
#define KC_MS UINT64_C(1000000)

typedef struct kc_outcome {
    int compiles, wrong, waits, slowest_ms;
} kc_outcome;

/* How a machine is set up: called in its process; fills in its URL (or returns false, for none). */
typedef bool kc_machine_fn(void *user, int number, char url[256]);

static inline kiln_status kc_compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    (void)user;
    kn_clock_sleep(500 * KC_MS);
    return kiln_blob_create("a", 1, "facts", 5, out_blob, diag);
}

/* One machine: 0, or what went wrong. */
static inline int kc_be_a_machine(const char *root, const char *url, int ready, int start,
                                  int result)
{
    char byte = 0;
    kiln_blob *blob = NULL;
    kiln_origin origin;
    kiln_cache *cache = ks_machine(root, url);
    kiln_recipe *recipe = ks_recipe("cluster");
    if (write(ready, &byte, 1) != 1 || read(start, &byte, 1) != 0) { /* until it is closed */
        return 1;
    }
    uint64_t begin = kn_clock_now();
    kiln_status status =
        kiln_cache_get_or_compile(cache, recipe, kc_compile, NULL, &blob, &origin, NULL);
    kc_outcome mine = {.slowest_ms = (int)((kn_clock_now() - begin) / KC_MS)};
    mine.wrong = status != KILN_OK || kiln_blob_size(blob) != 1;
    kt_counters own = ks_own(cache);
    mine.compiles = (int)own.compiles;
    mine.waits = (int)own.remote_waits;
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
    return write(result, &mine, sizeof mine) == sizeof mine ? 0 : 1;
}

typedef struct kc_pipes {
    int ready[2], start[2], results[2];
} kc_pipes;

static inline pid_t kc_start(const kc_pipes *pipes, const char *dir, const char *kind, int number,
                             kc_machine_fn *set_up, void *user)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char root[512], url[256] = "";
        (void)snprintf(root, sizeof root, "%s/%s-%d", dir, kind, number);
        (void)close(pipes->start[1]);
        bool shares = set_up != NULL && set_up(user, number, url);
        _exit(kc_be_a_machine(root, shares ? url : NULL, pipes->ready[1], pipes->start[0],
                              pipes->results[1]));
    }
    return child;
}

/* So many of them, from a cold start. */
static inline kc_outcome kc_run(const char *dir, const char *kind, int machines,
                                kc_machine_fn *set_up, void *user)
{
    kc_pipes pipes;
    pid_t children[KC_MOST];
    kc_outcome total = {0};
    char byte;
    assert_int_equal(pipe(pipes.ready), 0);
    assert_int_equal(pipe(pipes.start), 0);
    assert_int_equal(pipe(pipes.results), 0);
    for (int i = 0; i < machines; i++) {
        children[i] = kc_start(&pipes, dir, kind, i, set_up, user);
    }
    for (int i = 0; i < machines; i++) {
        assert_int_equal(read(pipes.ready[0], &byte, 1), 1);
    }
    (void)close(pipes.start[0]);
    (void)close(pipes.start[1]); /* go */
    for (int i = 0; i < machines; i++) {
        kc_outcome one;
        assert_int_equal(read(pipes.results[0], &one, sizeof one), sizeof one);
        total.compiles += one.compiles;
        total.wrong += one.wrong;
        total.waits += one.waits;
        total.slowest_ms = one.slowest_ms > total.slowest_ms ? one.slowest_ms : total.slowest_ms;
    }
    for (int i = 0; i < machines; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    (void)close(pipes.ready[0]);
    (void)close(pipes.ready[1]);
    (void)close(pipes.results[0]);
    (void)close(pipes.results[1]);
    return total;
}

#endif
