/* The registry and the check of tables: what is refused, and whether it is named. */
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "hal/registry.h"
#include "support/cmocka.h"

static kiln_backend backend;
static kiln_compiler_ops compiler;
static kiln_device_ops device;

static void fresh(const char *name)
{
    backend = kn_backend_fake;
    compiler = *kn_backend_fake.compiler;
    device = *kn_backend_fake.device;
    backend.name = name;
    backend.compiler = &compiler;
    backend.device = &device;
}

static void refused(const char *named)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_backend_check(&backend, &diag), KILN_E_INVALID);
    if (strstr(diag.why, named) == NULL) {
        print_error("\"%s\" does not name %s\n", diag.why, named);
        fail();
    }
    assert_int_equal(kiln_backend_register(&backend, NULL), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

static void a_sound_table_is_taken(void **state)
{
    fresh("sound");
    assert_int_equal(kn_backend_check(&backend, NULL), KILN_OK);
}

static void every_missing_operation_is_named(void **state)
{
#define WITHOUT(table, op)                                                                         \
    fresh("lacking");                                                                              \
    table.op = NULL;                                                                               \
    refused(#table "." #op);
#define KN_OP(n, table, capability, result, op, ...) WITHOUT(table, op)
#define KN_VOID(n, table, capability, op, ...) WITHOUT(table, op)
#define KN_FACT KN_OP
#define KN_RULE(...)
#include "hal/dispatch.def"
    WITHOUT(compiler, include_rules)
    fresh("lacking");
    backend.open = NULL;
    refused("open");
    fresh("lacking");
    backend.device = NULL;
    refused("device table");
    fresh("compiler");
    backend.device = NULL;
    backend.caps |= KILN_CAP_NO_DEVICES;
    assert_int_equal(kn_backend_check(&backend, NULL), KILN_OK);
    fresh("lacking");
    backend.summary = NULL;
    refused("summary");
}

static void optional_operations_need_their_bit_only(void **state)
{
    fresh("modest");
    backend.caps &= ~(uint32_t)(KILN_CAP_FILL | KILN_CAP_COPY | KILN_CAP_CAPTURE |
                                KILN_CAP_REFLECT | KILN_CAP_COMPILE_OFFLINE);
    device.queue_fill = NULL;
    device.queue_copy = NULL;
    device.program_grew = NULL;
    device.program_capture = NULL;
    device.program_entry = NULL;
    device.program_params = NULL;
    compiler.target_parse = NULL;
    assert_int_equal(kn_backend_check(&backend, NULL), KILN_OK);
}

static void another_abi_is_refused(void **state)
{
    fresh("other");
    backend.abi = KILN_BACKEND_ABI + 1;
    refused("ABI");
    fresh("other");
    compiler.abi = 0;
    refused("compiler table of ABI 0");
    fresh("other");
    device.size = 8;
    refused("8 bytes");
    assert_int_equal(kn_backend_check(NULL, NULL), KILN_E_INVALID);
}

static void names_are_plain(void **state)
{
    static const char *const bad[] = {
        NULL, "", "Upper", "a b", "a,b", "../x", "a-name-of-more-than-thirty-one-characters"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fresh(bad[i]);
        refused("name");
    }
}

static void a_name_is_taken_once(void **state)
{
    static kiln_backend first;
    fresh("first");
    first = backend;
    first.compiler = kn_backend_fake.compiler;
    first.device = kn_backend_fake.device;
    assert_int_equal(kiln_backend_register(&first, NULL), KILN_OK);
    assert_int_equal(kiln_backend_register(&first, NULL), KILN_OK); /* the same table again */
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_backend_register(&backend, &diag), KILN_E_BUSY);
    assert_non_null(strstr(diag.why, "first"));
    assert_ptr_equal(kn_registry_find("first"), &first);
    assert_null(kn_registry_find("second"));
    kiln_diag_clear(&diag);
}

static void names_have_inverses(void **state)
{
    for (int i = KILN_LANG_NONE + 1; i <= KILN_LANG_HIP; i++) {
        const char *name = kiln_language_name((kiln_language)i);
        assert_string_not_equal(name, "unknown");
        assert_int_equal(kiln_language_parse(name), i);
    }
    assert_int_equal(kiln_language_parse("cobol"), KILN_LANG_NONE);
    assert_int_equal(kiln_language_parse(NULL), KILN_LANG_NONE);
    assert_string_equal(kiln_language_name((kiln_language)999), "unknown");
    assert_int_equal(kiln_language_of_path("a/b.cl"), KILN_LANG_OPENCL_C);
    assert_int_equal(kiln_language_of_path("a/b.comp"), KILN_LANG_GLSL);
    assert_int_equal(kiln_language_of_path("cl"), KILN_LANG_NONE);
    assert_int_equal(kiln_language_of_path(NULL), KILN_LANG_NONE);
    assert_string_equal(kiln_probe_outcome_name(KILN_PROBE_TIMED_OUT), "timed out");
    assert_string_equal(kiln_probe_outcome_name((kiln_probe_outcome)99), "unknown");
    assert_string_equal(kiln_device_class_name(KILN_DEVICE_SOFTWARE), "software");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_table_is_taken),
        cmocka_unit_test(every_missing_operation_is_named),
        cmocka_unit_test(optional_operations_need_their_bit_only),
        cmocka_unit_test(another_abi_is_refused),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(a_name_is_taken_once),
        cmocka_unit_test(names_have_inverses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
