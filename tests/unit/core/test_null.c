/* What the headers promise of all objects alike: ending none is fine, and so is retaining none. */
#include <kiln/cuda.h>
#include <kiln/hip.h>
#include <kiln/kiln.h>
#include <kiln/unstable/executor.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/remote.h>
#include <kiln/unstable/watch.h>

#include "support/cmocka.h"

static void ending_nothing_is_fine(void **state)
{
    kiln_diag_clear(NULL);
    kiln_recipe_destroy(NULL);
    kiln_blob_release(NULL);
    kiln_cache_destroy(NULL);
    kiln_pack_close(NULL);
    kiln_pack_writer_destroy(NULL);
    kiln_transfer_close(NULL);
    kiln_runtime_destroy(NULL);
    kiln_program_release(NULL);
    kiln_buffer_destroy(NULL);
    kiln_queue_destroy(NULL);
    kiln_event_release(NULL);
    kiln_executor_destroy(NULL);
    kiln_ticket_release(NULL);
    kiln_watch_destroy(NULL);
    kiln_nvrtc_result_destroy(NULL);
    kiln_hiprtc_result_destroy(NULL);
}

static void retaining_nothing_gives_nothing(void **state)
{
    assert_null(kiln_blob_retain(NULL));
    assert_null(kiln_program_retain(NULL));
    assert_null(kiln_event_retain(NULL));
    assert_null(kiln_ticket_retain(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ending_nothing_is_fine),
        cmocka_unit_test(retaining_nothing_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
