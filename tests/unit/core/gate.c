/* The gate, and the kernels that go through it. */
#include "unit/core/gate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gate_state gate;

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

void gate_shut(bool fails)
{
    kn_mutex_lock(&gate.mutex);
    gate.shut = true;
    gate.fails = fails;
    kn_mutex_unlock(&gate.mutex);
}

void gate_open(void)
{
    kn_mutex_lock(&gate.mutex);
    gate.shut = false;
    kn_cond_broadcast(&gate.cond);
    kn_mutex_unlock(&gate.mutex);
}

void gate_await(unsigned waiting)
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
    if (!atomic_flag_test_and_set(&made)) { /* first in gate_register: one thread */
        memcpy(stages, fake, sizeof(stages));
        stages[0].name = "gated.code";
        stages[1].name = "gated.binary";
    }
    return fake != NULL ? stages : NULL;
}

int gate_register(void **state)
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

int gate_setup(void **state)
{
    gate.shut = gate.fails = false;
    gate.begun = gate.most = gate.in = 0;
    int result = rig_setup(state);
    (void)setenv("KILN_COMPILE_JOBS", "2", 1);
    return result;
}

/* --- sources: y = a * x + y, and one more for each number ------------------------------------- */

void kernel_init(kernel *k, const char *kind, int number)
{
    (void)snprintf(k->name, sizeof(k->name), "%s%d", kind, number);
    (void)snprintf(k->text, sizeof(k->text),
                   "kernel saxpy a:float x:floats y:floats\ny = a x * y + %d +\n", number);
    k->source = rig_source(k->text);
    k->source.name = k->name;
}

float gate_run(rig *r, kiln_program *program)
{
    kiln_queue *queue = NULL;
    kiln_buffer *x = NULL, *y = NULL;
    kiln_event *event = NULL;
    float a = 2, in[GATE_WIDTH], out[GATE_WIDTH];
    uint64_t took = 0;
    for (int i = 0; i < GATE_WIDTH; i++) {
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
    kiln_launch launch = {.struct_size = sizeof(launch),
                          .dims = 1,
                          .global = {GATE_WIDTH},
                          .args = args,
                          .arg_count = 3};
    RIG_OK(kiln_queue_launch(queue, program, "saxpy", &launch, &event, &diag));
    RIG_OK(kiln_event_wait(event, &diag));
    RIG_OK(kiln_event_elapsed(event, &took, &diag));
    RIG_OK(kiln_queue_wait_event(queue, event, &diag));
    kiln_event_release(event);
    RIG_OK(kiln_queue_read(queue, y, 0, out, sizeof(out), &diag));
    for (int i = 1; i < GATE_WIDTH; i++) {
        assert_true(out[i] == out[0]);
    }
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
    kiln_queue_destroy(queue);
    return out[0] - 9; /* what the number adds */
}
