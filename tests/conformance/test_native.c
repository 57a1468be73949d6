/* What a program shares with other libraries of its device: memory by its address, and streams. A
 * backend without addresses says so. */
#include <string.h>

#include <kiln/unstable/native.h>

#include "conformance/suite.h"

enum { COUNT = 256 };

/* saxpy with factor 1: y += x. */
static void add(suite *s, kiln_queue *queue, kiln_buffer *x, kiln_buffer *y)
{
    float one = 1.0F;
    const kiln_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &one, .size = sizeof(one)},
                             {.kind = KILN_ARG_BUFFER, .buffer = x},
                             {.kind = KILN_ARG_BUFFER, .buffer = y}};
    const kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {COUNT}, .args = args, .arg_count = 3};
    OK(kiln_queue_launch(queue, KERNEL(s, "saxpy"), &launch, NULL, &diag));
}

static kiln_buffer *numbers(suite *s, float value)
{
    kiln_buffer *buffer = NULL;
    OK(kiln_buffer_create(s->device, COUNT * sizeof(float), &buffer, &diag));
    OK(kiln_queue_fill(s->queue, buffer, 0, &value, sizeof(value), COUNT * sizeof(float), &diag));
    OK(kiln_queue_finish(s->queue, &diag));
    return buffer;
}

static void expect_all(kiln_queue *queue, kiln_buffer *buffer, float value)
{
    float back[COUNT];
    OK(kiln_queue_read(queue, buffer, 0, back, sizeof(back), &diag));
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(back[i] == value);
    }
}

void memory_is_shared_by_its_address(suite *s)
{
    uint64_t address = 1;
    kiln_buffer *x = numbers(s, 1.0F);
    kiln_buffer *y = numbers(s, 2.0F);
    kiln_buffer *same = NULL;
    kiln_diag told = KILN_DIAG_INIT;
    kiln_status status = kiln_buffer_address(y, &address, &told);
    if (status == KILN_E_UNSUPPORTED) {
        assert_true(address == 0 && told.why[0] != '\0');
        EXPECT(KILN_E_UNSUPPORTED, kiln_buffer_wrap(s->device, 4096, 16, &same, &diag));
        assert_null(same);
        kiln_diag_clear(&told);
        kiln_buffer_destroy(x);
        kiln_buffer_destroy(y);
        return;
    }
    assert_int_equal(status, KILN_OK);
    assert_true(address != 0);
    OK(kiln_buffer_wrap(s->device, address, COUNT * sizeof(float), &same, &diag));
    assert_int_equal(kiln_buffer_size(same), COUNT * sizeof(float));
    assert_ptr_equal(kiln_buffer_device(same), s->device);
    add(s, s->queue, x, same);
    OK(kiln_queue_finish(s->queue, &diag));
    expect_all(s->queue, y, 3.0F);
    kiln_buffer_destroy(same); /* and the memory is still there */
    add(s, s->queue, x, y);
    expect_all(s->queue, y, 4.0F);
    REFUSED(kiln_buffer_wrap(s->device, 0, 16, &same, &diag));
    REFUSED(kiln_buffer_wrap(s->device, address, 0, &same, &diag));
    REFUSED(kiln_buffer_wrap(s->device, UINT64_MAX - 8, 16, &same, &diag));
    assert_null(same);
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
}

void a_queue_runs_in_the_stream_of_another(suite *s)
{
    uint64_t native = 1;
    kiln_queue *same = NULL;
    kiln_diag told = KILN_DIAG_INIT;
    if (kiln_queue_native(s->queue, &native, &told) == KILN_E_UNSUPPORTED) {
        assert_true(native == 0 && told.why[0] != '\0');
        EXPECT(KILN_E_UNSUPPORTED, kiln_queue_wrap(s->device, 2, &same, &diag));
        assert_null(same);
        kiln_diag_clear(&told);
        return;
    }
    kiln_buffer *x = numbers(s, 1.0F);
    kiln_buffer *y = numbers(s, 0.0F);
    uint64_t again = 0;
    OK(kiln_queue_wrap(s->device, native, &same, &diag));
    OK(kiln_queue_native(same, &again, &diag));
    assert_true(again == native);
    for (int i = 0; i < 8; i++) {
        add(s, i % 2 != 0 ? s->queue : same, x, y);
    }
    expect_all(same, y, 8.0F);
    kiln_queue_destroy(same); /* and the stream is still there */
    add(s, s->queue, x, y);
    expect_all(s->queue, y, 9.0F);
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
}

void queues_follow_each_other(suite *s)
{
    enum { TIMES = 30 };
    kiln_queue *other = NULL;
    kiln_buffer *x = numbers(s, 1.0F);
    kiln_buffer *y = numbers(s, 0.0F);
    OK(kiln_queue_create(s->device, &other, &diag));
    kiln_queue *queues[] = {s->queue, other};
    for (int i = 0; i < TIMES; i++) {
        add(s, queues[i % 2], x, y);
        OK(kiln_queue_wait_queue(queues[(i + 1) % 2], queues[i % 2], &diag));
    }
    expect_all(queues[TIMES % 2], y, (float)TIMES);
    OK(kiln_queue_wait_queue(other, other, &diag));
    kiln_queue_destroy(other);
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
}
