/* Warming: what is built, in which order, how many at once, and that nothing is compiled twice. */
#include "unit/core/gate.h"

#include "core/build/source.h"
#include "core/build/source_copy.h"
#include "kiln/cpu.h"
#include "kiln/unstable/warm.h"
#include "support/counters.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 6 };

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

static void nothing_of_a_copied_source_is_the_callers(void **state)
{
    static const struct kiln_cpu_kernel one = {.name = "one"};
    const struct kiln_cpu_kernel *list[] = {&one, &one};
    kn_source_copy copy;
    kiln_source source = KILN_SOURCE_INIT;
    (void)state;
    source.language = KILN_LANG_BUILTIN;
    source.builtin = list;
    source.builtin_count = 2;
    assert_true(kn_source_copy_init(&copy, &source, true));
    memset((void *)list, 0, sizeof(list));
    assert_ptr_equal(copy.source.builtin[1], &one);
    kn_source_copy_deinit(&copy);
    /* A count without its list is refused by the build; until then nobody looks. */
    source.define_count = source.option_count = source.include_dir_count = 1;
    source.header_count = source.entry_count = 1;
    source.builtin = NULL;
    assert_true(kn_source_copy_init(&copy, &source, true));
    assert_int_equal(copy.source.option_count, 1);
    assert_int_equal(kn_source_check(&copy.source, NULL), KILN_E_INVALID);
    kn_source_copy_deinit(&copy);
    source.builtin_count = source.define_count = source.option_count = 0;
    source.include_dir_count = source.entry_count = 0;
    const kiln_header header = {"h", NULL, 5};
    source.headers = &header;
    assert_true(kn_source_copy_init(&copy, &source, true));
    assert_int_equal(kn_source_check(&copy.source, NULL), KILN_E_INVALID);
    kn_source_copy_deinit(&copy);
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
    const kt_counters before = rig_stats(r);
    const uint64_t loads = rig_calls(r, FAKE_LOAD);
    kiln_program *program = rig_build(r, &kernels[3].source);
    assert_int_equal(rig_stats(r).compiles, before.compiles);
    assert_int_equal(rig_calls(r, FAKE_LOAD), loads); /* it is loaded, too */
    assert_true(gate_run(r, program) == 3);
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
    assert_int_equal(atomic_load(&w.calls), ITEMS); /* each is reported */
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gate_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_of_a_copied_source_is_the_callers),
        TEST(everything_is_warm_afterwards),
        TEST(jobs_are_bounded),
        TEST(a_program_being_warmed_is_waited_for),
        TEST(what_is_used_most_comes_first),
        TEST(what_has_not_begun_is_called_off),
        TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, gate_register, NULL);
}
