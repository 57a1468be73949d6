/* The memory pool on a driver that gives memory and keeps count of it. */
#include "apis/vulkan/backend/pool.h"

#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "support/cmocka.h"
#include "support/failalloc.h"

/* The first block holds all pieces. With less than its place needs, each leaves a gap after it. */
enum { PLACE = 4096, PIECES = 64, ALIGNMENT = 256, GAP = 100 };

typedef struct driver {
    struct kn_vk_device_fn fn;
    VkPhysicalDeviceMemoryProperties properties;
    kn_vk_pool *pool;
    int made, freed;
} driver;

static driver counted; /* Vulkan's calls have no place for a test's own data */

static VKAPI_ATTR VkResult VKAPI_CALL give_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                  const VkAllocationCallbacks *callbacks,
                                                  VkDeviceMemory *out_memory)
{
    (void)device, (void)info, (void)callbacks;
    counted.made++;
    *out_memory = (VkDeviceMemory)(uintptr_t)&counted;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL take_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *callbacks)
{
    (void)device, (void)memory, (void)callbacks;
    counted.freed++;
}

static int set_up(void **state)
{
    counted = (driver){.fn = {.vkAllocateMemory = give_memory, .vkFreeMemory = take_memory},
                       .properties = {.memoryTypeCount = 1}};
    counted.properties.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    *state = &counted;
    return kn_vk_pool_create(VK_NULL_HANDLE, &counted.fn, &counted.properties, 1, &counted.pool,
                             NULL) == KILN_OK
               ? 0
               : 1;
}

static int tear_down(void **state)
{
    driver *d = *state;
    kn_vk_pool_destroy(d->pool);
    return d->made == d->freed ? 0 : 1;
}

static kiln_status get_memory(driver *d, VkDeviceSize size, kn_vk_memory *memory)
{
    const VkMemoryRequirements wanted = {.size = size, .alignment = ALIGNMENT, .memoryTypeBits = 1};
    return kn_vk_pool_get(d->pool, &wanted, 0, 0, memory, NULL);
}

static void get_all(driver *d, VkDeviceSize size, kn_vk_memory pieces[PIECES])
{
    for (size_t i = 0; i < PIECES; i++) {
        assert_int_equal(get_memory(d, size, &pieces[i]), KILN_OK);
        assert_int_equal(pieces[i].offset % ALIGNMENT, 0);
    }
}

/* Every other piece first, so that there are as many free ranges as there can be. */
static void put_all(driver *d, kn_vk_memory pieces[PIECES])
{
    for (size_t i = 0; i < PIECES; i += 2) {
        kn_vk_pool_put(d->pool, &pieces[i]);
    }
    for (size_t i = 1; i < PIECES; i += 2) {
        kn_vk_pool_put(d->pool, &pieces[i]);
    }
}

static void what_is_given_back_is_whole_again(void **state)
{
    driver *d = *state;
    kn_vk_memory pieces[PIECES];
    kn_vk_memory whole;
    for (int round = 0; round < 3; round++) {
        get_all(d, round == 1 ? PLACE - GAP : PLACE, pieces);
        put_all(d, pieces);
    }
    assert_int_equal(get_memory(d, (VkDeviceSize)PIECES * PLACE / 2, &whole), KILN_OK);
    kn_vk_pool_put(d->pool, &whole);
    assert_int_equal(d->made, 1);
}

/* There is no memory for a longer list at the moment that bytes are given back. */
static void giving_back_needs_no_memory(void **state)
{
    driver *d = *state;
    kn_vk_memory pieces[PIECES];
    get_all(d, PLACE, pieces);
    kt_failalloc_arm(1, true);
    put_all(d, pieces);
    kt_failalloc_disarm();
    get_all(d, PLACE, pieces);
    assert_int_equal(d->made, 1);
    put_all(d, pieces);
}

/* A piece that could not be had takes none of the block's bytes with it. */
static void a_failed_get_loses_no_bytes(void **state)
{
    driver *d = *state;
    kn_vk_memory pieces[PIECES];
    kn_vk_memory failed;
    for (size_t i = 0; i < PIECES; i++) {
        kt_failalloc_arm(1, true);
        kiln_status status = get_memory(d, PLACE - GAP, &failed);
        bool fired = kt_failalloc_fired();
        kt_failalloc_disarm();
        assert_int_equal(status, fired ? KILN_E_NOMEM : KILN_OK);
        if (status == KILN_OK) {
            kn_vk_pool_put(d->pool, &failed);
        }
        assert_int_equal(get_memory(d, PLACE - GAP, &pieces[i]), KILN_OK);
    }
    assert_int_equal(d->made, 1);
    put_all(d, pieces);
    get_all(d, PLACE, pieces);
    assert_int_equal(d->made, 1);
    put_all(d, pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_given_back_is_whole_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(giving_back_needs_no_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_get_loses_no_bytes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
