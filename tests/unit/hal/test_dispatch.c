/* Which thread a call into a backend runs on: the caller's, or the one that `invoke` stands for. */
#include "hal/dispatch.h"

#include <string.h>

#include "support/cmocka.h"

static int here, there;
static bool invoking;

static void invoke(void *user, void (*run)(void *call), void *call)
{
    assert_ptr_equal(user, &there);
    invoking = true;
    run(call);
    invoking = false;
}

static void note(void)
{
    *(invoking ? &there : &here) += 1;
}

static const kiln_stage *stages(void *instance, const kiln_target *target, kiln_language language,
                                size_t *out_count)
{
    (void)instance, (void)target, (void)language;
    note();
    *out_count = 7;
    return NULL;
}

static kiln_status identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                            const kiln_identity *identity, kiln_diag *diag)
{
    (void)instance, (void)stage, (void)target, (void)identity, (void)diag;
    note();
    return KILN_MISS;
}

static const char *system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    (void)instance, (void)target, (void)index;
    note();
    return "dir";
}

static bool ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance, (void)target;
    note();
    return strcmp(name, "yes") == 0;
}

static const char *uncacheable_option(void *instance, const kiln_source *source)
{
    (void)instance, (void)source;
    note();
    return "reason";
}

static const char *implied_include(void *instance, const kiln_target *target, size_t index)
{
    (void)instance, (void)target, (void)index;
    note();
    return "implied.h";
}

static uint32_t option_effects(void *instance, const kiln_source *source)
{
    (void)instance, (void)source;
    note();
    return KILN_OPTION_NAMES;
}

static kiln_status compile(void *instance, const kiln_compile_request *request,
                           kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    (void)instance, (void)request, (void)artifact, (void)out_live, (void)diag;
    note();
    return KILN_E_COMPILE;
}

static kiln_include_rules rules = {
    .option_effects = option_effects,
    .implied_include = implied_include,
};

static const kiln_compiler_ops ops = {
    .stages = stages,
    .identify = identify,
    .system_include_dir = system_include_dir,
    .ships_header = ships_header,
    .uncacheable_option = uncacheable_option,
    .compile = compile,
    .include_rules = &rules,
};

/* Seven facts and a compile; their answers arrive whichever way they took. */
static void call_all(uint32_t caps, kn_invoke_fn *through)
{
    const kiln_backend backend = {.name = "counted", .caps = caps, .compiler = &ops};
    const kn_instance in = {.backend = &backend, .invoke = through, .invoke_user = &there};
    size_t count = 0;
    here = there = 0;
    assert_null(kn_hal_stages(&in, NULL, NULL, KILN_LANG_GLSL, &count));
    assert_int_equal(count, 7);
    assert_int_equal(kn_hal_identify(&in, NULL, NULL, NULL, NULL, NULL), KILN_MISS);
    assert_string_equal(kn_hal_system_include_dir(&in, NULL, NULL, 0), "dir");
    assert_true(kn_hal_ships_header(&in, NULL, NULL, "yes"));
    assert_false(kn_hal_ships_header(&in, NULL, NULL, "no"));
    assert_string_equal(kn_hal_uncacheable_option(&in, NULL, NULL), "reason");
    assert_string_equal(kn_hal_implied_include(&in, NULL, NULL, 0), "implied.h");
    assert_int_equal(kn_hal_option_effects(&in, NULL, NULL), KILN_OPTION_NAMES);
    assert_int_equal(kn_hal_compile(&in, NULL, NULL, NULL, NULL, NULL), KILN_E_COMPILE);
}

static void without_a_thread_of_its_own_all_is_called_here(void **state)
{
    call_all(KILN_CAP_ANY_THREAD, NULL);
    assert_int_equal(here, 9);
    assert_int_equal(there, 0);
}

static void with_one_all_is_called_there(void **state)
{
    call_all(0, invoke);
    assert_int_equal(here, 0);
    assert_int_equal(there, 9);
}

static void facts_stay_here_where_the_backend_says_so(void **state)
{
    rules.facts_any_thread = true;
    call_all(0, invoke);
    rules.facts_any_thread = false;
    assert_int_equal(here, 8);
    assert_int_equal(there, 1); /* the compile */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_thread_of_its_own_all_is_called_here),
        cmocka_unit_test(with_one_all_is_called_there),
        cmocka_unit_test(facts_stay_here_where_the_backend_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
