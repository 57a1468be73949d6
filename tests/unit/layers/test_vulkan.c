/* The core of the Vulkan layer: compute pipelines by their content. */
#include "support/unended.h"

#include <fenv.h>

#include "vulkan_program.h" /* has a cache of its own */

/* --- compute ---------------------------------------------------------------------------------- */

static void a_compute_pipeline_is_made_once(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    for (int i = 0; i < 3; i++) {
        VkDevice device = begin(&program);
        assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
        end(device);
        assert_int_equal(compiled_since(), i == 0);
        assert_int_equal(hits_since(), i > 0);
        if (i > 0) {
            next_process(dir);
        }
    }
}

static void its_content_is_the_key(void **state)
{
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = 16};
    wish others[7];
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        others[i] = plain;
    }
    others[1].module = 2;
    others[2].bindings = 3;
    others[3].push = 32;
    others[4].constant = 9;
    others[5].flags = VK_PIPELINE_CREATE_DISABLE_OPTIMIZATION_BIT;
    others[6].stage_next = &subgroup;
    world program;
    VkDevice device = begin(&program);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
            assert_int_equal(make_compute(device, &others[i]), VK_SUCCESS);
            assert_int_equal(compiled_since(), turn == 0);
        }
    }
    kt_counters own;
    kt_counters_own(cache, &own);
    assert_int_equal(own.puts, 7);
    end(device);
}

static void feedback_is_the_drivers(void **state)
{
    VkPipelineCreationFeedback feedback = {0};
    const VkPipelineCreationFeedbackCreateInfo asked = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
        .pPipelineCreationFeedback = &feedback};
    wish wanted = plain;
    world program;
    (void)state;
    VkDevice device = begin(&program);
    wanted.next = &asked;
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
    assert_true(feedback.flags & VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT);
    assert_int_equal(compiled_since(), 1);
    end(device);
}

static void what_must_not_compile_does_not(void **state)
{
    wish wanted = plain;
    world program;
    (void)state;
    VkDevice device = begin(&program);
    wanted.flags = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
    assert_int_equal(make_compute(device, &wanted), VK_PIPELINE_COMPILE_REQUIRED);
    assert_int_equal(compiled_since(), 0);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
    assert_int_equal(compiled_since(), 1);
    end(device);
}

static void an_error_is_the_drivers(void **state)
{
    world program;
    (void)state;
    VkDevice device = begin(&program);
    atomic_store(&fake.fail_next, 1);
    assert_int_equal(make_compute(device, &plain), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    kt_counters own;
    kt_counters_own(cache, &own);
    assert_int_equal(own.puts, 0);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    /* On a hit the driver is asked again, without what was loaded, and that is stored. */
    atomic_store(&fake.fail_next, 1);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    kt_counters_own(cache, &own);
    assert_int_equal(own.rejected, 1);
    assert_int_equal(own.puts, 2);
    end(device);
}

/* Another process did not live to see the end of loading it, and then another one. */
static void data_that_two_processes_died_of_stays_and_is_not_loaded(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    kt_counters own;
    VkDevice device = begin(&program);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    end(device);
    kt_end_in_load(dir, NULL);
    kt_end_in_load(dir, NULL);
    for (int i = 0; i < 2; i++) {
        next_process(dir);
        (void)compiled_since();
        (void)hits_since();
        device = begin(&program);
        assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
        end(device);
        assert_int_equal(compiled_since(), 1);
        assert_int_equal(hits_since(), 0);
        kt_counters_own(cache, &own);
        assert_int_equal(own.unended, 1);
        assert_int_equal(own.rejected, 0);
        assert_true(kt_has_entry(dir, NULL));
    }
}

/* The caller's floating-point state may be in what the driver makes, and is in no key. */
static void K1_another_state_is_passed_on(void **state)
{
    world program;
    kt_counters own;
    (void)state;
    VkDevice device = begin(&program);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    make_graphics(device, VK_NULL_HANDLE, 1);
    assert_int_equal(fegetround(), FE_UPWARD);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    kt_counters_own(cache, &own);
    assert_int_equal(own.puts, 0);
    assert_int_equal(compiled_since(), 2);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    assert_int_equal(compiled_since(), 1);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_int_equal(compiled_since(), 1);
    end(device);
}

typedef struct counted {
    int allocations, frees;
} counted;

static void *VKAPI_PTR count_allocation(void *user, size_t size, size_t alignment,
                                        VkSystemAllocationScope scope)
{
    (void)alignment;
    (void)scope;
    ((counted *)user)->allocations++;
    return malloc(size);
}

static void VKAPI_PTR count_free(void *user, void *memory)
{
    ((counted *)user)->frees += memory != NULL;
    free(memory);
}

static void allocators_are_passed_on(void **state)
{
    counted seen = {0, 0};
    const VkAllocationCallbacks allocator = {
        .pUserData = &seen, .pfnAllocation = count_allocation, .pfnFree = count_free};
    wish wanted = plain;
    world program;
    (void)state;
    VkDevice device = begin(&program);
    wanted.allocator = &allocator;
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
        assert_int_equal(seen.allocations, i);
        assert_int_equal(seen.frees, i);
    }
    end(device);
}

/* Of caches that hold a header alone nothing is stored, and soon none is made. */
static void a_driver_without_data_is_left_alone(void **state)
{
    world program;
    (void)state;
    fake.makes_none = true;
    VkDevice device = begin(&program);
    for (uint32_t i = 0; i < 8; i++) {
        wish wanted = plain;
        wanted.module = 10 + i;
        assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
        make_graphics(device, VK_NULL_HANDLE, 30 + i);
    }
    end(device);
    fake.makes_none = false;
    kt_counters own;
    kt_counters_own(cache, &own);
    assert_int_equal(own.puts, 0);
    assert_int_equal(own.compiles, 4);
    assert_int_equal(compiled_since(), 16);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_compute_pipeline_is_made_once),
        TEST(its_content_is_the_key),
        TEST(feedback_is_the_drivers),
        TEST(what_must_not_compile_does_not),
        TEST(an_error_is_the_drivers),
        TEST(data_that_two_processes_died_of_stays_and_is_not_loaded),
        TEST(K1_another_state_is_passed_on),
        TEST(allocators_are_passed_on),
        TEST(a_driver_without_data_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
