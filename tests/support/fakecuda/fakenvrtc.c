/* A small NVRTC: hands the text to the system's C++ compiler behind prelude.hpp, and gives the
 * shared object out as CUBIN, or in hexadecimal as PTX. It opens "libnvrtc-builtins.so.13.0" by
 * bare name as the real one does, and fails without. $FAKENVRTC_LOG=path gets a line for every
 * compile. FAKE_SALT makes a build of its own. FAKE_INERT: no compiler runs, a CUBIN is filler of
 * the size that one of a small kernel has: for benchmarks. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/types.h"

#include "support/fakecuda/hostcc.h"
#include "support/lies.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
EXPORT const int fakenvrtc_salt = FAKE_SALT;

struct _nvrtcProgram {
    hostcc unit;
    char *cubin;
    size_t cubin_size;
};

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_FAKE";
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                                      int count, const char *const *headers,
                                      const char *const *names)
{
    nvrtcProgram made = calloc(1, sizeof(*made));
    (void)name;
    if (made == NULL || !hostcc_init(&made->unit, source, count, headers, names)) {
        free(made);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    *program = made;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    hostcc_deinit(&(*program)->unit);
    free((*program)->cubin);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name)
{
    return hostcc_add_expression(&program->unit, name) ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered)
{
    uint64_t number = 0;
    const char *found = hostcc_find_lowered(&program->unit, name);
    if (found == NULL) {
        return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    }
    *lowered = lie_is_told("nvrtcGetLoweredName", "value", &number) ? NULL : found;
    return NVRTC_SUCCESS;
}

#ifdef FAKE_INERT
static nvrtcResult compile_text(nvrtcProgram program, int count, const char *const *options)
{
    enum { SMALL = 6000 };
    (void)count, (void)options;
    program->cubin = calloc(1, SMALL + HOSTCC_ROOM);
    if (program->cubin == NULL) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    (void)snprintf(program->cubin + HOSTCC_ROOM, SMALL, "%s", program->unit.text);
    program->cubin_size = SMALL + HOSTCC_ROOM;
    return NVRTC_SUCCESS;
}
#else
static nvrtcResult compile_text(nvrtcProgram program, int count, const char *const *options)
{
    const int compiled = hostcc_compile(&program->unit, count, options);
    if (compiled <= 0) {
        return compiled < 0 ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_COMPILATION;
    }
    program->cubin = program->unit.object;
    program->unit.object = NULL;
    program->cubin_size = program->unit.object_size + HOSTCC_ROOM;
    return NVRTC_SUCCESS;
}
#endif

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    if (dlopen("libnvrtc-builtins.so.13.0", RTLD_NOW) == NULL) {
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    hostcc_note("FAKENVRTC_LOG", count, options);
    const nvrtcResult result = compile_text(program, count, options);
    if (result == NVRTC_SUCCESS) {
        const uint64_t size = program->cubin_size - HOSTCC_ROOM;
        memcpy(program->cubin, "KCUB", 4);
        memcpy(program->cubin + 8, &size, sizeof(size));
    }
    return result;
}

/* The private entry of encrypted sources: six words, which a front must hand on whole. */
EXPORT nvrtcResult __nvrtcCPEx(nvrtcProgram program, long a, long b, long c, long d, long e, long f)
{
    char text[200];
    const int length = snprintf(text, sizeof(text), "%s %ld %ld %ld %ld %ld %ld",
                                program->unit.text, a, b, c, d, e, f);
    free(program->cubin);
    program->cubin = strdup(text);
    program->cubin_size = program->cubin != NULL ? (size_t)length : 0;
    return NVRTC_SUCCESS;
}

/* What is written when another size was named: nothing, where there is less room. */
static size_t size_of(const char *query, size_t truth)
{
    uint64_t number = 0;
    return lie_is_told(query, "length", &number) ? (size_t)number : truth;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = size_of("nvrtcGetProgramLogSize",
                    program->unit.log != NULL ? strlen(program->unit.log) + 1 : 1);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    const char *text = program->unit.log != NULL ? program->unit.log : "";
    const size_t room = size_of("nvrtcGetProgramLogSize", strlen(text) + 1);
    if (room > strlen(text)) {
        (void)strcpy(log, text);
    } else {
        memset(log, 'x', room); /* without an end */
    }
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    *size = size_of("nvrtcGetCUBINSize", program->cubin_size);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    const size_t room = size_of("nvrtcGetCUBINSize", program->cubin_size);
    memcpy(cubin, program->cubin, room < program->cubin_size ? room : program->cubin_size);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    *size = size_of("nvrtcGetPTXSize", 7 + 2 * program->cubin_size + 1);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    if (size_of("nvrtcGetPTXSize", SIZE_MAX) < 7 + 2 * program->cubin_size + 1) {
        return NVRTC_SUCCESS;
    }
    (void)strcpy(ptx, "//KPTX\n");
    for (size_t i = 0; i < program->cubin_size; i++) {
        (void)sprintf(ptx + 7 + 2 * i, "%02x", (unsigned char)program->cubin[i]);
    }
    return NVRTC_SUCCESS;
}
