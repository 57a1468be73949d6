/* Where hipRTC lies on Windows, by the names of AMD's HIP SDK: hiprtc0604.dll with
 * hiprtc-builtins0604.dll in bin, and the runtime, amdhip64_6.dll (amdhip64.dll up to 5), there or,
 * of the driver, in System32. %PATH% is not looked at: any user may have put a directory or a file
 * there. */
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"

/* "0604.dll" of 6.4: four digits and no more. */
static uint64_t read_release(const char *text)
{
    uint64_t version = 0;
    for (size_t i = 0; i < 4; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        version = 10 * version + (uint64_t)(text[i] - '0');
    }
    return strcmp(text + 4, ".dll") == 0 ? version : 0;
}

/* "_6.dll" of 6, ".dll" of what was before that. */
static uint64_t read_major(const char *text)
{
    char *end = NULL;
    if (text[0] != '_') {
        return strcmp(text, ".dll") == 0 ? 1 : 0;
    }
    const unsigned long number = text[1] >= '0' && text[1] <= '9' ? strtoul(text + 1, &end, 10) : 0;
    return number > 1 && number < 1000 && strcmp(end, ".dll") == 0 ? number : 0;
}

static uint64_t read_dll_version(kn_hip_kind kind, const char *name)
{
    static const char rtc[] = "hiprtc", builtins[] = "hiprtc-builtins", runtime[] = "amdhip64",
                      comgr[] = "amd_comgr";
    switch (kind) {
    case KN_HIP_RTC:
        return kn_text_starts(name, rtc) ? read_release(name + sizeof(rtc) - 1) : 0;
    case KN_HIP_BUILTINS:
        return kn_text_starts(name, builtins) ? read_release(name + sizeof(builtins) - 1) : 0;
    case KN_HIP_RUNTIME:
        return kn_text_starts(name, runtime) ? read_major(name + sizeof(runtime) - 1) : 0;
    case KN_HIP_COMGR: /* amd_comgr_2.dll, amd_comgr0701.dll */
        if (!kn_text_starts(name, comgr)) {
            return 0;
        }
        return read_release(name + sizeof(comgr) - 1) + read_major(name + sizeof(comgr) - 1);
    default:
        return 0; /* hipRTC left the runtime before there was an SDK */
    }
}

static const char *const loader_variables[] = {"PATH", NULL};

const kn_hip_name_set kn_hip_names = {
    .read = read_dll_version,
    .comgr = "amd_comgr",
    .no_comgr = "install the HIP SDK, or the driver, of that release with its amd_comgr*.dll",
    .loader_variables = loader_variables,
    .loader_cache = "",
    .missing = "no hiprtc*.dll",
    .install = "install AMD's HIP SDK, or set HIP_PATH to the directory above its bin",
    .no_runtime = "there is no amdhip64*.dll next to hipRTC, nor in System32",
};

/* The highest X.Y of a directory. */
typedef struct newest {
    unsigned long major, minor;
    char name[32];
} newest;

static kiln_status consider_release(void *user, const char *name)
{
    newest *best = (newest *)user;
    char *end = NULL;
    const unsigned long major = strtoul(name, &end, 10);
    if (end == name || *end != '.' || strlen(name) >= sizeof(best->name)) {
        return KILN_OK;
    }
    const char *rest = end + 1;
    const unsigned long minor = strtoul(rest, &end, 10);
    if (end != rest && *end == '\0' && major > 0 &&
        (major > best->major || (major == best->major && minor >= best->minor))) {
        best->major = major;
        best->minor = minor;
        kn_text_put(best->name, sizeof(best->name), name);
    }
    return KILN_OK;
}

static bool look_in_installed(kn_hip *hip, const char *programs)
{
    char dir[KN_HIP_PATH];
    char release[KN_HIP_PATH + sizeof(((newest *)0)->name)];
    newest best = {0};
    if (programs == NULL) {
        return false;
    }
    kn_text_putf(dir, sizeof(dir), "%s/AMD/ROCm", programs);
    if (kn_file_list(dir, consider_release, &best, NULL) != KILN_OK || best.major == 0) {
        return false;
    }
    kn_text_putf(release, sizeof(release), "%s/%s", dir, best.name);
    return kn_hip_look_under(hip, release, "bin");
}

static bool look_next_to(kn_hip *hip, char *file)
{
    char *dir = file != NULL ? kn_path_dir(file) : NULL;
    const bool found = dir != NULL && kn_hip_look_in(hip, dir);
    free(dir);
    free(file);
    return found;
}

bool kn_hip_locate(kn_hip *hip)
{
    char system[KN_HIP_PATH] = "";
    const char *root = kn_env_get("SystemRoot");
    if (root != NULL) {
        kn_text_putf(system, sizeof(system), "%s/System32", root);
    }
    if (!kn_hip_look_under(hip, kn_env_get("HIP_PATH"), "bin") &&
        !kn_hip_look_under(hip, kn_env_get("ROCM_PATH"), "bin") &&
        !look_next_to(hip, kn_paths_own_module()) && !look_next_to(hip, kn_paths_own_program()) &&
        !look_in_installed(hip, kn_env_get("ProgramFiles")) && !kn_hip_look_in(hip, system)) {
        return false;
    }
    if (hip->runtime[0] == '\0') {
        (void)kn_hip_look_for_runtime(hip, system);
    }
    return true;
}
