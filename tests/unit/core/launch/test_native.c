/* Buffers over memory of others and queues in streams of others, on the fake backend: who frees
 * what, and what a failing driver leaves. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/native.h>

#include "sys/thread.h"
#include "unit/core/rig.h"

static void memory_stays_its_owners(void **state)
{
    rig *r = (rig *)*state;
    float *mine = (float *)calloc(16, sizeof(float));
    float back[16] = {0};
    kiln_buffer *buffer = NULL;
    kiln_queue *queue = NULL;
    uint64_t address = 0;
    assert_non_null(mine);
    rig_open(r, NULL);
    RIG_OK(
        kiln_buffer_wrap(r->device, (uint64_t)(uintptr_t)mine, 16 * sizeof(float), &buffer, &diag));
    RIG_OK(kiln_buffer_address(buffer, &address, &diag));
    assert_true(address == (uint64_t)(uintptr_t)mine);
    RIG_OK(kiln_queue_create(r->device, &queue, &diag));
    const float two = 2.0F;
    RIG_OK(kiln_queue_fill(queue, buffer, 0, &two, sizeof(two), sizeof(back), &diag));
    RIG_OK(kiln_queue_read(queue, buffer, 0, back, sizeof(back), &diag));
    assert_true(back[15] == 2.0F && mine[15] == 2.0F);
    kiln_buffer_destroy(buffer);
    assert_true(mine[0] == 2.0F);
    kiln_queue_destroy(queue);
    rig_close(r);
    free(mine);
}

/* A queue that is a guest waits for nothing at its end: the host's own work may be long. */
static void the_end_of_a_guest_waits_for_nothing(void **state)
{
    rig *r = (rig *)*state;
    kiln_queue *host = NULL;
    kiln_queue *guest = NULL;
    uint64_t native = 0;
    rig_open(r, NULL);
    RIG_OK(kiln_queue_create(r->device, &host, &diag));
    RIG_OK(kiln_queue_native(host, &native, &diag));
    RIG_OK(kiln_queue_wrap(r->device, native, &guest, &diag));
    const uint64_t before = rig_calls(r, FAKE_FINISH);
    kiln_queue_destroy(guest);
    assert_int_equal(rig_calls(r, FAKE_FINISH), before);
    RIG_OK(kiln_queue_wait_queue(host, host, &diag));
    kiln_queue_destroy(host);
    assert_int_equal(rig_calls(r, FAKE_FINISH), before + 1);
    rig_close(r);
}

static void two_devices_are_not_ordered(void **state)
{
    rig *r = (rig *)*state;
    kiln_queue *queues[2] = {NULL};
    kiln_diag diag = KILN_DIAG_INIT;
    rig_open(r, NULL);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kiln_queue_create(kiln_runtime_device(r->runtime, i), &queues[i], &diag),
                         KILN_OK);
    }
    assert_int_equal(kiln_queue_wait_queue(queues[0], queues[1], &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "two devices"));
    kiln_diag_clear(&diag);
    kiln_queue_destroy(queues[0]);
    kiln_queue_destroy(queues[1]);
    rig_close(r);
}

static void a_failing_driver_leaves_nothing(void **state)
{
    rig *r = (rig *)*state;
    char memory[16];
    kiln_buffer *buffer = (kiln_buffer *)memory;
    kiln_queue *queue = (kiln_queue *)memory;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "buffer=nomem,queue=lost", 1), 0);
    rig_open(r, NULL);
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(
        kiln_buffer_wrap(r->device, (uint64_t)(uintptr_t)memory, sizeof(memory), &buffer, &diag),
        KILN_E_NOMEM);
    assert_null(buffer);
    assert_int_equal(kiln_queue_wrap(r->device, 7, &queue, &diag), KILN_E_DEVICE_LOST);
    assert_null(queue);
    kiln_diag_clear(&diag);
    rig_close(r);
}

/* --- exports ---------------------------------------------------------------------------------- */

enum { EXPORTS = 200, ENDERS = 4 };

static _Atomic int wakes;

static int run_later(void *user)
{
    (void)user;
    return 0;
}

static int count_wake(kiln_exports_run_fn *run, void *user)
{
    assert_true(run == run_later && user == NULL);
    (void)atomic_fetch_add(&wakes, 1);
    return -1; /* as Python does while too many wait: nothing is lost by it */
}

static size_t take_all(kiln_exports *exports)
{
    size_t taken = 0;
    for (void *managed = NULL; (managed = kiln_exports_take(exports)) != NULL; taken++) {
        kiln_export_free(managed);
    }
    return taken;
}

static void an_end_is_told_once_until_it_is_taken(void **state)
{
    kiln_exports *exports = NULL;
    void *managed[3] = {NULL};
    (void)state;
    atomic_store(&wakes, 0);
    RIG_OK(kiln_exports_create(count_wake, run_later, &exports, &diag));
    for (size_t i = 0; i < 3; i++) {
        RIG_OK(kiln_exports_add(exports, 64, &managed[i], &diag));
        assert_true((uintptr_t)managed[i] % sizeof(void *) == 0);
        assert_int_equal(((const char *)managed[i])[63], 0);
    }
    assert_null(kiln_exports_take(exports));
    kiln_export_end(managed[0]);
    kiln_export_end(managed[1]);
    assert_int_equal(atomic_load(&wakes), 1);
    assert_int_equal(take_all(exports), 2);
    kiln_exports_silence(exports);
    kiln_export_end(managed[2]);
    kiln_export_end(NULL);
    assert_int_equal(atomic_load(&wakes), 1);
    kiln_diag diag = KILN_DIAG_INIT;
    void *none = managed;
    assert_int_equal(kiln_exports_add(exports, SIZE_MAX - 4, &none, &diag), KILN_E_NOMEM);
    assert_null(none);
    kiln_diag_clear(&diag);
    kiln_exports_destroy(exports); /* with what is in its list */
    kiln_exports_destroy(NULL);
    kiln_export_free(NULL);
}

static void end_some(void *user)
{
    void **managed = (void **)user;
    for (size_t i = 0; i < EXPORTS / ENDERS; i++) {
        kiln_export_end(managed[i]);
    }
}

static void ends_come_from_any_thread(void **state)
{
    kiln_exports *exports = NULL;
    void *managed[EXPORTS] = {NULL};
    kn_thread *threads[ENDERS] = {NULL};
    size_t taken = 0;
    (void)state;
    RIG_OK(kiln_exports_create(NULL, NULL, &exports, &diag));
    for (size_t i = 0; i < EXPORTS; i++) {
        RIG_OK(kiln_exports_add(exports, 64, &managed[i], &diag));
    }
    for (size_t i = 0; i < ENDERS; i++) {
        RIG_OK(kn_thread_start(end_some, managed + i * (EXPORTS / ENDERS), &threads[i], &diag));
    }
    for (int looks = 0; looks < 100; looks++) {
        taken += take_all(exports);
    }
    for (size_t i = 0; i < ENDERS; i++) {
        kn_thread_join(threads[i]);
    }
    assert_int_equal(taken + take_all(exports), EXPORTS);
    kiln_exports_destroy(exports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_stays_its_owners, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(the_end_of_a_guest_waits_for_nothing, rig_setup,
                                        rig_teardown),
        cmocka_unit_test_setup_teardown(two_devices_are_not_ordered, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(a_failing_driver_leaves_nothing, rig_setup, rig_teardown),
        cmocka_unit_test(an_end_is_told_once_until_it_is_taken),
        cmocka_unit_test(ends_come_from_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
