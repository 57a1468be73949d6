/* Claims, between processes: each peer is one, with a cache object of its own, and takes its orders
 * from a pipe. The tests compare the answers, and whether a peer waited, never how long. */
#include "unit/store/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/claim.h>

#include "store/cache/cache.h"
#include "support/failalloc.h"
#include "sys/clock.h"
#include "sys/thread.h"

/* What a peer says of a claim or a compile. */
enum {
    FOUND = 'f',
    CLAIMED = 'c',
    COMPILED = 'm',
    CANCELLED = 'x',
    WAITS = 'w', /* said at the first question of a wait, before what comes of it */
    DONE = '.',
    WRONG = '!',
};

typedef struct worker {
    const char *root;
    kiln_cache *cache;
    kiln_claim *claims[2]; /* of keys A and B */
    uint32_t wait_ms;
    int out;
    bool waits, cuts; /* whether that was said; whether waiting is to end */
} worker;

static void say(const worker *w, char what)
{
    if (write(w->out, &what, 1) != 1) {
        _exit(3);
    }
}

static bool ask(void *user)
{
    worker *w = user;
    if (!w->waits) {
        w->waits = true;
        say(w, WAITS);
    }
    return w->cuts;
}

static kiln_recipe *recipe_of(char key)
{
    const char name[2] = {key, 0};
    return ks_recipe(name);
}

static char claim_key(worker *w, char key)
{
    const kiln_claim_options options = {
        .struct_size = sizeof options, .wait_ms = w->wait_ms, .interrupted = ask, .user = w};
    kiln_recipe *recipe = recipe_of(key);
    kiln_blob *blob = NULL;
    kiln_claim *claim = NULL;
    w->waits = false;
    const kiln_status status =
        kiln_cache_claim(w->cache, recipe, &options, &blob, &claim, NULL, NULL);
    kiln_recipe_destroy(recipe);
    char said = WRONG;
    if (status == KILN_OK && claim == NULL && blob != NULL && kiln_blob_size(blob) == 1 &&
        *(const char *)kiln_blob_data(blob) == key) {
        said = FOUND;
    } else if (status == KILN_MISS && claim != NULL && blob == NULL) {
        said = CLAIMED;
    } else if (status == KILN_E_CANCELLED && claim == NULL && blob == NULL) {
        said = CANCELLED;
    }
    kiln_blob_release(blob);
    w->claims[key - 'A'] = claim;
    return said;
}

static char fulfil_key(worker *w, char key)
{
    const char name[2] = {key, 0};
    kiln_blob *blob = ks_blob(name);
    const kiln_status status = kiln_claim_fulfil(w->claims[key - 'A'], blob, NULL);
    kiln_blob_release(blob);
    w->claims[key - 'A'] = NULL;
    return status == KILN_OK ? DONE : WRONG;
}

static char fulfil_with_nothing(worker *w, char key)
{
    kiln_blob *empty = ks_blob("");
    const kiln_status status = kiln_claim_fulfil(w->claims[key - 'A'], empty, NULL);
    kiln_blob_release(empty);
    w->claims[key - 'A'] = NULL;
    return status == KILN_E_INVALID ? DONE : WRONG;
}

static char abandon_key(worker *w, char key)
{
    kiln_claim_abandon(w->claims[key - 'A']);
    w->claims[key - 'A'] = NULL;
    return DONE;
}

typedef struct maker {
    worker *w;
    char key;
    bool compiled;
    char said;
} maker;

static kiln_status make(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    maker *m = user;
    m->compiled = true;
    return kiln_blob_create(&m->key, 1, "", 0, out_blob, diag);
}

static bool ask_maker(void *user)
{
    maker *m = user;
    return !m->compiled && m->w->cuts; /* it is asked before the compile as well */
}

static char compile_key(worker *w, char key)
{
    maker m = {.w = w, .key = key};
    kiln_recipe *recipe = recipe_of(key);
    kiln_blob *blob = NULL;
    const kiln_status status = kiln_cache_get_or_compile_interruptible(
        w->cache, recipe, make, ask_maker, &m, &blob, NULL, NULL);
    kiln_recipe_destroy(recipe);
    kiln_blob_release(blob);
    return status != KILN_OK ? WRONG : m.compiled ? COMPILED : FOUND;
}

/* --- from elsewhere --------------------------------------------------------------------------- */

static void claim_in_thread(void *user)
{
    maker *m = user;
    m->said = claim_key(m->w, m->key);
    if (m->said == CLAIMED) {
        abandon_key(m->w, m->key);
        m->said = compile_key(m->w, m->key) == COMPILED ? CLAIMED : WRONG;
    }
}

/* Another thread of this process; what it claims besides is not this thread's. */
static char ask_thread(worker *w, char key)
{
    worker other = *w;
    maker m = {.w = &other, .key = key};
    kn_thread *thread = NULL;
    if (kn_thread_start(claim_in_thread, &m, &thread, NULL) != KILN_OK) {
        return WRONG;
    }
    kn_thread_join(thread);
    return m.said;
}

/* The program of a process that descends from one with a claim. */
static int run_descendant(const char *root, char key, int out)
{
    worker w = {.root = root, .cache = ks_cache(root), .out = out};
    say(&w, claim_key(&w, key));
    kiln_claim_abandon(w.claims[key - 'A']);
    kiln_cache_destroy(w.cache);
    return 0;
}

static bool await_end(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A fork; one that becomes a program; and one that this starts through a shell. */
static char ask_child(worker *w, char key, char how)
{
    const char name[2] = {key, 0};
    char number[16], line[256];
    const pid_t child = fork();
    if (child == 0) {
        (void)snprintf(number, sizeof number, "%d", w->out);
        (void)snprintf(line, sizeof line, "\"$0\" %s %s %s; true", w->root, name, number);
        if (how == 'k') {
            _exit(run_descendant(w->root, key, w->out));
        } else if (how == 'e') {
            (void)execl("/proc/self/exe", "claim", w->root, name, number, (char *)NULL);
        } else {
            char self[256];
            const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
            self[length > 0 ? length : 0] = '\0';
            (void)execl("/bin/sh", "sh", "-c", line, self, (char *)NULL);
        }
        _exit(4);
    }
    return child > 0 && await_end(child) ? DONE : WRONG;
}

/* A fork with the claims of this process in its hands. */
static char end_in_child(worker *w, char key, bool fulfils)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit((fulfils ? fulfil_key(w, key) : abandon_key(w, key)) == DONE ? 0 : 5);
    }
    return child > 0 && await_end(child) ? DONE : WRONG;
}

/* --- peers ------------------------------------------------------------------------------------ */

static char obey(worker *w, char what, char key)
{
    switch (what) {
    case 'c':
        return claim_key(w, key);
    case 'f':
        return fulfil_key(w, key);
    case 'z':
        return fulfil_with_nothing(w, key);
    case 'a':
        return abandon_key(w, key);
    case 'g':
        return compile_key(w, key);
    case 't':
        return ask_thread(w, key);
    case 'k':
    case 'e':
    case 's':
        return ask_child(w, key, what);
    case 'F':
        return end_in_child(w, key, true);
    case 'A':
        return end_in_child(w, key, false);
    case 'x':
        w->cuts = true;
        return DONE;
    case 'l':
        w->wait_ms = 500;
        return DONE;
    default:
        return WRONG;
    }
}

typedef struct peer {
    pid_t pid;
    int in, out;
} peer;

static peer start_peer(const char *root, uint32_t flags, uint64_t min_free)
{
    int down[2], up[2];
    assert_int_equal(pipe(down), 0);
    assert_int_equal(pipe(up), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char order[2];
        kiln_cache_options options;
        worker w = {.root = root, .out = up[1]};
        (void)alarm(120); /* what waits for ever fails */
        (void)close(down[1]);
        (void)close(up[0]);
        if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
            _exit(2);
        }
        options.root = root;
        options.flags = flags;
        options.disk_min_free = min_free;
        if (kiln_cache_create(&options, &w.cache, NULL) != KILN_OK) {
            _exit(2);
        }
        /* Peers that start later have the pipe's other end, too. */
        while (read(down[0], order, 2) == 2 && order[0] != 'q') {
            say(&w, obey(&w, order[0], order[1]));
        }
        kiln_claim_abandon(w.claims[0]);
        kiln_claim_abandon(w.claims[1]);
        kiln_cache_destroy(w.cache);
        _exit(0);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    return (peer){pid, down[1], up[0]};
}

static peer start(const char *root)
{
    return start_peer(root, 0, 0);
}

static void tell(const peer *p, const char order[3])
{
    assert_int_equal(write(p->in, order, 2), 2);
}

static char hear(const peer *p)
{
    char said = WRONG;
    return read(p->out, &said, 1) == 1 ? said : '\0';
}

static char order(const peer *p, const char what[3])
{
    tell(p, what);
    return hear(p);
}

static void end_peer(peer *p)
{
    tell(p, "q ");
    (void)close(p->in);
    (void)close(p->out);
    assert_true(await_end(p->pid));
}

static void kill_peer(peer *p)
{
    int status = 0;
    assert_int_equal(kill(p->pid, SIGKILL), 0);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    (void)close(p->in);
    (void)close(p->out);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_claim_gives_the_work_and_then_the_blob(void **state)
{
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("A");
    kiln_blob *blob = NULL, *made = ks_blob("A");
    kiln_claim *claim = NULL;
    kiln_origin origin = KILN_ORIGIN_DISK;
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, &origin, NULL),
                     KILN_MISS);
    assert_true(blob == NULL && claim != NULL && origin == KILN_ORIGIN_NONE);
    kiln_recipe_destroy(recipe); /* the claim has its own */
    assert_int_equal(kiln_claim_fulfil(claim, made, NULL), KILN_OK);
    assert_true(kiln_blob_compile_ns(made) > 0);
    recipe = ks_recipe("A");
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, &origin, NULL), KILN_OK);
    assert_true(blob == made && claim == NULL && origin == KILN_ORIGIN_MEMORY);
    const kt_counters stats = ks_own(cache);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(stats.puts, 1);
    assert_int_equal(stats.hits_memory, 1);
    kiln_blob_release(blob);
    kiln_blob_release(made);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

static void what_is_not_given_is_refused(void **state)
{
    kiln_cache *cache = ks_cache(*state);
    kiln_recipe *recipe = ks_recipe("A");
    kiln_blob *blob = NULL, *empty = ks_blob("");
    kiln_claim *claim = NULL;
    const kiln_claim_options wrong = {.struct_size = 3};
    assert_int_equal(kiln_cache_claim(cache, recipe, &wrong, &blob, &claim, NULL, NULL),
                     KILN_E_INVALID);
    assert_int_equal(kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, NULL), KILN_MISS);
    assert_int_equal(kiln_claim_fulfil(claim, empty, NULL), KILN_E_INVALID);
    assert_int_equal(kiln_claim_fulfil(NULL, NULL, NULL), KILN_OK);
    kiln_claim_abandon(NULL);
    const kt_counters stats = ks_own(cache);
    assert_int_equal(stats.compiles, 0);
    assert_int_equal(stats.puts, 0);
    kiln_blob_release(empty);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
}

/* PYTHON_AND_DOCS P8. */
static void P8_another_process_waits_for_the_blob(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

/* And who compiles in a callback: the protocol is one. */
static void a_compile_waits_for_a_claim(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    tell(&other, "gA");
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

typedef void end_holder(peer *holder);

static void abandon_it(peer *holder)
{
    assert_int_equal(order(holder, "aA"), DONE);
    end_peer(holder);
}

/* All who waited compile at once, and hold nobody up. */
static void wait_in_vain(const char *root, end_holder *end)
{
    peer holder = start(root), others[3] = {start(root), start(root), start(root)};
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(order(&others[i], "cA"), WAITS);
    }
    end(&holder);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hear(&others[i]), CLAIMED);
    }
    for (size_t i = 0; i < 3; i++) { /* only now do they finish */
        assert_int_equal(order(&others[i], "fA"), DONE);
        end_peer(&others[i]);
    }
}

static void an_abandoned_claim_is_free(void **state)
{
    wait_in_vain(*state, abandon_it);
}

static void give_nothing(peer *holder)
{
    assert_int_equal(order(holder, "zA"), DONE);
    end_peer(holder);
}

static void a_claim_that_is_given_nothing_is_free(void **state)
{
    wait_in_vain(*state, give_nothing);
}

static void a_killed_holder_holds_nothing(void **state)
{
    wait_in_vain(*state, kill_peer);
}

static void a_stopped_holder_is_passed_over(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(kill(holder.pid, SIGSTOP), 0);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CLAIMED);
    kill_peer(&holder);
    end_peer(&other);
}

static void a_wait_is_bounded(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "l "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CLAIMED);
    assert_int_equal(order(&holder, "fA"), DONE); /* its own is as good as before */
    assert_int_equal(order(&other, "aA"), DONE);
    assert_int_equal(order(&other, "cA"), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

static void a_wait_can_be_interrupted(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&other, "x "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CANCELLED);
    end_peer(&holder);
    end_peer(&other);
}

/* --- who never waits -------------------------------------------------------------------------- */

static void opposite_orders_never_wait(void **state)
{
    peer one = start(*state), two = start(*state);
    assert_int_equal(order(&one, "cA"), CLAIMED);
    assert_int_equal(order(&two, "cB"), CLAIMED);
    assert_int_equal(order(&one, "cB"), CLAIMED);
    assert_int_equal(order(&two, "cA"), CLAIMED);
    assert_int_equal(order(&one, "fB"), DONE);
    assert_int_equal(order(&two, "fA"), DONE);
    assert_int_equal(order(&one, "fA"), DONE);
    assert_int_equal(order(&two, "fB"), DONE);
    assert_int_equal(order(&one, "cB"), FOUND);
    end_peer(&one);
    end_peer(&two);
}

static void opposite_orders_with_callbacks_never_wait(void **state)
{
    peer one = start(*state), two = start(*state);
    assert_int_equal(order(&one, "cA"), CLAIMED);
    assert_int_equal(order(&two, "cB"), CLAIMED);
    assert_int_equal(order(&one, "gB"), COMPILED);
    assert_int_equal(order(&two, "gA"), COMPILED);
    end_peer(&one);
    end_peer(&two);
}

/* A nested claim is one all the same: others wait for it. */
static void nested_claims_hold(void **state)
{
    peer holder = start(*state), other = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "cB"), CLAIMED);
    assert_int_equal(order(&other, "cB"), WAITS);
    assert_int_equal(order(&holder, "fB"), DONE);
    assert_int_equal(hear(&other), FOUND);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(order(&holder, "fA"), DONE);
    assert_int_equal(hear(&other), FOUND);
    end_peer(&holder);
    end_peer(&other);
}

static void threads_of_the_holder_never_wait(void **state)
{
    peer holder = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "tA"), CLAIMED);
    end_peer(&holder);
}

static void children_of_the_holder_never_wait(void **state)
{
    static const char *const hows[] = {"kA", "eA", "sA"};
    peer holder = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++) {
        assert_int_equal(order(&holder, hows[i]), CLAIMED);
        assert_int_equal(hear(&holder), DONE);
    }
    end_peer(&holder);
}

/* Who does not descend from it waits after its children have come and gone. */
static void a_fork_leaves_the_claim_alone(void **state)
{
    peer holder = start(*state), other = start(*state), late = start(*state);
    assert_int_equal(order(&holder, "cA"), CLAIMED);
    assert_int_equal(order(&holder, "AA"), DONE);
    assert_int_equal(order(&other, "x "), DONE);
    assert_int_equal(order(&other, "cA"), WAITS);
    assert_int_equal(hear(&other), CANCELLED);
    assert_int_equal(order(&late, "cA"), WAITS);
    assert_int_equal(order(&holder, "FA"), DONE); /* what the child stores is there */
    assert_int_equal(hear(&late), FOUND);
    assert_int_equal(order(&holder, "fA"), DONE);
    end_peer(&holder);
    end_peer(&other);
    end_peer(&late);
}

/* --- where nobody may wait -------------------------------------------------------------------- */

static void nobody_waits_where_nothing_is_handed_over(void **state)
{
    static const struct {
        uint32_t flags;
        uint64_t min_free;
    } caches[] = {{KILN_CACHE_DISABLED, 0},
                  {KILN_CACHE_RECACHE, 0},
                  {KILN_CACHE_READONLY, 0},
                  {KILN_CACHE_NO_DISK, 0},
                  {0, UINT64_C(1) << 60}}; /* the disk is full */
    kiln_cache_destroy(ks_cache(*state));  /* a read-only one needs a directory */
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        peer holder = start_peer(*state, caches[i].flags, caches[i].min_free);
        peer other = start(*state);
        assert_int_equal(order(&holder, "cA"), CLAIMED);
        assert_int_equal(order(&other, "cA"), CLAIMED);
        assert_int_equal(order(&other, "aA"), DONE);
        assert_int_equal(order(&holder, "fA"), DONE);
        if ((caches[i].flags & KILN_CACHE_RECACHE) == 0) {
            assert_int_equal(order(&other, "cA"), CLAIMED); /* indeed */
        }
        end_peer(&holder);
        end_peer(&other);
        kiln_cache *cache = ks_cache(*state);
        kiln_prune_result cleared = {.struct_size = sizeof cleared};
        assert_int_equal(kiln_cache_clear(cache, &cleared, NULL), KILN_OK);
        kiln_cache_destroy(cache);
    }
}

static bool claim_without_memory(void *user)
{
    kiln_cache *cache = user;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL, *made = NULL;
    kiln_claim *claim = NULL;
    kiln_status status = kiln_recipe_create("test", 1, &recipe, NULL);
    if (status == KILN_OK) {
        status = kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, NULL);
    }
    if (status == KILN_MISS) {
        status = kiln_blob_create("x", 1, "", 0, &made, NULL);
        if (status == KILN_OK) {
            status = kiln_claim_fulfil(claim, made, NULL);
        } else {
            kiln_claim_abandon(claim);
        }
    }
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    if (recipe != NULL) {
        const kiln_key key = kiln_recipe_key(recipe);
        (void)!kiln_cache_remove(cache, &key, NULL);
    }
    kiln_blob_release(blob);
    kiln_blob_release(made);
    kiln_recipe_destroy(recipe);
    return status == KILN_OK;
}

static void claims_survive_failing_allocations(void **state)
{
    kiln_cache *cache = ks_cache(*state);
    assert_true(kt_failalloc_each(claim_without_memory, cache) >= 5);
    kiln_cache_destroy(cache);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, kt_tmpdir_setup, kt_tmpdir_teardown)

int main(int count, char **arguments)
{
    if (count == 4) {
        (void)alarm(60);
        return run_descendant(arguments[1], arguments[2][0], atoi(arguments[3]));
    }
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_claim_gives_the_work_and_then_the_blob),
        IN_FOLDER(what_is_not_given_is_refused),
        IN_FOLDER(P8_another_process_waits_for_the_blob),
        IN_FOLDER(a_compile_waits_for_a_claim),
        IN_FOLDER(an_abandoned_claim_is_free),
        IN_FOLDER(a_claim_that_is_given_nothing_is_free),
        IN_FOLDER(a_killed_holder_holds_nothing),
        IN_FOLDER(a_stopped_holder_is_passed_over),
        IN_FOLDER(a_wait_is_bounded),
        IN_FOLDER(a_wait_can_be_interrupted),
        IN_FOLDER(opposite_orders_never_wait),
        IN_FOLDER(opposite_orders_with_callbacks_never_wait),
        IN_FOLDER(nested_claims_hold),
        IN_FOLDER(threads_of_the_holder_never_wait),
        IN_FOLDER(children_of_the_holder_never_wait),
        IN_FOLDER(a_fork_leaves_the_claim_alone),
        IN_FOLDER(nobody_waits_where_nothing_is_handed_over),
        IN_FOLDER(claims_survive_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
