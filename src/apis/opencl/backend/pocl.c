/* The outside of PoCL's binary, as far as it must be known to hand one over safely: a header, the
 * files of the program, then one record a kernel, each after its length.
 *
 *     8  "poclbin\0"       8  flags                  then, `entries` times:  8 length, that many
 *     8  device            4  entries                then, for each kernel:  8 length of the whole
 *     4  version          41  hash, as text                                  record, this included
 *     4  kernels           8  only if flags & 2
 *
 * That is versions 9 to 11, PoCL 3.1 to 7.1. Others are let through as they are: the cache's own
 * checksum has vouched for the bytes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/opencl.h"
#include "base/checked.h"
#include "sys/env.h"
#include "sys/paths.h"

#define POCL_MAGIC "poclbin"
#define FIRST_VERSION 9u
#define LAST_VERSION 11u
#define HAS_PROGRAM_VARIABLES 2u
#define RECORD_MINIMUM 36u
/* A file's name has up to 255 bytes, of which a suffix takes some: PoCL 3.1 aborts from 253 on. */
#define LONGEST_NAME 244u

/* Steps over `length` bytes from *at. */
static bool skip_bytes(size_t *at, size_t size, uint64_t length)
{
    if (length > size - *at) {
        return false;
    }
    *at += (size_t)length;
    return true;
}

bool kn_pocl_binary_is_sound(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (size < KN_POCL_HEADER || memcmp(bytes, POCL_MAGIC, sizeof(POCL_MAGIC)) != 0) {
        return false;
    }
    uint32_t version = kn_get_u32(bytes + 16);
    uint32_t kernels = kn_get_u32(bytes + 20);
    uint32_t entries = kn_get_u32(bytes + 32);
    size_t at = KN_POCL_HEADER;
    if (version < FIRST_VERSION || version > LAST_VERSION) {
        return true;
    }
    if ((kn_get_u64(bytes + 24) & HAS_PROGRAM_VARIABLES) != 0 && !skip_bytes(&at, size, 8)) {
        return false;
    }
    for (uint32_t i = 0; i < entries; i++) {
        if (size - at < 8 || !skip_bytes(&at, size - 8, kn_get_u64(bytes + at))) {
            return false;
        }
        at += 8;
    }
    for (uint32_t i = 0; i < kernels; i++) {
        uint64_t record = size - at >= 8 ? kn_get_u64(bytes + at) : 0;
        if (record < RECORD_MINIMUM || !skip_bytes(&at, size, record)) {
            return false;
        }
    }
    return at == size;
}

bool kn_pocl_specializes(void)
{
    const char *value = kn_env_get("POCL_WORK_GROUP_SPECIALIZATION");
    return value == NULL || value[0] == '1'; /* as PoCL reads it */
}

bool kn_pocl_takes_linker(const char *platform_version)
{
    static const char word[] = " PoCL ";
    const char *at = strstr(platform_version, word);
    if (at == NULL) {
        return false;
    }
    at += sizeof(word) - 1; /* "3.1+debian": 7 and later may have a linker inside */
    return at[0] >= '0' && at[0] <= '6' && !isdigit((unsigned char)at[1]);
}

/* The path's last part, cut off: *length becomes what is before it. */
static const char *take_part(const char *path, size_t *length, size_t *out_size)
{
    size_t begin = *length;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    *out_size = *length - begin;
    *length = begin > 0 ? begin - 1 : 0;
    return path + begin;
}

static bool is_path_listed(const char *names, const char *name, size_t size)
{
    while (*names != '\0') {
        const size_t length = strcspn(names, ";");
        if (length == size && memcmp(names, name, size) == 0) {
            return true;
        }
        names += length + (names[length] == ';');
    }
    return false;
}

bool kn_pocl_is_code_of(const char *path, const char *names)
{
    static const char suffix[] = ".so";
    size_t left = strlen(path), file_size = 0, shape_size = 0, dir_size = 0;
    const char *file = take_part(path, &left, &file_size);
    const char *shape = take_part(path, &left, &shape_size);
    const char *dir = take_part(path, &left, &dir_size);
    const size_t tail = sizeof(suffix) - 1;
    return file_size > tail && memcmp(file + file_size - tail, suffix, tail) == 0 &&
           dir_size == file_size - tail && memcmp(dir, file, dir_size) == 0 && shape_size > 0 &&
           isdigit((unsigned char)shape[0]) && is_path_listed(names, dir, dir_size);
}

kiln_status kn_pocl_check_linker(bool takes_linker, kiln_diag *diag)
{
    char *path = takes_linker ? kn_paths_find_program("ld") : NULL;
    if (takes_linker && path == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install binutils and put ld in PATH, or compile on a machine that "
                             "has ld and copy its cache or a pack",
                             "compiling a kernel with PoCL",
                             "PoCL links with ld, and kills the process if PATH has none");
    }
    free(path);
    return KILN_OK;
}

kiln_status kn_pocl_check_names(const kn_opencl_api *api, cl_program program, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    char *names = kn_opencl_program_names(api, program);
    for (const char *at = names; at != NULL && *at != '\0' && status == KILN_OK;) {
        const size_t length = strcspn(at, ";");
        if (length > LONGEST_NAME) {
            status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "give the kernel a shorter name",
                                   "reading an OpenCL binary",
                                   "PoCL aborts the process for a kernel with a name of %zu bytes",
                                   length);
        }
        at += length + (at[length] == ';');
    }
    free(names);
    return status;
}
