/* The core of the Vulkan layer: what it keeps for a program, and what it leaves alone. */
#include <fenv.h>
#include <pthread.h>
#include <time.h>

#include "support/unended.h"

#include "vulkan_program.h" /* has a cache of its own */

/* --- graphics, and caches of the program's ---------------------------------------------------- */

static void what_has_no_key_is_kept_for_the_program(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    for (int i = 0; i < 2; i++) {
        VkDevice device = begin(&program);
        make_graphics(device, VK_NULL_HANDLE, 1);
        make_rays(device, 1);
        assert_int_equal(compiled_since(), i == 0 ? 2 : 0);
        assert_int_equal(hits_since(), i == 0 ? 0 : 2);
        end(device);
        next_process(dir);
    }
    VkDevice device = begin_named(&program, "another", false);
    make_graphics(device, VK_NULL_HANDLE, 1);
    assert_int_equal(compiled_since(), 1);
    end(device);
}

/* Two processes did not live to see the end of loading what is kept: it stays, and no driver has
 * it. */
static void what_two_processes_died_of_stays_and_is_not_loaded(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    kt_counters own;
    VkDevice device = begin(&program);
    make_graphics(device, VK_NULL_HANDLE, 1);
    end(device);
    kt_end_in_load(dir, NULL);
    kt_end_in_load(dir, NULL);
    next_process(dir);
    (void)compiled_since();
    device = begin(&program);
    make_graphics(device, VK_NULL_HANDLE, 1);
    assert_int_equal(compiled_since(), 1);
    assert_true(kt_has_entry(dir, NULL)); /* before the program's end saves another */
    kt_counters_own(cache, &own);
    assert_true(own.unended > 0);
    assert_int_equal(own.rejected, 0);
    end(device);
    assert_true(kt_has_entry(dir, NULL));
}

static VkPipelineCache make_own(VkDevice device, const void *data, size_t size)
{
    const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                            .initialDataSize = size,
                                            .pInitialData = data};
    VkPipelineCache own = VK_NULL_HANDLE;
    assert_int_equal(CALL(vkCreatePipelineCache)(device, &info, NULL, &own), VK_SUCCESS);
    return own;
}

static size_t size_of_own(VkDevice device, VkPipelineCache own)
{
    size_t size = 0;
    assert_int_equal(CALL(vkGetPipelineCacheData)(device, own, &size, NULL), VK_SUCCESS);
    return (size - sizeof(VkPipelineCacheHeaderVersionOne)) / FAKE_RECORD;
}

static void a_cache_of_the_programs_is_seeded(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    VkDevice device = begin(&program);
    VkPipelineCache own = make_own(device, NULL, 0);
    wish wanted = plain;
    wanted.own = own;
    assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
    make_graphics(device, own, 1);
    assert_int_equal(size_of_own(device, own), 2);
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    end(device);
    next_process(dir);
    assert_int_equal(compiled_since(), 2);

    device = begin(&program);
    own = make_own(device, NULL, 0);
    VkPipelineCache second = make_own(device, NULL, 0);
    assert_int_equal(size_of_own(device, own), 2);
    assert_int_equal(size_of_own(device, second), 2);
    make_graphics(device, own, 1);
    make_graphics(device, VK_NULL_HANDLE, 1);
    assert_int_equal(compiled_since(), 0);
    /* What is read is taken over, too: this one is never destroyed. */
    make_graphics(device, second, 2);
    size_t size = sizeof(VkPipelineCacheHeaderVersionOne) + 3 * (size_t)FAKE_RECORD;
    void *data = malloc(size);
    assert_int_equal(CALL(vkGetPipelineCacheData)(device, second, &size, data), VK_SUCCESS);
    /* A program that reads them may save each. */
    VkPipelineCache third = make_own(device, NULL, 0);
    assert_int_equal(size_of_own(device, third), 0);
    CALL(vkDestroyPipelineCache)(device, third, NULL);
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    end(device);
    next_process(dir);
    (void)compiled_since();

    /* One that brings data is left as it is. */
    size = sizeof(VkPipelineCacheHeaderVersionOne) + FAKE_RECORD;
    device = begin(&program);
    own = make_own(device, data, size);
    assert_int_equal(size_of_own(device, own), 1);
    make_graphics(device, VK_NULL_HANDLE, 2);
    assert_int_equal(compiled_since(), 0);
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    end(device);
    ((PFN_vkDestroyPipelineCache)fake_find("vkDestroyPipelineCache"))(device, second, NULL);
    free(data);
}

/* Pipelines may depend on the caller's floating-point state. In another than the default state a
 * kept cache is not used, and nothing is added to it. */
static void K1_a_cache_of_the_programs_in_another_state(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    VkDevice device = begin(&program);
    make_graphics(device, VK_NULL_HANDLE, 1);
    end(device);
    next_process(dir);
    (void)compiled_since();

    device = begin(&program);
    VkPipelineCache own = make_own(device, NULL, 0);
    assert_int_equal(size_of_own(device, own), 1);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    make_graphics(device, own, 1); /* the driver would find it */
    make_graphics(device, own, 2);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_int_equal(compiled_since(), 2);
    make_graphics(device, own, 3);
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    /* One that is made in that state is the program's alone. */
    assert_int_equal(fesetround(FE_UPWARD), 0);
    own = make_own(device, NULL, 0);
    assert_int_equal(size_of_own(device, own), 0);
    make_graphics(device, own, 4);
    make_graphics(device, own, 4);
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_int_equal(compiled_since(), 2);
    end(device);
    next_process(dir);

    device = begin(&program);
    for (uint32_t i = 2; i <= 4; i++) {
        make_graphics(device, VK_NULL_HANDLE, i);
    }
    assert_int_equal(compiled_since(), 3);
    end(device);
}

static void a_program_with_binaries_is_left_alone(void **state)
{
    world program;
    (void)state;
    VkDevice device = begin_named(&program, "test", true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
        make_graphics(device, VK_NULL_HANDLE, 1);
        assert_int_equal(compiled_since(), 2);
    }
    end(device);
    kt_counters own;
    kt_counters_own(cache, &own);
    assert_int_equal(own.puts, 0);
}

static void a_cache_that_is_off_is_not_there(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    kiln_cache *kept = cache;
    cache = open_cache(dir, KILN_CACHE_DISABLED);
    for (int i = 0; i < 2; i++) {
        VkDevice device = begin(&program);
        assert_int_equal(make_compute(device, &plain), VK_SUCCESS);
        make_graphics(device, VK_NULL_HANDLE, 1);
        assert_int_equal(compiled_since(), 2);
        end(device);
        kiln_cache_destroy(cache);
        cache = NULL; /* and one that cannot be opened */
    }
    cache = kept;
}

/* --- at once ---------------------------------------------------------------------------------- */

typedef struct saver {
    pthread_t thread;
    uint32_t number;
} saver;

enum { SAVERS = 6, EACH = 20 };

/* Each device of its own, destroyed at one moment: as processes end. */
static void *save_at_once(void *user)
{
    const saver *own = (const saver *)user;
    world program;
    VkDevice device = begin(&program);
    for (uint32_t i = 0; i < EACH; i++) {
        make_graphics(device, VK_NULL_HANDLE, 1000 + own->number * EACH + i);
    }
    end(device);
    return NULL;
}

static void savers_at_one_moment_lose_nothing(void **state)
{
    const char *dir = (const char *)*state;
    saver savers[SAVERS];
    world program;
    for (uint32_t i = 0; i < SAVERS; i++) {
        savers[i] = (saver){.number = i};
        assert_int_equal(pthread_create(&savers[i].thread, NULL, save_at_once, &savers[i]), 0);
    }
    for (uint32_t i = 0; i < SAVERS; i++) {
        assert_int_equal(pthread_join(savers[i].thread, NULL), 0);
    }
    next_process(dir);
    (void)compiled_since();
    VkDevice device = begin(&program);
    for (uint32_t i = 0; i < SAVERS * EACH; i++) {
        make_graphics(device, VK_NULL_HANDLE, 1000 + i);
    }
    assert_int_equal(compiled_since(), 0);
    end(device);
}

static void *make_many(void *user)
{
    VkDevice device = *(VkDevice *)user;
    VkPipelineCache own = make_own(device, NULL, 0);
    for (uint32_t i = 0; i < 40; i++) {
        wish wanted = plain;
        wanted.module = 2000 + i % 10;
        wanted.own = i % 3 == 0 ? own : VK_NULL_HANDLE;
        assert_int_equal(make_compute(device, &wanted), VK_SUCCESS);
        make_graphics(device, i % 2 == 0 ? own : VK_NULL_HANDLE, 3000 + i % 10);
    }
    CALL(vkDestroyPipelineCache)(device, own, NULL);
    return NULL;
}

static void eight_threads_share_a_device(void **state)
{
    pthread_t threads[8];
    world program;
    (void)state;
    VkDevice device = begin(&program);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &device), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end(device);
    (void)compiled_since();
    device = begin(&program);
    for (uint32_t i = 0; i < 10; i++) {
        make_graphics(device, VK_NULL_HANDLE, 3000 + i);
    }
    assert_int_equal(compiled_since(), 0);
    end(device);
}

/* A long run saves while it goes on: the device is never destroyed here. */
static void what_is_kept_is_saved_as_it_grows(void **state)
{
    const char *dir = (const char *)*state;
    world program;
    VkDevice device = begin(&program);
    make_graphics(device, VK_NULL_HANDLE, 77);
    kt_counters own = {0};
    for (int i = 0; i < 600 && own.puts == 0; i++) {
        const struct timespec pause = {0, 50000000};
        (void)nanosleep(&pause, NULL);
        kt_counters_own(cache, &own);
    }
    assert_int_equal(own.puts, 1);
    end(device);
    next_process(dir);
    (void)compiled_since();
    device = begin(&program);
    make_graphics(device, VK_NULL_HANDLE, 77);
    assert_int_equal(compiled_since(), 0);
    end(device);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_has_no_key_is_kept_for_the_program),
        TEST(what_two_processes_died_of_stays_and_is_not_loaded),
        TEST(a_cache_of_the_programs_is_seeded),
        TEST(K1_a_cache_of_the_programs_in_another_state),
        TEST(a_program_with_binaries_is_left_alone),
        TEST(a_cache_that_is_off_is_not_there),
        TEST(savers_at_one_moment_lose_nothing),
        TEST(eight_threads_share_a_device),
        TEST(what_is_kept_is_saved_as_it_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
