/* What OpenCL code depends on besides its source: who the driver says it is, and which builds of
 * the driver's and compiler's libraries are in this process. A version string does not move when
 * only the compiler library is exchanged; a build id does. */
#include "apis/opencl/backend/opencl.h"

#include <CL/cl_icd.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/probe.h"

#include "base/diag.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/process.h"

/* Compilers that a driver opens by itself, often not before the first compile. They are opened here
 * first, so that the first key of a process and a later one see the same. Drivers whose compiler is
 * among the libraries that they need, or carries the driver's own version number (NVIDIA), need no
 * row. */
static const struct {
    const char *platform, *library;
} compilers[] = {
    {"Intel", "libigc.so.2"},
    {"Intel", "libigc.so.1"},
    {"Intel", "libigdfcl.so.2"},
    {"Intel", "libigdfcl.so.1"},
    {"AMD", "libamd_comgr.so.3"},
    {"AMD", "libamd_comgr.so.2"},
    {"AMD", "libamd_comgr_loader.so.1"},
};

/* Variables that change the code that a driver makes, by the drivers' own documentation and
 * sources. Those that name a platform's debug output or cache are not here. */
static const char *const variables[] = {
    /* PoCL 1.8 to 7.1, but for POCL_BINARY_SPECIALIZE_WG and POCL_WORK_GROUP_SPECIALIZATION: they
     * decide which functions a binary holds besides the general ones, and which of them a launch
     * takes or makes. A binary is right for every launch, whatever it holds. */
    "POCL_BITCODE_FINALIZER",
    "POCL_CPU_LOCAL_MEM_SIZE",
    "POCL_CUDA_GPU_ARCH",
    "POCL_EXTRA_BUILD_FLAGS",
    "POCL_FORCE_PARALLEL_OUTER_LOOP",
    "POCL_FULL_REPLICATION_THRESHOLD",
    "POCL_IGNORE_CL_STD",
    "POCL_KERNELLIB_NAME",
    "POCL_LEVEL0_JIT",
    "POCL_LEVEL0_LINK_OPT",
    "POCL_LLVM_ALWAYS_INLINE",
    "POCL_LLVM_CPU_NAME",
    "POCL_LLVM_MOVE_NONKERNELS",
    "POCL_MAX_WORK_GROUP_SIZE",
    "POCL_PREGION_VALUE_REMAT",
    "POCL_VECTORIZER_FORCE_VECTOR_WIDTH",
    "POCL_VECTORIZER_PREFER_VECTOR_WIDTH",
    "POCL_WILOOPS_MAX_UNROLL_COUNT",
    "POCL_WORK_GROUP_METHOD",
    /* Intel */
    "CL_CONFIG_CPU_TARGET_ARCH",
    "CL_CONFIG_CPU_VECTORIZER_MODE",
    "CL_CONFIG_USE_VECTORIZER",
    "IGC_EnableDPEmulation",
    "IGC_ExtraOCLInternalOptions",
    "IGC_ExtraOCLOptions",
    "IGC_ForceOCLSIMDWidth",
    "IGC_ShaderOverride",
    "IGC_VISAOptions",
    "OverrideDefaultFP64Settings",
    /* AMD */
    "AMD_OCL_BUILD_OPTIONS",
    "AMD_OCL_BUILD_OPTIONS_APPEND",
    "AMD_OCL_LINK_OPTIONS",
    "AMD_OCL_LINK_OPTIONS_APPEND",
    /* Mesa */
    "CLOVER_DEVICE_CLC_VERSION_OVERRIDE",
    "CLOVER_DEVICE_VERSION_OVERRIDE",
    "CLOVER_EXTRA_BUILD_OPTIONS",
    "CLOVER_EXTRA_COMPILE_OPTIONS",
    "CLOVER_EXTRA_LINK_OPTIONS",
    "GALLIUM_OVERRIDE_CPU_CAPS",
    "LP_NATIVE_VECTOR_WIDTH",
    "RUSTICL_FEATURES",
};

/* Any function will do: void pointers and function pointers are compared as the bytes they are. */
typedef void any_function(void);

static const void *address_of(any_function *function)
{
    const void *address = NULL;
    memcpy(&address, &function, sizeof(address));
    return address;
}

static bool in_a_module(const void *address)
{
    char path[16], build_id[16];
    return address != NULL &&
           kn_module_of_address(address, path, sizeof(path), build_id, sizeof(build_id));
}

/* An address inside the driver. With cl_khr_icd every handle begins with a pointer to a table of
 * the driver's functions: one of those, or (where the loader fills the table itself) the table,
 * which some drivers keep on the heap. Without it libOpenCL is the driver. */
static const void *driver_address(const kn_opencl_api *api, const kn_opencl_unit *unit)
{
    const cl_icd_dispatch *table = NULL;
    if (unit->has_icd && unit->device != NULL) {
        table = *(const cl_icd_dispatch *const *)(const void *)unit->device;
    }
    if (table != NULL) {
        const void *function = address_of((any_function *)table->clBuildProgram);
        if (in_a_module(function)) {
            return function;
        }
    }
    return in_a_module(table) ? table : address_of((any_function *)api->clBuildProgram);
}

/* Names only, never paths: the same driver in another directory is the same driver. */
static void add_module(void *user, const char *path, const char *build_id)
{
    kn_strbuf *lines = (kn_strbuf *)user;
    kn_strbuf_printf(lines, "%s %s\n", kn_path_name(path), build_id);
}

typedef struct module_search {
    const char *path;
    kn_strbuf *lines;
} module_search;

static void add_if_same(void *user, const char *path, const char *build_id)
{
    module_search *search = (module_search *)user;
    if (strcmp(path, search->path) == 0) {
        add_module(search->lines, path, build_id);
    }
}

static void add_compilers(const kn_opencl_unit *unit, kn_strbuf *lines)
{
    for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
        const char *const names[] = {compilers[i].library, NULL};
        kiln_probe_outcome outcome = KILN_PROBE_READY;
        kn_dylib *lib = NULL;
        if (strstr(unit->info.platform, compilers[i].platform) == NULL ||
            kn_dylib_open(names, &lib, &outcome, NULL) != KILN_OK) {
            continue;
        }
        module_search search = {kn_dylib_path(lib), lines};
        kn_module_each(add_if_same, &search);
        kn_dylib_close(lib);
    }
}

kiln_status kn_opencl_modules_find(const kn_opencl_api *api, const kn_opencl_unit *unit,
                                   char **out_modules, kiln_diag *diag)
{
    kn_strbuf lines;
    kn_strbuf_init(&lines, (size_t)1 << 20);
    kn_module_closure(driver_address(api, unit), add_module, &lines);
    add_compilers(unit, &lines);
    *out_modules = kn_strbuf_ok(&lines) ? kn_text_copy(kn_strbuf_text(&lines)) : NULL;
    kn_strbuf_deinit(&lines);
    return *out_modules != NULL ? KILN_OK : kn_no_memory(diag, "identifying the OpenCL driver");
}

static void emit_lines(const kiln_identity *identity, const char *name, const char *lines)
{
    char line[512];
    for (const char *at = lines; *at != '\0';) {
        size_t length = strcspn(at, "\n");
        kn_text_putf(line, sizeof(line), "%.*s", (int)length, at);
        identity->text(identity->sink, name, line);
        at += length + (at[length] == '\n');
    }
}

/* Where they cannot be read, a text that no other key has, so that nothing stale is found. */
static void emit_files(const kn_opencl_api *api, const kn_opencl_unit *unit, const kiln_host *host,
                       const kiln_identity *identity)
{
    char path[4096], build_id[64];
    char digest[KN_POCL_DIGEST + 32];
    char *dir = NULL;
    if (kn_module_of_address(driver_address(api, unit), path, sizeof(path), build_id,
                             sizeof(build_id))) {
        dir = kn_pocl_files_dir(path);
    }
    if (dir == NULL) {
        kn_text_put(digest, sizeof(digest), "none");
    } else if (!kn_pocl_files_digest(dir, host, digest)) {
        kn_text_putf(digest, sizeof(digest), "unreadable %u %llu", kn_process_id(),
                     (unsigned long long)kn_clock_now());
    }
    free(dir);
    identity->text(identity->sink, "opencl.files", digest);
}

void kn_opencl_identify_unit(const kn_opencl_api *api, const kn_opencl_unit *unit,
                             const char *modules, const kiln_host *host,
                             const kiln_identity *identity)
{
    const kiln_device_info *info = &unit->info;
    char bits[16];
    kn_text_putf(bits, sizeof(bits), "%u", info->address_bits);
    identity->text(identity->sink, "opencl.platform", info->platform);
    identity->text(identity->sink, "opencl.platform_version", unit->platform_version);
    identity->text(identity->sink, "opencl.device", info->name);
    identity->text(identity->sink, "opencl.vendor", info->vendor);
    identity->text(identity->sink, "opencl.driver", info->driver);
    identity->text(identity->sink, "opencl.device_version", info->version);
    identity->text(identity->sink, "opencl.address_bits", bits);
    identity->text(identity->sink, KILN_IDENTITY_CODE,
                   info->device_class == KILN_DEVICE_DISCRETE ||
                           info->device_class == KILN_DEVICE_INTEGRATED
                       ? KILN_IDENTITY_GPU
                       : "processor");
    emit_lines(identity, "opencl.module", modules);
    if (unit->is_pocl) {
        emit_files(api, unit, host, identity);
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        identity->env(identity->sink, variables[i]);
    }
}

kiln_status kn_opencl_unit_modules(kn_opencl *cl, kn_opencl_unit *unit, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_mutex_lock(&cl->lock);
    if (unit->modules == NULL) {
        status = kn_opencl_modules_find(&cl->api, unit, &unit->modules, diag);
    }
    kn_mutex_unlock(&cl->lock);
    return status;
}

kiln_status kn_opencl_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                               const kiln_identity *identity, kiln_diag *diag)
{
    kn_opencl *cl = (kn_opencl *)instance;
    (void)stage; /* there is one, for source and for SPIR-V */
    if (!target->has_device || target->device_index >= cl->unit_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "identifying an OpenCL target",
                             "%s is not a device of this machine", target->name);
    }
    kn_opencl_unit *unit = &cl->units[target->device_index];
    kiln_status status = kn_opencl_unit_modules(cl, unit, diag);
    if (status == KILN_OK) {
        kn_opencl_identify_unit(&cl->api, unit, unit->modules, cl->host, identity);
    }
    return status;
}
