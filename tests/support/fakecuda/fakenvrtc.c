/* A small NVRTC: hands the text to the system's C++ compiler behind prelude.hpp, and gives the
 * shared object out as CUBIN, or in hexadecimal as PTX. It opens "libnvrtc-builtins.so.13.0" by
 * bare name as the real one does, and fails without. $FAKENVRTC_LOG=path gets a line for every
 * compile. A compile of a text with the words of $FAKENVRTC_CRASHES kills the process. A handle
 * that is not one of its programs, which the real one reads and dies of, is an invalid program.
 * FAKE_SALT makes a build of its own. FAKE_INERT: no compiler runs, a CUBIN is filler of the size
 * that one of a small kernel has: for benchmarks. $FAKENVRTC_CANCELS: a thread that reads a CUBIN
 * is cancelled (pthread_cancel(3)), at the next place where a thread can be. In every compile
 * $FAKENVRTC_THREADS=path gets the number of the process' threads, and whether the C library takes
 * the process for one that never had a second. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/types.h"

#include "support/fakecuda/hostcc.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
EXPORT const int fakenvrtc_salt = FAKE_SALT;

struct _nvrtcProgram {
    struct _nvrtcProgram *next;
    hostcc unit;
    char *cubin;
    size_t cubin_size;
};

/* --- which programs there are ----------------------------------------------------------------- */

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static nvrtcProgram live;

static void add_live(nvrtcProgram program)
{
    (void)pthread_mutex_lock(&live_lock);
    program->next = live;
    live = program;
    (void)pthread_mutex_unlock(&live_lock);
}

/* False if it is none of them. It is not read before it is known. */
static bool find_live(nvrtcProgram program, bool removes)
{
    (void)pthread_mutex_lock(&live_lock);
    nvrtcProgram *at = &live;
    while (*at != NULL && *at != program) {
        at = &(*at)->next;
    }
    const bool found = *at != NULL;
    if (found && removes) {
        *at = program->next;
    }
    (void)pthread_mutex_unlock(&live_lock);
    return found;
}

#define CHECK(program)                                                                             \
    if (!find_live(program, false)) {                                                              \
        return NVRTC_ERROR_INVALID_PROGRAM;                                                        \
    }

/* --- the calls -------------------------------------------------------------------------------- */

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
    (void)name;
    /* The real one refuses two headers of one name. */
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0) {
                return NVRTC_ERROR_INVALID_INPUT;
            }
        }
    }
    nvrtcProgram made = calloc(1, sizeof(*made));
    if (made == NULL || !hostcc_init(&made->unit, source, count, headers, names)) {
        free(made);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    add_live(made);
    *program = made;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    if (program == NULL || !find_live(*program, true)) {
        return NVRTC_ERROR_INVALID_PROGRAM;
    }
    hostcc_deinit(&(*program)->unit);
    free((*program)->cubin);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name)
{
    CHECK(program)
    return hostcc_add_expression(&program->unit, name) ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered)
{
    CHECK(program)
    return hostcc_lower(&program->unit, name, "nvrtcGetLoweredName", lowered)
               ? NVRTC_SUCCESS
               : NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
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

static void note_threads(const char *path)
{
    const char *single = dlsym(RTLD_DEFAULT, "__libc_single_threaded"); /* glibc 2.32 */
    int threads = -2;                                                   /* "." and ".." */
    DIR *tasks = opendir("/proc/self/task");
    FILE *file = fopen(path, "a");
    while (tasks != NULL && readdir(tasks) != NULL) {
        threads++;
    }
    if (file != NULL) {
        (void)fprintf(file, "%d %d\n", threads, single != NULL ? *single : -1);
        (void)fclose(file);
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    CHECK(program)
    if (dlopen("libnvrtc-builtins.so.13.0", RTLD_NOW) == NULL) {
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    hostcc_note("FAKENVRTC_LOG", count, options);
    const char *crashes = getenv("FAKENVRTC_CRASHES");
    if (crashes != NULL && strstr(program->unit.text, crashes) != NULL) {
        abort();
    }
    const char *threads = getenv("FAKENVRTC_THREADS");
    if (threads != NULL) {
        note_threads(threads);
    }
    const nvrtcResult result = compile_text(program, count, options);
    if (result == NVRTC_SUCCESS) {
        const uint64_t size = program->cubin_size - HOSTCC_ROOM;
        memcpy(program->cubin, "KCUB", 4);
        memcpy(program->cubin + 8, &size, sizeof(size));
    }
    return result;
}

static bool begins_with(const char *const *texts, const char *first)
{
    return texts != NULL && strcmp(texts[0], first) == 0;
}

static bool are_attributes(const int *kinds, const uint64_t *values)
{
    return kinds != NULL && kinds[0] == 1 && kinds[1] == 2 && values != NULL &&
           values[0] == UINT64_C(0x123456789abcdef0) && values[1] == UINT64_C(0xfedcba9876543210);
}

/* The private entry of encrypted sources, which cuDNN and cuBLAS create programs by. The shape is
 * that of the NVRTC of CUDA 12 and 13: nine words, of which x86-64 passes three on the stack. Every
 * one must be as private_entry in nvrtc_client.py gives it; a text is encrypted by adding one to
 * each of its bytes. Like the real one it leaves *program alone where it fails. */
EXPORT nvrtcResult __nvrtcCPEx(nvrtcProgram *program, const char *source, const char *name,
                               int header_count, const char *const *headers,
                               const char *const *names, int attribute_count, const int *attributes,
                               const uint64_t *values)
{
    if (program == NULL) {
        return NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (source == NULL || name == NULL || strcmp(name, "encrypted.cu") != 0 || header_count != 1 ||
        !begins_with(headers, "#define KEY 7\n") || !begins_with(names, "key.h") ||
        attribute_count != 2 || !are_attributes(attributes, values)) {
        return NVRTC_ERROR_INVALID_INPUT;
    }
    char *text = strdup(source);
    for (char *at = text; at != NULL && *at != '\0'; at++) {
        *at = (char)(*at - 1);
    }
    const nvrtcResult result =
        text != NULL ? nvrtcCreateProgram(program, text, name, header_count, headers, names)
                     : NVRTC_ERROR_OUT_OF_MEMORY;
    free(text);
    return result;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size)
{
    CHECK(program)
    *size = hostcc_log_size(&program->unit, "nvrtcGetProgramLogSize");
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    CHECK(program)
    hostcc_give_log(&program->unit, "nvrtcGetProgramLogSize", log);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size)
{
    CHECK(program)
    *size = hostcc_size("nvrtcGetCUBINSize", program->cubin_size);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *cubin)
{
    CHECK(program)
    if (getenv("FAKENVRTC_CANCELS") != NULL) {
        (void)pthread_cancel(pthread_self());
    }
    hostcc_give("nvrtcGetCUBINSize", cubin, program->cubin, program->cubin_size);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size)
{
    CHECK(program)
    *size = hostcc_size("nvrtcGetPTXSize", 7 + 2 * program->cubin_size + 1);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ptx)
{
    CHECK(program)
    if (hostcc_size("nvrtcGetPTXSize", SIZE_MAX) < 7 + 2 * program->cubin_size + 1) {
        return NVRTC_SUCCESS;
    }
    (void)strcpy(ptx, "//KPTX\n");
    for (size_t i = 0; i < program->cubin_size; i++) {
        (void)sprintf(ptx + 7 + 2 * i, "%02x", (unsigned char)program->cubin[i]);
    }
    return NVRTC_SUCCESS;
}
