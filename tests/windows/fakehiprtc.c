/* A small hipRTC as a DLL, with the names of AMD's HIP SDK: what it "compiles" is the text and the
 * options behind a code object without kernels, of the processor that was asked for. As the real
 * one it opens its compiler by a bare name when it makes a program, its builtins when it compiles,
 * and fails without. A text with "#error" does not compile. %FAKENVRTC_LOG% gets a line for every
 * program and every compile; FAKE_SALT makes a build of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "apis/hip/backend/processor.h"

#define EXPORT __declspec(dllexport)

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
EXPORT const int fakehiprtc_salt = FAKE_SALT;

enum {
    SUCCESS = 0,
    OUT_OF_MEMORY = 1,
    CREATION_FAILURE = 2,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    BUILTINS = 7,
    HEADERS = 64 + 56, /* ELF's and one of a segment's */
    NOTE = 20,         /* its header and "AMDGPU" */
    ROOM = 8192
};

typedef struct program {
    char *text;
    const char *log;
    unsigned char code[ROOM];
    size_t size;
} program;

/* --- the code object -------------------------------------------------------------------------- */

static void put(program *of, const void *data, size_t size)
{
    if (size <= ROOM - of->size) {
        memcpy(of->code + of->size, data, size);
        of->size += size;
    }
}

/* MessagePack: the head of a text, a table or a list. */
static void put_head(program *of, unsigned char kind, size_t count)
{
    const unsigned char head[3] = {kind, (unsigned char)(count >> 8), (unsigned char)count};
    put(of, head, sizeof head);
}

static void put_text(program *of, const char *text)
{
    put_head(of, 0xda, strlen(text));
    put(of, text, strlen(text));
}

static void make_code(program *of, const char *arch)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 64, 2};
    unsigned char head[HEADERS + NOTE] = {0};
    char target[128];
    const uint32_t flags = kn_hip_processor_mach(arch);
    memcpy(head, magic, sizeof magic);
    head[18] = 224;
    head[32] = 64;
    memcpy(head + 48, &flags, sizeof flags);
    head[54] = 56;
    head[56] = 1;
    head[58] = 64;
    head[64] = 4;
    head[64 + 8] = HEADERS;
    head[HEADERS] = 7;
    head[HEADERS + 8] = 32;
    memcpy(head + HEADERS + 12, "AMDGPU", 7);
    put(of, head, sizeof head);
    (void)snprintf(target, sizeof target, "amdgcn-amd-amdhsa--%s", arch);
    put_head(of, 0xde, 2);
    put_text(of, "amdhsa.kernels");
    put_head(of, 0xdc, 0);
    put_text(of, "amdhsa.target");
    put_text(of, target);
    const uint32_t described = (uint32_t)(of->size - HEADERS - NOTE);
    memcpy(of->code + HEADERS + 4, &described, sizeof described);
    while (of->size % 8 != 0) {
        put(of, "", 1);
    }
    const uint64_t segment = of->size - HEADERS, sections = of->size;
    memcpy(of->code + 64 + 32, &segment, sizeof segment);
    memcpy(of->code + 40, &sections, sizeof sections);
}

/* --- hipRTC ----------------------------------------------------------------------------------- */

EXPORT int hiprtcVersion(int *major, int *minor)
{
    *major = 6;
    *minor = 4;
    return SUCCESS;
}

EXPORT const char *hiprtcGetErrorString(int result)
{
    return result == COMPILATION ? "HIPRTC_ERROR_COMPILATION"
           : result == BUILTINS  ? "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"
                                 : "HIPRTC_ERROR_FAKE";
}

static void note_compile(int count, const char **options)
{
    const char *path = getenv("FAKENVRTC_LOG");
    FILE *file = path != NULL ? fopen(path, "ab") : NULL;
    if (file == NULL) {
        return;
    }
    for (int i = 0; i < count; i++) {
        (void)fprintf(file, "%s%s", i > 0 ? " " : "", options[i]);
    }
    (void)fprintf(file, "\n");
    (void)fclose(file);
}

EXPORT int hiprtcCreateProgram(program **out, const char *source, const char *name, int count,
                               const char **headers, const char **names)
{
    (void)name, (void)count, (void)headers, (void)names;
    if (LoadLibraryA("amd_comgr_2.dll") == NULL) {
        return CREATION_FAILURE;
    }
    *out = calloc(1, sizeof **out);
    if (*out == NULL) {
        return OUT_OF_MEMORY;
    }
    note_compile(1, (const char *[]){"program"});
    (*out)->text = _strdup(source);
    (*out)->log = "";
    return SUCCESS;
}

EXPORT int hiprtcDestroyProgram(program **of)
{
    free((*of)->text);
    free(*of);
    return SUCCESS;
}

EXPORT int hiprtcAddNameExpression(program *to, const char *name)
{
    (void)to, (void)name;
    return SUCCESS;
}

EXPORT int hiprtcGetLoweredName(program *of, const char *name, const char **lowered)
{
    (void)of;
    *lowered = name;
    return SUCCESS;
}

EXPORT int hiprtcCompileProgram(program *of, int count, const char **options)
{
    static const char arch[] = "--offload-arch=";
    char salt[16];
    if (LoadLibraryA("hiprtc-builtins0604.dll") == NULL) {
        return BUILTINS;
    }
    note_compile(count, options);
    if (count == 0 || strncmp(options[0], arch, sizeof arch - 1) != 0) {
        return INVALID_OPTION;
    }
    if (strstr(of->text, "#error") != NULL) {
        of->log = "kernel.hip:1:2: error: here\n";
        return COMPILATION;
    }
    make_code(of, options[0] + sizeof arch - 1);
    (void)snprintf(salt, sizeof salt, "%d ", FAKE_SALT);
    put(of, salt, strlen(salt));
    put(of, of->text, strlen(of->text));
    return SUCCESS;
}

EXPORT int hiprtcGetProgramLogSize(program *of, size_t *size)
{
    *size = strlen(of->log) + 1;
    return SUCCESS;
}

EXPORT int hiprtcGetProgramLog(program *of, char *log)
{
    memcpy(log, of->log, strlen(of->log) + 1);
    return SUCCESS;
}

EXPORT int hiprtcGetCodeSize(program *of, size_t *size)
{
    *size = of->size;
    return SUCCESS;
}

EXPORT int hiprtcGetCode(program *of, char *code)
{
    memcpy(code, of->code, of->size);
    return SUCCESS;
}
