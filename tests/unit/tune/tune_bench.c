/* The kernel and its variants. */
#include "unit/tune/tune_bench.h"

#include <string.h>

const char bench_slow[] = "kernel f x:floats y:floats\ny = x 1 + x + 0 + 0 + 0 +\n";
const char bench_quick[] = "kernel f x:floats y:floats\ny = x 2 * 1 +\n";

void bench_add(bench *b, const char *name, const char *text, uint64_t local)
{
    const size_t index = b->kernel.variant_count++;
    b->sources[index] = rig_source(text);
    b->variants[index] = (kiln_variant){
        .struct_size = sizeof(kiln_variant),
        .name = name,
        .source = &b->sources[index],
        .entry = "f",
        .launch = {
            .struct_size = sizeof(kiln_launch), .dims = 1, .global = {ITEMS}, .local = {local}}};
    b->kernel.variants = b->variants;
}

/* Buffers, arguments and options on the runtime that is open. */
static void fill(bench *b)
{
    float x[ITEMS];
    float y[ITEMS];
    kiln_queue *queue = NULL;
    RIG_OK(kiln_queue_create(b->r->device, &queue, &diag));
    RIG_OK(kiln_buffer_create(b->r->device, sizeof(x), &b->x, &diag));
    RIG_OK(kiln_buffer_create(b->r->device, sizeof(y), &b->y, &diag));
    for (size_t i = 0; i < ITEMS; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    RIG_OK(kiln_queue_write(queue, b->x, 0, x, sizeof(x), &diag));
    RIG_OK(kiln_queue_write(queue, b->y, 0, y, sizeof(y), &diag));
    kiln_queue_destroy(queue);
    b->args[0] = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = b->x};
    b->args[1] = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = b->y};
    b->output = (kiln_tune_output){.arg = 1, .element = KILN_ELEMENT_F32};
    b->kernel = (kiln_kernel){.struct_size = sizeof(kiln_kernel),
                              .name = "f",
                              .sizes = b->sizes,
                              .size_count = 2,
                              .flops = 32,
                              .bytes = 128};
    b->options = (kiln_tune_options){.struct_size = sizeof(kiln_tune_options),
                                     .args = b->args,
                                     .arg_count = 2,
                                     .outputs = &b->output,
                                     .output_count = 1,
                                     .budget_ms = 3600000, /* counts, not times, decide here */
                                     .rows = b->rows};
    for (size_t i = 0; i < sizeof(b->rows) / sizeof(b->rows[0]); i++) {
        b->rows[i].struct_size = sizeof(b->rows[i]);
    }
    b->tuning.struct_size = sizeof(b->tuning);
}

void bench_open(bench *b, void **state)
{
    *b = (bench){.r = *state, .sizes = {1000, 64}};
    rig_open(b->r, NULL);
    fill(b);
}

void bench_share(bench *b, const bench *owner)
{
    *b = (bench){.r = owner->r, .sizes = {1000, 64}};
    fill(b);
}

void bench_close(bench *b)
{
    kiln_buffer_destroy(b->x);
    kiln_buffer_destroy(b->y);
    rig_close(b->r);
}

void bench_add_usual(bench *b)
{
    bench_add(b, "plain", bench_slow, 4);
    bench_add(b, "quick", bench_quick, 4);
    bench_add(b, "quick8", bench_quick, 8);
}

void bench_tune(bench *b)
{
    RIG_OK(kiln_tune(b->r->device, &b->kernel, &b->options, &b->tuning, &diag));
}

kiln_status bench_build(bench *b, kiln_tuning *out_tuning)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_status status =
        kiln_tuned_build(b->r->device, &b->kernel, NULL, &program, out_tuning, &diag);
    assert_true((status == KILN_OK) == (program != NULL));
    kiln_program_release(program);
    kiln_diag_clear(&diag);
    return status;
}

size_t bench_picked(bench *b)
{
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    assert_int_equal(bench_build(b, &tuning), KILN_OK);
    return tuning.variant;
}
