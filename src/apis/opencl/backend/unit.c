/* One OpenCL device in kiln's words: its description, its class, what it can do. Asks the driver
 * and decides nothing about caching. */
#include "apis/opencl/backend/opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/status.h"
#include "base/text.h"

#define POCL_PLATFORM "Portable Computing Language"
#define NVIDIA_PLATFORM "NVIDIA CUDA"

/* From cl_ext.h, which changes with every release of the headers. */
#define DEVICE_UUID_KHR 0x106A
#define DEVICE_IL_VERSION_KHR 0x105B
#define DEVICE_CAPABILITY_MAJOR_NV 0x4000
#define DEVICE_CAPABILITY_MINOR_NV 0x4001

#define TEXT_LIMIT ((size_t)1 << 20)

void kn_opencl_platform_text(const kn_opencl_api *api, cl_platform_id platform,
                             cl_platform_info name, char *text, size_t size)
{
    size_t needed = 0;
    text[0] = '\0';
    if (api->clGetPlatformInfo(platform, name, 0, NULL, &needed) != CL_SUCCESS || needed == 0 ||
        needed > TEXT_LIMIT) {
        return;
    }
    char *whole = calloc(1, needed + 1);
    if (whole == NULL) {
        return;
    }
    if (api->clGetPlatformInfo(platform, name, needed, whole, NULL) == CL_SUCCESS) {
        kn_text_put(text, size, whole);
    }
    free(whole);
}

/* The whole text, malloc'ed; NULL when the device does not say. */
static char *device_text(const kn_opencl_api *api, cl_device_id device, cl_device_info name)
{
    size_t needed = 0;
    if (api->clGetDeviceInfo(device, name, 0, NULL, &needed) != CL_SUCCESS || needed == 0 ||
        needed > TEXT_LIMIT) {
        return NULL;
    }
    char *text = calloc(1, needed + 1);
    if (text != NULL && api->clGetDeviceInfo(device, name, needed, text, NULL) != CL_SUCCESS) {
        free(text);
        text = NULL;
    }
    return text;
}

static void put_device_text(const kn_opencl_api *api, cl_device_id device, cl_device_info name,
                            char *text, size_t size)
{
    char *whole = device_text(api, device, name);
    kn_text_put(text, size, whole != NULL ? whole : "");
    free(whole);
}

/* A number of the size that the query is specified with; 0 when the device does not say. */
static uint64_t device_u64(const kn_opencl_api *api, cl_device_id device, cl_device_info name)
{
    cl_ulong value = 0;
    cl_int code = api->clGetDeviceInfo(device, name, sizeof(value), &value, NULL);
    return code == CL_SUCCESS ? value : 0;
}

static uint32_t device_u32(const kn_opencl_api *api, cl_device_id device, cl_device_info name)
{
    cl_uint value = 0;
    cl_int code = api->clGetDeviceInfo(device, name, sizeof(value), &value, NULL);
    return code == CL_SUCCESS ? value : 0;
}

static uint32_t to_u32(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* "OpenCL 3.0 PoCL HSTR..." -> 300; 0 for anything else. */
static uint32_t parse_version(const char *text)
{
    if (!kn_text_starts(text, "OpenCL ") || !isdigit((unsigned char)text[7]) || text[8] != '.' ||
        !isdigit((unsigned char)text[9])) {
        return 0;
    }
    return (uint32_t)(text[7] - '0') * 100 + (uint32_t)(text[9] - '0') * 10;
}

static bool runs_on_processor(const char *name)
{
    static const char *const renderers[] = {"llvmpipe", "lavapipe", "softpipe", "SwiftShader",
                                            "Basic Render"};
    for (size_t i = 0; i < sizeof(renderers) / sizeof(renderers[0]); i++) {
        if (strstr(name, renderers[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static kiln_device_class class_of(const kn_opencl_api *api, cl_device_id device, const char *name)
{
    cl_device_type type = device_u64(api, device, CL_DEVICE_TYPE);
    if ((type & CL_DEVICE_TYPE_CPU) != 0 || runs_on_processor(name)) {
        return KILN_DEVICE_SOFTWARE;
    }
    if ((type & CL_DEVICE_TYPE_GPU) != 0) {
        return device_u32(api, device, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0 ? KILN_DEVICE_INTEGRATED
                                                                           : KILN_DEVICE_DISCRETE;
    }
    return KILN_DEVICE_VIRTUAL;
}

/* Platforms have long names; a directory's name wants a short one. */
static const char *short_platform(const char *name)
{
    static const struct {
        const char *part, *word;
    } words[] = {
        {POCL_PLATFORM, "pocl"}, {"NVIDIA", "nvidia"}, {"Intel", "intel"},
        {"AMD", "amd"},          {"rusticl", "mesa"},  {"Clover", "mesa"},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(name, words[i].part) != NULL) {
            return words[i].word;
        }
    }
    return name;
}

/* Letters and digits in lower case, one '-' for everything between them, none at either end. */
static void append_word(char *target, size_t size, const char *text)
{
    size_t at = strlen(target);
    bool gap = at > 0;
    for (; *text != '\0' && at + 2 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80 || !isalnum(c)) {
            gap = gap || at > 0;
            continue;
        }
        if (gap) {
            target[at++] = '-';
            gap = false;
        }
        target[at++] = (char)tolower(c);
    }
    target[at] = '\0';
}

static void name_target(kiln_device_info *info)
{
    info->target[0] = '\0';
    append_word(info->target, sizeof(info->target), "opencl");
    append_word(info->target, sizeof(info->target), short_platform(info->platform));
    append_word(info->target, sizeof(info->target), info->name);
}

static void put_uuid(const kn_opencl_api *api, cl_device_id device, const char *extensions,
                     char *text, size_t size)
{
    unsigned char uuid[16] = {0};
    if (size > 2 * sizeof(uuid) && kn_text_has_word(extensions, "cl_khr_device_uuid") &&
        api->clGetDeviceInfo(device, DEVICE_UUID_KHR, sizeof(uuid), uuid, NULL) == CL_SUCCESS) {
        kn_hex_encode(uuid, sizeof(uuid), text);
    }
}

static void put_limits(const kn_opencl_api *api, cl_device_id device, kiln_device_info *info)
{
    size_t group = 0;
    size_t dims[8] = {0}; /* a device may have more than three */
    info->compute_units = device_u32(api, device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->address_bits = device_u32(api, device, CL_DEVICE_ADDRESS_BITS);
    info->memory_bytes = device_u64(api, device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_buffer_bytes = device_u64(api, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->local_bytes = device_u64(api, device, CL_DEVICE_LOCAL_MEM_SIZE);
    if (api->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(group), &group, NULL) ==
        CL_SUCCESS) {
        info->max_group_size = to_u32(group);
    }
    if (api->clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(dims), dims, NULL) ==
        CL_SUCCESS) {
        for (int i = 0; i < 3; i++) {
            info->max_group_dim[i] = to_u32(dims[i]);
        }
    }
}

static void put_texts(const kn_opencl_api *api, kn_opencl_unit *unit)
{
    kiln_device_info *info = &unit->info;
    kn_text_put(info->backend, sizeof(info->backend), "opencl");
    put_device_text(api, unit->device, CL_DEVICE_NAME, info->name, sizeof(info->name));
    put_device_text(api, unit->device, CL_DEVICE_VENDOR, info->vendor, sizeof(info->vendor));
    put_device_text(api, unit->device, CL_DRIVER_VERSION, info->driver, sizeof(info->driver));
    put_device_text(api, unit->device, CL_DEVICE_VERSION, info->version, sizeof(info->version));
    kn_opencl_platform_text(api, unit->platform, CL_PLATFORM_NAME, info->platform,
                            sizeof(info->platform));
    kn_opencl_platform_text(api, unit->platform, CL_PLATFORM_VERSION, unit->platform_version,
                            sizeof(unit->platform_version));
}

kiln_status kn_opencl_unit_init(const kn_opencl_api *api, cl_platform_id platform,
                                cl_device_id device, kn_opencl_unit *unit, kiln_diag *diag)
{
    *unit = (kn_opencl_unit){.platform = platform, .device = device};
    kiln_device_info *info = &unit->info;
    info->struct_size = sizeof(*info);
    put_texts(api, unit);
    uint32_t version = parse_version(info->version);
    uint32_t platform_version = parse_version(unit->platform_version);
    if (version < KN_OPENCL_NEEDED || platform_version < KN_OPENCL_NEEDED) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "install a newer driver for this device",
                             "looking at an OpenCL device",
                             "%s offers %s on a platform with %s; kiln needs OpenCL 1.2",
                             info->name, info->version, unit->platform_version);
    }
    char *extensions = device_text(api, device, CL_DEVICE_EXTENSIONS);
    char *il = device_text(api, device, DEVICE_IL_VERSION_KHR);
    char platform_extensions[4096];
    kn_opencl_platform_text(api, platform, CL_PLATFORM_EXTENSIONS, platform_extensions,
                            sizeof(platform_extensions));
    put_limits(api, device, info);
    put_uuid(api, device, extensions, info->uuid, sizeof(info->uuid));
    info->device_class = class_of(api, device, info->name);
    info->fp16 = kn_text_has_word(extensions, "cl_khr_fp16");
    info->fp64 = kn_text_has_word(extensions, "cl_khr_fp64") ||
                 device_u64(api, device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    info->int8_dot = kn_text_has_word(extensions, "cl_khr_integer_dot_product");
    info->timestamps = true;
    name_target(info);
    unit->is_pocl = strcmp(info->platform, POCL_PLATFORM) == 0;
    unit->takes_linker = unit->is_pocl && kn_pocl_takes_linker(unit->platform_version);
    if (strcmp(info->platform, NVIDIA_PLATFORM) == 0) {
        unit->capability = device_u32(api, device, DEVICE_CAPABILITY_MAJOR_NV) * 10 +
                           device_u32(api, device, DEVICE_CAPABILITY_MINOR_NV);
    }
    unit->has_icd = kn_text_has_word(platform_extensions, "cl_khr_icd");
    unit->takes_spirv = api->clCreateProgramWithIL != NULL && version >= 210 && il != NULL &&
                        strstr(il, "SPIR-V") != NULL;
    unit->offset_alignment = device_u32(api, device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
    free(il);
    free(extensions);
    return KILN_OK;
}
