/* A Vulkan driver that lies (tests/support/fakevulkan). */
#include <stdio.h>
#include <stdlib.h>

#include "support/tmpdir.h"
#include "unit/backends/lies_rig.h"

extern const kiln_backend kn_backend_vulkan;

static const char *const queries[] = {
    "vkEnumerateInstanceVersion value",
    "vkEnumeratePhysicalDevices value",
    "vkGetPhysicalDeviceQueueFamilyProperties value",
    "apiVersion value",
    "deviceName value",
    "maxStorageBufferRange value",
    "maxPushConstantsSize value",
    "maxComputeSharedMemorySize value",
    "maxComputeWorkGroupInvocations value",
    "maxComputeWorkGroupSize value",
    "maxComputeWorkGroupCount value",
    "nonCoherentAtomSize value",
    "timestampPeriod value",
    "timestampValidBits value",
    "memoryTypeCount value",
    "memoryHeapCount value",
    "memoryHeapSize value",
    "requirements.size value",
    "requirements.alignment value",
    "requirements.memoryTypeBits value",
    "vkGetPipelineCacheData length",
    "vkGetPipelineCacheData error",
    "vkGetPipelineCacheData:data length",
    "vkGetQueryPoolResults value",
};

/* A pipeline cache that cannot be read costs the cache, not the program. */
static const char *const builds[] = {"vkGetPipelineCacheData length",
                                     "vkGetPipelineCacheData error",
                                     "vkGetPipelineCacheData:data length", NULL};

int main(int argc, char **argv)
{
    lies_case what = {
        .backend = &kn_backend_vulkan,
        .name = "vulkan",
        .library = "libvulkan.so.1",
        .dir = KILN_FAKE_DIR,
        .queries = queries,
        .query_count = sizeof(queries) / sizeof(*queries),
        .builds = builds,
        .language = KILN_LANG_SPIRV,
        .buffers = 3,
        .values = 2,
    };
    char *module_text = kt_file_read(KILN_SPIRV_MODULE, &what.text_size);
    what.text = module_text;
    const int result = what.text != NULL ? lies_run(&what, argc, argv) : 1;
    free(module_text);
    return result;
}
