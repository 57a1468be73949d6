/* Processes that claim: each has a cache object of its own, takes orders from a pipe, and answers
 * with a letter. An order is a letter and a key, A or B:
 *     c claim         f fulfil            z fulfil with nothing    a abandon
 *     g get or compile                    t claim in another thread
 *     k e s           claim in a child: a fork, a program, a program behind a shell
 *     F A             fulfil, abandon in a fork
 *     x waits end     l waits are short   q exit */
#ifndef KILN_TESTS_STORE_PEERS_H
#define KILN_TESTS_STORE_PEERS_H

#include "unit/store/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln/unstable/claim.h>

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

#endif
