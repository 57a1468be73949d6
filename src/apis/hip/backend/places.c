/* Where hipRTC lies: in a library of its own (ROCm 5.3 and later), or in HIP's runtime (Debian's
 * ROCm 5.2 and older). Nothing in the current directory is ever used. */
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

/* hipRTC's entry points left the runtime for good with version 6 of it. */
enum { LAST_WHOLE_RUNTIME = 5, ANY = 1000 };

static uint64_t read_so_version(kn_hip_kind kind, const char *name)
{
    static const struct {
        const char *prefix;
        uint64_t newest; /* no version above it is taken */
    } kinds[KN_HIP_KINDS] = {
        [KN_HIP_RTC] = {"libhiprtc.so.", ANY},
        [KN_HIP_WHOLE_RUNTIME] = {"libamdhip64.so.", LAST_WHOLE_RUNTIME},
        [KN_HIP_BUILTINS] = {"libhiprtc-builtins.so.", ANY},
        [KN_HIP_RUNTIME] = {"libamdhip64.so.", ANY},
        [KN_HIP_COMGR] = {"libamd_comgr.so.", 0}, /* hipRTC's own paths find it */
    };
    uint64_t version = 0;
    return kn_text_starts(name, kinds[kind].prefix) &&
                   kn_text_to_u64(name + strlen(kinds[kind].prefix), &version) &&
                   version <= kinds[kind].newest
               ? version
               : 0;
}

static const char *const loader_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", NULL};

const kn_hip_name_set kn_hip_names = {
    .read = read_so_version,
    .comgr = "libamd_comgr.so",
    .no_comgr = "install libamd_comgr of the same ROCm release",
    .loader_variables = loader_variables,
    .loader_cache = "/etc/ld.so.cache",
    .missing = "no libhiprtc.so, and no libamdhip64.so.5 with hipRTC in it",
    .install = "install ROCm's hipRTC (Debian: libamdhip64-5), or set ROCM_PATH to the directory "
               "above its lib",
    .no_runtime = "there is no libamdhip64.so.N next to hipRTC",
};

/* `kiln exec` puts a directory in front whose libhiprtc is kiln's, two below the core of that. */
static bool is_of_kiln_exec(const char *directory)
{
    kn_file_facts facts;
    char core[KN_HIP_PATH];
    kn_text_putf(core, sizeof(core), "%s/../../libkiln-interpose.so", directory);
    return kn_file_stat(core, true, &facts, NULL) == KILN_OK;
}

static bool look_on_library_path(kn_hip *hip)
{
    const char *list = kn_env_get("LD_LIBRARY_PATH");
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        char path[KN_HIP_PATH];
        if (length > 0 && length < sizeof(path)) {
            memcpy(path, list, length);
            path[length] = '\0';
            if (!is_of_kiln_exec(path) && kn_hip_look_in(hip, path)) {
                return true;
            }
        }
        list += length + (list[length] == ':');
    }
    return false;
}

bool kn_hip_locate(kn_hip *hip)
{
    static const char *const system_directories[] = {"/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu",
                                                     "/usr/lib/aarch64-linux-gnu", "/usr/lib64"};
    if (kn_hip_look_under(hip, kn_env_get("ROCM_PATH"), "lib") ||
        kn_hip_look_under(hip, kn_env_get("HIP_PATH"), "lib") || look_on_library_path(hip)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(system_directories) / sizeof(system_directories[0]); i++) {
        if (kn_hip_look_in(hip, system_directories[i])) {
            return true;
        }
    }
    return false;
}
