/* dropin_hip: level 2 with whatever hipRTC is here. What the cache gives is what hipRTC gave, byte
 * for byte (the code object, the log, the lowered names), for each of a list of options: from
 * memory, from disk, from a pack. Exit 77 without hipRTC. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/hip.h>

#include "conformance/dropin_rig.h"
#include "support/skip.h"
#include "support/tmpdir.h"

static char *dir;

static char *describe(void *user, kiln_cache *cache, bool first)
{
    const dropin_request *r = (const dropin_request *)user;
    const kiln_hiprtc_request asked = {.struct_size = sizeof(asked),
                                       .text = r->text,
                                       .name = "sense.cu",
                                       .options = r->options,
                                       .option_count = r->option_count,
                                       .expressions = dropin_expressions,
                                       .expression_count = 2};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_hiprtc_result *result = NULL;
    char *text = NULL;
    size_t size = 0;
    const kiln_status status = kiln_hiprtc_compile(cache, &asked, &result, &diag);
    if (status == KILN_E_UNAVAILABLE) {
        kn_test_skip("hip", diag.why);
    }
    if (status != KILN_OK && first) {
        print_message("%s\n", diag.log != NULL ? diag.log : diag.why);
        kiln_diag_clear(&diag);
        return NULL;
    }
    assert_int_equal(status, KILN_OK);
    assert_int_equal(result->lowered_count, 2);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    dropin_note_bytes(out, "log", result->log, strlen(result->log));
    for (size_t i = 0; i < 2; i++) {
        (void)fprintf(out, "%s: %s\n", dropin_expressions[i], result->lowered[i]);
    }
    dropin_note_bytes(out, "code", result->code, result->size);
    kiln_hiprtc_result_destroy(result);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* An option that changes nothing would test nothing: these change the code. */
static void check_effect(const char *option, const char *plain, const char *with)
{
    static const char *const changing[] = {"-O0", "-ffast-math", "-ffp-contract=off", "-DVALUE=7",
                                           "-fgpu-flush-denormals-to-zero"};
    for (size_t i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
        if (strcmp(changing[i], option) == 0 && strcmp(plain, with) == 0) {
            fail_msg("%s changes nothing", option);
        }
    }
}

static void a_hit_is_what_hiprtc_gave(void **state)
{
    (void)state;
    if (dropin_compare_options(dir, "hip", "--offload-arch=gfx90a", SIZE_MAX, 6, describe,
                               check_effect)) {
        (void)dropin_compare_options(dir, "hip", "--offload-arch=gfx1030", 3, 3, describe,
                                     check_effect);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_is_what_hiprtc_gave)};
    dir = kt_tmpdir_create();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kt_tmpdir_remove(dir);
    return failed;
}
