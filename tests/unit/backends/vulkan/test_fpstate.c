/* K1: the caller's floating-point state is in no result of a compile of kiln's, and is the caller's
 * own afterwards. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "kiln/kiln.h"
#include "kiln/unstable/compile.h"

#include "support/skip.h"
#include "sys/fpstate.h"

static const char text[] = "#version 450\n"
                           "layout(local_size_x = 1) in;\n"
                           "layout(std430, binding = 0) buffer B { float y[]; };\n"
                           "const float s = 0.1 * 0.7 + 2.5e-3;\n"
                           "const float t = 1.0e-38 * 5.0e-1;\n"
                           "void main() { y[0] = s; y[1] = t; }\n";

typedef enum fp_kind { DEFAULT, UPWARD, TO_ZERO, FLUSHED, TRAPPED, KINDS } fp_kind;

/* False where the system has no such state. */
static bool set_state(fp_kind kind)
{
    switch (kind) {
    case UPWARD:
        return fesetround(FE_UPWARD) == 0;
    case TO_ZERO:
        return fesetround(FE_TOWARDZERO) == 0;
    case FLUSHED:
#if defined(__x86_64__)
        _mm_setcsr(_mm_getcsr() | 0x8040u);
        return true;
#else
        return false;
#endif
    case TRAPPED:
#if defined(__GLIBC__)
        return feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) != -1;
#else
        return false;
#endif
    default:
        return true;
    }
}

static bool has_state(fp_kind kind)
{
#if defined(__GLIBC__)
    const bool trapped = fegetexcept() != 0;
#else
    const bool trapped = false;
#endif
#if defined(__x86_64__)
    const bool flushed = (_mm_getcsr() & 0x8040u) == 0x8040u;
#else
    const bool flushed = false;
#endif
    return fegetround() == (kind == UPWARD    ? FE_UPWARD
                            : kind == TO_ZERO ? FE_TOWARDZERO
                                              : FE_TONEAREST) &&
           trapped == (kind == TRAPPED) && flushed == (kind == FLUSHED);
}

static void a_state_is_entered_and_left(void **state)
{
    for (fp_kind kind = DEFAULT; kind < KINDS; kind++) {
        kn_fp_state saved;
        if (!set_state(kind)) {
            continue;
        }
        assert_int_equal(kn_fp_is_default(), kind == DEFAULT);
        kn_fp_enter(&saved);
        assert_true(kn_fp_is_default());
        assert_true(has_state(DEFAULT));
        kn_fp_leave(&saved);
        assert_true(has_state(kind));
        assert_int_equal(fesetenv(FE_DFL_ENV), 0);
        assert_true(kn_fp_is_default());
    }
}

/* Without a cache, so that each is compiled. */
static kiln_status compile_in(kiln_runtime *runtime, fp_kind kind, kiln_blob **out_blob)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = KILN_LANG_GLSL;
    source.text = text;
    source.length = sizeof text - 1;
    source.name = "k.comp";
    const bool set = set_state(kind);
    const kiln_status status =
        set ? kiln_compile(runtime, "vulkan:spirv", &source, out_blob, NULL, NULL)
            : KILN_E_UNSUPPORTED;
    assert_true(!set || has_state(kind));
    assert_int_equal(fesetenv(FE_DFL_ENV), 0);
    return status;
}

static void K1_constants_are_folded_in_the_default_state(void **state)
{
    kiln_cache_options cache_options;
    kiln_runtime_options options;
    kiln_cache *cache = NULL;
    kiln_runtime *runtime = NULL;
    kiln_blob *right = NULL;
    assert_int_equal(kiln_cache_options_init(&cache_options, NULL), KILN_OK);
    cache_options.flags = KILN_CACHE_DISABLED;
    assert_int_equal(kiln_cache_create(&cache_options, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_runtime_options_init(&options, NULL), KILN_OK);
    options.cache = cache;
    assert_int_equal(kiln_runtime_create(&options, &runtime, NULL), KILN_OK);
    if (compile_in(runtime, DEFAULT, &right) != KILN_OK) {
        kn_test_skip("vulkan", "GLSL cannot be compiled here");
    }
    for (fp_kind kind = UPWARD; kind < KINDS; kind++) {
        kiln_blob *blob = NULL;
        const kiln_status status = compile_in(runtime, kind, &blob);
        assert_true(status == KILN_OK || status == KILN_E_UNSUPPORTED);
        if (status == KILN_OK) {
            assert_int_equal(kiln_blob_size(blob), kiln_blob_size(right));
            assert_memory_equal(kiln_blob_data(blob), kiln_blob_data(right), kiln_blob_size(right));
        }
        kiln_blob_release(blob);
    }
    kiln_blob_release(right);
    kiln_runtime_destroy(runtime);
    kiln_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_entered_and_left),
        cmocka_unit_test(K1_constants_are_folded_in_the_default_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
