/* What a loader opens: the Vulkan layer between a loader and a driver that stand here, with its
 * core in this program. */
#include <pthread.h>
#include <stdio.h>

#include <vulkan/vk_layer.h>

#include "kiln-interpose/find.h"
#include "vulkan_program.h"

/* --- the core is this program itself ---------------------------------------------------------- */

bool kn_find_core(char *out_path, size_t size)
{
    return snprintf(out_path, size, "%s", "") == 0;
}

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

/* glibc takes an empty name for the program, too; musl looks for a file. */
void *__wrap_dlopen(const char *name, int flags)
{
    return __real_dlopen(name != NULL && name[0] != '\0' ? name : NULL, flags);
}

/* --- below the layer -------------------------------------------------------------------------- */

static _Atomic int alive; /* instances and devices */

static VKAPI_ATTR VkResult VKAPI_CALL below_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                             const VkAllocationCallbacks *allocator,
                                                             VkInstance *out)
{
    (void)info;
    (void)allocator;
    world *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    made->table = &made->table_bytes;
    *out = (VkInstance)(void *)made;
    alive++;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL below_vkDestroyInstance(VkInstance instance,
                                                          const VkAllocationCallbacks *allocator)
{
    (void)allocator;
    free(instance);
    alive--;
}

static VKAPI_ATTR void VKAPI_CALL
below_vkGetPhysicalDeviceProperties(VkPhysicalDevice device, VkPhysicalDeviceProperties *out)
{
    (void)device;
    memset(out, 0, sizeof(*out));
    out->vendorID = fake.vendor;
    out->deviceID = fake.device;
    memcpy(out->pipelineCacheUUID, fake.uuid, VK_UUID_SIZE);
}

static VKAPI_ATTR VkResult VKAPI_CALL below_vkCreateDevice(VkPhysicalDevice physical,
                                                           const VkDeviceCreateInfo *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkDevice *out)
{
    (void)physical;
    VkInstance made = VK_NULL_HANDLE;
    const VkInstanceCreateInfo none = {.pNext = info->pNext};
    const VkResult result = below_vkCreateInstance(&none, allocator, &made);
    *out = (VkDevice)(void *)made;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL below_vkDestroyDevice(VkDevice device,
                                                        const VkAllocationCallbacks *allocator)
{
    below_vkDestroyInstance((VkInstance)(void *)device, allocator);
}

/* As the loader's own: it has no answer for what a device does. */
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL below_instance_proc(VkInstance instance,
                                                                    const char *name)
{
#define BELOW(name)                                                                                \
    {                                                                                              \
#name, (PFN_vkVoidFunction)below_##name                                                    \
    }
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } calls[] = {BELOW(vkCreateInstance), BELOW(vkDestroyInstance),
                 BELOW(vkGetPhysicalDeviceProperties), BELOW(vkCreateDevice)};
#undef BELOW
    (void)instance;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        if (strcmp(name, calls[i].name) == 0) {
            return calls[i].call;
        }
    }
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL below_device_proc(VkDevice device, const char *name)
{
    (void)device;
    return strcmp(name, "vkDestroyDevice") == 0 ? (PFN_vkVoidFunction)below_vkDestroyDevice
                                                : fake_find(name);
}

/* --- a loader, and a program above it --------------------------------------------------------- */

static VkNegotiateLayerInterface layer;

static void negotiate(void)
{
    layer = (VkNegotiateLayerInterface){.sType = LAYER_NEGOTIATE_INTERFACE_STRUCT,
                                        .loaderLayerInterfaceVersion = 2};
    assert_int_equal(vkNegotiateLoaderLayerInterfaceVersion(&layer), VK_SUCCESS);
}

#define OF_INSTANCE(instance, name) ((PFN_##name)layer.pfnGetInstanceProcAddr(instance, #name))

static VkInstance make_instance(void)
{
    VkLayerInstanceLink below = {.pfnNextGetInstanceProcAddr = below_instance_proc};
    const VkLayerInstanceCreateInfo link = {.sType = VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO,
                                            .function = VK_LAYER_LINK_INFO,
                                            .u.pLayerInfo = &below};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pNext = &link};
    VkInstance made = VK_NULL_HANDLE;
    assert_int_equal(OF_INSTANCE(VK_NULL_HANDLE, vkCreateInstance)(&info, NULL, &made), VK_SUCCESS);
    return made;
}

/* A physical device has its instance's table. */
static VkDevice make_device(VkInstance instance, const char *extension)
{
    VkLayerDeviceLink below = {.pfnNextGetInstanceProcAddr = below_instance_proc,
                               .pfnNextGetDeviceProcAddr = below_device_proc};
    const VkLayerDeviceCreateInfo link = {.sType = VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO,
                                          .function = VK_LAYER_LINK_INFO,
                                          .u.pLayerInfo = &below};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &link,
                                     .enabledExtensionCount = extension != NULL,
                                     .ppEnabledExtensionNames = &extension};
    VkDevice made = VK_NULL_HANDLE;
    assert_int_equal(OF_INSTANCE(instance, vkCreateDevice)((VkPhysicalDevice)(void *)instance,
                                                           &info, NULL, &made),
                     VK_SUCCESS);
    return made;
}

/* A device's functions as a program has them, or as a layer above that asks the instance. */
typedef struct device_calls {
#define X(result, name, parameters, arguments) PFN_##name name;
#include "apis/vulkan/layer/calls.def"
#undef X
} device_calls;

static device_calls ask_instance(VkInstance instance)
{
    device_calls calls;
#define X(result, name, parameters, arguments) calls.name = OF_INSTANCE(instance, name);
#include "apis/vulkan/layer/calls.def"
#undef X
    return calls;
}

static device_calls ask_device(VkDevice device)
{
    device_calls calls;
#define X(result, name, parameters, arguments)                                                     \
    calls.name = (PFN_##name)layer.pfnGetDeviceProcAddr(device, #name);
#include "apis/vulkan/layer/calls.def"
#undef X
    return calls;
}

static void make_pipeline(VkDevice device, const device_calls *calls, uint32_t number)
{
    const uint32_t code[] = {0x07230203u, 0x10000u, 0, 100, 0, (4u << 16) | 15u, 5, number, 0};
    const VkShaderModuleCreateInfo module = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = sizeof(code),
                                             .pCode = code};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"}};
    VkPipeline made = VK_NULL_HANDLE;
    assert_int_equal(calls->vkCreateShaderModule(device, &module, NULL, &info.stage.module),
                     VK_SUCCESS);
    assert_int_equal(calls->vkCreatePipelineLayout(device, &layout, NULL, &info.layout),
                     VK_SUCCESS);
    assert_int_equal(calls->vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &made),
                     VK_SUCCESS);
    ((PFN_vkDestroyPipeline)layer.pfnGetDeviceProcAddr(device, "vkDestroyPipeline"))(device, made,
                                                                                     NULL);
    calls->vkDestroyPipelineLayout(device, info.layout, NULL);
    calls->vkDestroyShaderModule(device, info.stage.module, NULL);
}

static void end_device(VkDevice device)
{
    ((PFN_vkDestroyDevice)layer.pfnGetDeviceProcAddr(device, "vkDestroyDevice"))(device, NULL);
}

static void end_instance(VkInstance instance)
{
    OF_INSTANCE(instance, vkDestroyInstance)(instance, NULL);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void functions_of_devices_are_the_same_from_an_instance(void **state)
{
    (void)state;
    negotiate();
    VkInstance instance = make_instance();
    const device_calls early = ask_instance(instance);
    VkDevice devices[2] = {make_device(instance, NULL), make_device(instance, NULL)};
    const device_calls late = ask_instance(instance), own = ask_device(devices[1]);
    make_pipeline(devices[0], &early, 1);
    make_pipeline(devices[1], &late, 1);
    make_pipeline(devices[1], &own, 1);
    assert_int_equal(compiled_since(), 1);
    assert_int_equal(hits_since(), 2);
    /* An extension that nothing below knows is not there. */
    assert_null(early.vkCreateRayTracingPipelinesNV);
    end_device(devices[0]);
    end_device(devices[1]);
    assert_int_equal(setenv("KILN_DISABLE", "1", 1), 0);
    assert_null(ask_instance(instance).vkCreateComputePipelines);
    assert_int_equal(unsetenv("KILN_DISABLE"), 0);
    end_instance(instance);
    assert_int_equal(alive, 0);
}

static void the_extension_for_binaries_switches_it_off(void **state)
{
    (void)state;
    negotiate();
    VkInstance instance = make_instance();
    for (int i = 0; i < 2; i++) {
        VkDevice device = make_device(instance, i == 0 ? "VK_KHR_pipeline_binary" : "VK_KHR_other");
        const device_calls calls = ask_device(device);
        make_pipeline(device, &calls, 2);
        make_pipeline(device, &calls, 2);
        assert_int_equal(compiled_since(), i == 0 ? 2 : 1);
        assert_int_equal(hits_since(), i == 0 ? 0 : 1);
        end_device(device);
    }
    end_instance(instance);
    assert_int_equal(alive, 0);
}

enum { THREADS = 8, ROUNDS = 12 };

/* Each with an instance and devices of its own, and all on one device. */
static void *make_and_destroy(void *user)
{
    VkDevice shared = *(VkDevice *)user;
    const device_calls of_shared = ask_device(shared);
    VkInstance instance = make_instance();
    const device_calls calls = ask_instance(instance);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        VkDevice device = make_device(instance, NULL);
        make_pipeline(device, &calls, 10 + i % 3);
        make_pipeline(shared, &of_shared, 20 + i % 5);
        end_device(device);
    }
    end_instance(instance);
    return NULL;
}

static void eight_threads_make_and_destroy(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    negotiate();
    VkInstance instance = make_instance();
    VkDevice shared = make_device(instance, NULL);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_destroy, &shared), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    end_device(shared);
    end_instance(instance);
    assert_int_equal(alive, 0);
    assert_int_equal(compiled_since(), 8); /* 3 and 5: one flight each */
    assert_int_equal(hits_since(), THREADS * ROUNDS * 2 - 8);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(functions_of_devices_are_the_same_from_an_instance),
        TEST(the_extension_for_binaries_switches_it_off),
        TEST(eight_threads_make_and_destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
