/* Running: buffers, queues, launches, events. */
#include <string.h>

#include <kiln/unstable/native.h>

#include "conformance/suite.h"

#define COUNT 64

static kiln_buffer *create(suite *s, size_t size)
{
    kiln_buffer *buffer = NULL;
    OK(kiln_buffer_create(s->device, size, &buffer, &diag));
    assert_int_equal(kiln_buffer_size(buffer), size);
    assert_ptr_equal(kiln_buffer_device(buffer), s->device);
    return buffer;
}

static kiln_arg buffer_arg(kiln_buffer *buffer)
{
    kiln_arg arg = {.kind = KILN_ARG_BUFFER, .buffer = buffer};
    return arg;
}

static kiln_arg value_arg(const void *value, size_t size)
{
    kiln_arg arg = {.kind = KILN_ARG_VALUE, .value = value, .size = size};
    return arg;
}

static kiln_launch launch_of(uint64_t global, uint64_t local, const kiln_arg *args, size_t count)
{
    kiln_launch launch = {.struct_size = sizeof(launch),
                          .dims = 1,
                          .global = {global},
                          .local = {local},
                          .args = args,
                          .arg_count = count};
    return launch;
}

void buffers_keep_bytes_at_offsets(suite *s)
{
    unsigned char bytes[256];
    unsigned char back[256];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    kiln_buffer *buffer = create(s, sizeof(bytes));
    OK(kiln_queue_write(s->queue, buffer, 0, bytes, sizeof(bytes), &diag));
    OK(kiln_queue_write(s->queue, buffer, 13, bytes, 5, &diag));
    memmove(bytes + 13, bytes, 5);
    OK(kiln_queue_read(s->queue, buffer, 0, back, sizeof(back), &diag));
    assert_memory_equal(bytes, back, sizeof(bytes));
    OK(kiln_queue_read(s->queue, buffer, 250, back, 6, &diag));
    assert_memory_equal(bytes + 250, back, 6);
    OK(kiln_queue_read(s->queue, buffer, 256, back, 0, &diag));
    kiln_buffer_destroy(buffer);
    buffer = create(s, 1);
    kiln_buffer_destroy(buffer);
    kiln_buffer_destroy(NULL);
}

void ranges_outside_a_buffer_are_refused(suite *s)
{
    char bytes[16] = {0};
    kiln_buffer *buffer = create(s, sizeof(bytes));
    kiln_buffer *none = NULL;
    REFUSED(kiln_queue_write(s->queue, buffer, 1, bytes, sizeof(bytes), &diag));
    REFUSED(kiln_queue_read(s->queue, buffer, 17, bytes, 0, &diag));
    REFUSED(kiln_queue_read(s->queue, buffer, SIZE_MAX, bytes, 2, &diag));
    REFUSED(kiln_queue_fill(s->queue, buffer, 8, bytes, 4, 16, &diag));
    REFUSED(kiln_queue_write(s->queue, NULL, 0, bytes, 1, &diag));
    REFUSED(kiln_buffer_create(s->device, 0, &none, &diag));
    assert_null(none);
    kiln_buffer_destroy(buffer);
}

void fills_repeat_their_pattern(suite *s)
{
    unsigned char pattern[16];
    unsigned char expected[COUNT];
    unsigned char back[COUNT];
    for (size_t i = 0; i < sizeof(pattern); i++) {
        pattern[i] = (unsigned char)(i + 1);
    }
    kiln_buffer *buffer = create(s, COUNT);
    for (size_t size = 1; size <= 16; size *= 2) {
        memset(expected, 0xEE, sizeof(expected));
        OK(kiln_queue_write(s->queue, buffer, 0, expected, COUNT, &diag));
        for (size_t i = 16; i < 48; i++) {
            expected[i] = pattern[(i - 16) % size];
        }
        OK(kiln_queue_fill(s->queue, buffer, 16, pattern, size, 32, &diag));
        OK(kiln_queue_read(s->queue, buffer, 0, back, COUNT, &diag));
        assert_memory_equal(back, expected, COUNT);
    }
    REFUSED(kiln_queue_fill(s->queue, buffer, 0, pattern, 3, 12, &diag));
    REFUSED(kiln_queue_fill(s->queue, buffer, 2, pattern, 4, 8, &diag));
    REFUSED(kiln_queue_fill(s->queue, buffer, 0, pattern, 4, 6, &diag));
    kiln_buffer_destroy(buffer);
}

void copies_go_between_buffers(suite *s)
{
    unsigned char bytes[COUNT];
    unsigned char back[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = (unsigned char)i;
    }
    kiln_buffer *from = create(s, COUNT);
    kiln_buffer *to = create(s, COUNT);
    OK(kiln_queue_write(s->queue, from, 0, bytes, COUNT, &diag));
    OK(kiln_queue_write(s->queue, to, 0, bytes, COUNT, &diag));
    OK(kiln_queue_copy(s->queue, from, 32, to, 4, 16, &diag));
    OK(kiln_queue_copy(s->queue, from, 0, from, 48, 16, &diag));
    OK(kiln_queue_read(s->queue, to, 0, back, COUNT, &diag));
    assert_memory_equal(back, bytes, 4);
    assert_memory_equal(back + 4, bytes + 32, 16);
    assert_memory_equal(back + 20, bytes + 20, COUNT - 20);
    OK(kiln_queue_read(s->queue, from, 48, back, 16, &diag));
    assert_memory_equal(back, bytes, 16);
    REFUSED(kiln_queue_copy(s->queue, from, 0, from, 8, 16, &diag));
    REFUSED(kiln_queue_copy(s->queue, from, 0, to, 60, 8, &diag));
    kiln_buffer_destroy(from);
    kiln_buffer_destroy(to);
}

void saxpy_is_right(suite *s)
{
    float x[COUNT];
    float y[COUNT];
    float back[COUNT];
    float a = 2.5F;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = (float)(100 - i);
    }
    kiln_buffer *bx = create(s, sizeof(x));
    kiln_buffer *by = create(s, sizeof(y));
    OK(kiln_queue_write(s->queue, bx, 0, x, sizeof(x), &diag));
    OK(kiln_queue_write(s->queue, by, 0, y, sizeof(y), &diag));
    kiln_arg args[] = {value_arg(&a, sizeof(a)), buffer_arg(bx), buffer_arg(by)};
    kiln_launch launch = launch_of(COUNT, 0, args, 3);
    OK(kiln_queue_launch(s->queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
    a = 0; /* arguments are copied at the launch */
    OK(kiln_queue_read(s->queue, by, 0, back, sizeof(back), &diag));
    for (int i = 0; i < COUNT; i++) {
        assert_true(back[i] == 2.5F * x[i] + y[i]);
    }
    kiln_buffer_destroy(bx);
    kiln_buffer_destroy(by);
}

static void check_shape(suite *s, uint32_t dims, const uint64_t *global, const uint64_t *local)
{
    int back[512];
    size_t items = 1;
    kiln_launch launch = launch_of(0, 0, NULL, 1);
    launch.dims = dims;
    for (uint32_t i = 0; i < dims; i++) {
        launch.global[i] = global[i];
        launch.local[i] = local[i];
        items *= (size_t)global[i];
    }
    kiln_buffer *out = create(s, items * sizeof(int));
    kiln_arg arg = buffer_arg(out);
    launch.args = &arg;
    OK(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    OK(kiln_queue_read(s->queue, out, 0, back, items * sizeof(int), &diag));
    for (size_t i = 0; i < items; i++) {
        size_t x = i % (size_t)launch.global[0];
        size_t y = dims > 1 ? i / (size_t)launch.global[0] % (size_t)launch.global[1] : 0;
        size_t z = dims > 2 ? i / (size_t)(launch.global[0] * launch.global[1]) : 0;
        assert_int_equal(back[i], x + 100 * y + 10000 * z);
    }
    kiln_buffer_destroy(out);
}

void launches_have_one_to_three_dimensions(suite *s)
{
    static const uint64_t any[3] = {0, 0, 0};
    static const uint64_t global[3] = {8, 6, 4};
    static const uint64_t local[3] = {4, 2, 2};
    for (uint32_t dims = 1; dims <= 3; dims++) {
        check_shape(s, dims, global, any);
        check_shape(s, dims, global, local);
    }
}

void work_groups_share_memory(suite *s)
{
    int in[COUNT];
    int back[COUNT];
    for (int i = 0; i < COUNT; i++) {
        in[i] = i * 3;
    }
    kiln_buffer *from = create(s, sizeof(in));
    kiln_buffer *to = create(s, sizeof(in));
    OK(kiln_queue_write(s->queue, from, 0, in, sizeof(in), &diag));
    kiln_arg local = {.kind = KILN_ARG_LOCAL, .size = 8 * sizeof(int)};
    kiln_arg args[] = {buffer_arg(from), buffer_arg(to), local};
    kiln_launch launch = launch_of(COUNT, 8, args, 3);
    OK(kiln_queue_launch(s->queue, KERNEL(s, "reverse"), &launch, NULL, &diag));
    OK(kiln_queue_read(s->queue, to, 0, back, sizeof(back), &diag));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(back[i], in[i - i % 8 + 7 - i % 8]);
    }
    kiln_buffer_destroy(from);
    kiln_buffer_destroy(to);
}

void buffer_arguments_have_offsets(suite *s)
{
    int back[COUNT];
    int zero = 0;
    kiln_buffer *out = create(s, 1024 + sizeof(back));
    OK(kiln_queue_fill(s->queue, out, 0, &zero, sizeof(zero), 1024 + sizeof(back), &diag));
    kiln_arg arg = buffer_arg(out);
    arg.offset = 1024; /* a multiple of every device's alignment */
    kiln_launch launch = launch_of(COUNT, 0, &arg, 1);
    OK(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    OK(kiln_queue_read(s->queue, out, 1024, back, sizeof(back), &diag));
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(back[i], i);
    }
    OK(kiln_queue_read(s->queue, out, 0, back, sizeof(back), &diag));
    assert_int_equal(back[1], 0);
    arg.offset = 1024 + sizeof(back);
    REFUSED(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    kiln_buffer_destroy(out);
}

void wrong_arguments_are_refused(suite *s)
{
    float a = 1;
    double wide = 1;
    kiln_buffer *buffer = create(s, COUNT * sizeof(float));
    const kiln_arg good[] = {value_arg(&a, sizeof(a)), buffer_arg(buffer), buffer_arg(buffer)};
    const struct {
        size_t at;
        kiln_arg arg;
    } wrong[] = {{0, value_arg(&wide, sizeof(wide))},
                 {0, buffer_arg(buffer)},
                 {0, value_arg(NULL, sizeof(a))},
                 {1, value_arg(&a, sizeof(a))},
                 {1, buffer_arg(NULL)},
                 {1, {.size = 0}}};
    kiln_launch launch = launch_of(COUNT, 0, good, 3);
    REFUSED(kiln_queue_launch(s->queue, s->basics, "no_such_kernel", &launch, NULL, &diag));
    REFUSED(kiln_queue_launch(s->queue, s->basics, NULL, &launch, NULL, &diag));
    launch.arg_count = 2;
    REFUSED(kiln_queue_launch(s->queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
    launch.arg_count = 3;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        kiln_arg args[3];
        memcpy(args, good, sizeof(args));
        args[wrong[i].at] = wrong[i].arg;
        launch.args = args;
        REFUSED(kiln_queue_launch(s->queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
    }
    launch.args = good;
    OK(kiln_queue_launch(s->queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
    OK(kiln_queue_finish(s->queue, &diag));
    kiln_buffer_destroy(buffer);
}

void wrong_shapes_are_refused(suite *s)
{
    static const struct {
        uint32_t dims;
        uint64_t global[2], local;
        size_t size;
    } wrong[] = {{0, {COUNT}, 0, sizeof(kiln_launch)},
                 {4, {COUNT}, 0, sizeof(kiln_launch)},
                 {1, {0}, 0, sizeof(kiln_launch)},
                 {2, {COUNT, 1}, 4, sizeof(kiln_launch)}, /* and none in the other */
                 {1, {(uint64_t)1 << 40}, (uint64_t)1 << 40, sizeof(kiln_launch)},
                 {1, {COUNT}, 0, 4}};
    kiln_buffer *out = create(s, COUNT * sizeof(int));
    kiln_arg arg = buffer_arg(out);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        kiln_launch launch = launch_of(wrong[i].global[0], wrong[i].local, &arg, 1);
        launch.dims = wrong[i].dims;
        launch.global[1] = wrong[i].global[1];
        launch.struct_size = wrong[i].size;
        REFUSED(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    }
    kiln_buffer_destroy(out);
}

void things_of_another_device_are_refused(suite *s)
{
    if (kiln_runtime_device_count(s->runtime) < 2) {
        print_message("one device only: nothing to mix up\n");
        return;
    }
    kiln_device *other = kiln_runtime_device(s->runtime, 1);
    kiln_queue *queue = NULL;
    kiln_buffer *buffer = NULL;
    int zero = 0;
    OK(kiln_queue_create(other, &queue, &diag));
    OK(kiln_buffer_create(other, COUNT * sizeof(int), &buffer, &diag));
    kiln_arg arg = buffer_arg(buffer);
    kiln_launch launch = launch_of(COUNT, 0, &arg, 1);
    REFUSED(kiln_queue_write(s->queue, buffer, 0, &zero, sizeof(zero), &diag));
    REFUSED(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    REFUSED(kiln_queue_launch(queue, KERNEL(s, "shape"), &launch, NULL, &diag));
    kiln_buffer_destroy(buffer);
    kiln_queue_destroy(queue);
}

void events_tell_time(suite *s)
{
    kiln_event *event = NULL;
    uint64_t ns = 0;
    kiln_buffer *out = create(s, COUNT * sizeof(int));
    kiln_arg arg = buffer_arg(out);
    kiln_launch launch = launch_of(COUNT, 0, &arg, 1);
    OK(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &launch, &event, &diag));
    assert_non_null(event);
    assert_ptr_equal(kiln_event_retain(event), event);
    kiln_event_release(event);
    OK(kiln_event_wait(event, &diag));
    OK(kiln_event_elapsed(event, &ns, &diag));
    assert_true(ns > 0 && ns < 60000000000ull);
    kiln_event_release(event);
    kiln_event_release(NULL);
    kiln_buffer_destroy(out);
}

/* Each launch reads what the one before it wrote. */
void a_queue_keeps_its_order(suite *s)
{
    float ones[COUNT];
    float back[COUNT];
    float one = 1.0F;
    for (int i = 0; i < COUNT; i++) {
        ones[i] = 1.0F;
    }
    kiln_buffer *x = create(s, sizeof(ones));
    kiln_buffer *y = create(s, sizeof(ones));
    OK(kiln_queue_write(s->queue, x, 0, ones, sizeof(ones), &diag));
    OK(kiln_queue_fill(s->queue, y, 0, "\0\0\0\0", 4, sizeof(ones), &diag));
    kiln_arg args[] = {value_arg(&one, sizeof(one)), buffer_arg(x), buffer_arg(y)};
    kiln_launch launch = launch_of(COUNT, 0, args, 3);
    for (int i = 0; i < 50; i++) {
        OK(kiln_queue_launch(s->queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
    }
    OK(kiln_queue_copy(s->queue, y, 0, x, 0, sizeof(ones), &diag));
    OK(kiln_queue_read(s->queue, x, 0, back, sizeof(back), &diag));
    for (int i = 0; i < COUNT; i++) {
        assert_true(back[i] == 50.0F);
    }
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
}

void two_queues_do_not_disturb_each_other(suite *s)
{
    kiln_queue *other = NULL;
    int back[COUNT];
    OK(kiln_queue_create(s->device, &other, &diag));
    kiln_buffer *first = create(s, sizeof(back));
    kiln_buffer *second = create(s, sizeof(back));
    for (int i = 0; i < 20; i++) {
        kiln_arg a = buffer_arg(first);
        kiln_arg b = buffer_arg(second);
        kiln_launch la = launch_of(COUNT, 0, &a, 1);
        kiln_launch lb = launch_of(COUNT, 8, &b, 1);
        OK(kiln_queue_launch(s->queue, KERNEL(s, "shape"), &la, NULL, &diag));
        OK(kiln_queue_launch(other, KERNEL(s, "shape"), &lb, NULL, &diag));
    }
    OK(kiln_queue_finish(other, &diag));
    OK(kiln_queue_read(other, second, 0, back, sizeof(back), &diag));
    assert_int_equal(back[COUNT - 1], COUNT - 1);
    kiln_queue_destroy(other); /* the first goes on without it */
    OK(kiln_queue_read(s->queue, first, 0, back, sizeof(back), &diag));
    assert_int_equal(back[COUNT - 1], COUNT - 1);
    kiln_queue_destroy(NULL);
    kiln_buffer_destroy(first);
    kiln_buffer_destroy(second);
}
