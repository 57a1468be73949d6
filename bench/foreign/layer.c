/* An OpenCL layer (OPENCL_LAYERS of ocl-icd 2.3 and of Khronos' loader) that writes down what a
 * program builds: each text with its options is one file "NUMBER.job" in the directory that
 * FOREIGN_JOBS names, the options in the first line. Everything is passed on unchanged.
 *
 * The program may leave in any way: a job is written before the driver sees it. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_layer.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct known_program {
    cl_program program;
    char *text;
    struct known_program *next;
} known_program;

static const cl_icd_dispatch *target;
static cl_icd_dispatch own;
static known_program *programs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

/* One file a text and options: programs build the same for each device, and again. */
static void write_job(const char *text, const char *options)
{
    const char *dir = getenv("FOREIGN_JOBS");
    char path[4096];
    const uint64_t hash = hash_text(hash_text(14695981039346656037u, options) * 31, text);
    if (dir == NULL) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/%016" PRIx64 ".job", dir, hash);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        (void)fprintf(stderr, "foreign layer: cannot write %s\n", path);
        return;
    }
    for (const char *at = options; *at != '\0'; at++) {
        (void)fputc(*at == '\n' ? ' ' : *at, file);
    }
    (void)fputc('\n', file);
    (void)fputs(text, file);
    if (fclose(file) != 0) {
        (void)fprintf(stderr, "foreign layer: %s is not whole\n", path);
    }
}

static void note_build(cl_program program, const char *options)
{
    (void)pthread_mutex_lock(&lock);
    for (const known_program *one = programs; one != NULL; one = one->next) {
        if (one->program == program) {
            write_job(one->text, options != NULL ? options : "");
            break;
        }
    }
    (void)pthread_mutex_unlock(&lock);
}

static char *join_texts(cl_uint count, const char **texts, const size_t *lengths)
{
    size_t total = 1;
    for (cl_uint i = 0; i < count; i++) {
        total += lengths != NULL && lengths[i] > 0 ? lengths[i] : strlen(texts[i]);
    }
    char *whole = malloc(total);
    size_t used = 0;
    for (cl_uint i = 0; i < count && whole != NULL; i++) {
        const size_t length = lengths != NULL && lengths[i] > 0 ? lengths[i] : strlen(texts[i]);
        memcpy(whole + used, texts[i], length);
        used += length;
    }
    if (whole != NULL) {
        whole[used] = '\0';
    }
    return whole;
}

static cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char **texts,
                                             const size_t *lengths, cl_int *error)
{
    cl_program program = target->clCreateProgramWithSource(context, count, texts, lengths, error);
    known_program *known = program != NULL ? malloc(sizeof(*known)) : NULL;
    if (known != NULL) {
        known->program = program;
        known->text = join_texts(count, texts, lengths);
        (void)pthread_mutex_lock(&lock);
        known->next = programs; /* a handle that comes again is found here first */
        programs = known->text != NULL ? known : programs;
        (void)pthread_mutex_unlock(&lock);
        if (known->text == NULL) {
            free(known);
        }
    }
    return program;
}

static cl_int CL_API_CALL build_program(cl_program program, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    note_build(program, options);
    return target->clBuildProgram(program, count, devices, options, notify, user);
}

static cl_int CL_API_CALL compile_program(cl_program program, cl_uint count,
                                          const cl_device_id *devices, const char *options,
                                          cl_uint header_count, const cl_program *headers,
                                          const char **names,
                                          void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    if (header_count == 0) {
        note_build(program, options);
    }
    return target->clCompileProgram(program, count, devices, options, header_count, headers, names,
                                    notify, user);
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value,
                                               size_t *size_ret)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char label[] = "kiln foreign";
    const bool is_version = name == CL_LAYER_API_VERSION;
    const size_t length = is_version ? sizeof(version) : sizeof(label);
    if ((!is_version && name != CL_LAYER_NAME) || (value != NULL && size < length)) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(value, is_version ? (const void *)&version : (const void *)label, length);
    }
    if (size_ret != NULL) {
        *size_ret = length;
    }
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint count, const cl_icd_dispatch *dispatch,
                                            cl_uint *count_ret, const cl_icd_dispatch **own_ret)
{
    if (dispatch == NULL || count_ret == NULL || own_ret == NULL ||
        count < sizeof(own) / sizeof(void *)) {
        return CL_INVALID_VALUE;
    }
    target = dispatch;
    own = *dispatch;
    own.clCreateProgramWithSource = create_program;
    own.clBuildProgram = build_program;
    own.clCompileProgram = compile_program;
    *count_ret = sizeof(own) / sizeof(void *);
    *own_ret = &own;
    return CL_SUCCESS;
}
