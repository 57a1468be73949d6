/* Many processes on one cache: what the stress tests share. */
#ifndef KILN_TESTS_STRESS_CROWD_H
#define KILN_TESTS_STRESS_CROWD_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"
#include "support/counters.h"
#include "support/tmpdir.h"

/* Memory that all processes of a test see. */
typedef struct crowd {
    _Atomic int ready;    /* at the start line */
    _Atomic int go;       /* start */
    _Atomic int compiles; /* begun */
    _Atomic int compiled; /* finished */
    _Atomic int wrong;    /* bytes that were not right */
    _Atomic int failed;   /* calls that did not succeed */
    _Atomic int done;     /* units of work */
    _Atomic int stop;
    _Atomic int hold;       /* stand still */
    _Atomic int held;       /* who does */
    _Atomic int longest_ms; /* of one request */
    _Atomic int together;   /* compiles of one key at a time, beyond the first */
    _Atomic int busy[1024]; /* compiles under way, by key */
    const char *root;
    uint32_t wait_ms;
    uint64_t max_bytes, memory_bytes;
    int compile_ms;
    bool fail; /* compiles fail */
} crowd;

static inline crowd *crowd_create(const char *root)
{
    crowd *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(c, MAP_FAILED);
    c->root = root;
    return c;
}

static inline void crowd_destroy(crowd *c)
{
    (void)munmap(c, sizeof *c);
}

static inline void crowd_pause(int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&time, NULL);
}

/* The bytes that belong to a key: its number over and over, in a length of its own. */
static inline size_t crowd_bytes(int n, char *bytes, size_t room)
{
    size_t size = 200 + (size_t)(n * 977 % 6000);
    size = size < room ? size : room;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(n * 31 + (int)i % 251);
    }
    return size;
}

typedef struct crowd_job {
    crowd *c;
    int n;
} crowd_job;

static inline kiln_status crowd_compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const crowd_job *job = user;
    char bytes[8192];
    size_t size = crowd_bytes(job->n, bytes, sizeof bytes);
    _Atomic int *busy = &job->c->busy[(unsigned)job->n % 1024];
    const int takes_ms = job->c->compile_ms; /* a test may change it once it sees this compile */
    atomic_fetch_add(&job->c->compiles, 1);
    if (atomic_fetch_add(busy, 1) > 0) {
        atomic_fetch_add(&job->c->together, 1);
    }
    if (takes_ms > 0) {
        crowd_pause(takes_ms);
    }
    atomic_fetch_sub(busy, 1);
    atomic_fetch_add(&job->c->compiled, 1);
    if (job->c->fail) {
        return kiln_diag_set(diag, KILN_E_COMPILE, NULL, "compiling", "on purpose");
    }
    return kiln_blob_create(bytes, size, &job->n, sizeof job->n, out_blob, diag);
}

static inline kiln_recipe *crowd_recipe(int n)
{
    kiln_recipe *recipe = NULL;
    if (kiln_recipe_create("crowd", 1, &recipe, NULL) != KILN_OK) {
        abort();
    }
    kiln_recipe_add_u64(recipe, "n", (uint64_t)n);
    return recipe;
}

/* One request for key `n`: any failure and any wrong byte is counted. */
static inline kiln_origin crowd_get(crowd *c, kiln_cache *cache, int n)
{
    crowd_job job = {.c = c, .n = n};
    char bytes[8192];
    size_t size = crowd_bytes(n, bytes, sizeof bytes);
    kiln_recipe *recipe = crowd_recipe(n);
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    if (kiln_cache_get_or_compile(cache, recipe, crowd_compile, &job, &blob, &origin, NULL) !=
        KILN_OK) {
        atomic_fetch_add(&c->failed, 1);
    } else {
        bool right = kiln_blob_size(blob) == size &&
                     memcmp(kiln_blob_data(blob), bytes, size) == 0 &&
                     kiln_blob_facts_size(blob) == sizeof n &&
                     memcmp(kiln_blob_facts(blob), &n, sizeof n) == 0;
        atomic_fetch_add(&c->wrong, right ? 0 : 1);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return origin;
}

static inline kiln_cache *crowd_cache(const crowd *c, uint32_t flags)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        abort();
    }
    options.root = c->root;
    options.flags = flags;
    options.no_fsync = true;
    options.wait_ms = c->wait_ms != 0 ? c->wait_ms : options.wait_ms;
    options.memory_max_bytes = c->memory_bytes;
    options.disk_max_bytes = c->max_bytes != 0 ? c->max_bytes : options.disk_max_bytes;
    if (kiln_cache_create(&options, &cache, NULL) != KILN_OK) {
        abort();
    }
    return cache;
}

/* A number from the environment, for runs that are longer than CI's. */
static inline int crowd_setting(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? (int)strtol(value, NULL, 10) : otherwise;
}

/* What the entries on disk weigh. */
static inline kiln_status crowd_weigh(void *user, const kiln_entry_info *info)
{
    *(uint64_t *)user += (info->stored_size + 4095) / 4096 * 4096;
    return KILN_OK;
}

/* Starts a process that waits at the start line and then runs `work`; a test must be
 * single-threaded here. */
static inline pid_t crowd_start(crowd *c, void (*work)(crowd *c, int who), int who)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        atomic_fetch_add(&c->ready, 1);
        while (atomic_load(&c->go) == 0) {
            crowd_pause(1);
        }
        work(c, who);
        _exit(0);
    }
    return pid;
}

static inline void crowd_go(crowd *c, int count)
{
    while (atomic_load(&c->ready) < count) {
        crowd_pause(1);
    }
    atomic_store(&c->go, 1);
}

static inline void crowd_join(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static inline void crowd_run(crowd *c, void (*work)(crowd *c, int who), int count)
{
    pid_t pids[256];
    assert_true(count <= 256);
    for (int i = 0; i < count; i++) {
        pids[i] = crowd_start(c, work, i);
    }
    crowd_go(c, count);
    crowd_join(pids, count);
}

/* What all processes together say of the store, and that every entry in it is whole. */
static inline kt_counters crowd_total(const crowd *c)
{
    kt_counters total;
    kiln_verify_result verified = {.struct_size = sizeof(verified)};
    kiln_cache *cache = crowd_cache(c, 0);
    assert_int_equal(kt_counters_total(cache, &total, NULL), KILN_OK);
    assert_int_equal(kiln_cache_verify(cache, false, &verified, NULL), KILN_OK);
    assert_int_equal(verified.entries_bad, 0);
    kiln_cache_destroy(cache);
    return total;
}

#endif
