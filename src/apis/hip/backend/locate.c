/* hipRTC in a directory, found by its files, so that a warm start opens none of them. This file
 * must not know the places or names of any system. */
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/file.h"

/* The file of the highest version. */
typedef struct pick {
    uint64_t version; /* 0: none */
    size_t count;     /* of files of this kind */
    char name[64];
} pick;

static kiln_status consider_name(void *user, const char *name)
{
    pick *best = (pick *)user;
    for (size_t i = 0; i < KN_HIP_KINDS; i++) {
        const uint64_t version = kn_hip_names.read((kn_hip_kind)i, name);
        best[i].count += version > 0;
        if (version > best[i].version && strlen(name) < sizeof(best[i].name)) {
            best[i].version = version;
            kn_text_put(best[i].name, sizeof(best[i].name), name);
        }
    }
    return KILN_OK;
}

static bool take_pick(const char *directory, const pick *best, char path[KN_HIP_PATH])
{
    kn_elf_facts facts;
    path[0] = '\0';
    if (best->version == 0 ||
        strlen(directory) + 1 + strlen(best->name) >= KN_HIP_PATH) { /* another file, cut off */
        return false;
    }
    kn_text_putf(path, KN_HIP_PATH, "%s/%s", directory, best->name);
    if (kn_elf_inspect(path, &facts, NULL) != KILN_OK || facts.bits != 8 * sizeof(void *)) {
        path[0] = '\0';
    }
    return path[0] != '\0';
}

bool kn_hip_look_in(kn_hip *hip, const char *directory)
{
    pick best[KN_HIP_KINDS] = {{0, 0, {0}}};
    if (!kn_path_is_absolute(directory) ||
        kn_file_list(directory, consider_name, best, NULL) != KILN_OK ||
        (!take_pick(directory, &best[KN_HIP_RTC], hip->library) &&
         !take_pick(directory, &best[KN_HIP_WHOLE_RUNTIME], hip->library))) {
        return false;
    }
    const uint64_t version = best[KN_HIP_RTC].version; /* 7, 604; 0: it is inside an old runtime */
    hip->in_turn = (version >= 100 ? version / 100 : version) <= KN_HIP_LAST_IN_TURN;
    (void)take_pick(directory, &best[KN_HIP_BUILTINS], hip->builtins);
    (void)take_pick(directory, &best[KN_HIP_RUNTIME], hip->runtime);
    if (best[KN_HIP_COMGR].count == 1) { /* of several, hipRTC alone knows its own */
        (void)take_pick(directory, &best[KN_HIP_COMGR], hip->compiler);
    }
    return true;
}

bool kn_hip_look_under(kn_hip *hip, const char *base, const char *dir)
{
    char path[KN_HIP_PATH];
    if (base == NULL || strlen(base) + 1 + strlen(dir) >= sizeof(path)) {
        return false;
    }
    kn_text_putf(path, sizeof(path), "%s/%s", base, dir);
    return kn_hip_look_in(hip, path);
}

bool kn_hip_look_for_runtime(kn_hip *hip, const char *directory)
{
    pick best[KN_HIP_KINDS] = {{0, 0, {0}}};
    return kn_path_is_absolute(directory) &&
           kn_file_list(directory, consider_name, best, NULL) == KILN_OK &&
           take_pick(directory, &best[KN_HIP_RUNTIME], hip->runtime);
}

bool kn_hip_locate_at(kn_hip *hip, const char *path)
{
    pick best[KN_HIP_KINDS] = {{0, 0, {0}}};
    char directory[KN_HIP_PATH];
    const size_t length = strlen(path);
    const size_t name = strlen(kn_path_name(path));
    if (length >= sizeof(hip->library) || name + 1 >= length) {
        return false;
    }
    kn_text_put(hip->library, sizeof(hip->library), path);
    kn_text_putf(directory, sizeof(directory), "%.*s", (int)(length - name - 1), path);
    if (kn_file_list(directory, consider_name, best, NULL) == KILN_OK) {
        (void)take_pick(directory, &best[KN_HIP_BUILTINS], hip->builtins);
    }
    return true;
}
