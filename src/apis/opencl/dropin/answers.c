/* See answers.h. A record: kind, first, second, name, code, length, each 32 bits, little-endian,
 * and the bytes. */
#include "apis/opencl/dropin/answers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define RECORD_HEAD 24u
#define VALUE_LIMIT (16u << 20)
#define ARGS_LIMIT 1024u

/* --- asking ----------------------------------------------------------------------------------- */

static void append_record(kn_strbuf *out, const kn_answer_query *query, cl_int code,
                          const void *value, size_t length)
{
    unsigned char head[RECORD_HEAD];
    kn_put_u32(head, (uint32_t)query->kind);
    kn_put_u32(head + 4, query->first);
    kn_put_u32(head + 8, query->second);
    kn_put_u32(head + 12, query->name);
    kn_put_u32(head + 16, (uint32_t)code);
    kn_put_u32(head + 20, (uint32_t)length);
    kn_strbuf_append(out, head, sizeof(head));
    kn_strbuf_append(out, value, length);
}

void kn_answers_append_note(kn_strbuf *out, kn_span note)
{
    if (note.length > 0) {
        const kn_answer_query query = {KN_ANSWER_NOTE, 0, 0, 0};
        append_record(out, &query, 0, note.data, note.length);
    }
}

typedef struct answer_subject {
    const kn_opencl_api *api;
    cl_program program;
    cl_device_id device;
    cl_kernel kernel;
} answer_subject;

static cl_int put_question(const answer_subject *of, const kn_answer_query *query, size_t size,
                           void *value, size_t *out_size)
{
    switch (query->kind) {
    case KN_ANSWER_BUILD:
        return of->api->clGetProgramBuildInfo(of->program, of->device, query->name, size, value,
                                              out_size);
    case KN_ANSWER_PROGRAM:
        return of->api->clGetProgramInfo(of->program, query->name, size, value, out_size);
    case KN_ANSWER_NAME:
    case KN_ANSWER_KERNEL:
        return of->api->clGetKernelInfo(of->kernel, query->name, size, value, out_size);
    case KN_ANSWER_ARG:
        return of->api->clGetKernelArgInfo(of->kernel, query->second, query->name, size, value,
                                           out_size);
    case KN_ANSWER_GROUP:
        return of->api->clGetKernelWorkGroupInfo(of->kernel, of->device, query->name, size, value,
                                                 out_size);
    case KN_ANSWER_NOTE:
        break;
    }
    return CL_INVALID_VALUE;
}

/* A question that the driver refuses is kept with its code; one that it answers too long is not. */
static void record_answer(const answer_subject *of, const kn_answer_query *query, kn_strbuf *out)
{
    size_t size = 0;
    cl_int code = put_question(of, query, 0, NULL, &size);
    void *value = code == CL_SUCCESS && size <= VALUE_LIMIT ? calloc(1, size + 1) : NULL;
    if (code == CL_SUCCESS && value != NULL) {
        code = put_question(of, query, size, value, NULL);
    }
    if (code != CL_SUCCESS || value != NULL) {
        append_record(out, query, code, code == CL_SUCCESS ? value : NULL,
                      code == CL_SUCCESS ? size : 0);
    }
    free(value);
}

static void record_kernel(const answer_subject *of, uint32_t number, kn_strbuf *out)
{
    static const cl_kernel_arg_info names[] = {
        CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_TYPE_NAME,
        CL_KERNEL_ARG_TYPE_QUALIFIER, CL_KERNEL_ARG_NAME};
    cl_uint args = 0;
    kn_answer_query query = {KN_ANSWER_NAME, number, 0, CL_KERNEL_FUNCTION_NAME};
    record_answer(of, &query, out);
    query = (kn_answer_query){KN_ANSWER_KERNEL, number, 0, CL_KERNEL_ATTRIBUTES};
    record_answer(of, &query, out);
    if (of->api->clGetKernelInfo(of->kernel, CL_KERNEL_NUM_ARGS, sizeof(args), &args, NULL) !=
        CL_SUCCESS) {
        args = 0;
    }
    for (cl_uint arg = 0; arg < args && arg < ARGS_LIMIT; arg++) {
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
            query = (kn_answer_query){KN_ANSWER_ARG, number, arg, names[i]};
            record_answer(of, &query, out);
        }
    }
}

static void record_groups(answer_subject of, uint32_t number, cl_uint count,
                          const cl_device_id *devices, kn_strbuf *out)
{
    for (cl_uint i = 0; i < count; i++) {
        const kn_answer_query query = {KN_ANSWER_GROUP, number, i,
                                       CL_KERNEL_COMPILE_WORK_GROUP_SIZE};
        of.device = devices[i];
        record_answer(&of, &query, out);
    }
}

/* How many bytes the names have in all, with a separator after each. */
static size_t record_kernels(answer_subject of, cl_uint count, const cl_device_id *devices,
                             kn_strbuf *out)
{
    const kn_opencl_site site = {.api = of.api, .device = devices[0]};
    cl_kernel *made = NULL;
    size_t kernels = 0, names = 0;
    if (kn_opencl_handles_create(&site, of.program, NULL, 0, &made, &kernels, NULL) != KILN_OK) {
        return 0;
    }
    for (size_t i = 0; i < kernels; i++) {
        size_t name = 0;
        of.kernel = made[i];
        if (of.api->clGetKernelInfo(made[i], CL_KERNEL_FUNCTION_NAME, 0, NULL, &name) ==
            CL_SUCCESS) {
            names += name;
        }
        record_kernel(&of, (uint32_t)i, out);
        record_groups(of, (uint32_t)i, count, devices, out);
    }
    kn_opencl_handles_release(of.api, made, kernels);
    return names;
}

void kn_answers_ask(const kn_opencl_api *api, cl_program program, cl_uint count,
                    const cl_device_id *devices, bool kernels, kn_strbuf *out)
{
    static const cl_program_build_info builds[] = {CL_PROGRAM_BUILD_STATUS, CL_PROGRAM_BUILD_LOG,
                                                   CL_PROGRAM_BINARY_TYPE};
    static const cl_program_info programs[] = {CL_PROGRAM_NUM_KERNELS, CL_PROGRAM_KERNEL_NAMES};
    answer_subject of = {.api = api, .program = program};
    for (cl_uint i = 0; i < count; i++) {
        of.device = devices[i];
        for (size_t k = 0; k < sizeof(builds) / sizeof(*builds); k++) {
            const kn_answer_query query = {KN_ANSWER_BUILD, i, 0, builds[k]};
            record_answer(&of, &query, out);
        }
    }
    /* Of what is only compiled nobody knows how long the names are. */
    const size_t names = kernels ? record_kernels(of, count, devices, out) : SIZE_MAX;
    const kn_opencl_site site = {.api = api, .device = devices[0]};
    const bool listed = kn_nvidia_lists_kernels(&site, names);
    for (size_t k = 0; listed && k < sizeof(programs) / sizeof(*programs); k++) {
        const kn_answer_query query = {KN_ANSWER_PROGRAM, 0, 0, programs[k]};
        record_answer(&of, &query, out);
    }
}

/* --- finding ---------------------------------------------------------------------------------- */

typedef struct answer_record {
    kn_answer_query query;
    cl_int code;
    kn_span value;
} answer_record;

static bool next_record(kn_span *left, answer_record *out)
{
    const unsigned char *at = (const unsigned char *)left->data;
    if (left->length < RECORD_HEAD) {
        return false;
    }
    const uint32_t length = kn_get_u32(at + 20);
    if (length > left->length - RECORD_HEAD) {
        return false;
    }
    out->query = (kn_answer_query){(kn_answer_kind)kn_get_u32(at), kn_get_u32(at + 4),
                                   kn_get_u32(at + 8), kn_get_u32(at + 12)};
    out->code = (cl_int)kn_get_u32(at + 16);
    out->value = kn_span_of(at + RECORD_HEAD, length);
    *left = kn_span_of(at + RECORD_HEAD + length, left->length - RECORD_HEAD - length);
    return true;
}

bool kn_answers_are_sound(kn_span answers)
{
    answer_record record;
    while (answers.length > 0) {
        if (!next_record(&answers, &record)) {
            return false;
        }
    }
    return true;
}

bool kn_answers_find(kn_span answers, const kn_answer_query *query, cl_int *out_code,
                     kn_span *out_value)
{
    answer_record record;
    while (next_record(&answers, &record)) {
        if (record.query.kind == query->kind && record.query.first == query->first &&
            record.query.second == query->second && record.query.name == query->name) {
            *out_code = record.code;
            *out_value = record.value;
            return true;
        }
    }
    return false;
}

bool kn_answers_kernel(kn_span answers, const char *name, uint32_t *out_kernel)
{
    answer_record record;
    const size_t length = strlen(name) + 1;
    while (next_record(&answers, &record)) {
        if (record.query.kind == KN_ANSWER_NAME && record.value.length == length &&
            memcmp(record.value.data, name, length) == 0) {
            *out_kernel = record.query.first;
            return true;
        }
    }
    return false;
}

cl_int kn_answers_reply(cl_int code, kn_span answer, size_t size, void *value, size_t *out_size)
{
    if (code != CL_SUCCESS) {
        return code;
    }
    if (value != NULL && size < answer.length) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL && answer.length > 0) {
        memcpy(value, answer.data, answer.length);
    }
    if (out_size != NULL) {
        *out_size = answer.length;
    }
    return CL_SUCCESS;
}
