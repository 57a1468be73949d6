/* Several processes on one root under Windows: one compile, no wrong byte, and no wedge when some
 * are killed in the middle. Each process is this program again: `get` or `churn`. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"

#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/thread.h"
#include "windows/again.h"

#define HANG_MS 100000
#define KEYS 24

enum { RIGHT = 0, WRONG = 3, FAILED = 4, ENDED = 9 };

/* ---- the children: DIRECTORY is the test's, its root is DIRECTORY/root ---- */

typedef struct compile {
    const char *dir, *name;
    bool dies; /* in the middle, once DIRECTORY/go is there */
} compile;

/* Leaves a file for each compile, so that the parent can count them. */
static kiln_status run_compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    compile *c = user;
    char name[96], text[256];
    (void)snprintf(name, sizeof name, "compiled/%s-%lu", c->name,
                   (unsigned long)GetCurrentProcessId());
    char *mark = kt_at(c->dir, name), *go = kt_at(c->dir, "go");
    kt_file_write(mark, "x", 1);
    while (c->dies && !kt_file_exists(go)) {
        Sleep(1);
    }
    if (c->dies) {
        (void)TerminateProcess(GetCurrentProcess(), ENDED);
    }
    (void)snprintf(text, sizeof text, "what %s compiles to", c->name);
    return kiln_blob_create(text, strlen(text), "facts", 5, out_blob, diag);
}

static kiln_cache *open_cache(const char *dir)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    char *root = kt_path(dir, "root");
    if (kiln_cache_options_init(&options, NULL) == KILN_OK) {
        options.root = root;
        options.no_fsync = true;
        if (kiln_cache_create(&options, &cache, NULL) != KILN_OK) {
            cache = NULL;
        }
    }
    free(root);
    return cache;
}

static int get(kiln_cache *cache, compile *c)
{
    char expected[256];
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    (void)snprintf(expected, sizeof expected, "what %s compiles to", c->name);
    if (kiln_recipe_create("test", 1, &recipe, NULL) != KILN_OK) {
        return FAILED;
    }
    kiln_recipe_set_target(recipe, "test-target");
    kiln_recipe_add_text(recipe, "text", c->name, strlen(c->name));
    if (kiln_cache_get_or_compile(cache, recipe, run_compile, c, &blob, NULL, NULL) != KILN_OK) {
        return FAILED;
    }
    bool right = kiln_blob_size(blob) == strlen(expected) &&
                 memcmp(kiln_blob_data(blob), expected, strlen(expected)) == 0;
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return right ? RIGHT : WRONG;
}

static int child_get(const char *dir, bool dies)
{
    compile c = {dir, "one", dies};
    kiln_cache *cache = open_cache(dir);
    int result = cache != NULL ? get(cache, &c) : FAILED;
    kiln_cache_destroy(cache);
    return result;
}

/* Gets all keys in an order of its own, with a fresh cache each time; every third process clears
 * the store on the way, and every fourth ends in the middle of it all. */
static int child_churn(const char *dir, int who)
{
    int result = RIGHT;
    for (int i = 0; i < KEYS && result == RIGHT; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "key%d", (i * 7 + who * 5) % KEYS);
        compile c = {dir, name, false};
        kiln_cache *cache = open_cache(dir);
        result = cache != NULL ? get(cache, &c) : FAILED;
        if (who % 3 == 0 && i == KEYS / 2 && cache != NULL) {
            kiln_prune_result cleared = {.struct_size = sizeof(cleared)};
            result = kiln_cache_clear(cache, &cleared, NULL) == KILN_OK ? result : FAILED;
        }
        if (who % 4 == 3 && i == KEYS / 2) {
            (void)TerminateProcess(GetCurrentProcess(), ENDED);
        }
        kiln_cache_destroy(cache);
    }
    return result;
}

/* ---- the parent ---- */

typedef struct process {
    const char *role, *dir;
    char who[8];
    int exit_code;
    kn_thread *thread;
} process;

static void run_process(void *user)
{
    process *p = user;
    kn_process_result result = run_again(p->role, p->dir, p->who, HANG_MS);
    p->exit_code = result.exit_code;
    if (result.err != NULL) {
        (void)fprintf(stderr, "%s", result.err);
    }
    kn_process_result_deinit(&result);
}

static void start(process *p, const char *role, const char *dir, int who)
{
    *p = (process){.role = role, .dir = dir, .exit_code = FAILED};
    (void)snprintf(p->who, sizeof p->who, "%d", who);
    assert_int_equal(kn_thread_start(run_process, p, &p->thread, NULL), KILN_OK);
}

static void make_marks(const char *dir)
{
    char *marks = kt_at(dir, "compiled");
    assert_int_equal(kn_file_make_dir(marks, NULL), KILN_OK);
}

static size_t compiles(const char *dir)
{
    char *marks = kt_at(dir, "compiled");
    size_t count = kt_file_count(marks);
    return count;
}

static void C6_processes_compile_once(void **state)
{
    enum { COUNT = 6 };
    process all[COUNT];
    make_marks(*state);
    for (int i = 0; i < COUNT; i++) {
        start(&all[i], "get", *state, i);
    }
    for (int i = 0; i < COUNT; i++) {
        kn_thread_join(all[i].thread);
        assert_int_equal(all[i].exit_code, RIGHT);
    }
    assert_int_equal(compiles(*state), 1);
}

static void C4_a_killed_holder_frees_the_others(void **state)
{
    enum { OTHERS = 3 };
    process holder, others[OTHERS];
    char *go = kt_at(*state, "go");
    make_marks(*state);
    start(&holder, "die", *state, 0);
    while (compiles(*state) == 0) {
        Sleep(1);
    }
    for (int i = 0; i < OTHERS; i++) {
        start(&others[i], "get", *state, i);
    }
    kt_file_write(go, "x", 1);
    kn_thread_join(holder.thread);
    assert_int_equal(holder.exit_code, ENDED);
    for (int i = 0; i < OTHERS; i++) {
        kn_thread_join(others[i].thread);
        assert_int_equal(others[i].exit_code, RIGHT);
    }
    assert_int_equal(compiles(*state), 2); /* the holder's, and one more */
}

static void C1_churn_with_clears_and_deaths_gives_no_wrong_byte(void **state)
{
    enum { COUNT = 5 };
    process all[COUNT];
    make_marks(*state);
    for (int i = 0; i < COUNT; i++) {
        start(&all[i], "churn", *state, i);
    }
    for (int i = 0; i < COUNT; i++) {
        kn_thread_join(all[i].thread);
        assert_int_equal(all[i].exit_code, i % 4 == 3 ? ENDED : RIGHT);
    }
    assert_int_equal(child_churn(*state, 1), RIGHT); /* the store still serves */
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "churn") == 0) {
        return child_churn(argv[2], argv[3][0] - '0');
    }
    if (argc == 4) {
        return child_get(argv[2], strcmp(argv[1], "die") == 0);
    }
    const struct CMUnitTest tests[] = {
        kt_dir_test(C6_processes_compile_once),
        kt_dir_test(C4_a_killed_holder_frees_the_others),
        kt_dir_test(C1_churn_with_clears_and_deaths_gives_no_wrong_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
