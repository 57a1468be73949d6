/* Opening the Vulkan loader and an instance, distinguishing failures, listing physical devices. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"

#define TABLE kn_shaderc
#define X(since, need, ret, name, args) {#name, offsetof(TABLE, name), since, need},
const kn_symbol kn_shaderc_symbols[] = {
#include "apis/vulkan/backend/shaderc.def"
};
#undef X
const size_t kn_shaderc_symbol_count = sizeof(kn_shaderc_symbols) / sizeof(kn_shaderc_symbols[0]);

static const char *const loader_names[] = KN_LIBRARY_NAMES("vulkan-1.dll", "libvulkan.so.1");

static void answer_probe(kiln_probe_report *report, kiln_probe_outcome outcome, const char *fix,
                         const char *why)
{
    report->outcome = outcome;
    kn_text_put(report->why, sizeof(report->why), why);
    kn_text_put(report->fix, sizeof(report->fix), fix);
}

/* Entry points by level; each returns the first name that is missing, or NULL. */
static const char *bind_global(kn_vk *vk, PFN_vkGetInstanceProcAddr get)
{
    const char *missing = NULL;
#define GLOBAL(name)                                                                               \
    vk->fn.name = (PFN_##name)get(NULL, #name);                                                    \
    missing = missing == NULL && vk->fn.name == NULL ? #name : missing;
#include "apis/vulkan/backend/loader.def"
    return missing;
}

const char *kn_vk_bind_instance(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                kn_vk_instance_fn *fn)
{
    const char *missing = NULL;
#define INSTANCE(name)                                                                             \
    fn->name = (PFN_##name)get(instance, #name);                                                   \
    missing = missing == NULL && fn->name == NULL ? #name : missing;
#include "apis/vulkan/backend/loader.def"
    return missing;
}

static void create_instance(kn_vk *vk, kiln_probe_report *report)
{
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pEngineName = "kiln",
        /* The newest that is made use of; a loader from 1.1 on takes any, and is asked later which
           it is. */
        .apiVersion = VK_API_VERSION_1_3,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    VkResult result = vk->fn.vkCreateInstance(&info, NULL, &vk->instance);
    if (result == VK_SUCCESS) {
        return;
    }
    vk->instance = VK_NULL_HANDLE;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)kn_vk_fail(result, "vkCreateInstance", &diag);
    answer_probe(report,
                 result == VK_ERROR_INCOMPATIBLE_DRIVER ? KILN_PROBE_NO_DEVICE : KILN_PROBE_FAILED,
                 "install a Vulkan driver (Debian: mesa-vulkan-drivers, or the vendor's)",
                 result == VK_ERROR_INCOMPATIBLE_DRIVER ? "the loader found no usable Vulkan driver"
                                                        : diag.why);
    kiln_diag_clear(&diag);
}

static void list_devices(kn_vk *vk, kiln_probe_report *report)
{
    VkPhysicalDevice handles[KN_VK_MAX_DEVICES] = {VK_NULL_HANDLE};
    uint32_t count = KN_VK_MAX_DEVICES;
    VkResult result = vk->fn.vkEnumeratePhysicalDevices(vk->instance, &count, handles);
    uint32_t old = 0;
    count = count < KN_VK_MAX_DEVICES ? count : KN_VK_MAX_DEVICES;
    for (uint32_t i = 0; (result == VK_SUCCESS || result == VK_INCOMPLETE) && i < count; i++) {
        kn_vk_physical physical;
        if (handles[i] == VK_NULL_HANDLE) {
            continue; /* counted, and not listed */
        }
        kn_vk_physical_query(vk, handles[i], &physical);
        if (physical.properties.apiVersion < VK_API_VERSION_1_1 || physical.family == UINT32_MAX) {
            old++;
            continue;
        }
        vk->physical[vk->device_count++] = physical;
    }
    if (vk->device_count == 0) {
        answer_probe(report, old > 0 ? KILN_PROBE_DRIVER_TOO_OLD : KILN_PROBE_NO_DEVICE,
                     "install a Vulkan 1.1 driver (Debian: mesa-vulkan-drivers, or the vendor's)",
                     old > 0 ? "no device offers Vulkan 1.1 with a compute queue"
                             : "the Vulkan loader lists no device");
        return;
    }
    report->outcome = KILN_PROBE_READY;
    report->device_count = vk->device_count;
    kn_text_putf(report->why, sizeof(report->why), "%u device%s", vk->device_count,
                 vk->device_count == 1 ? "" : "s");
}

/* Asked after the instance is there: the loader reads its layers' manifests for the answer, in 800
 * KB that it frees again, and glibc then takes the instance's own 800 KB from the heap, cleared. */
static bool ask_loader_version(kn_vk *vk, kiln_probe_report *report)
{
    if (vk->fn.vkEnumerateInstanceVersion(&vk->api_version) != VK_SUCCESS ||
        vk->api_version < VK_API_VERSION_1_1) {
        answer_probe(report, KILN_PROBE_DRIVER_TOO_OLD,
                     "install a Vulkan loader of version 1.1 or newer",
                     "the loader offers Vulkan 1.0 only");
        return false;
    }
    kn_text_putf(report->version, sizeof(report->version), "%u.%u.%u",
                 VK_API_VERSION_MAJOR(vk->api_version), VK_API_VERSION_MINOR(vk->api_version),
                 VK_API_VERSION_PATCH(vk->api_version));
    return true;
}

static void open_loader(kn_vk *vk, kiln_probe_report *report)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    PFN_vkGetInstanceProcAddr get = NULL;
    const char *missing = "vkGetInstanceProcAddr";
    if (kn_dylib_open(loader_names, &vk->loader, &outcome, &diag) != KILN_OK) {
        answer_probe(report, outcome, "install the Vulkan loader (Debian: libvulkan1)", diag.why);
        kiln_diag_clear(&diag);
        return;
    }
    kn_text_put(report->library, sizeof(report->library), kn_dylib_path(vk->loader));
    void *symbol = kn_dylib_symbol(vk->loader, "vkGetInstanceProcAddr");
    memcpy(&get, &symbol, sizeof(get));
    if (get != NULL) {
        missing = bind_global(vk, get);
    }
    if (missing != NULL) {
        /* vkEnumerateInstanceVersion came with 1.1: without it this is a 1.0 loader. */
        char why[128];
        kn_text_putf(why, sizeof(why), "the loader has no %s", missing);
        answer_probe(report, get != NULL ? KILN_PROBE_DRIVER_TOO_OLD : KILN_PROBE_SYMBOL_MISSING,
                     "install a Vulkan loader of version 1.1 or newer", why);
        return;
    }
    create_instance(vk, report);
    if (vk->instance == VK_NULL_HANDLE) {
        return;
    }
    missing = kn_vk_bind_instance(get, vk->instance, &vk->fn);
    if (missing != NULL) {
        answer_probe(report, KILN_PROBE_SYMBOL_MISSING, "install a Vulkan 1.1 driver", missing);
        return;
    }
    if (ask_loader_version(vk, report)) {
        list_devices(vk, report);
    }
}

kiln_status kn_vk_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                       kiln_diag *diag)
{
    *out_instance = NULL;
    kn_vk *vk = (kn_vk *)calloc(1, sizeof(*vk));
    if (vk == NULL) {
        return kn_no_memory(diag, "vulkan");
    }
    const uint64_t start = kn_clock_now();
    vk->host = host;
    kn_mutex_init(&vk->lock);
    kn_text_put(report->backend, sizeof(report->backend), "vulkan");
    open_loader(vk, report);
    kn_vk_shaderc_find(vk);
    const size_t used = strlen(report->why);
    kn_text_put(report->why + used, sizeof(report->why) - used,
                vk->shaderc_path[0] != '\0' ? "; GLSL through shaderc"
                                            : "; no shaderc found, so SPIR-V only");
    report->probe_ns = kn_clock_now() - start;
    if (vk->device_count == 0 && vk->shaderc_path[0] == '\0') {
        kiln_status status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, "vulkan", "%s", report->why);
        kn_vk_close(vk);
        return status;
    }
    *out_instance = vk;
    return KILN_OK;
}

void kn_vk_close(void *instance)
{
    kn_vk *vk = (kn_vk *)instance;
    if (vk == NULL) {
        return;
    }
    if (vk->instance != VK_NULL_HANDLE && vk->fn.vkDestroyInstance != NULL) {
        vk->fn.vkDestroyInstance(vk->instance, NULL);
    }
    if (vk->shaderc_first != NULL) {
        vk->shaderc.shaderc_compiler_release(vk->shaderc_first);
    }
    kn_dylib_retire(vk->shaderc_lib); /* glslang keeps what it allocated for the process */
    kn_dylib_retire(vk->loader);
    kn_mutex_deinit(&vk->lock);
    free(vk);
}
