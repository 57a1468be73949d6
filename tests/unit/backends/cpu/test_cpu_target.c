/* Targets: "native" is a list of features, names and features go together, masks mask. */
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#include "apis/cpu/backend/target.h"
#include "unit/backends/cpu/rig.h"

static const kn_processor big = {.architecture = KN_ARCH_X86_64,
                                 .features = ((uint64_t)1 << KN_X86_FEATURE_COUNT) - 1};

static void name_of(const char *spelled, char *name)
{
    cpu_target target;
    assert_int_equal(kn_cpu_target_named(&big, spelled, &target, NULL), KILN_OK);
    kn_cpu_target_name(&target, name, 64);
}

static void levels_keep_their_names(void **state)
{
    static const char *const names[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"};
    char name[64];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        name_of(names[i], name);
        assert_string_equal(name, names[i]);
    }
}

static void a_name_that_is_shown_can_be_asked_for(void **state)
{
    char name[64];
    char again[64];
    unsetenv("KILN_CPU_FEATURES");
    name_of("native", name);
    assert_null(strstr(name, "native"));
    name_of(name, again);
    assert_string_equal(again, name);
    assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-"), strlen(name));
}

static void unknown_names_are_refused(void **state)
{
    static const char *const names[] = {
        "",           "x86-64-v5", "x86-64-v3_",           "x86-64-v3_zz",
        "sm_90",      "x86",       "aarch64_ffffffffffff", "native-v3",
        "x86-64-v3+1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cpu_target target;
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(kn_cpu_target_named(&big, names[i], &target, &diag), KILN_E_INVALID);
        assert_true(diag.fix[0] != '\0');
        kiln_diag_clear(&diag);
    }
}

static void a_feature_without_what_it_needs_is_dropped(void **state)
{
    kn_processor odd = big;
    cpu_target target;
    kn_strbuf text;
    unsetenv("KILN_CPU_FEATURES");
    odd.features &= ~((uint64_t)1 << KN_X86_AVX);
    assert_int_equal(kn_cpu_target_native(&odd, &target, NULL), KILN_OK);
    kn_strbuf_init(&text, 0);
    kn_cpu_target_features(&target, &text);
    assert_null(strstr(kn_strbuf_text(&text), "avx"));
    assert_null(strstr(kn_strbuf_text(&text), "fma"));
    assert_non_null(strstr(kn_strbuf_text(&text), "sse4.2"));
    kn_strbuf_deinit(&text);
}

static void malformed_masks_name_the_variable(void **state)
{
    cpu_target target;
    kiln_diag diag = KILN_DIAG_INIT;
    setenv("KILN_CPU_FEATURES", "-avx512f,-notathing", 1);
    assert_int_equal(kn_cpu_target_native(&big, &target, &diag), KILN_E_INVALID);
    assert_string_equal(diag.what, "KILN_CPU_FEATURES");
    assert_non_null(strstr(diag.why, "-notathing"));
    kiln_diag_clear(&diag);
    unsetenv("KILN_CPU_FEATURES");
}

/* The literal "native" is nowhere in what a key is made of, and another set of features is another
 * target, another identity and other flags. */
static void K10_native_is_resolved(void **state)
{
    rig r;
    char *whole = NULL;
    char *masked = NULL;
    char target[64];
    unsetenv("KILN_CPU_FEATURES");
    rig_open(&r, NULL);
    kiln_target native = {.handle = NULL};
    assert_int_equal(kn_backend_cpu.compiler->target_parse(r.instance, "native", &native, &r.diag),
                     KILN_OK);
    assert_string_equal(native.name, r.target.name);
    whole = rig_identity(&r, &native);
    assert_null(strstr(whole, "native"));
    assert_non_null(strstr(whole, "features="));
    kn_backend_cpu.compiler->target_destroy(r.instance, &native);
    memcpy(target, r.target.name, sizeof(target));
    const cpu_target before = rig_cpu(&r)->native;
    rig_close(&r);

    setenv("KILN_CPU_FEATURES", before.architecture == KN_ARCH_X86_64 ? "-sse3" : "-crc", 1);
    rig_open(&r, NULL);
    if (rig_cpu(&r)->native.features == before.features) {
        skip(); /* a processor without anything to mask */
    }
    masked = rig_identity(&r, &r.target);
    assert_string_not_equal(whole, masked);
    assert_string_not_equal(target, r.target.name);
    if (before.architecture == KN_ARCH_X86_64) {
        assert_null(strstr(masked, "-mavx"));
    }
    rig_close(&r);
    unsetenv("KILN_CPU_FEATURES");
    free(whole);
    free(masked);
}

/* An object for features that this machine does not have is refused before it is mapped, not when
 * it meets an instruction it cannot run. */
static void K10_an_object_for_more_features_is_refused(void **state)
{
    rig r;
    rig small;
    kn_artifact artifact;
    void *program = NULL;
    const kiln_source source =
        rig_source("k.c", "#include <kiln_kernel.h>\nKILN_KERNEL(nothing) {}\n");
    unsetenv("KILN_CPU_FEATURES");
    rig_open(&r, NULL);
    assert_int_equal(rig_compile(&r, &source, &artifact), KILN_OK);
    setenv("KILN_CPU_FEATURES", r.target.name[0] == 'x' ? "-sse3" : "-crc", 1);
    rig_open(&small, NULL);
    if (rig_cpu(&small)->native.features == rig_cpu(&r)->native.features) {
        skip();
    }
    const kiln_artifact *const list[] = {&artifact.base};
    const kiln_load_request request = {
        .target = &r.target, .source = &source, .artifacts = list, .artifact_count = 1};
    assert_int_equal(
        kn_backend_cpu.device->program_load(small.device, &request, &program, &small.diag),
        KILN_E_REJECTED);
    kn_artifact_deinit(&artifact);
    rig_close(&small);
    rig_close(&r);
    unsetenv("KILN_CPU_FEATURES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_keep_their_names),
        cmocka_unit_test(a_name_that_is_shown_can_be_asked_for),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(a_feature_without_what_it_needs_is_dropped),
        cmocka_unit_test(malformed_masks_name_the_variable),
        cmocka_unit_test(K10_native_is_resolved),
        cmocka_unit_test(K10_an_object_for_more_features_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
