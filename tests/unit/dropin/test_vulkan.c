/* kiln/vulkan.h on whatever driver is here, for a program with a device of its own. The program's
 * vkGetInstanceProcAddr hands out spies, so that what reaches the driver is seen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <kiln/vulkan.h>

#include "support/cmocka.h"
#include "support/counters.h"
#include "support/fakeicd/pipelines.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "support/unended.h"
#include "sys/dylib.h"

static const uint32_t code[] = {
#include "scale.spv.inc"
};

typedef void any_function(void);

static PFN_vkGetInstanceProcAddr real_get;
static PFN_vkGetDeviceProcAddr real_device_get;
static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkShaderModule module;
static VkPipelineLayout layout;
static VkDescriptorSetLayout set_layout;
static size_t with_data;   /* caches created from data */
static bool spoil_data;    /* what the driver gives is another driver's */
static bool refuse_data;   /* the driver refuses data */
static const char *marked; /* each load from data is to be noted in this root */

#define CALL(name) ((PFN_##name)real_get(instance, #name))
#define DEVICE_CALL(name) ((PFN_##name)real_device_get(device, #name))

static VkResult VKAPI_PTR spy_create(VkDevice handle, const VkPipelineCacheCreateInfo *info,
                                     const VkAllocationCallbacks *allocator, VkPipelineCache *cache)
{
    with_data += info->initialDataSize > 0;
    if (marked != NULL) {
        assert_int_equal(kt_is_in_load(marked), info->initialDataSize > 0);
    }
    if (refuse_data && info->initialDataSize > 0) {
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    return ((PFN_vkCreatePipelineCache)real_device_get(handle, "vkCreatePipelineCache"))(
        handle, info, allocator, cache);
}

static VkResult VKAPI_PTR spy_data(VkDevice handle, VkPipelineCache cache, size_t *size, void *data)
{
    VkResult result = ((PFN_vkGetPipelineCacheData)real_device_get(
        handle, "vkGetPipelineCacheData"))(handle, cache, size, data);
    if (spoil_data && data != NULL && *size >= 32) {
        ((unsigned char *)data)[20] ^= 1;
    }
    return result;
}

/* A driver whose caches hold their pipelines, for lavapipe's hold next to nothing. */
static bool pretend;

#define FAKE_CALL(name) ((PFN_##name)fake_find(#name))

static void add_fake_pipeline(VkPipelineCache cache, uint32_t number)
{
    const uint32_t text[] = {0x07230203u, number};
    const VkShaderModuleCreateInfo code_info = {.sType =
                                                    VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                .codeSize = sizeof(text),
                                                .pCode = text};
    VkComputePipelineCreateInfo info = {
        .stage = {.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main"}};
    VkPipeline made = VK_NULL_HANDLE;
    assert_int_equal(FAKE_CALL(vkCreateShaderModule)(device, &code_info, NULL, &info.stage.module),
                     0);
    assert_int_equal(FAKE_CALL(vkCreateComputePipelines)(device, cache, 1, &info, NULL, &made), 0);
    FAKE_CALL(vkDestroyPipeline)(device, made, NULL);
    FAKE_CALL(vkDestroyShaderModule)(device, info.stage.module, NULL);
}

static PFN_vkVoidFunction VKAPI_PTR device_get(VkDevice handle, const char *name)
{
    if (pretend && fake_find(name) != NULL) {
        return fake_find(name);
    }
    if (strcmp(name, "vkCreatePipelineCache") == 0) {
        return (PFN_vkVoidFunction)spy_create;
    }
    if (strcmp(name, "vkGetPipelineCacheData") == 0) {
        return (PFN_vkVoidFunction)spy_data;
    }
    return real_device_get(handle, name);
}

static any_function *instance_get(struct VkInstance_T *handle, const char *name)
{
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        return (any_function *)device_get;
    }
    return (any_function *)real_get(handle, name);
}

static void create_device(void)
{
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    assert_int_equal(CALL(vkCreateDevice)(physical, &info, NULL, &device), VK_SUCCESS);
    real_device_get = CALL(vkGetDeviceProcAddr);
    const VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                  VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    assert_int_equal(DEVICE_CALL(vkCreateDescriptorSetLayout)(device, &set_info, NULL, &set_layout),
                     0);
    const VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &set_layout};
    assert_int_equal(DEVICE_CALL(vkCreatePipelineLayout)(device, &layout_info, NULL, &layout), 0);
    const VkShaderModuleCreateInfo module_info = {.sType =
                                                      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                  .codeSize = sizeof(code),
                                                  .pCode = code};
    assert_int_equal(DEVICE_CALL(vkCreateShaderModule)(device, &module_info, NULL, &module), 0);
}

static int open_vulkan(void **state)
{
    static const char *const names[] = {"libvulkan.so.1", NULL};
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kn_dylib *loader = NULL;
    uint32_t count = 1;
    if (kn_dylib_open(names, &loader, &outcome, NULL) != KILN_OK) {
        kn_test_skip("vulkan", "there is no Vulkan loader");
    }
    void *symbol = kn_dylib_symbol(loader, "vkGetInstanceProcAddr");
    memcpy(&real_get, &symbol, sizeof(real_get));
    kn_dylib_retire(loader);
    if (((PFN_vkCreateInstance)real_get(NULL, "vkCreateInstance"))(&info, NULL, &instance) != 0 ||
        CALL(vkEnumeratePhysicalDevices)(instance, &count, &physical) < 0 || count == 0) {
        kn_test_skip("vulkan", "there is no Vulkan device");
    }
    create_device();
    return 0;
}

static int close_vulkan(void **state)
{
    DEVICE_CALL(vkDestroyShaderModule)(device, module, NULL);
    DEVICE_CALL(vkDestroyPipelineLayout)(device, layout, NULL);
    DEVICE_CALL(vkDestroyDescriptorSetLayout)(device, set_layout, NULL);
    DEVICE_CALL(vkDestroyDevice)(device, NULL);
    CALL(vkDestroyInstance)(instance, NULL);
    return 0;
}

static kiln_vulkan_device where(void)
{
    return (kiln_vulkan_device){.struct_size = sizeof(kiln_vulkan_device),
                                .instance = instance,
                                .physical_device = physical,
                                .device = device,
                                .get_instance_proc_addr = instance_get};
}

static kiln_cache *open_cache(const char *dir)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = dir;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    return cache;
}

static VkComputePipelineCreateInfo pipeline_info(const VkSpecializationInfo *constants)
{
    return (VkComputePipelineCreateInfo){
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = constants},
        .layout = layout};
}

/* One pipeline with this factor, on a cache opened for it; the counters of that cache. */
static kt_counters make(const char *dir, int factor)
{
    const VkSpecializationMapEntry entry = {0, 0, sizeof(factor)};
    const VkSpecializationInfo constants = {1, &entry, sizeof(factor), &factor};
    const VkComputePipelineCreateInfo info = pipeline_info(&constants);
    const kiln_vulkan_code codes = {code, sizeof(code)};
    const kiln_vulkan_device device_info = where();
    VkPipeline pipeline = VK_NULL_HANDLE;
    kt_counters stats;
    kiln_cache *cache = open_cache(dir);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kiln_vulkan_create_compute_pipelines(cache, &device_info, 1, &info, &codes,
                                                              &pipeline, &diag);
    if (status != KILN_OK) {
        print_error("%s: %s\n", diag.what, diag.why);
    }
    assert_int_equal(status, KILN_OK);
    assert_true(pipeline != VK_NULL_HANDLE);
    DEVICE_CALL(vkDestroyPipeline)(device, pipeline, NULL);
    kt_counters_own(cache, &stats);
    kiln_cache_destroy(cache);
    return stats;
}

static void pipelines_are_made_once(void **state)
{
    const char *dir = (const char *)*state;
    with_data = 0;
    assert_int_equal(make(dir, 3).compiles, 1);
    assert_int_equal(with_data, 0);
    assert_int_equal(make(dir, 3).compiles, 0);
    assert_int_equal(with_data, 1);
    assert_int_equal(make(dir, 4).compiles, 1);
    assert_int_equal(with_data, 1);
}

static void row_74_refused_data_is_made_again(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(make(dir, 3).compiles, 1);
    refuse_data = true;
    kt_counters stats = make(dir, 3);
    refuse_data = false;
    assert_int_equal(stats.rejected, 1);
    assert_int_equal(stats.compiles, 1);
    assert_int_equal(make(dir, 3).compiles, 0);
}

/* Another process did not live to see the end of loading it, and then another one. */
static void data_that_two_processes_died_of_is_not_loaded(void **state)
{
    const char *dir = (const char *)*state;
    assert_int_equal(make(dir, 3).compiles, 1);
    kt_end_in_load(dir, NULL);
    marked = dir;
    with_data = 0;
    assert_int_equal(make(dir, 3).compiles, 0); /* which ends well, and begins a new count */
    assert_int_equal(with_data, 1);
    kt_end_in_load(dir, NULL);
    kt_end_in_load(dir, NULL);
    for (int i = 0; i < 2; i++) {
        kt_counters stats = make(dir, 3);
        assert_int_equal(stats.unended, 1);
        assert_int_equal(stats.rejected, 0);
        assert_int_equal(stats.compiles, 1);
        assert_int_equal(stats.puts, 1);
        assert_true(kt_has_entry(dir, NULL));
    }
    assert_int_equal(with_data, 1);
    marked = NULL;
}

/* Data with another driver's identifier is not stored, and the program has its pipeline. */
static void row_88_data_of_another_driver_is_not_stored(void **state)
{
    const char *dir = (const char *)*state;
    with_data = 0;
    spoil_data = true;
    kt_counters stats = make(dir, 3);
    assert_int_equal(stats.puts, 0);
    assert_true(stats.bypassed > 0);
    spoil_data = false;
    assert_int_equal(make(dir, 3).compiles, 1);
    assert_int_equal(with_data, 0);
}

static VkPipelineCache load(kiln_cache *cache)
{
    const kiln_vulkan_device device_info = where();
    VkPipelineCache made = VK_NULL_HANDLE;
    assert_int_equal(kiln_vulkan_pipeline_cache_load(cache, &device_info, "test", &made, NULL),
                     KILN_OK);
    assert_true(made != VK_NULL_HANDLE);
    return made;
}

static void save(kiln_cache *cache, VkPipelineCache made)
{
    const kiln_vulkan_device device_info = where();
    assert_int_equal(kiln_vulkan_pipeline_cache_save(cache, &device_info, "test", made, 0, NULL),
                     KILN_OK);
    DEVICE_CALL(vkDestroyPipelineCache)(device, made, NULL);
}

static void add_pipeline(VkPipelineCache cache)
{
    const VkComputePipelineCreateInfo info = pipeline_info(NULL);
    VkPipeline pipeline = VK_NULL_HANDLE;
    assert_int_equal(
        DEVICE_CALL(vkCreateComputePipelines)(device, cache, 1, &info, NULL, &pipeline), 0);
    DEVICE_CALL(vkDestroyPipeline)(device, pipeline, NULL);
}

static void a_whole_cache_is_kept(void **state)
{
    const char *dir = (const char *)*state;
    kt_counters stats;
    with_data = 0;
    kiln_cache *cache = open_cache(dir);
    VkPipelineCache made = load(cache);
    assert_int_equal(with_data, 0);
    add_pipeline(made);
    save(cache, made);
    kt_counters_own(cache, &stats);
    assert_int_equal(stats.puts, 1);
    kiln_cache_destroy(cache);

    cache = open_cache(dir);
    marked = dir;
    made = load(cache);
    assert_int_equal(with_data, 1);
    add_pipeline(made);
    save(cache, made); /* nothing new: nothing is written */
    kt_counters_own(cache, &stats);
    assert_int_equal(stats.puts, 0);
    refuse_data = true;
    marked = NULL;
    made = load(cache); /* the driver changes its mind: an empty one */
    refuse_data = false;
    kt_counters_own(cache, &stats);
    assert_int_equal(stats.rejected, 1);
    DEVICE_CALL(vkDestroyPipelineCache)(device, made, NULL);
    kiln_cache_destroy(cache);
}

/* A process keeps its cache open; what others save meanwhile is not in its memory. */
static void what_others_saved_meanwhile_is_kept(void **state)
{
    const char *dir = (const char *)*state;
    const kiln_vulkan_device device_info = where();
    kiln_cache *caches[] = {open_cache(dir), open_cache(dir)};
    VkPipelineCache made[2];
    VkPhysicalDeviceProperties properties;
    size_t size = 0;
    CALL(vkGetPhysicalDeviceProperties)(physical, &properties);
    fake.vendor = properties.vendorID;
    fake.device = properties.deviceID;
    memcpy(fake.uuid, properties.pipelineCacheUUID, VK_UUID_SIZE);
    pretend = true;
    for (int i = 0; i < 2; i++) {
        made[i] = load(caches[i]);
        add_fake_pipeline(made[i], (uint32_t)i);
        assert_int_equal(
            kiln_vulkan_pipeline_cache_save(caches[i], &device_info, "test", made[i], 0, NULL),
            KILN_OK);
    }
    add_fake_pipeline(made[0], 2);
    assert_int_equal(
        kiln_vulkan_pipeline_cache_save(caches[0], &device_info, "test", made[0], 0, NULL),
        KILN_OK);
    for (int i = 0; i < 2; i++) {
        FAKE_CALL(vkDestroyPipelineCache)(device, made[i], NULL);
        kiln_cache_destroy(caches[i]);
    }
    kiln_cache *later = open_cache(dir);
    VkPipelineCache all = load(later);
    assert_int_equal(FAKE_CALL(vkGetPipelineCacheData)(device, all, &size, NULL), 0);
    assert_int_equal(size, 32 + 3 * FAKE_RECORD);
    FAKE_CALL(vkDestroyPipelineCache)(device, all, NULL);
    kiln_cache_destroy(later);
    pretend = false;
}

static void wrong_calls_are_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_vulkan_device device_info = where();
    VkPipelineCache made = VK_NULL_HANDLE;
    assert_int_equal(kiln_vulkan_pipeline_cache_load(NULL, &device_info, "", &made, &diag),
                     KILN_E_INVALID);
    device_info.device = NULL;
    assert_int_equal(kiln_vulkan_pipeline_cache_load(NULL, &device_info, "x", &made, &diag),
                     KILN_E_INVALID);
    assert_int_equal(
        kiln_vulkan_create_compute_pipelines(NULL, &device_info, 0, NULL, NULL, NULL, &diag),
        KILN_E_INVALID);
    assert_true(diag.why[0] != '\0');
    kiln_diag_clear(&diag);
}

int main(void)
{
#define TEST(name) kt_dir_test(name)
    const struct CMUnitTest tests[] = {
        TEST(pipelines_are_made_once),
        TEST(row_74_refused_data_is_made_again),
        TEST(data_that_two_processes_died_of_is_not_loaded),
        TEST(row_88_data_of_another_driver_is_not_stored),
        TEST(a_whole_cache_is_kept),
        TEST(what_others_saved_meanwhile_is_kept),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, open_vulkan, close_vulkan);
}
