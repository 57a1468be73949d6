/* dropin_hip: level 2 with whatever hipRTC is here. What the cache gives is what hipRTC gave, byte
 * for byte (the code object, the log, the lowered names), for each of a list of options: from
 * memory, from disk, from a pack. Exit 77 without hipRTC. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/hip.h>

#include "conformance/dropin_rig.h"
#include "conformance/options.h"
#include "support/skip.h"
#include "support/tmpdir.h"

static char *dir;

typedef struct request {
    const char *text;
    const char *options[2];
    size_t option_count;
} request;

static char *describe(void *user, kiln_cache *cache, bool first)
{
    static const char *const expressions[] = {"scale<float>", "scale<int>"};
    const request *r = (const request *)user;
    const kiln_hiprtc_request asked = {.struct_size = sizeof(asked),
                                       .text = r->text,
                                       .name = "sense.cu",
                                       .options = r->options,
                                       .option_count = r->option_count,
                                       .expressions = expressions,
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
        (void)fprintf(out, "%s: %s\n", expressions[i], result->lowered[i]);
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

/* True with the real hipRTC. `most`: of the options. */
static bool check_all(const char *text, const char *target, size_t most)
{
    const char *const *options = conformance_options("hip");
    char arch[64];
    char *plain = NULL;
    size_t taken = 0;
    bool real = true;
    (void)snprintf(arch, sizeof(arch), "--offload-arch=%s", target);
    /* The fake hipRTC knows no option: a few of them do. */
    for (size_t i = 0; options[i] != NULL && i < most && (i < 4 || real); i++) {
        char name[48];
        char *compiled = NULL;
        request r = {text, {arch, options[i]}, options[i][0] != '\0' ? 2 : 1};
        (void)snprintf(name, sizeof(name), "%s-%zu", target, i);
        const dropin_case one = {dir, name, options[i], describe, NULL, &r};
        if (!dropin_compare(&one, &compiled)) {
            print_message("not taken: %s\n", options[i]);
            continue;
        }
        taken++;
        if (plain == NULL) {
            assert_string_equal(options[i], "");
            plain = compiled;
            compiled = NULL;
            real = strstr(plain, "_Zfake") == NULL;
        } else if (real) {
            check_effect(options[i], plain, compiled);
        }
        free(compiled);
    }
    free(plain);
    assert_true(taken >= (most < 6 ? most : real ? 6 : 4));
    return real;
}

static void a_hit_is_what_hiprtc_gave(void **state)
{
    static const char more[] = "template <class T> __global__ void scale(T *x)\n"
                               "{ x[threadIdx.x] *= (T)VALUE; }\n";
    (void)state;
    char *sense = kt_file_read(KILN_CONFORMANCE_DIR "/kernels/sense.cu", NULL);
    assert_non_null(sense);
    const size_t size = strlen(sense) + sizeof(more);
    char *text = malloc(size);
    assert_non_null(text);
    (void)snprintf(text, size, "%s%s", sense, more);
    if (check_all(text, "gfx90a", SIZE_MAX)) {
        (void)check_all(text, "gfx1030", 3);
    }
    free(text);
    free(sense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_hit_is_what_hiprtc_gave)};
    dir = kt_tmpdir_create();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kt_tmpdir_remove(dir);
    return failed;
}
