/* The kernels that a caller names, and what is known of those that there are. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/reflect.h>

#include "core/build/program_kernels.h"
#include "unit/core/rig.h"

static const char warned[] = "warn look out\nkernel saxpy a:float x:floats y:floats\n"
                             "y = a x * y +\n";

/* Checked against what the artifact has, after a compile and after a hit, loaded or not. */
static void entries_that_are_not_there_are_refused(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(warned);
    const char *const wrong[] = {"saxpy", "nope"};
    kiln_program *program = NULL;
    kiln_blob *blob = NULL;
    source.entries = wrong;
    rig_open(r, NULL);
    for (int i = 0; i < 2; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        source.entry_count = 2;
        assert_int_equal(kiln_compile(r->runtime, "fake:0", &source, &blob, NULL, &diag),
                         KILN_E_INVALID);
        assert_null(blob);
        assert_string_equal(diag.why, "it has no kernel \"nope\"; it has saxpy");
        assert_int_equal(kiln_program_build(r->device, &source, 1, NULL, &program, &diag),
                         KILN_E_INVALID);
        assert_null(program);
        assert_string_equal(diag.why, "the program has no \"nope\"; it has: saxpy");
        kiln_diag_clear(&diag);
        source.entry_count = 1;
        program = rig_build(r, &source);
        assert_string_equal(kiln_program_attributes(program, "saxpy"), "");
        assert_null(kiln_program_attributes(program, "nope"));
        kiln_program_release(program);
        program = NULL;
    }
}

static kn_span list_of(const char *text)
{
    return kn_span_of(text, strlen(text));
}

static void a_list_is_read_and_made_again(void **state)
{
    static const char *const lists[] = {"a\n", "a\nbb\treqd_work_group_size(8,1,1)\nc\n", "",
                                        "a\t\tglobal const\tprivate\nb\tx\tlocal\nc\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        kn_artifact artifact;
        size_t size = 0, fact_size = 0;
        char *copy = kn_kernels_copy(list_of(lists[i]), &size);
        kn_artifact_init(&artifact);
        assert_int_equal(kn_kernels_keep(copy, size, &artifact.base), KILN_OK);
        const char *fact = kn_host.artifact_fact(&artifact.base, KILN_FACT_ENTRIES, &fact_size);
        assert_int_equal(fact_size, strlen(lists[i]));
        assert_true(fact_size == 0 || memcmp(fact, lists[i], fact_size) == 0);
        kn_artifact_deinit(&artifact);
        free(copy);
    }
    size_t size = 0;
    char *copy = kn_kernels_copy(list_of(lists[1]), &size);
    assert_string_equal(kn_kernels_attributes(copy, size, "bb"), "reqd_work_group_size(8,1,1)");
    assert_string_equal(kn_kernels_attributes(copy, size, "c"), "");
    assert_null(kn_kernels_attributes(copy, size, "b"));
    assert_null(kn_kernels_attributes(NULL, 0, "b"));
    assert_null(kn_kernels_qualifiers(copy, size, "bb", 0));
    free(copy);
    copy = kn_kernels_copy(list_of(lists[3]), &size);
    assert_string_equal(kn_kernels_attributes(copy, size, "a"), "");
    assert_string_equal(kn_kernels_qualifiers(copy, size, "a", 0), "global const");
    assert_string_equal(kn_kernels_qualifiers(copy, size, "a", 1), "private");
    assert_null(kn_kernels_qualifiers(copy, size, "a", 2));
    assert_string_equal(kn_kernels_attributes(copy, size, "b"), "x");
    assert_string_equal(kn_kernels_qualifiers(copy, size, "b", 0), "local");
    assert_null(kn_kernels_qualifiers(copy, size, "c", 0));
    assert_null(kn_kernels_qualifiers(copy, size, "d", 0));
    assert_null(kn_kernels_qualifiers(NULL, 0, "a", 0));
    free(copy);
}

/* From a damaged or a foreign entry: whatever it holds, it is read to its end and no further. */
static void a_list_may_hold_anything(void **state)
{
    static const char odd[] = "\n\t\n\0a\tb\0c\n\t\tx\nba\tb\t\tc\0\0d\te\t\t\t";
    const char *const entries[] = {"a"};
    (void)state;
    for (size_t length = 0; length < sizeof(odd); length++) {
        size_t size = 0;
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_source source = KILN_SOURCE_INIT;
        source.entries = entries;
        source.entry_count = 1;
        char *copy = kn_kernels_copy(kn_span_of(odd, length), &size);
        (void)kn_kernels_attributes(copy, size, "a");
        (void)kn_kernels_qualifiers(copy, size, "ba", 3);
        assert_int_equal(kn_kernels_check(kn_span_of(odd, length), &source, &diag),
                         length == 0 ? KILN_OK : KILN_E_INVALID);
        kiln_diag_clear(&diag);
        free(copy);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entries_that_are_not_there_are_refused),
        cmocka_unit_test(a_list_is_read_and_made_again),
        cmocka_unit_test(a_list_may_hold_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
