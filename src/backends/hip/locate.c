/* Where hipRTC lies: in a library of its own (ROCm 5.3 and later), or in HIP's runtime (Debian's
 * ROCm 5.2 and older). Found by its files, so that a warm start opens none of them; nothing in the
 * current directory is ever used. */
#include <stdlib.h>
#include <string.h>

#include "backends/hip/instance.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/file.h"

/* The highest "PREFIX.N" of a directory. */
typedef struct pick {
    const char *prefix;
    uint64_t version, newest; /* 0: none; no version above `newest` is taken */
} pick;

/* hipRTC's entry points left the runtime for good with version 6 of it. */
enum { HIPRTC, WHOLE_RUNTIME, BUILTINS, RUNTIME, KINDS, LAST_WHOLE_RUNTIME = 5, ANY = 1000 };

static kiln_status consider_name(void *user, const char *name)
{
    pick *best = (pick *)user;
    for (size_t i = 0; i < KINDS; i++) {
        uint64_t version = 0;
        if (kn_text_starts(name, best[i].prefix) &&
            kn_text_to_u64(name + strlen(best[i].prefix), &version) && version > best[i].version &&
            version <= best[i].newest) {
            best[i].version = version;
        }
    }
    return KILN_OK;
}

static bool take_pick(const char *directory, const pick *best, char path[KN_HIP_PATH])
{
    kn_elf_facts facts;
    path[0] = '\0';
    if (best->version == 0) {
        return false;
    }
    kn_text_putf(path, KN_HIP_PATH, "%s/%s%u", directory, best->prefix, (unsigned)best->version);
    if (kn_elf_inspect(path, &facts, NULL) != KILN_OK || facts.bits != 8 * sizeof(void *)) {
        path[0] = '\0';
    }
    return path[0] != '\0';
}

static bool look_in(kn_hip *hip, const char *directory)
{
    pick best[KINDS] = {{"libhiprtc.so.", 0, ANY},
                        {"libamdhip64.so.", 0, LAST_WHOLE_RUNTIME},
                        {"libhiprtc-builtins.so.", 0, ANY},
                        {"libamdhip64.so.", 0, ANY}};
    if (!kn_path_is_absolute(directory) ||
        kn_file_list(directory, consider_name, best, NULL) != KILN_OK ||
        (!take_pick(directory, &best[HIPRTC], hip->library) &&
         !take_pick(directory, &best[WHOLE_RUNTIME], hip->library))) {
        return false;
    }
    (void)take_pick(directory, &best[BUILTINS], hip->builtins);
    (void)take_pick(directory, &best[RUNTIME], hip->runtime);
    return true;
}

bool kn_hip_locate_at(kn_hip *hip, const char *path)
{
    pick best[KINDS] = {{"", 0, 0}, {"", 0, 0}, {"libhiprtc-builtins.so.", 0, ANY}, {"", 0, 0}};
    char directory[KN_HIP_PATH];
    const size_t length = strlen(path);
    const size_t name = strlen(kn_path_name(path));
    if (length >= sizeof(hip->library) || name + 1 >= length) {
        return false;
    }
    kn_text_put(hip->library, sizeof(hip->library), path);
    kn_text_putf(directory, sizeof(directory), "%.*s", (int)(length - name - 1), path);
    if (kn_file_list(directory, consider_name, best, NULL) == KILN_OK) {
        (void)take_pick(directory, &best[BUILTINS], hip->builtins);
    }
    return true;
}

static bool look_under(kn_hip *hip, const char *variable)
{
    const char *base = kn_env_get(variable);
    char path[KN_HIP_PATH];
    kn_text_putf(path, sizeof(path), "%s/lib", base != NULL ? base : "");
    return base != NULL && look_in(hip, path);
}

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
            if (!is_of_kiln_exec(path) && look_in(hip, path)) {
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
    if (look_under(hip, "ROCM_PATH") || look_under(hip, "HIP_PATH") || look_on_library_path(hip)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(system_directories) / sizeof(system_directories[0]); i++) {
        if (look_in(hip, system_directories[i])) {
            return true;
        }
    }
    return false;
}
