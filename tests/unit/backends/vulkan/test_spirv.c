/* Reflection of SPIR-V: what a sound module says, and that no damaged one does harm (sanitizer
 * builds are the judges of the latter). */
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/spirv.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

static char *module;
static size_t module_size;

static int load(void **state)
{
    (void)state;
    module = kt_file_read(KILN_SPIRV_MODULE, &module_size);
    assert_non_null(module);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    free(module);
    return 0;
}

static void a_module_is_described(void **state)
{
    (void)state;
    kn_spirv facts;
    assert_int_equal(kn_spirv_reflect(module, module_size, "module", &facts, NULL), KILN_OK);
    assert_int_equal(facts.entry_count, 1);
    assert_string_equal(facts.entries[0].name, "main");
    assert_true(facts.local_specialised[0]);
    assert_int_equal(facts.local_spec_id[0], 3);
    assert_false(facts.local_specialised[1]);
    assert_int_equal(facts.entries[0].local[1], 2);
    assert_int_equal(facts.entries[0].local[2], 1);
    assert_int_equal(facts.binding_count, 3);
    static const uint32_t bindings[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(facts.bindings[i].binding, bindings[i]);
        assert_int_equal(facts.bindings[i].uniform, i == 1);
    }
    assert_int_equal(facts.push_size, 8);
    assert_int_equal(facts.member_count, 2);
    assert_string_equal(facts.members[0].name, "a");
    assert_string_equal(facts.members[0].type, "f32");
    assert_int_equal(facts.members[1].offset, 4);
}

/* In a block of its own of just that size, so that a read past it is seen. */
static kiln_status reflect_copy(const char *bytes, size_t size, kiln_diag *diag)
{
    kn_spirv facts;
    char *copy = (char *)malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    kiln_status status = kn_spirv_reflect(copy, size, "damaged", &facts, diag);
    free(copy);
    return status;
}

static void a_truncated_module_does_no_harm(void **state)
{
    (void)state;
    kiln_diag diag = KILN_DIAG_INIT;
    for (size_t size = 0; size < module_size; size++) {
        kiln_status status = reflect_copy(module, size, &diag);
        assert_true(status == KILN_OK || status == KILN_E_INVALID);
        assert_true(size % 4 == 0 || status == KILN_E_INVALID);
        assert_true(status == KILN_OK || diag.why[0] != '\0');
        kiln_diag_clear(&diag);
    }
    assert_int_equal(reflect_copy(module, 20, NULL), KILN_E_INVALID);
}

static void a_flipped_bit_does_no_harm(void **state)
{
    (void)state;
    size_t refused = 0;
    for (size_t bit = 0; bit < module_size * 8; bit++) {
        module[bit / 8] = (char)(module[bit / 8] ^ (1 << bit % 8));
        kiln_status status = reflect_copy(module, module_size, NULL);
        assert_true(status == KILN_OK || status == KILN_E_INVALID || status == KILN_E_NOMEM);
        assert_true(bit >= 32 || status == KILN_E_INVALID); /* the magic number */
        refused += status != KILN_OK;
        module[bit / 8] = (char)(module[bit / 8] ^ (1 << bit % 8));
    }
    assert_true(refused > 100);
    assert_int_equal(reflect_copy(module, module_size, NULL), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_is_described),
        cmocka_unit_test(a_truncated_module_does_no_harm),
        cmocka_unit_test(a_flipped_bit_does_no_harm),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
