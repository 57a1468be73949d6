/* Running: built-in and compiled kernels, shapes, memory, events, and wrong launches. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "support/failalloc.h"
#include "unit/backends/cpu/rig.h"

#define OPS kn_backend_cpu.device
#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = a * x[i] + y[i];
    }
}

/* Each item adds one to its own place, and each group writes its argument. */
KILN_KERNEL(visit, KILN_VALUE(uint64_t, width), KILN_VALUE(uint64_t, depth),
            KILN_INOUT(uint32_t, seen), KILN_OUT(uint64_t, shape))
{
    KILN_ITEMS_XYZ(x, y, z)
    {
        seen[(z * depth + y) * width + x] += 1u;
    }
    if (KILN_GROUP_ID(0) + KILN_GROUP_ID(1) + KILN_GROUP_ID(2) == 0) {
        for (int i = 0; i < 3; i++) {
            shape[i] = KILN_LOCAL_SIZE(i);
            shape[3 + i] = KILN_GROUP_COUNT(i);
            shape[6 + i] = KILN_GLOBAL_SIZE(i);
            shape[9 + i] = KILN_GLOBAL_OFFSET(i);
        }
    }
}

KILN_KERNEL_GROUP(reverse, 32, 1, 1, KILN_IN(int, from), KILN_OUT(int, to), KILN_LOCAL(int, part),
                  KILN_LOCAL(char, more))
{
    KILN_ITEMS_X(i)
    {
        part[KILN_LOCAL_ID(0, i)] = from[i];
        more[KILN_LOCAL_ID(0, i)] = 1;
    }
    KILN_ITEMS_X(i)
    {
        const size_t local = KILN_LOCAL_ID(0, i);
        to[i] = part[KILN_ITEM_COUNT(0) - 1 - local] * more[local];
    }
}

static const kiln_cpu_kernel *const kernels[] = {KILN_KERNEL_REF(saxpy), KILN_KERNEL_REF(visit),
                                                 KILN_KERNEL_REF(reverse)};

static kiln_source builtin_source(void)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_BUILTIN;
    source.builtin = kernels;
    source.builtin_count = ARRAY(kernels);
    return source;
}

typedef struct running {
    rig r;
    void *program;
} running;

static int open_running(void **state)
{
    running *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    rig_open(&t->r, NULL);
    const kiln_source source = builtin_source();
    assert_int_equal(rig_load(&t->r, &source, NULL, &t->program), KILN_OK);
    *state = t;
    return 0;
}

static int close_running(void **state)
{
    running *t = *state;
    OPS->program_unload(t->r.device, t->program);
    rig_close(&t->r);
    free(t);
    return 0;
}

static kiln_sys_arg buffer_arg(void *buffer, size_t offset)
{
    return (kiln_sys_arg){.kind = KILN_ARG_BUFFER, .buffer = buffer, .offset = offset};
}

static kiln_sys_arg value_arg(const void *value, size_t size)
{
    return (kiln_sys_arg){.kind = KILN_ARG_VALUE, .value = value, .size = size};
}

static kiln_sys_arg local_arg(size_t size)
{
    return (kiln_sys_arg){.kind = KILN_ARG_LOCAL, .size = size};
}

static kiln_sys_launch launch_of(running *t, const char *entry, uint64_t x, uint64_t local,
                                 const kiln_sys_arg *args, size_t count)
{
    kiln_sys_launch launch = {.program = t->program,
                              .entry = entry,
                              .dims = 1,
                              .global = {x, 1, 1},
                              .args = args,
                              .arg_count = count};
    if (local != 0) {
        launch.local[0] = local;
        launch.local[1] = 1;
        launch.local[2] = 1;
    }
    return launch;
}

static void run_saxpy(running *t, void *program, size_t n)
{
    const float a = 3.0F;
    float *x = calloc(n, sizeof(*x));
    float *y = calloc(n, sizeof(*y));
    if (x == NULL || y == NULL) {
        fail();
        return;
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)i;
        y[i] = 1.0F;
    }
    void *bx = rig_buffer(&t->r, x, n * sizeof(*x));
    void *by = rig_buffer(&t->r, y, n * sizeof(*y));
    const kiln_sys_arg args[] = {value_arg(&a, sizeof(a)), buffer_arg(bx, 0), buffer_arg(by, 0)};
    kiln_sys_launch launch = launch_of(t, "saxpy", n, 0, args, 3);
    launch.program = program;
    assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_OK);
    rig_read(&t->r, by, y, n * sizeof(*y));
    for (size_t i = 0; i < n; i++) {
        assert_true(y[i] == 3.0F * (float)i + 1.0F);
    }
    OPS->buffer_destroy(t->r.device, bx);
    OPS->buffer_destroy(t->r.device, by);
    free(x);
    free(y);
}

static void builtin_kernels_run_on_all_threads(void **state)
{
    static const size_t sizes[] = {1, 63, 64, 1000, 4097, 100003};
    running *t = *state;
    for (size_t i = 0; i < ARRAY(sizes); i++) {
        run_saxpy(t, t->program, sizes[i]);
    }
}

static void a_builtin_source_has_no_stage(void **state)
{
    running *t = *state;
    size_t count = 7;
    assert_non_null(
        kn_backend_cpu.compiler->stages(t->r.instance, &t->r.target, KILN_LANG_BUILTIN, &count));
    assert_int_equal(count, 0);
    assert_null(
        kn_backend_cpu.compiler->stages(t->r.instance, &t->r.target, KILN_LANG_OPENCL_C, &count));
}

static void compiled_kernels_run(void **state)
{
    running *t = *state;
    const kiln_source source = rig_source(
        "saxpy.c", "#include <kiln_kernel.h>\n"
                   "KILN_KERNEL(saxpy, KILN_VALUE(float, a), KILN_IN(float, x), "
                   "KILN_INOUT(float, y))\n"
                   "{\n    KILN_ITEMS_X(i)\n    {\n        y[i] = a * x[i] + y[i];\n    }\n}\n");
    void *program = rig_build(&t->r, &source);
    run_saxpy(t, program, 5000);
    OPS->program_unload(t->r.device, program);
}

/* Two programs with kernels and state of one name; the second is loaded where the first was. */
static void each_program_is_its_own(void **state)
{
    running *t = *state;
    int32_t value = 0;
    void *buffer = rig_buffer(&t->r, &value, sizeof(value));
    const kiln_sys_arg args[] = {buffer_arg(buffer, 0)};
    for (int round = 0; round < 6; round++) {
        const kiln_define define = {"WHICH", round % 2 == 0 ? "10" : "20"};
        kiln_source source =
            rig_source("k.c", "#include <kiln_kernel.h>\nstatic int counter = WHICH;\n"
                              "KILN_KERNEL(count, KILN_OUT(int32_t, to))\n{\n"
                              "    to[0] = ++counter;\n}\n");
        source.defines = &define;
        source.define_count = 1;
        kn_artifact artifact;
        void *programs[2];
        assert_int_equal(rig_compile(&t->r, &source, &artifact), KILN_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(rig_load(&t->r, &source, &artifact, &programs[i]), KILN_OK);
        }
        for (int i = 0; i < 2; i++) {
            kiln_sys_launch launch = launch_of(t, "count", 1, 1, args, 1);
            launch.program = programs[i];
            assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_OK);
            rig_read(&t->r, buffer, &value, sizeof(value));
            assert_int_equal(value, (round % 2 == 0 ? 10 : 20) + 1);
        }
        OPS->program_unload(t->r.device, programs[0]);
        if (round >= 2) {
            OPS->program_unload(t->r.device, programs[1]);
        } else {
            kiln_sys_launch launch = launch_of(t, "count", 1, 1, args, 1);
            launch.program = programs[1];
            assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_OK);
            OPS->program_unload(t->r.device, programs[1]); /* while it may still be queued */
            assert_int_equal(OPS->queue_finish(t->r.queue, NULL), KILN_OK);
        }
        kn_artifact_deinit(&artifact);
    }
    OPS->buffer_destroy(t->r.device, buffer);
}

static void D3_a_damaged_object_is_rejected(void **state)
{
    running *t = *state;
    const kiln_source source =
        rig_source("k.c", "#include <kiln_kernel.h>\nKILN_KERNEL(nothing) {}\n");
    kn_artifact artifact;
    kn_artifact damaged;
    void *program = NULL;
    assert_int_equal(rig_compile(&t->r, &source, &artifact), KILN_OK);
    const size_t end = rig_loaded_size(&artifact);
    assert_true(end > 500 && end <= artifact.base.size);
    const size_t cuts[] = {0, 1, 63, 64, 500, end / 2, end - 1};
    for (size_t i = 0; i < ARRAY(cuts); i++) {
        kn_artifact_init(&damaged);
        kn_artifact_borrow(&damaged, KILN_LANG_NONE, kn_span_of(artifact.base.data, cuts[i]), NULL,
                           kn_span_of("", 0));
        assert_int_equal(rig_load(&t->r, &source, &damaged, &program), KILN_E_REJECTED);
        assert_null(program);
        kn_artifact_deinit(&damaged);
    }
    kn_artifact_deinit(&artifact);
}

static void an_entry_that_is_not_there_is_told(void **state)
{
    running *t = *state;
    const char *const entries[] = {"saxpy", "sapxy"};
    void *program = NULL;
    kiln_source source = builtin_source();
    source.entries = entries;
    source.entry_count = 2;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
    assert_int_equal(t->r.diag.status, KILN_E_INVALID);
    assert_non_null(strstr(t->r.diag.why, "sapxy"));
    assert_non_null(strstr(t->r.diag.why, "saxpy, visit, reverse"));
}

static void kernels_describe_themselves(void **state)
{
    running *t = *state;
    const kiln_param *params = NULL;
    size_t count = 0;
    assert_string_equal(OPS->program_entry(t->r.device, t->program, 0), "saxpy");
    assert_null(OPS->program_entry(t->r.device, t->program, 3));
    assert_int_equal(
        OPS->program_params(t->r.device, t->program, "saxpy", &params, &count, &t->r.diag),
        KILN_OK);
    assert_int_equal(count, 3);
    assert_string_equal(params[0].name, "a");
    assert_string_equal(params[0].type, "float");
    assert_int_equal(params[0].kind, KILN_ARG_VALUE);
    assert_int_equal(params[0].size, sizeof(float));
    assert_string_equal(params[1].type, "const float*");
    assert_string_equal(params[2].type, "float*");
    assert_int_equal(params[2].kind, KILN_ARG_BUFFER);
    assert_int_equal(
        OPS->program_params(t->r.device, t->program, "reverse", &params, &count, &t->r.diag),
        KILN_OK);
    assert_int_equal(params[2].kind, KILN_ARG_LOCAL);
    assert_int_equal(
        OPS->program_params(t->r.device, t->program, "nosuch", &params, &count, &t->r.diag),
        KILN_MISS);
}

/* Every item of every shape is visited exactly once, whole groups or not, offset or not. */
static void every_item_is_visited_once(void **state)
{
    static const struct {
        uint64_t global[3], local[3], offset[3];
    } shapes[] = {
        {{7, 5, 3}, {2, 2, 2}, {0, 0, 0}},      {{7, 5, 3}, {0, 0, 0}, {1, 2, 3}},
        {{64, 8, 1}, {16, 4, 1}, {0, 0, 0}},    {{1, 1, 1}, {1, 1, 1}, {5, 5, 5}},
        {{300, 17, 2}, {128, 3, 1}, {3, 0, 1}}, {{33, 1, 9}, {0, 0, 0}, {0, 0, 0}},
    };
    running *t = *state;
    for (size_t s = 0; s < ARRAY(shapes); s++) {
        const uint64_t width = shapes[s].global[0] + shapes[s].offset[0];
        const uint64_t depth = shapes[s].global[1] + shapes[s].offset[1];
        const uint64_t high = shapes[s].global[2] + shapes[s].offset[2];
        const size_t cells = (size_t)(width * depth * high);
        uint32_t *seen = calloc(cells, sizeof(*seen));
        uint64_t shape[12] = {0};
        assert_non_null(seen);
        void *bs = rig_buffer(&t->r, seen, cells * sizeof(*seen));
        void *bh = rig_buffer(&t->r, shape, sizeof(shape));
        const kiln_sys_arg args[] = {value_arg(&width, 8), value_arg(&depth, 8), buffer_arg(bs, 0),
                                     buffer_arg(bh, 0)};
        kiln_sys_launch launch = launch_of(t, "visit", 1, 0, args, 4);
        launch.dims = 3;
        memcpy(launch.global, shapes[s].global, sizeof(launch.global));
        memcpy(launch.local, shapes[s].local, sizeof(launch.local));
        memcpy(launch.offset, shapes[s].offset, sizeof(launch.offset));
        assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_OK);
        rig_read(&t->r, bs, seen, cells * sizeof(*seen));
        rig_read(&t->r, bh, shape, sizeof(shape));
        for (size_t i = 0; i < cells; i++) {
            const bool inside = i % width >= launch.offset[0] &&
                                i / width % depth >= launch.offset[1] &&
                                i / width / depth >= launch.offset[2];
            assert_int_equal(seen[i], inside ? 1 : 0);
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(shape[3 + i], (launch.global[i] - 1) / shape[i] + 1);
            assert_int_equal(shape[6 + i], launch.global[i]);
            assert_int_equal(shape[9 + i], launch.offset[i]);
        }
        OPS->buffer_destroy(t->r.device, bs);
        OPS->buffer_destroy(t->r.device, bh);
        free(seen);
    }
}

static void work_group_memory_is_each_groups_own(void **state)
{
    enum { N = 1000 };
    running *t = *state;
    int from[N];
    int to[N];
    for (int i = 0; i < N; i++) {
        from[i] = i;
    }
    void *bf = rig_buffer(&t->r, from, sizeof(from));
    void *bt = rig_buffer(&t->r, NULL, sizeof(to));
    const kiln_sys_arg args[] = {buffer_arg(bf, 0), buffer_arg(bt, 0), local_arg(32 * sizeof(int)),
                                 local_arg(32)};
    kiln_sys_launch launch = launch_of(t, "reverse", N, 0, args, 4);
    assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_OK);
    rig_read(&t->r, bt, to, sizeof(to));
    for (int i = 0; i < N; i++) {
        const int begin = i / 32 * 32;
        const int end = begin + 32 < N ? begin + 32 : N;
        assert_int_equal(to[i], end - 1 - (i - begin));
    }
    launch.local[0] = 16;
    launch.local[1] = launch.local[2] = 1;
    assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_E_INVALID);
    assert_non_null(strstr(t->r.diag.why, "32x1x1"));
    OPS->buffer_destroy(t->r.device, bf);
    OPS->buffer_destroy(t->r.device, bt);
}

static void wrong_launches_are_refused(void **state)
{
    running *t = *state;
    const float a = 1.0F;
    const double wide = 1.0;
    float data[16] = {0};
    void *b = rig_buffer(&t->r, data, sizeof(data));
    const kiln_sys_arg good[] = {value_arg(&a, 4), buffer_arg(b, 0), buffer_arg(b, 0)};
    const kiln_sys_arg swapped[] = {buffer_arg(b, 0), value_arg(&a, 4), buffer_arg(b, 0)};
    const kiln_sys_arg sized[] = {value_arg(&wide, 8), buffer_arg(b, 0), buffer_arg(b, 0)};
    const kiln_sys_arg none[] = {value_arg(&a, 4), buffer_arg(NULL, 0), buffer_arg(b, 0)};
    const kiln_sys_arg past[] = {value_arg(&a, 4), buffer_arg(b, 0), buffer_arg(b, 68)};
    const kiln_sys_arg odd[] = {value_arg(&a, 4), buffer_arg(b, 0), buffer_arg(b, 2)};
    const struct {
        const kiln_sys_arg *args;
        size_t count;
        uint64_t global, local;
        const char *entry, *what, *why;
    } cases[] = {
        {good, 2, 16, 0, "saxpy", "saxpy", "takes 3 arguments, 2 were given"},
        {swapped, 3, 16, 0, "saxpy", "argument 0 (a)", "it is a value"},
        {sized, 3, 16, 0, "saxpy", "argument 0 (a)", "float has 4 bytes, 8 were given"},
        {none, 3, 16, 0, "saxpy", "argument 1 (x)", "none was given"},
        {past, 3, 16, 0, "saxpy", "argument 2 (y)", "offset"},
        {odd, 3, 16, 0, "saxpy", "argument 2 (y)", "aligned"},
        {good, 3, 0, 0, "saxpy", "saxpy", "0"},
        {good, 3, 16, 5000, "saxpy", "saxpy", "4096"},
        {good, 3, UINT64_MAX, 4096, "saxpy", "", ""},
        {good, 3, 16, 0, "nosuch", "", "saxpy, visit, reverse"},
    };
    for (size_t i = 0; i < ARRAY(cases); i++) {
        kiln_sys_launch launch = launch_of(t, cases[i].entry, cases[i].global, cases[i].local,
                                           cases[i].args, cases[i].count);
        if (cases[i].global == UINT64_MAX) {
            launch.global[1] = 2;
        }
        assert_int_equal(OPS->queue_launch(t->r.queue, &launch, NULL, &t->r.diag), KILN_E_INVALID);
        assert_non_null(strstr(t->r.diag.what, cases[i].what));
        assert_non_null(strstr(t->r.diag.why, cases[i].why));
    }
    OPS->buffer_destroy(t->r.device, b);
}

static void buffers_fill_copy_and_keep_their_bounds(void **state)
{
    running *t = *state;
    const uint32_t pattern = 0xdeadbeefu;
    uint32_t data[16] = {0};
    void *one = rig_buffer(&t->r, data, sizeof(data));
    void *two = rig_buffer(&t->r, data, sizeof(data));
    assert_int_equal(OPS->queue_fill(t->r.queue, one, 16, &pattern, 4, 32, &t->r.diag), KILN_OK);
    assert_int_equal(OPS->queue_copy(t->r.queue, one, 0, two, 8, 40, &t->r.diag), KILN_OK);
    rig_read(&t->r, two, data, sizeof(data));
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(data[i], i >= 6 && i < 12 ? pattern : 0);
    }
    assert_int_equal(OPS->queue_fill(t->r.queue, one, 60, &pattern, 4, 8, NULL), KILN_E_INVALID);
    assert_int_equal(OPS->queue_fill(t->r.queue, one, 0, &pattern, 4, 6, NULL), KILN_E_INVALID);
    assert_int_equal(OPS->queue_copy(t->r.queue, one, 40, two, 0, 40, NULL), KILN_E_INVALID);
    assert_int_equal(OPS->queue_write(t->r.queue, one, 65, data, 0, NULL, NULL), KILN_E_INVALID);
    assert_int_equal(OPS->queue_read(t->r.queue, one, 1, data, 64, NULL, NULL), KILN_E_INVALID);
    OPS->buffer_destroy(t->r.device, one);
    OPS->buffer_destroy(t->r.device, two);
    void *huge = NULL;
    assert_int_equal(OPS->buffer_create(t->r.device, SIZE_MAX - 10, &huge, &t->r.diag),
                     KILN_E_NOMEM);
}

/* Asynchronous work in order; the buffer and the event outlive what the caller let go. */
static void events_tell_when_and_how_long(void **state)
{
    enum { N = 1 << 16 };
    running *t = *state;
    const float a = 2.0F;
    uint64_t ns = 0;
    float *x = calloc(N, sizeof(*x));
    float *back = calloc(N, sizeof(*back));
    void *events[3];
    assert_true(x != NULL && back != NULL);
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)(i % 100);
    }
    void *b = rig_buffer(&t->r, NULL, N * sizeof(*x));
    const kiln_sys_arg args[] = {value_arg(&a, 4), buffer_arg(b, 0), buffer_arg(b, 0)};
    const kiln_sys_launch launch = launch_of(t, "saxpy", N, 0, args, 3);
    assert_int_equal(OPS->queue_write(t->r.queue, b, 0, x, N * sizeof(*x), &events[0], &t->r.diag),
                     KILN_OK);
    assert_int_equal(OPS->queue_launch(t->r.queue, &launch, &events[1], &t->r.diag), KILN_OK);
    assert_int_equal(
        OPS->queue_read(t->r.queue, b, 0, back, N * sizeof(*x), &events[2], &t->r.diag), KILN_OK);
    OPS->buffer_destroy(t->r.device, b);
    assert_int_equal(OPS->event_wait(t->r.device, events[2], &t->r.diag), KILN_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(OPS->event_done(t->r.device, events[i]));
        assert_int_equal(OPS->event_elapsed(t->r.device, events[i], &ns, &t->r.diag), KILN_OK);
        assert_true(ns > 0);
        OPS->event_destroy(t->r.device, events[i]);
    }
    for (size_t i = 0; i < N; i++) {
        assert_true(back[i] == 3.0F * x[i]);
    }
    free(x);
    free(back);
}

static void *use_a_queue(void *user)
{
    running own = *(running *)user;
    assert_int_equal(OPS->queue_create(own.r.device, &own.r.queue, NULL), KILN_OK);
    for (size_t i = 0; i < 20; i++) {
        run_saxpy(&own, own.program, 3000 + i);
    }
    OPS->queue_destroy(own.r.device, own.r.queue);
    return NULL;
}

static void queues_share_the_threads(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_a_queue, *state), 0);
    }
    for (size_t i = 0; i < ARRAY(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void wrong_builtin_tables_are_refused(void **state)
{
    running *t = *state;
    kiln_cpu_kernel other = kiln_cpu_kernel_saxpy;
    const kiln_cpu_kernel *list[] = {&other};
    void *program = NULL;
    kiln_source source = builtin_source();
    source.builtin = list;
    source.builtin_count = 1;
    other.abi = KILN_CPU_ABI + 1;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
    other = kiln_cpu_kernel_saxpy;
    other.param_count = 17;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
    other = kiln_cpu_kernel_saxpy;
    other.group[0] = 5000;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
    list[0] = NULL;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
    source.builtin_count = 0;
    assert_int_equal(rig_load(&t->r, &source, NULL, &program), KILN_E_INVALID);
}

static void the_device_describes_itself(void **state)
{
    running *t = *state;
    kiln_device_info info = {0};
    assert_int_equal(OPS->device_info(t->r.instance, 0, &info, &t->r.diag), KILN_OK);
    assert_string_equal(info.backend, "cpu");
    assert_true(info.name[0] != '\0');
    assert_string_equal(info.target, t->r.target.name);
    assert_int_equal(info.device_class, KILN_DEVICE_SOFTWARE);
    assert_true(info.compute_units >= 1);
    assert_true(info.memory_bytes > 0);
    assert_int_equal(OPS->device_info(t->r.instance, 1, &info, &t->r.diag), KILN_E_INVALID);
}

/* Load, launch and read with every allocation failing in turn. */
static bool load_and_launch(void *user)
{
    running *t = user;
    const float a = 2.0F;
    float data[64] = {0};
    void *program = NULL;
    void *buffer = NULL;
    void *event = NULL;
    const kiln_source source = builtin_source();
    const kiln_load_request request = {.target = &t->r.target, .source = &source};
    bool worked = OPS->program_load(t->r.device, &request, &program, NULL) == KILN_OK &&
                  OPS->buffer_create(t->r.device, sizeof(data), &buffer, NULL) == KILN_OK;
    if (worked) {
        const kiln_sys_arg args[] = {value_arg(&a, 4), buffer_arg(buffer, 0),
                                     buffer_arg(buffer, 0)};
        kiln_sys_launch launch = launch_of(t, "saxpy", 64, 16, args, 3);
        launch.program = program;
        worked = OPS->queue_launch(t->r.queue, &launch, &event, NULL) == KILN_OK &&
                 OPS->queue_read(t->r.queue, buffer, 0, data, sizeof(data), NULL, NULL) == KILN_OK;
    }
    (void)OPS->queue_finish(t->r.queue, NULL);
    if (event != NULL) {
        OPS->event_destroy(t->r.device, event);
    }
    if (buffer != NULL) {
        OPS->buffer_destroy(t->r.device, buffer);
    }
    if (program != NULL) {
        OPS->program_unload(t->r.device, program);
    }
    return worked;
}

static void every_allocation_may_fail(void **state)
{
    assert_true(kt_failalloc_each(load_and_launch, *state) > 5);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_running, close_running)
    const struct CMUnitTest tests[] = {
        T(builtin_kernels_run_on_all_threads),
        T(a_builtin_source_has_no_stage),
        T(compiled_kernels_run),
        T(each_program_is_its_own),
        T(D3_a_damaged_object_is_rejected),
        T(an_entry_that_is_not_there_is_told),
        T(kernels_describe_themselves),
        T(every_item_is_visited_once),
        T(work_group_memory_is_each_groups_own),
        T(wrong_launches_are_refused),
        T(buffers_fill_copy_and_keep_their_bounds),
        T(events_tell_when_and_how_long),
        T(queues_share_the_threads),
        T(wrong_builtin_tables_are_refused),
        T(the_device_describes_itself),
        T(every_allocation_may_fail),
    };
    unsetenv("KILN_CPU_FEATURES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
