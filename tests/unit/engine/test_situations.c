/* The situations of situations.c for frontends without a compiler, in the shapes that kiln's have;
 * and those that only the job's own interface can bring about. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/engine/fake.h"
#include "unit/engine/situations.h"
#include "unit/store/support.h"

typedef struct world {
    char *root, *recording;
    kiln_cache *cache;
    kiln_recipe *recipe;
    kt_fake fake; /* of the act */
    const kn_frontend *frontend;
    kn_outcome outcome;
} world;

static void open_cache(world *w, uint32_t flags, bool records)
{
    kiln_cache_options options;
    kiln_cache_destroy(w->cache);
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = w->root;
    options.flags = flags;
    options.no_fsync = true;
    options.record = records ? w->recording : NULL;
    assert_int_equal(kiln_cache_create(&options, &w->cache, NULL), KILN_OK);
    w->fake.cache = w->cache;
}

static kt_fake new_fake(const world *w)
{
    return (kt_fake){.frontend = w->frontend, .cache = w->cache};
}

/* Another process has stored it. */
static void seed(world *w, uint32_t flags)
{
    kt_fake other = new_fake(w);
    assert_int_equal(kt_fake_run(&other, w->recipe), KN_OUTCOME_STORED);
    open_cache(w, flags, false);
}

static void run_job(world *w)
{
    w->outcome = kt_fake_run(&w->fake, w->recipe);
}

static bool is_stored(world *w)
{
    const kiln_key key = kiln_recipe_key(w->recipe);
    bool there = false;
    open_cache(w, 0, false);
    kiln_cache_contains(w->cache, &key, 1, &there);
    return there;
}

/* --- one process, one thread ------------------------------------------------------------------ */

static void act_unusable(world *w)
{
    w->fake.always = true;
    w->fake.loads = KN_LOAD_UNSOUND;
    run_job(w);
}

static void act_partial(world *w)
{
    w->fake.partial = true;
    w->fake.gives = KN_OUTCOME_FAILED;
    run_job(w);
    assert_true(w->fake.has);
}

static kn_outcome run_request(world *w, const kn_request *request)
{
    kn_job job;
    const kn_outcome outcome = kn_job_run(&job, w->frontend, request, &w->fake);
    kn_job_deinit(&job);
    return outcome;
}

static void act_only_cached(world *w)
{
    kn_request request = kt_request(w->cache, w->recipe);
    request.only_cached = true;
    w->outcome = run_request(w, &request);
    assert_int_equal(w->fake.compiles, 0);
    request.bypass = "it reads the clock";
    assert_int_equal(run_request(w, &request), KN_OUTCOME_REFUSED);
    assert_int_equal(w->fake.compiles, 0);
}

static kn_outcome glance(world *w, kiln_recipe *recipe)
{
    kn_request request = kt_request(w->cache, recipe);
    request.only_cached = true;
    request.glance = true;
    const kn_outcome outcome = run_request(w, &request);
    assert_int_equal(w->fake.compiles, 0);
    return outcome;
}

static void act_glance(world *w)
{
    kiln_recipe *other = ks_recipe("another");
    seed(w, 0);
    assert_int_equal(glance(w, other), KN_OUTCOME_REFUSED);
    w->outcome = glance(w, w->recipe);
    kiln_recipe_destroy(other);
}

static void act_glance_refused(world *w)
{
    seed(w, 0);
    w->fake.loads = KN_LOAD_REFUSED;
    w->outcome = glance(w, w->recipe);
}

/* --- jobs that stay open ---------------------------------------------------------------------- */

static kn_begun begin(world *w, kn_job *job, bool elsewhere)
{
    kn_request request = kt_request(w->cache, w->recipe);
    request.elsewhere = elsewhere;
    return kn_job_begin(job, w->frontend, &request, &w->fake);
}

static kn_outcome finish(world *w, kn_job *job)
{
    kn_output output = {.outcome = KN_OUTCOME_NONE};
    kt_fake_output(&w->fake, &output, &job->why);
    return kn_job_finish(job, &output);
}

static void act_abandoned(world *w)
{
    kn_job job;
    assert_int_equal(begin(w, &job, false), KN_COMPILE);
    kn_job_deinit(&job);
    run_job(w);
}

static void act_nothing(world *w)
{
    kn_job job;
    assert_int_equal(begin(w, &job, false), KN_COMPILE);
    assert_int_equal(kn_job_finish(&job, &(kn_output){.outcome = KN_OUTCOME_NONE}),
                     KN_OUTCOME_NONE);
    assert_int_equal(job.status, KILN_E_CANCELLED);
    kn_job_deinit(&job);
    run_job(w);
}

static pid_t fork_child(void)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    return pid;
}

static void await_child(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void act_fork_abandoned(world *w)
{
    kn_job job;
    assert_int_equal(begin(w, &job, true), KN_COMPILE);
    const pid_t pid = fork_child();
    if (pid == 0) { /* and does not wait for its parent */
        kt_fake own = new_fake(w);
        kn_job_deinit(&job);
        _exit(kt_fake_run(&own, w->recipe) == KN_OUTCOME_STORED ? 3 : 4);
    }
    await_child(pid);
    w->outcome = finish(w, &job);
    kn_job_deinit(&job);
}

typedef struct callback {
    world *w;
    kn_job *job;
    kn_outcome outcome;
} callback;

static void *call_back(void *user)
{
    callback *c = user;
    c->outcome = finish(c->w, c->job);
    return NULL;
}

static void act_callback(world *w)
{
    kn_job job;
    callback c = {.w = w, .job = &job};
    pthread_t thread;
    assert_int_equal(begin(w, &job, true), KN_COMPILE);
    assert_int_equal(pthread_create(&thread, NULL, call_back, &c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    w->outcome = c.outcome;
    kn_job_deinit(&job);
}

/* --- two threads ------------------------------------------------------------------------------ */

typedef struct follower {
    world *w;
    kt_fake fake;
    kn_outcome outcome;
} follower;

static void *follow(void *user)
{
    follower *f = user;
    f->outcome = kt_fake_run(&f->fake, f->w->recipe);
    return NULL;
}

/* The second thread begins while the first one has the ticket, and gets what it left. */
static follower lead(world *w)
{
    kn_job job;
    follower f = {.w = w, .fake = new_fake(w)};
    pthread_t thread;
    f.fake.leader = &w->fake;
    assert_int_equal(begin(w, &job, false), KN_COMPILE);
    assert_int_equal(pthread_create(&thread, NULL, follow, &f), 0);
    w->outcome = finish(w, &job);
    assert_int_equal(pthread_join(thread, NULL), 0);
    kn_job_deinit(&job);
    return f;
}

static void act_two_threads_private(world *w)
{
    w->fake.gives = KN_OUTCOME_PRIVATE;
    const follower f = lead(w);
    assert_int_equal(f.outcome, KN_OUTCOME_STORED);
}

static void act_two_threads_deferred(world *w)
{
    w->fake.gives = KN_OUTCOME_DEFERRED;
    const follower f = lead(w);
    assert_true(f.fake.has);
    assert_int_equal(f.fake.compiles + f.fake.adopted, 1);
    assert_int_equal(f.outcome, f.fake.adopted > 0 ? KN_OUTCOME_HIT : KN_OUTCOME_STORED);
}

/* --- the table -------------------------------------------------------------------------------- */

enum {
    ENTRY = 1, /* other processes find it afterwards */
    LOADS = 2, /* a result that is not loaded cannot be found to be of no use */
};

typedef struct row {
    const char *name;
    void (*act)(world *w);
    unsigned flags;
    kn_outcome outcome;
    const char *origin; /* in the last report */
    kt_counts expected;
} row;

#define ROW(name, act, flags, outcome, origin, ...)                                                \
    {                                                                                              \
        name, act, flags, KN_OUTCOME_##outcome, origin,                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
static const row rows[] = {
    ROW("of no use", act_unusable, LOADS, PRIVATE, "bypassed", MISS, .puts = 1, .bypassed = 1),
    ROW("partial results", act_partial, 0, FAILED, "failed", MISS, .failures = 1),
    ROW("only cached", act_only_cached, 0, REFUSED, "refused", .misses = 1),
    ROW("at a glance", act_glance, ENTRY, HIT, "disk", .hits = 0),
    ROW("at a glance, refused", act_glance_refused, 0, REFUSED, "refused", .rejected = 1),
    ROW("abandoned", act_abandoned, ENTRY, STORED, "compiled", .misses = 2, .compiles = 1,
        .puts = 1),
    ROW("nothing compiled", act_nothing, ENTRY, STORED, "compiled", .misses = 2, .compiles = 1,
        .puts = 1),
    ROW("child of an open job", act_fork_abandoned, ENTRY, STORED, "compiled", MISS, .puts = 1),
    ROW("callback on a thread", act_callback, ENTRY, STORED, "compiled", MISS, .puts = 1),
    ROW("two threads, private", act_two_threads_private, ENTRY, PRIVATE, "bypassed", TWICE,
        .bypassed = 1, .puts = 1),
    ROW("two threads, deferred", act_two_threads_deferred, ENTRY, DEFERRED, "compiled", TWICE,
        .puts = 1),
};

/* Who adopts what another thread deferred does not compile it. */
static bool adopts(const row *r, const kn_frontend *frontend)
{
    return r->act == act_two_threads_deferred && frontend->adopt != NULL;
}

static void check_row(const row *r, const kn_frontend *frontend)
{
    world w = {.root = kt_tmpdir_create(), .frontend = frontend, .recipe = ks_recipe("a")};
    w.recording = kt_path(w.root, "recording");
    open_cache(&w, 0, false);
    w.fake = new_fake(&w);
    r->act(&w);
    kt_check_counts(r->name, kt_count(w.cache),
                    adopts(r, frontend) ? (kt_counts){MISS} : r->expected);
    assert_int_equal(w.outcome, r->outcome);
    assert_string_equal(w.fake.origin, r->origin);
    const bool stands = w.outcome == KN_OUTCOME_HIT || w.outcome == KN_OUTCOME_STORED ||
                        w.outcome == KN_OUTCOME_DEFERRED;
    assert_int_equal(w.fake.kept, stands);
    assert_true(!stands || w.fake.has);
    assert_int_equal(is_stored(&w), (r->flags & ENTRY) != 0 && !adopts(r, frontend));
    kiln_cache_destroy(w.cache);
    kiln_recipe_destroy(w.recipe);
    kt_tmpdir_remove(w.root);
    free(w.recording);
}

/* --- the shared table ------------------------------------------------------------------------- */

static const kn_frontend *shape;
static kiln_cache *cache_now;
static kt_fake plan; /* of the next compile */
static bool plan_bypasses;
static void (*pending)(void);
static atomic_uint compiled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_origin[16];

static void begin_fake(const char *dir)
{
    (void)dir;
    plan = (kt_fake){0};
    plan_bypasses = false;
    pending = NULL;
}

static void end_fake(void)
{
}

static void use_fake(kiln_cache *cache)
{
    cache_now = cache;
}

static void run_pending(kt_fake *fake)
{
    void (*call)(void) = pending;
    (void)fake;
    pending = NULL;
    if (call != NULL) {
        call();
    }
}

static kt_fake take_plan(bool *out_bypasses)
{
    assert_int_equal(pthread_mutex_lock(&lock), 0);
    kt_fake fake = plan;
    *out_bypasses = plan_bypasses;
    plan = (kt_fake){0};
    plan_bypasses = false;
    assert_int_equal(pthread_mutex_unlock(&lock), 0);
    fake.frontend = shape;
    fake.cache = cache_now;
    fake.during = run_pending;
    return fake;
}

static void compile_with_fake(bool other)
{
    bool bypasses = false;
    kt_fake fake = take_plan(&bypasses);
    kiln_recipe *recipe = ks_recipe(other ? "another" : "a");
    kn_outcome outcome;
    if (bypasses) {
        world w = {.frontend = shape};
        kn_request request = kt_request(cache_now, NULL);
        request.bypass = "it reads the clock";
        w.fake = fake;
        outcome = run_request(&w, &request);
        fake = w.fake;
    } else {
        outcome = kt_fake_run(&fake, recipe);
    }
    kiln_recipe_destroy(recipe);
    const bool stands =
        outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED || outcome == KN_OUTCOME_DEFERRED;
    assert_int_equal(fake.kept, stands);
    assert_true(!stands || fake.has);
    assert_false(outcome == KN_OUTCOME_FAILED && fake.has);
    assert_int_equal(fake.defers, outcome == KN_OUTCOME_DEFERRED && shape->defer != NULL);
    assert_int_equal(pthread_mutex_lock(&lock), 0);
    memcpy(last_origin, fake.origin, sizeof(last_origin));
    assert_int_equal(pthread_mutex_unlock(&lock), 0);
    compiled += fake.compiles;
}

static unsigned count_compiled(void)
{
    return compiled;
}

static void call_pending(void (*call)(void))
{
    pending = call;
}

static const char *find_last_origin(void)
{
    return last_origin;
}

static void refuse_load(void)
{
    plan.loads = KN_LOAD_REFUSED;
}

static void fail_load(void)
{
    plan.loads = KN_LOAD_FAILED;
}

static void find_unsound(void)
{
    plan.loads = KN_LOAD_UNSOUND;
}

static void change_header(void)
{
    plan.change = KN_CHANGED_HEADER;
}

static void change_compiler(void)
{
    plan.change = KN_CHANGED_COMPILER;
}

static void give_private(void)
{
    plan.gives = KN_OUTCOME_PRIVATE;
}

static void give_failure(void)
{
    plan.gives = KN_OUTCOME_FAILED;
}

static void give_later(void)
{
    plan.gives = KN_OUTCOME_DEFERRED;
}

static void give_bypass(void)
{
    plan_bypasses = true;
}

static void check_frontend(const kn_frontend *frontend)
{
    kt_frontend fake = {.name = "a fake",
                        .target = "test-target",
                        .begin = begin_fake,
                        .end = end_fake,
                        .use = use_fake,
                        .compile = compile_with_fake,
                        .compiles = count_compiled,
                        .during = call_pending,
                        .origin = find_last_origin,
                        .events = {[KT_REFUSES] = refuse_load,
                                   [KT_LOAD_FAILS] = fail_load,
                                   [KT_HEADER] = change_header,
                                   [KT_COMPILER] = change_compiler,
                                   [KT_PRIVATE] = give_private,
                                   [KT_FAILS] = give_failure,
                                   [KT_BYPASSES] = give_bypass,
                                   [KT_DEFERS] = give_later,
                                   [KT_UNSOUND] = find_unsound}};
    if (!frontend->driver_loads) {
        fake.impossible[KT_QUARANTINED] = "no driver loads it";
    }
    shape = frontend;
    kt_check_situations(&fake);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((rows[i].flags & LOADS) == 0 || frontend->loads_output) {
            check_row(&rows[i], frontend);
        }
    }
}

static void a_shim_passes_every_situation(void **state)
{
    (void)state;
    check_frontend(&kt_shim);
}

static void a_driver_passes_every_situation(void **state)
{
    (void)state;
    check_frontend(&kt_driver);
}

static void a_stage_passes_every_situation(void **state)
{
    (void)state;
    check_frontend(&kt_stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shim_passes_every_situation),
        cmocka_unit_test(a_driver_passes_every_situation),
        cmocka_unit_test(a_stage_passes_every_situation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
