/* A small NVRTC: hands the text to the system's C++ compiler behind prelude.hpp, and gives the
 * shared object out as CUBIN, or in hexadecimal as PTX. It opens "libnvrtc-builtins.so.13.0" by
 * bare name as the real one does, and fails without. $FAKENVRTC_LOG=path gets a line for every
 * compile. FAKE_SALT makes a build of its own. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/types.h"

#include "support/lies.h"

#define EXPORT __attribute__((visibility("default")))

#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
EXPORT const int fakenvrtc_salt = FAKE_SALT;

enum { EXPRESSIONS = 32, HEADERS = 32, TEXT = 1 << 20 };

struct _nvrtcProgram {
    char *text;
    char *expressions[EXPRESSIONS], *lowered[EXPRESSIONS];
    int expression_count;
    char *header_names[HEADERS], *header_texts[HEADERS];
    int header_count;
    char *log, *cubin;
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
    if (made == NULL || count > HEADERS) {
        free(made);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    made->text = strdup(source);
    for (int i = 0; i < count; i++) {
        made->header_names[i] = strdup(names[i]);
        made->header_texts[i] = strdup(headers[i]);
    }
    made->header_count = count;
    *program = made;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    nvrtcProgram p = *program;
    for (int i = 0; i < p->expression_count; i++) {
        free(p->expressions[i]);
        free(p->lowered[i]);
    }
    for (int i = 0; i < p->header_count; i++) {
        free(p->header_names[i]);
        free(p->header_texts[i]);
    }
    free(p->text);
    free(p->log);
    free(p->cubin);
    free(p);
    *program = NULL;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *name)
{
    char lowered[2000] = "";
    size_t used = 0;
    bool plain = true;
    for (const char *p = name; *p != '\0' && used < sizeof(lowered) - 8; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_';
        plain = plain && word;
        lowered[used++] = *p;
        lowered[used - 1] = word ? *p : '_';
    }
    char *text = NULL;
    if (asprintf(&text, "%s%s", plain ? "" : "_Zfake_", lowered) < 0) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    program->lowered[program->expression_count] = text;
    program->expressions[program->expression_count++] = strdup(name);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *name, const char **lowered)
{
    for (int i = 0; i < program->expression_count; i++) {
        if (strcmp(program->expressions[i], name) == 0) {
            uint64_t number = 0;
            *lowered =
                lie_is_told("nvrtcGetLoweredName", "value", &number) ? NULL : program->lowered[i];
            return NVRTC_SUCCESS;
        }
    }
    return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}

/* --- compiling -------------------------------------------------------------------------------- */

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* "extern __shared__ int tmp[];" has no host counterpart: a pointer takes its place. */
static void write_kernel(FILE *file, const char *text)
{
    static const char mark[] = "extern __shared__ ";
    const char *at = NULL;
    while ((at = strstr(text, mark)) != NULL) {
        char type[64];
        char name[64];
        (void)fwrite(text, 1, (size_t)(at - text), file);
        if (sscanf(at + sizeof(mark) - 1, "%63s %63[^[]", type, name) != 2) {
            break;
        }
        (void)fprintf(file, "%s *%s = reinterpret_cast<%s *>(kt_shared);", type, name, type);
        text = strchr(at, ';') + 1;
    }
    (void)fputs(text, file);
}

static void write_callers(FILE *file, const nvrtcProgram program)
{
    static const char mark[] = "__global__ void ";
    for (const char *at = program->text; (at = strstr(at, mark)) != NULL;) {
        char name[128];
        at += sizeof(mark) - 1;
        const char *line = at;
        while (line > program->text && line[-1] != '\n') {
            line--;
        }
        if (strncmp(line, "extern \"C\"", 10) == 0 && sscanf(at, "%127[^( ]", name) == 1) {
            (void)fprintf(file, "\nKT_KERNEL(%s, %s)", name, name);
        }
    }
    for (int i = 0; i < program->expression_count; i++) {
        if (strncmp(program->lowered[i], "_Zfake_", 7) == 0) {
            (void)fprintf(file, "\nKT_KERNEL(%s, (%s))", program->lowered[i],
                          program->expressions[i]);
        } else { /* a name that is not there does not compile, as with the real one */
            (void)fprintf(file, "\n[[maybe_unused]] static const auto kt_named_%d = &%s;", i,
                          program->expressions[i]);
        }
    }
    (void)fputs("\n", file);
}

static bool write_source(const nvrtcProgram program, const char *folder)
{
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/k.cpp", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    (void)fprintf(file, "#define KT_BARRIER %d\n#include \"%s\"\n#line 1 \"kernel.cu\"\n",
                  strstr(program->text, "__syncthreads") != NULL, FAKE_PRELUDE);
    write_kernel(file, program->text);
    write_callers(file, program);
    (void)fclose(file);
    for (int i = 0; i < program->header_count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, program->header_names[i]);
        if (!write_text(path, program->header_texts[i])) {
            return false;
        }
    }
    return true;
}

static char *read_whole(const char *path, size_t *out_size)
{
    struct stat facts;
    int file = open(path, O_RDONLY);
    *out_size = 0;
    if (file < 0 || fstat(file, &facts) != 0) {
        return NULL;
    }
    char *bytes = calloc(1, (size_t)facts.st_size + 17);
    if (bytes != NULL && read(file, bytes + 16, (size_t)facts.st_size) == facts.st_size) {
        *out_size = (size_t)facts.st_size;
    }
    (void)close(file);
    return bytes;
}

/* Runs c++ on directory/k.cpp; its words go to log.txt there. Directories in options may be
 * relative. */
static bool run_compiler(const char *folder, int count, const char *const *options)
{
    char in[400];
    char out[400];
    char words[400];
    const char *argv[256] = {"c++", "-std=c++17", "-x", "c++", "-shared",  "-fPIC", "-O1",
                             "-w",  in,           "-o", out,   "-pthread", "-I",    folder};
    int used = 14;
    (void)snprintf(in, sizeof(in), "%s/k.cpp", folder);
    (void)snprintf(out, sizeof(out), "%s/k.so", folder);
    (void)snprintf(words, sizeof(words), "%s/log.txt", folder);
    for (int i = 0; i < count && used < 250; i++) {
        if (strncmp(options[i], "--include-path=", 15) == 0) {
            argv[used++] = "-I";
            argv[used++] = options[i] + 15;
        }
        if (strncmp(options[i], "-D", 2) == 0 || strncmp(options[i], "-I", 2) == 0 ||
            strncmp(options[i], "-U", 2) == 0) {
            argv[used++] = options[i];
        }
    }
    pid_t child = fork();
    if (child == 0) {
        int log = open(words, O_WRONLY | O_CREAT, 0600);
        (void)unsetenv("LD_PRELOAD");
        (void)dup2(log, 1);
        (void)dup2(log, 2);
        (void)execvp("c++", (char *const *)argv);
        _exit(127);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void note(int count, const char *const *options)
{
    const char *path = getenv("FAKENVRTC_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "compile");
        for (int i = 0; i < count; i++) {
            (void)fprintf(file, " %s", options[i]);
        }
        (void)fprintf(file, "\n");
        (void)fclose(file);
    }
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    char folder[] = "/tmp/fakenvrtc.XXXXXX";
    char path[400];
    char command[500];
    size_t log_size = 0;
    if (dlopen("libnvrtc-builtins.so.13.0", RTLD_NOW) == NULL) {
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    note(count, options);
    if (mkdtemp(folder) == NULL || !write_source(program, folder)) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    bool good = run_compiler(folder, count, options);
    (void)snprintf(path, sizeof(path), "%s/log.txt", folder);
    char *log = read_whole(path, &log_size);
    program->log = strdup(log != NULL ? log + 16 : "");
    free(log);
    if (good) {
        (void)snprintf(path, sizeof(path), "%s/k.so", folder);
        program->cubin = read_whole(path, &program->cubin_size);
        const uint64_t size = program->cubin_size;
        memcpy(program->cubin, "KCUB", 4);
        memcpy(program->cubin + 8, &size, sizeof(size));
        program->cubin_size += 16;
    }
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    (void)!system(command);
    return good ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

/* The private entry of encrypted sources: six words, which a front must hand on whole. */
EXPORT nvrtcResult __nvrtcCPEx(nvrtcProgram program, long a, long b, long c, long d, long e, long f)
{
    char text[200];
    const int length =
        snprintf(text, sizeof(text), "%s %ld %ld %ld %ld %ld %ld", program->text, a, b, c, d, e, f);
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
    *size = size_of("nvrtcGetProgramLogSize", program->log != NULL ? strlen(program->log) + 1 : 1);
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log)
{
    const char *text = program->log != NULL ? program->log : "";
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
