/* Threads of one instance: one opens NVRTC while others ask whether it is open, as a failing helper
 * does for the text of its error. The test fails under the thread sanitizer where they meet without
 * a lock, in whatever order they come. */
#include <stdatomic.h>

#include "apis/cuda/backend/instance.h"
#include "hal/artifact.h"
#include "sys/thread.h"
#include "unit/backends/cuda/world.h"

extern const kiln_backend kn_backend_cuda;

enum { ASKERS = 3 };

typedef struct asker {
    kn_thread *thread;
    kn_cuda *cuda;
    atomic_bool *tried;         /* read and written relaxed, so that it orders nothing */
    const kn_cuda_nvrtc *found; /* NULL: NVRTC was not open at the last question */
} asker;

static void ask_until_open(void *user)
{
    asker *a = user;
    bool last;
    do {
        last = atomic_load_explicit(a->tried, memory_order_relaxed);
        a->found = kn_cuda_nvrtc_bound(a->cuda);
    } while (a->found == NULL && !last);
}

static void one_opens_nvrtc_while_others_ask_for_it(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_report report = {0};
    asker askers[ASKERS];
    atomic_bool tried = false;
    const kn_cuda_nvrtc *nvrtc = NULL;
    void *instance = NULL;
    (void)state;
    ok(kn_backend_cuda.open(&kn_host, &instance, &report, &diag), &diag);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (asker){.cuda = instance, .tried = &tried};
        ok(kn_thread_start(ask_until_open, &askers[i], &askers[i].thread, &diag), &diag);
    }
    const kiln_status status = kn_cuda_nvrtc_get(instance, &nvrtc, &diag);
    atomic_store_explicit(&tried, true, memory_order_relaxed);
    for (int i = 0; i < ASKERS; i++) {
        kn_thread_join(askers[i].thread);
    }
    ok(status, &diag);
    for (int i = 0; i < ASKERS; i++) {
        assert_ptr_equal(askers[i].found, nvrtc);
    }
    kn_backend_cuda.close(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_opens_nvrtc_while_others_ask_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
