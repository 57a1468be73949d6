/* An NVRTC that writes down what it is asked and hands it to the real one, $TRACE_NVRTC_REAL: for a
 * program alone it is preloaded, under kiln it is the library that kiln takes for the real one.
 * Each creation and each compile is a line of $TRACE_FILE, whose fields are parted by tabs: create
 * BY CODE NAME SOURCE HEADERS compile BY CODE NAME SOURCE HEADERS EXPRESSIONS LOG PTX CUBIN
 * OPTION... BY is "text" or, for a program of __nvrtcCPEx, "encrypted"; texts and results are
 * hashes. It needs no header of CUDA's and nothing of kiln's. TRACE_MAJOR is 12 or 13: it has the
 * functions of that NVRTC. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { LINE = 1 << 16, INTERNAL_ERROR = 11 };

typedef struct program {
    struct program *next;
    void *handle;
    const char *by;
    char name[512];
    uint64_t source, headers, expressions;
} program;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static program *programs;

static void *find_real(const char *name)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    static void *library;
    (void)pthread_mutex_lock(&opening);
    if (library == NULL) {
        const char *path = getenv("TRACE_NVRTC_REAL");
        library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    }
    (void)pthread_mutex_unlock(&opening);
    return library != NULL ? dlsym(library, name) : NULL;
}

#define REAL(name, parameters)                                                                     \
    int(*real) parameters = NULL;                                                                  \
    void *found_ = find_real(name);                                                                \
    memcpy(&real, &found_, sizeof(real));                                                          \
    if (real == NULL) {                                                                            \
        return INTERNAL_ERROR;                                                                     \
    }

/* --- what is written -------------------------------------------------------------------------- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return (hash ^ size) * UINT64_C(0x100000001b3);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return text != NULL ? hash_bytes(hash, text, strlen(text)) : hash + 1;
}

static void append(char *line, const char *text)
{
    size_t used = strlen(line);
    for (; *text != '\0' && used + 1 < LINE; text++) {
        line[used++] = *text == '\t' || *text == '\n' ? ' ' : *text;
    }
    line[used] = '\0';
}

static void append_field(char *line, const char *text)
{
    const size_t used = strlen(line);
    if (used + 1 < LINE) {
        line[used] = '\t';
        line[used + 1] = '\0';
        append(line, text);
    }
}

static void append_number(char *line, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%016llx", (unsigned long long)number);
    append_field(line, text);
}

static void append_code(char *line, int code)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%d", code);
    append_field(line, text);
}

static void write_line(char *line)
{
    const char *path = getenv("TRACE_FILE");
    const int file =
        path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    size_t used = strlen(line);
    used -= used == LINE - 1;
    line[used++] = '\n';
    if (file >= 0) {
        if (write(file, line, used) < 0) {
            abort(); /* a trace with holes says nothing */
        }
        (void)close(file);
    }
}

/* --- programs --------------------------------------------------------------------------------- */

static int note_creation(int code, void *const *handle, const char *by, const char *name,
                         const char *source, int count, const char *const *headers,
                         const char *const *names)
{
    char line[LINE] = "create";
    program *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        abort();
    }
    made->by = by;
    (void)snprintf(made->name, sizeof(made->name), "%s", name != NULL ? name : "");
    made->source = hash_text(0, source);
    for (int i = 0; headers != NULL && names != NULL && i < count; i++) {
        made->headers = hash_text(hash_text(made->headers, names[i]), headers[i]);
    }
    append_field(line, by);
    append_code(line, code);
    append_field(line, made->name);
    append_number(line, made->source);
    append_number(line, made->headers);
    write_line(line);
    if (code != 0) {
        free(made);
        return code;
    }
    made->handle = *handle;
    (void)pthread_mutex_lock(&lock);
    made->next = programs;
    programs = made;
    (void)pthread_mutex_unlock(&lock);
    return code;
}

/* A copy; all zero for a handle that is nobody's. */
static program find_program(const void *handle)
{
    program found = {.by = "nobody"};
    (void)pthread_mutex_lock(&lock);
    for (program *at = programs; at != NULL; at = at->next) {
        if (at->handle == handle) {
            found = *at;
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

EXPORT int nvrtcCreateProgram(void **handle, const char *source, const char *name, int count,
                              const char *const *headers, const char *const *names)
{
    REAL("nvrtcCreateProgram",
         (void **, const char *, const char *, int, const char *const *, const char *const *))
    return note_creation(real(handle, source, name, count, headers, names), handle, "text", name,
                         source, count, headers, names);
}

EXPORT int __nvrtcCPEx(void **handle, const char *source, const char *name, int count,
                       const char *const *headers, const char *const *names, int attribute_count,
                       const int *attributes, void *const *values)
{
    REAL("__nvrtcCPEx", (void **, const char *, const char *, int, const char *const *,
                         const char *const *, int, const int *, void *const *))
    return note_creation(
        real(handle, source, name, count, headers, names, attribute_count, attributes, values),
        handle, "encrypted", name, source, count, headers, names);
}

EXPORT int nvrtcDestroyProgram(void **handle)
{
    REAL("nvrtcDestroyProgram", (void **))
    (void)pthread_mutex_lock(&lock);
    program **at = &programs;
    while (handle != NULL && *at != NULL && (*at)->handle != *handle) {
        at = &(*at)->next;
    }
    program *gone = handle != NULL ? *at : NULL;
    if (gone != NULL) {
        *at = gone->next;
    }
    (void)pthread_mutex_unlock(&lock);
    free(gone);
    return real(handle);
}

EXPORT int nvrtcAddNameExpression(void *handle, const char *expression)
{
    REAL("nvrtcAddNameExpression", (void *, const char *))
    (void)pthread_mutex_lock(&lock);
    for (program *at = programs; at != NULL; at = at->next) {
        if (at->handle == handle) {
            at->expressions = hash_text(at->expressions, expression);
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return real(handle, expression);
}

/* A hash of what one of the library's pairs of functions gives; 0: it gives nothing. */
static uint64_t hash_output(void *handle, const char *size_name, const char *bytes_name)
{
    int (*get_size)(void *, size_t *) = NULL;
    int (*get_bytes)(void *, char *) = NULL;
    void *found[2] = {find_real(size_name), find_real(bytes_name)};
    size_t size = 0;
    memcpy(&get_size, &found[0], sizeof(get_size));
    memcpy(&get_bytes, &found[1], sizeof(get_bytes));
    if (get_size == NULL || get_bytes == NULL || get_size(handle, &size) != 0 || size == 0) {
        return 0;
    }
    char *bytes = calloc(1, size + 1);
    const uint64_t hash =
        bytes != NULL && get_bytes(handle, bytes) == 0 ? hash_bytes(0, bytes, size) : 0;
    free(bytes);
    return hash;
}

EXPORT int nvrtcCompileProgram(void *handle, int count, const char *const *options)
{
    REAL("nvrtcCompileProgram", (void *, int, const char *const *))
    char line[LINE] = "compile";
    const int code = real(handle, count, options);
    const program of = find_program(handle);
    append_field(line, of.by);
    append_code(line, code);
    append_field(line, of.name);
    append_number(line, of.source);
    append_number(line, of.headers);
    append_number(line, of.expressions);
    if (of.handle != NULL) {
        append_number(line, hash_output(handle, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog"));
        append_number(line, code == 0 ? hash_output(handle, "nvrtcGetPTXSize", "nvrtcGetPTX") : 0);
        append_number(line,
                      code == 0 ? hash_output(handle, "nvrtcGetCUBINSize", "nvrtcGetCUBIN") : 0);
    }
    for (int i = 0; options != NULL && i < count; i++) {
        append_field(line, options[i] != NULL ? options[i] : "NULL");
    }
    write_line(line);
    return code;
}

/* --- the rest: three words at most, handed on ------------------------------------------------- */

#define HAND_ON(name)                                                                              \
    EXPORT int name(void *a, void *b, void *c);                                                    \
    int name(void *a, void *b, void *c)                                                            \
    {                                                                                              \
        REAL(#name, (void *, void *, void *))                                                      \
        return real(a, b, c);                                                                      \
    }
HAND_ON(nvrtcVersion)
HAND_ON(nvrtcGetNumSupportedArchs)
HAND_ON(nvrtcGetSupportedArchs)
HAND_ON(nvrtcGetLoweredName)
HAND_ON(nvrtcGetProgramLogSize)
HAND_ON(nvrtcGetProgramLog)
HAND_ON(nvrtcGetPTXSize)
HAND_ON(nvrtcGetPTX)
HAND_ON(nvrtcGetCUBINSize)
HAND_ON(nvrtcGetCUBIN)
HAND_ON(nvrtcGetLTOIRSize)
HAND_ON(nvrtcGetLTOIR)
HAND_ON(nvrtcGetOptiXIRSize)
HAND_ON(nvrtcGetOptiXIR)
HAND_ON(nvrtcGetPCHHeapSize)
HAND_ON(nvrtcSetPCHHeapSize)
HAND_ON(nvrtcGetPCHHeapSizeRequired)
HAND_ON(nvrtcGetPCHCreateStatus)
HAND_ON(nvrtcSetFlowCallback)
#if TRACE_MAJOR == 12
HAND_ON(nvrtcGetNVVMSize)
HAND_ON(nvrtcGetNVVM)
#else
HAND_ON(nvrtcGetTileIRSize)
HAND_ON(nvrtcGetTileIR)
HAND_ON(nvrtcInstallBundledHeaders)
HAND_ON(nvrtcGetBundledHeadersInfo)
HAND_ON(nvrtcRemoveBundledHeaders)
#endif

EXPORT const char *nvrtcGetErrorString(int result)
{
    const char *(*real)(int) = NULL;
    void *found = find_real("nvrtcGetErrorString");
    memcpy(&real, &found, sizeof(real));
    return real != NULL ? real(result) : "NVRTC_ERROR_INTERNAL_ERROR";
}
