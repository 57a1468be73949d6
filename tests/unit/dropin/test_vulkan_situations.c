/* The situations of tests/unit/engine/situations.c, for Vulkan pipelines, on a driver of the
 * tests'. */
#include <stdatomic.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <kiln/vulkan.h>

#include "support/fakeicd/pipelines.h"
#include "unit/engine/situations.h"

#define DRIVER(name) ((PFN_##name)fake_find(#name))

typedef void any_function(void);

/* --- the driver ------------------------------------------------------------------------------- */

/* What it does next; taken back after the compile. */
static struct {
    _Atomic bool fails, spoils;
    _Atomic bool refuses;         /* it takes data, and makes no pipeline with it */
    _Atomic bool lacks_memory;    /* for data */
    void (*_Atomic during)(void); /* the next pipeline */
} real;

static _Atomic(VkPipelineCache) with_data; /* the last one that was made of data */

static VkResult VKAPI_PTR spy_create(VkDevice device, const VkPipelineCacheCreateInfo *info,
                                     const VkAllocationCallbacks *allocator, VkPipelineCache *out)
{
    if (info->initialDataSize > 0 && real.lacks_memory) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    const VkResult result = DRIVER(vkCreatePipelineCache)(device, info, allocator, out);
    if (info->initialDataSize > 0) {
        with_data = *out;
    } else if (with_data == *out) { /* that one is gone */
        with_data = VK_NULL_HANDLE;
    }
    return result;
}

/* Another driver's data: its UUID is not this one's. */
static VkResult VKAPI_PTR spy_data(VkDevice device, VkPipelineCache cache, size_t *size, void *data)
{
    const VkResult result = DRIVER(vkGetPipelineCacheData)(device, cache, size, data);
    if (real.spoils && data != NULL) {
        ((unsigned char *)data)[20] ^= 1;
    }
    return result;
}

static VkResult VKAPI_PTR spy_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                        const VkComputePipelineCreateInfo *infos,
                                        const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    void (*during)(void) = atomic_exchange(&real.during, NULL);
    if (during != NULL) {
        during();
    }
    if (real.fails || (real.refuses && cache == with_data)) {
        return VK_ERROR_UNKNOWN;
    }
    return DRIVER(vkCreateComputePipelines)(device, cache, count, infos, allocator, out);
}

static PFN_vkVoidFunction VKAPI_PTR find_of_device(VkDevice device, const char *name)
{
    (void)device;
    if (strcmp(name, "vkCreatePipelineCache") == 0) {
        return (PFN_vkVoidFunction)spy_create;
    }
    if (strcmp(name, "vkGetPipelineCacheData") == 0) {
        return (PFN_vkVoidFunction)spy_data;
    }
    return strcmp(name, "vkCreateComputePipelines") == 0 ? (PFN_vkVoidFunction)spy_pipelines
                                                         : fake_find(name);
}

static void VKAPI_PTR tell_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out)
{
    (void)physical;
    out->properties.apiVersion = VK_API_VERSION_1_0;
    out->properties.vendorID = fake.vendor;
    out->properties.deviceID = fake.device;
    memcpy(out->properties.pipelineCacheUUID, fake.uuid, VK_UUID_SIZE);
}

static void VKAPI_PTR tell_families(VkPhysicalDevice physical, uint32_t *count,
                                    VkQueueFamilyProperties *families)
{
    (void)physical, (void)families;
    *count = 0;
}

static void need_nothing_else(void)
{
    fail_msg("a function that a drop-in does not call");
}

static any_function *find_of_instance(struct VkInstance_T *instance, const char *name)
{
    (void)instance;
    if (strcmp(name, "vkGetPhysicalDeviceProperties2") == 0) {
        return (any_function *)tell_properties;
    }
    if (strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties") == 0) {
        return (any_function *)tell_families;
    }
    return strcmp(name, "vkGetDeviceProcAddr") == 0 ? (any_function *)find_of_device
                                                    : need_nothing_else;
}

/* --- a pipeline ------------------------------------------------------------------------------- */

static kiln_cache *cache_now;
static char object; /* what is only pointed to */

static void begin(const char *dir)
{
    (void)dir;
    memset(&real, 0, sizeof(real));
    with_data = VK_NULL_HANDLE;
}

static void end(void)
{
}

static void use_cache(kiln_cache *cache)
{
    cache_now = cache;
}

static void compile_pipeline(bool other)
{
    const uint32_t text[] = {0x07230203u, other};
    const kiln_vulkan_code code = {text, sizeof(text)};
    const VkShaderModuleCreateInfo code_info = {.codeSize = sizeof(text), .pCode = text};
    const kiln_vulkan_device where = {.struct_size = sizeof(where),
                                      .instance = (VkInstance)(void *)&object,
                                      .physical_device = (VkPhysicalDevice)(void *)&object,
                                      .device = (VkDevice)(void *)&object,
                                      .get_instance_proc_addr = find_of_instance};
    VkComputePipelineCreateInfo info = {
        .stage = {.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main"}};
    const kiln_status expected = real.fails          ? KILN_E_INTERNAL
                                 : real.lacks_memory ? KILN_E_NOMEM
                                                     : KILN_OK;
    VkPipeline made = VK_NULL_HANDLE;
    assert_int_equal(
        DRIVER(vkCreateShaderModule)(where.device, &code_info, NULL, &info.stage.module), 0);
    assert_int_equal(
        kiln_vulkan_create_compute_pipelines(cache_now, &where, 1, &info, &code, &made, NULL),
        expected);
    assert_int_equal(made != VK_NULL_HANDLE, expected == KILN_OK);
    DRIVER(vkDestroyPipeline)(where.device, made, NULL);
    DRIVER(vkDestroyShaderModule)(where.device, info.stage.module, NULL);
    real.fails = false;
    real.spoils = false;
    real.refuses = false;
    real.lacks_memory = false;
}

static unsigned count_compiles(void)
{
    return (unsigned)fake.compiled;
}

static void call_during(void (*call)(void))
{
    real.during = call;
}

/* --- events ----------------------------------------------------------------------------------- */

static const kt_frontend vulkan = {
    .name = "vulkan",
    .target = "vulkan-1234-5678",
    .begin = begin,
    .end = end,
    .use = use_cache,
    .compile = compile_pipeline,
    .compiles = count_compiles,
    .during = call_during,
    .flags = {[KT_REFUSES] = &real.refuses,
              [KT_LOAD_FAILS] = &real.lacks_memory,
              [KT_PRIVATE] = &real.spoils,
              [KT_FAILS] = &real.fails},
    .impossible = {[KT_HEADER] = "SPIR-V includes nothing",
                   [KT_COMPILER] = "the process has its driver, and another has another UUID",
                   [KT_BYPASSES] = "every pipeline has a key",
                   [KT_DEFERS] = "the driver has data when it returns",
                   [KT_RECORDS] = "pipelines depend on objects of the program",
                   [KT_NESTS] = "a driver's callbacks must not call Vulkan"}};

static void vulkan_passes_every_situation(void **state)
{
    (void)state;
    kt_check_situations(&vulkan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vulkan_passes_every_situation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
