/* A small NVRTC as a DLL, with NVIDIA's names for files and functions: what it "compiles" is the
 * text and the options behind the head of a fake CUBIN (tests/support/fakecuda). As the real one it
 * opens its builtins by bare name, and fails without. A text with "#error" does not compile.
 * %FAKENVRTC_LOG% gets a line for every compile; FAKE_SALT makes a build of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "apis/cuda/backend/types.h"

#define EXPORT __declspec(dllexport)

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
EXPORT const int fakenvrtc_salt = FAKE_SALT;

enum { HEAD = 16, ROOM = 8192, NAMES = 8 };

struct _nvrtcProgram {
    char *text;
    const char *log;
    char output[HEAD + ROOM];
    size_t size;
    char *names[NAMES];
    int name_count;
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
    (void)name, (void)count, (void)headers, (void)names;
    *program = calloc(1, sizeof **program);
    if (*program == NULL) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    (*program)->text = _strdup(source);
    (*program)->log = "";
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    for (int i = 0; i < (*program)->name_count; i++) {
        free((*program)->names[i]);
    }
    free((*program)->text);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name)
{
    if (program->name_count == NAMES) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    program->names[program->name_count++] = _strdup(name);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered)
{
    for (int i = 0; i < program->name_count; i++) {
        if (strcmp(program->names[i], name) == 0) {
            *lowered = program->names[i];
            return NVRTC_SUCCESS;
        }
    }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

static void note_compile(int count, const char *const *options)
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

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    if (LoadLibraryA("nvrtc-builtins64_130.dll") == NULL) {
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    note_compile(count, options);
    if (strstr(program->text, "#error") != NULL) {
        program->log = "kernel.cu(1): error: #error directive\n";
        return NVRTC_ERROR_COMPILATION;
    }
    int used = snprintf(program->output + HEAD, ROOM, "%d %s", FAKE_SALT, program->text);
    for (int i = 0; i < count && used < ROOM; i++) {
        used += snprintf(program->output + HEAD + used, (size_t)(ROOM - used), " %s", options[i]);
    }
    const uint64_t size = (uint64_t)(used < ROOM ? used : ROOM);
    memcpy(program->output, "KCUB", 4);
    memcpy(program->output + 8, &size, sizeof size);
    program->size = HEAD + (size_t)size;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_SUCCESS;
}

/* Everything that can come out is the same bytes. */
#define OUTPUT(name)                                                                               \
    EXPORT nvrtcResult nvrtcGet##name##Size(nvrtcProgram program, size_t *size)                    \
    {                                                                                              \
        *size = program->size;                                                                     \
        return NVRTC_SUCCESS;                                                                      \
    }                                                                                              \
    EXPORT nvrtcResult nvrtcGet##name(nvrtcProgram program, char *bytes)                           \
    {                                                                                              \
        memcpy(bytes, program->output, program->size);                                             \
        return NVRTC_SUCCESS;                                                                      \
    }

OUTPUT(CUBIN)
OUTPUT(PTX)
OUTPUT(LTOIR)
