/* A small hipRTC: what hostcc.c makes of a text, in a code object whose flags, metadata and
 * arguments are those of the target and the kernels; fakehip.c runs it. $FAKEHIPRTC_LOG=path gets a
 * line for every compile. With $FAKEHIPRTC_TURNS, two threads that compile at once end the process,
 * as with ROCm 5 they often do. With $FAKEHIPRTC_MEETS a compile fails where no other is made at
 * the same time. With $FAKEHIPRTC_NESTS a compile calls hipRTC as the program would, as a library
 * that stands between the two may. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apis/hip/backend/processor.h"
#include "base/checked.h"
#include "support/fakecuda/hostcc.h"

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    OUT_OF_MEMORY = 1,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    NAME_NOT_VALID = 10,
    HEADERS = 64 + 56, /* ELF's and one of a segment's */
    NOTE = 20,         /* its header and "AMDGPU" */
    KERNELS = 64,
};

typedef struct program {
    hostcc unit;
    char *code;
    size_t code_size;
} program;

/* --- bytes ------------------------------------------------------------------------------------ */

typedef struct bytes {
    unsigned char *data;
    size_t size, room;
} bytes;

static void put(bytes *to, const void *data, size_t size)
{
    if (to->size + size > to->room) {
        to->room = 2 * (to->size + size);
        to->data = realloc(to->data, to->room);
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

/* MessagePack, as much of it as metadata needs. */
static void put_head(bytes *to, unsigned char kind, size_t count)
{
    const unsigned char head[3] = {kind, (unsigned char)(count >> 8), (unsigned char)count};
    put(to, head, sizeof(head));
}

static void put_text(bytes *to, const char *text)
{
    put_head(to, 0xda, strlen(text));
    put(to, text, strlen(text));
}

static void put_number(bytes *to, const char *name, size_t value)
{
    put_text(to, name);
    put_head(to, 0xcd, value);
}

/* --- metadata --------------------------------------------------------------------------------- */

typedef int param_fn(size_t index, size_t *offset, size_t *size);

static void put_argument(bytes *to, size_t offset, size_t size, const char *kind)
{
    put_head(to, 0xde, 3);
    put_number(to, ".offset", offset);
    put_number(to, ".size", size);
    put_text(to, ".value_kind");
    put_text(to, kind);
}

static void put_kernel(bytes *to, const char *name, param_fn *param)
{
    size_t offset = 0;
    size_t size = 0;
    size_t count = 0;
    while (param(count, &offset, &size) != 0) {
        count++;
    }
    put_head(to, 0xde, 3);
    put_text(to, ".args");
    put_head(to, 0xdc, count + 1);
    for (size_t i = 0; i < count; i++) {
        const int kind = param(i, &offset, &size);
        put_argument(to, offset, size, kind == 2 ? "global_buffer" : "by_value");
    }
    put_argument(to, 8 * count, 8, "hidden_global_offset_x"); /* as the compiler adds some */
    put_text(to, ".name");
    put_text(to, name);
    put_number(to, ".kernarg_segment_size", 8 * count + 8);
}

/* The kernels of a shared object are those that its table of names has a kt_param_ of. */
static void put_kernels(bytes *to, const hostcc *unit)
{
    static const char mark[] = "\0kt_param_";
    const char *object = unit->object + HOSTCC_ROOM;
    char path[64];
    const int file = memfd_create("fakehiprtc", MFD_CLOEXEC); /* stays open, as in fakecuda.c */
    const bool written =
        file >= 0 && write(file, object, unit->object_size) == (ssize_t)unit->object_size;
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
    void *library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const size_t count_at = to->size;
    const void *seen[KERNELS]; /* its table may name one twice */
    unsigned count = 0;
    put_head(to, 0xdc, 0);
    for (size_t i = 0; library != NULL && i + sizeof(mark) < unit->object_size; i++) {
        const char *symbol = object + i + 1;
        void *address =
            memcmp(object + i, mark, sizeof(mark) - 1) == 0 ? dlsym(library, symbol) : NULL;
        unsigned before = 0;
        while (before < count && seen[before] != address) {
            before++;
        }
        if (address != NULL && before == count && count < KERNELS) {
            param_fn *param = NULL;
            memcpy(&param, &address, sizeof(address));
            put_kernel(to, symbol + strlen("kt_param_"), param);
            seen[count++] = address;
        }
    }
    to->data[count_at + 1] = (unsigned char)(count >> 8);
    to->data[count_at + 2] = (unsigned char)count;
    if (library != NULL) {
        (void)dlclose(library);
    }
}

/* --- the code object -------------------------------------------------------------------------- */

static uint32_t flags_of(const char *arch)
{
    char processor[32];
    uint32_t flags = 0;
    (void)snprintf(processor, sizeof(processor), "%.*s", (int)strcspn(arch, ":"), arch);
    if (strcmp(processor, "gfx90a") == 0) {
        const char *xnack = strstr(arch, ":xnack");
        const char *sramecc = strstr(arch, ":sramecc");
        flags |= xnack == NULL ? 0x100 : xnack[6] == '+' ? 0x300 : 0x200;
        flags |= sramecc == NULL ? 0x400 : sramecc[8] == '+' ? 0xc00 : 0x800;
    }
    return flags | kn_hip_processor_mach(processor);
}

static void make_code(program *of, const char *arch)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 2};
    unsigned char head[HEADERS + NOTE] = {0};
    char target[128];
    bytes made = {NULL, 0, 0};
    const uint64_t size = of->unit.object_size;
    unsigned char length[8];
    memcpy(head, magic, sizeof(magic));
    head[18] = 224;
    head[32] = 64;
    kn_put_u32(head + 48, flags_of(arch));
    head[54] = 56;
    head[56] = 1;
    head[58] = 64;
    head[64] = 4;
    head[64 + 8] = HEADERS;
    head[HEADERS] = 7;
    head[HEADERS + 8] = 32;
    memcpy(head + HEADERS + 12, "AMDGPU", 7);
    put(&made, head, sizeof(head));
    (void)snprintf(target, sizeof(target), "amdgcn-amd-amdhsa--%s", arch);
    put_head(&made, 0xde, 2);
    put_text(&made, "amdhsa.kernels");
    put_kernels(&made, &of->unit);
    put_text(&made, "amdhsa.target");
    put_text(&made, target);
    kn_put_u32(made.data + HEADERS + 4, (uint32_t)(made.size - HEADERS - NOTE));
    while (made.size % 8 != 0) {
        put(&made, "", 1);
    }
    kn_put_u64(made.data + 64 + 32, made.size - HEADERS);
    kn_put_u64(made.data + 40, made.size);
    put(&made, "KHIP\0\0\0\0", 8);
    kn_put_u64(length, size);
    put(&made, length, sizeof(length));
    put(&made, of->unit.object + HOSTCC_ROOM, size);
    of->code = (char *)made.data;
    of->code_size = made.size;
}

/* --- hipRTC ----------------------------------------------------------------------------------- */

EXPORT int hiprtcVersion(int *major, int *minor)
{
    *major = 9;
    *minor = 0;
    return SUCCESS;
}

EXPORT const char *hiprtcGetErrorString(int result)
{
    static const char *const texts[] = {"HIPRTC_SUCCESS",
                                        "HIPRTC_ERROR_OUT_OF_MEMORY",
                                        "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "HIPRTC_ERROR_INVALID_INPUT",
                                        "HIPRTC_ERROR_INVALID_PROGRAM",
                                        "HIPRTC_ERROR_INVALID_OPTION",
                                        "HIPRTC_ERROR_COMPILATION"};
    return result >= 0 && result <= COMPILATION ? texts[result] : "HIPRTC_ERROR_FAKE";
}

EXPORT int hiprtcCreateProgram(program **out, const char *source, const char *name, int count,
                               const char **headers, const char **names)
{
    program *made = calloc(1, sizeof(*made));
    (void)name;
    if (made == NULL || !hostcc_init(&made->unit, source, count, headers, names)) {
        free(made);
        return OUT_OF_MEMORY;
    }
    *out = made;
    return SUCCESS;
}

EXPORT int hiprtcDestroyProgram(program **of)
{
    hostcc_deinit(&(*of)->unit);
    free((*of)->code);
    free(*of); /* and the caller's handle stays what it was, as AMD's leaves it */
    return SUCCESS;
}

EXPORT int hiprtcAddNameExpression(program *to, const char *name)
{
    return hostcc_add_expression(&to->unit, name) ? SUCCESS : OUT_OF_MEMORY;
}

EXPORT int hiprtcGetLoweredName(program *of, const char *name, const char **lowered)
{
    return hostcc_lower(&of->unit, name, "hiprtcGetLoweredName", lowered) ? SUCCESS
                                                                          : NAME_NOT_VALID;
}

static void call_as_the_program(program *of)
{
    int (*lowered)(program *, const char *, const char **) = NULL;
    const char *name = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "hiprtcGetLoweredName");
    memcpy((void *)&lowered, &symbol, sizeof(symbol));
    if (lowered != NULL) {
        (void)lowered(of, "none", &name);
    }
}

EXPORT int hiprtcCompileProgram(program *of, int count, const char **options)
{
    static const char arch[] = "--offload-arch=";
    static atomic_int compiling, met;
    hostcc_note("FAKEHIPRTC_LOG", count, options);
    if (count == 0 || strncmp(options[0], arch, sizeof(arch) - 1) != 0) {
        return INVALID_OPTION;
    }
    if (atomic_fetch_add(&compiling, 1) > 0 && getenv("FAKEHIPRTC_TURNS") != NULL) {
        fprintf(stderr, "two threads compile at once\n");
        abort();
    }
    if (getenv("FAKEHIPRTC_MEETS") != NULL) {
        atomic_fetch_add(&met, 1);
        for (int i = 0; i < 3000 && atomic_load(&met) < 2; i++) {
            (void)usleep(10000);
        }
    }
    const bool alone = getenv("FAKEHIPRTC_MEETS") != NULL && atomic_load(&met) < 2;
    if (getenv("FAKEHIPRTC_NESTS") != NULL) {
        call_as_the_program(of);
    }
    const int compiled = alone ? 0 : hostcc_compile(&of->unit, count, options);
    atomic_fetch_sub(&compiling, 1);
    if (compiled <= 0) {
        return compiled < 0 ? OUT_OF_MEMORY : COMPILATION;
    }
    make_code(of, options[0] + sizeof(arch) - 1);
    return SUCCESS;
}

EXPORT int hiprtcGetProgramLogSize(program *of, size_t *size)
{
    *size = hostcc_log_size(&of->unit, "hiprtcGetProgramLogSize");
    return SUCCESS;
}

EXPORT int hiprtcGetProgramLog(program *of, char *log)
{
    hostcc_give_log(&of->unit, "hiprtcGetProgramLogSize", log);
    return SUCCESS;
}

EXPORT int hiprtcGetCodeSize(program *of, size_t *size)
{
    *size = hostcc_size("hiprtcGetCodeSize", of->code_size);
    return SUCCESS;
}

EXPORT int hiprtcGetCode(program *of, char *code)
{
    hostcc_give("hiprtcGetCodeSize", code, of->code, of->code_size);
    return SUCCESS;
}
