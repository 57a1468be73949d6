/* Warming and compiles in the background, on a fake compiler that waits until it is let go: by
 * conditions, not by times. */
#include "unit/core/rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/thread.h"

enum { ITEMS = 6, WIDTH = 8 };

/* --- a compiler with a gate --------------------------------------------------------------------
 */

static struct {
    kn_mutex mutex;
    kn_cond cond;
    bool shut;                /* compiles of "slow" sources wait */
    bool fails;               /* and then fail */
    unsigned waiting;         /* at the gate now */
    unsigned begun, most, in; /* compiles of sources: all, at once at most, now */
    char order[64][32];       /* names, as they began */
} gate;

static kiln_status gated_compile(void *instance, const kiln_compile_request *request,
                                 kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    bool fails = false;
    if (request->stage->takes_source) {
        const char *name = request->source->name;
        kn_mutex_lock(&gate.mutex);
        (void)snprintf(gate.order[gate.begun % 64], sizeof(gate.order[0]), "%s", name);
        gate.begun++;
        gate.in++;
        gate.most = gate.in > gate.most ? gate.in : gate.most;
        if (strstr(name, "slow") != NULL) {
            gate.waiting++;
            kn_cond_broadcast(&gate.cond);
            while (gate.shut) {
                kn_cond_wait(&gate.cond, &gate.mutex);
            }
            gate.waiting--;
            fails = gate.fails;
        }
        gate.in--;
        kn_mutex_unlock(&gate.mutex);
    }
    return fails ? kiln_diag_set(diag, KILN_E_COMPILE, NULL, "gated", "told to fail")
                 : kn_fake_compile(instance, request, artifact, out_live, diag);
}

static void gate_shut(bool fails)
{
    kn_mutex_lock(&gate.mutex);
    gate.shut = true;
    gate.fails = fails;
    kn_mutex_unlock(&gate.mutex);
}

static void gate_open(void)
{
    kn_mutex_lock(&gate.mutex);
    gate.shut = false;
    kn_cond_broadcast(&gate.cond);
    kn_mutex_unlock(&gate.mutex);
}

static void gate_await(unsigned waiting)
{
    kn_mutex_lock(&gate.mutex);
    while (gate.waiting < waiting) {
        kn_cond_wait(&gate.cond, &gate.mutex);
    }
    kn_mutex_unlock(&gate.mutex);
}

static kiln_backend gated;
static kiln_compiler_ops gated_ops;

/* Names of its own: what the fake backend compiled is not found in their place. */
static const kiln_stage *gated_stages(void *instance, const kiln_target *target,
                                      kiln_language language, size_t *out_count)
{
    static kiln_stage stages[2];
    static atomic_flag made = ATOMIC_FLAG_INIT;
    const kiln_stage *fake = kn_fake_stages(instance, target, language, out_count);
    if (!atomic_flag_test_and_set(&made)) { /* first in register_gated: one thread */
        memcpy(stages, fake, sizeof(stages));
        stages[0].name = "gated.code";
        stages[1].name = "gated.binary";
    }
    return fake != NULL ? stages : NULL;
}

static int register_gated(void **state)
{
    (void)state;
    kn_mutex_init(&gate.mutex);
    kn_cond_init(&gate.cond);
    gated = kn_backend_fake;
    gated.name = "gated";
    gated_ops = *kn_backend_fake.compiler;
    gated_ops.compile = gated_compile;
    gated_ops.stages = gated_stages;
    size_t count = 0;
    (void)gated_stages(NULL, NULL, KILN_LANG_FAKE, &count);
    gated.compiler = &gated_ops;
    return kiln_backend_register(&gated, NULL) == KILN_OK ? 0 : -1;
}

static int setup(void **state)
{
    gate.shut = gate.fails = false;
    gate.begun = gate.most = gate.in = 0;
    int result = rig_setup(state);
    (void)setenv("KILN_COMPILE_JOBS", "2", 1);
    return result;
}

/* --- sources: y = a * x + y, and one more for each number --------------------------------------
 */

typedef struct kernel {
    char name[32], text[128];
    kiln_source source;
} kernel;

static void kernel_init(kernel *k, const char *kind, int number)
{
    (void)snprintf(k->name, sizeof(k->name), "%s%d", kind, number);
    (void)snprintf(k->text, sizeof(k->text),
                   "kernel saxpy a:float x:floats y:floats\ny = a x * y + %d +\n", number);
    k->source = rig_source(k->text);
    k->source.name = k->name;
}

static float run(rig *r, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_buffer *x = NULL, *y = NULL;
    kiln_event *event = NULL;
    float a = 2, in[WIDTH], out[WIDTH];
    uint64_t took = 0;
    for (int i = 0; i < WIDTH; i++) {
        in[i] = 3;
    }
    RIG_OK(kiln_queue_create(r->device, &queue, &diag));
    RIG_OK(kiln_buffer_create(r->device, sizeof(in), &x, &diag));
    RIG_OK(kiln_buffer_create(r->device, sizeof(in), &y, &diag));
    RIG_OK(kiln_queue_write(queue, x, 0, in, sizeof(in), &diag));
    RIG_OK(kiln_queue_write(queue, y, 0, in, sizeof(in), &diag));
    kiln_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
                       {.kind = KILN_ARG_BUFFER, .buffer = x},
                       {.kind = KILN_ARG_BUFFER, .buffer = y}};
    kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {WIDTH}, .args = args, .arg_count = 3};
    RIG_OK(kiln_queue_launch(queue, program, "saxpy", &launch, &event, &diag));
    RIG_OK(kiln_event_wait(event, &diag));
    RIG_OK(kiln_event_elapsed(event, &took, &diag));
    RIG_OK(kiln_queue_wait_event(queue, event, &diag));
    kiln_event_release(event);
    RIG_OK(kiln_queue_read(queue, y, 0, out, sizeof(out), &diag));
    for (int i = 1; i < WIDTH; i++) {
        assert_true(out[i] == out[0]);
    }
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
    kiln_queue_destroy(queue);
    return out[0] - 9; /* what the number adds */
}

/* --- warming -----------------------------------------------------------------------------------
 */

typedef struct watcher {
    atomic_size_t calls;
    size_t index[64];
    kiln_status status[64];
    kiln_warm_state last;
} watcher;

static void watch(void *user, size_t index, kiln_status status, const kiln_diag *diag,
                  const kiln_warm_state *state)
{
    watcher *w = user;
    size_t n = atomic_load(&w->calls); /* one call at a time: TSan would tell */
    assert_true(status == KILN_OK || diag->why[0] != '\0');
    w->index[n] = index;
    w->status[n] = status;
    w->last = *state;
    atomic_store(&w->calls, n + 1);
}

static kiln_warm *warm(rig *r, const kernel *kernels, size_t count, kiln_warm_options options)
{
    kiln_warm_item items[16];
    kiln_warm *warming = NULL;
    for (size_t i = 0; i < count; i++) {
        items[i] = (kiln_warm_item){&kernels[i].source, 1};
    }
    options.struct_size = sizeof(options);
    RIG_OK(kiln_warm_start(r->device, items, count, &options, &warming, &diag));
    return warming;
}

static kiln_warm_state state_of(kiln_warm *warming)
{
    kiln_warm_state state = {.struct_size = sizeof(state)};
    RIG_OK(kiln_warm_get_state(warming, &state, &diag));
    return state;
}

static void everything_is_warm_afterwards(void **state)
{
    rig *r = *state;
    kernel kernels[ITEMS];
    watcher w = {.last = {.total = 0}};
    rig_open(r, "gated");
    for (int i = 0; i < ITEMS; i++) {
        kernel_init(&kernels[i], "plain", i);
    }
    kernel_init(&kernels[2], "slow", 2);
    gate.fails = true; /* this one does not compile */
    kiln_warm *warming =
        warm(r, kernels, ITEMS, (kiln_warm_options){.progress = watch, .user = &w});
    memset(kernels[0].text, '?', 4); /* the sources are the caller's again */
    kiln_warm_wait(warming);
    kiln_warm_state done = state_of(warming);
    assert_int_equal(done.total, ITEMS);
    assert_int_equal(done.built, ITEMS - 1);
    assert_int_equal(done.compiled, ITEMS - 1);
    assert_int_equal(done.failed, 1);
    assert_int_equal(done.running + done.cancelled, 0);
    assert_int_equal(atomic_load(&w.calls), ITEMS);
    assert_int_equal(w.last.built + w.last.failed, ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        assert_int_equal(w.status[i], w.index[i] == 2 ? KILN_E_COMPILE : KILN_OK);
    }
    const kiln_cache_stats before = rig_stats(r);
    const uint64_t loads = rig_calls(r, FAKE_LOAD);
    kiln_program *program = rig_build(r, &kernels[3].source);
    assert_int_equal(rig_stats(r).compiles, before.compiles);
    assert_int_equal(rig_calls(r, FAKE_LOAD), loads); /* it is loaded, too */
    assert_true(run(r, program) == 3);
    kiln_program_release(program);
    kiln_warm_destroy(warming);
}

static void jobs_are_bounded(void **state)
{
    rig *r = *state;
    kernel kernels[ITEMS];
    for (uint32_t jobs = 1; jobs <= 2; jobs++) {
        gate.most = 0;
        rig_open(r, "gated");
        for (int i = 0; i < ITEMS; i++) {
            kernel_init(&kernels[i], "slow", (int)jobs * 10 + i);
        }
        gate_shut(false);
        /* More than the variable says are as many as it says. */
        kiln_warm *warming = warm(r, kernels, ITEMS,
                                  (kiln_warm_options){.jobs = jobs == 2 ? 64 : 1, .release = true});
        gate_await(jobs);
        assert_int_equal(state_of(warming).running, jobs);
        gate_open();
        kiln_warm_wait(warming);
        assert_int_equal(gate.most, jobs);
        assert_int_equal(state_of(warming).built, ITEMS);
        kiln_warm_destroy(warming);
        rig_close(r);
    }
}

typedef struct asker {
    rig *r;
    const kiln_source *source;
    kiln_program *program;
} asker;

static void ask(void *user)
{
    asker *a = user;
    a->program = rig_build(a->r, a->source);
}

static void a_program_being_warmed_is_waited_for(void **state)
{
    enum { ASKERS = 4 };
    rig *r = *state;
    kernel k;
    asker askers[ASKERS];
    kn_thread *threads[ASKERS] = {NULL};
    rig_open(r, "gated");
    kernel_init(&k, "slow", 1);
    gate_shut(false);
    kiln_warm *warming = warm(r, &k, 1, (kiln_warm_options){.jobs = 1});
    gate_await(1);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (asker){r, &k.source, NULL};
        RIG_OK(kn_thread_start(ask, &askers[i], &threads[i], &diag));
    }
    gate_open();
    for (int i = 0; i < ASKERS; i++) {
        kn_thread_join(threads[i]);
    }
    kiln_warm_wait(warming);
    assert_int_equal(gate.begun, 1); /* one compile for all */
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 1);
    for (int i = 0; i < ASKERS; i++) {
        assert_ptr_equal(askers[i].program, askers[0].program);
        kiln_program_release(askers[i].program);
    }
    kiln_warm_destroy(warming);
}

static void what_is_used_most_comes_first(void **state)
{
    static const int uses[ITEMS] = {0, 2, 0, 5, 1, 0};
    static const char *const order[ITEMS] = {"plain3", "plain1", "plain4",
                                             "plain0", "plain2", "plain5"};
    rig *r = *state;
    kernel kernels[ITEMS];
    rig_open(r, "gated");
    for (int i = 0; i < ITEMS; i++) {
        kernel_init(&kernels[i], "plain", i);
        for (int n = 0; n < uses[i]; n++) {
            kiln_program_release(rig_build(r, &kernels[i].source));
        }
    }
    rig_close(r); /* now they are counted */
    assert_int_equal(setenv("KILN_RECACHE", "1", 1), 0);
    for (int in_order = 0; in_order < 2; in_order++) {
        gate.begun = 0;
        rig_open(r, "gated");
        kiln_warm *warming =
            warm(r, kernels, ITEMS, (kiln_warm_options){.jobs = 1, .in_order = in_order != 0});
        kiln_warm_wait(warming);
        assert_int_equal(gate.begun, ITEMS);
        for (int i = 0; i < ITEMS; i++) {
            assert_string_equal(gate.order[i], in_order != 0 ? kernels[i].name : order[i]);
        }
        kiln_warm_destroy(warming);
        rig_close(r); /* being warmed is no use */
    }
}

static void what_has_not_begun_is_called_off(void **state)
{
    rig *r = *state;
    kernel kernels[ITEMS];
    watcher w = {.last = {.total = 0}};
    rig_open(r, "gated");
    for (int i = 0; i < ITEMS; i++) {
        kernel_init(&kernels[i], "slow", i);
    }
    gate_shut(false);
    kiln_warm *warming =
        warm(r, kernels, ITEMS, (kiln_warm_options){.jobs = 2, .progress = watch, .user = &w});
    gate_await(2);
    kiln_warm_cancel(warming);
    gate_open();
    kiln_warm_wait(warming);
    kiln_warm_state done = state_of(warming);
    assert_int_equal(done.built, 2);
    assert_int_equal(done.cancelled, ITEMS - 2);
    assert_int_equal(done.running, 0);
    assert_int_equal(gate.begun, 2);
    assert_int_equal(atomic_load(&w.calls), ITEMS); /* each is told of */
    kiln_warm_destroy(warming);
}

static void options_are_checked(void **state)
{
    rig *r = *state;
    kernel k;
    kiln_warm *warming = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    kiln_warm_options options = {.struct_size = 1};
    kiln_warm_state wrong = {.struct_size = 1};
    rig_open(r, "gated");
    kernel_init(&k, "plain", 1);
    kiln_warm_item item = {&k.source, 1};
    assert_int_equal(kiln_warm_start(r->device, &item, 1, &options, &warming, &why),
                     KILN_E_INVALID);
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "many", 1), 0);
    assert_int_equal(kiln_warm_start(r->device, &item, 1, NULL, &warming, &why), KILN_E_INVALID);
    assert_non_null(strstr(why.what, "KILN_COMPILE_JOBS"));
    kiln_diag_clear(&why);
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "1", 1), 0);
    k.source.language = KILN_LANG_GLSL; /* not for this device */
    RIG_OK(kiln_warm_start(r->device, &item, 1, NULL, &warming, &diag));
    kiln_warm_wait(warming);
    assert_int_equal(state_of(warming).failed, 1);
    assert_int_equal(kiln_warm_get_state(warming, &wrong, NULL), KILN_E_INVALID);
    kiln_warm_destroy(warming);
    RIG_OK(kiln_warm_start(r->device, NULL, 0, NULL, &warming, &diag));
    kiln_warm_destroy(warming);
    kiln_warm_destroy(NULL);
}

/* --- background --------------------------------------------------------------------------------
 */

static kiln_program *build_behind(rig *r, const kernel *k, const kernel *generic)
{
    kiln_program *program = NULL;
    kiln_build_options options = {.struct_size = sizeof(options), .background = true};
    if (generic != NULL) {
        options.fallback = &generic->source;
        options.fallback_count = 1;
    }
    RIG_OK(kiln_program_build(r->device, &k->source, 1, &options, &program, &diag));
    return program;
}

static void a_launch_runs_the_fallback_and_then_the_program(void **state)
{
    rig *r = *state;
    kernel slow, generic;
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, &generic);
    gate_await(1);
    assert_int_equal(kiln_program_ready(program, NULL), KILN_E_BUSY);
    assert_true(run(r, program) == 4);
    assert_int_equal(kiln_program_entry_count(program), 1);
    gate_open();
    RIG_OK(kiln_program_wait(program, &diag));
    RIG_OK(kiln_program_ready(program, &diag));
    assert_true(run(r, program) == 7);
    assert_int_equal(kiln_program_info(program)->compiles, 2);
    /* The next build, here or in another process, finds it and waits for nothing. */
    kiln_program *again = build_behind(r, &slow, &generic);
    RIG_OK(kiln_program_ready(again, &diag));
    assert_true(run(r, again) == 7);
    assert_int_equal(gate.begun, 2);
    kiln_program_release(again);
    kiln_program_release(program);
}

static void a_failure_is_told_once_and_the_fallback_stays(void **state)
{
    rig *r = *state;
    kernel slow, generic;
    kiln_diag why = KILN_DIAG_INIT;
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(true);
    kiln_program *program = build_behind(r, &slow, &generic);
    gate_await(1);
    rig_log_start();
    gate_open();
    assert_int_equal(kiln_program_wait(program, &why), KILN_E_COMPILE);
    assert_non_null(strstr(why.why, "told to fail"));
    kiln_diag_clear(&why);
    for (int i = 0; i < 3; i++) {
        assert_true(run(r, program) == 4);
        assert_int_equal(kiln_program_ready(program, &why), KILN_E_COMPILE);
        kiln_diag_clear(&why);
    }
    const char *log = rig_log_stop();
    const char *told = strstr(log, "told to fail");
    assert_non_null(told);
    assert_null(strstr(told + 1, "told to fail"));
    kiln_program_release(program);
}

/* Without a generic variant the processor does it, or any other device in software. */
static void another_device_stands_in(void **state)
{
    rig *r = *state;
    kernel slow;
    assert_int_equal(setenv("KILN_FAKE", "1", 1), 0);
    rig_open(r, "gated,fake");
    kernel_init(&slow, "slow", 7);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, NULL);
    gate_await(1);
    assert_int_equal(kiln_program_ready(program, NULL), KILN_E_BUSY);
    for (int i = 0; i < 2; i++) {
        assert_true(run(r, program) == 7);
    }
    gate_open();
    RIG_OK(kiln_program_wait(program, &diag));
    const uint64_t launches = rig_calls(r, FAKE_LAUNCH);
    assert_true(run(r, program) == 7);
    assert_int_equal(rig_calls(r, FAKE_LAUNCH), launches + 1); /* here, from now on */
    kiln_program_release(program);
}

static void with_nothing_to_stand_in_the_build_waits(void **state)
{
    rig *r = *state;
    kernel k;
    assert_int_equal(setenv("KILN_FAKE_DEVICES", "1", 1), 0);
    rig_open(r, "gated");
    kernel_init(&k, "plain", 5);
    kiln_program *program = build_behind(r, &k, NULL);
    RIG_OK(kiln_program_ready(program, &diag));
    assert_true(run(r, program) == 5);
    kiln_program_release(program);
}

static void a_program_released_early_is_given_up(void **state)
{
    rig *r = *state;
    kernel slow[3], generic;
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "1", 1), 0);
    rig_open(r, "gated");
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    for (int i = 0; i < 3; i++) {
        kernel_init(&slow[i], "slow", i);
        kiln_program *program = build_behind(r, &slow[i], &generic);
        if (i == 0) {
            gate_await(1); /* it has the one thread */
        }
        kiln_program_release(program);
    }
    gate_open();
    rig_close(r);                    /* with the first one's compile in flight, or just over */
    assert_int_equal(gate.begun, 2); /* generic, and the first */
}

static void the_runtime_goes_with_compiles_waiting(void **state)
{
    rig *r = *state;
    kernel kernels[ITEMS], generic;
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "1", 1), 0);
    for (int round = 0; round < 5; round++) {
        rig_open(r, "gated");
        kernel_init(&generic, "generic", 100 + round);
        for (int i = 0; i < ITEMS; i++) {
            kernel_init(&kernels[i], "plain", round * ITEMS + i);
            kiln_program_release(build_behind(r, &kernels[i], &generic));
        }
        rig_close(r);
    }
}

typedef struct launcher {
    rig *r;
    kiln_program *program;
    bool slow_seen;
    bool right;
    atomic_uint *rounds;
} launcher;

static void launch_until_ready(void *user)
{
    launcher *l = user;
    float last = 4;
    l->right = true;
    while (last < 7) {
        float now = run(l->r, l->program);
        l->right = l->right && (now == 4 || now == 7) && now >= last; /* it never goes back */
        last = now;
        (void)atomic_fetch_add(l->rounds, 1);
    }
}

/* Threads launch while the program switches under them. */
static void launches_and_the_switch_at_once(void **state)
{
    enum { THREADS = 3 };
    rig *r = *state;
    kernel slow, generic;
    launcher launchers[THREADS];
    kn_thread *threads[THREADS] = {NULL};
    atomic_uint rounds;
    atomic_init(&rounds, 0);
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, &generic);
    for (int i = 0; i < THREADS; i++) {
        launchers[i] = (launcher){r, program, false, false, &rounds};
        RIG_OK(kn_thread_start(launch_until_ready, &launchers[i], &threads[i], &diag));
    }
    while (atomic_load(&rounds) < 3 * THREADS) {
    }
    gate_open();
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        assert_true(launchers[i].right);
    }
    kiln_program_release(program);
}

/* The executor takes such a program as any other. */
static void an_executor_runs_it(void **state)
{
    rig *r = *state;
    kernel slow;
    kiln_executor *executor = NULL;
    assert_int_equal(setenv("KILN_FAKE", "1", 1), 0);
    rig_open(r, "gated,fake");
    kernel_init(&slow, "slow", 7);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, NULL);
    RIG_OK(kiln_executor_create(r->device, NULL, &executor, &diag));
    for (int round = 0; round < 6; round++) {
        float a = 1, x[WIDTH] = {0}, y[WIDTH];
        kiln_ticket *ticket = NULL;
        for (int i = 0; i < WIDTH; i++) {
            y[i] = (float)round;
        }
        kiln_work_arg args[] = {
            {.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
            {.kind = KILN_ARG_BUFFER, .size = sizeof(x), .input = x},
            {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y, .output = y}};
        kiln_work work = {.struct_size = sizeof(work),
                          .program = program,
                          .entry = "saxpy",
                          .dims = 1,
                          .global = {WIDTH},
                          .args = args,
                          .arg_count = 3};
        RIG_OK(kiln_executor_submit(executor, &work, &ticket, &diag));
        RIG_OK(kiln_ticket_wait(ticket, &diag));
        kiln_ticket_release(ticket);
        assert_true(y[0] == (float)round + 7 && y[WIDTH - 1] == y[0]);
        if (round == 2) {
            gate_open();
            RIG_OK(kiln_program_wait(program, &diag));
        }
    }
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(everything_is_warm_afterwards),
        TEST(jobs_are_bounded),
        TEST(a_program_being_warmed_is_waited_for),
        TEST(what_is_used_most_comes_first),
        TEST(what_has_not_begun_is_called_off),
        TEST(options_are_checked),
        TEST(a_launch_runs_the_fallback_and_then_the_program),
        TEST(a_failure_is_told_once_and_the_fallback_stays),
        TEST(another_device_stands_in),
        TEST(with_nothing_to_stand_in_the_build_waits),
        TEST(a_program_released_early_is_given_up),
        TEST(the_runtime_goes_with_compiles_waiting),
        TEST(launches_and_the_switch_at_once),
        TEST(an_executor_runs_it),
    };
    return cmocka_run_group_tests(tests, register_gated, NULL);
}
