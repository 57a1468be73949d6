/* What a driver said of a program that it had compiled, kept with its binary in entries of the
 * OpenCL layer: a load loses the log, and with some drivers attributes and names of arguments. Made
 * of a built program, kept as facts of an entry, asked on a hit. Pure but for the calls that ask
 * the driver. */
#ifndef KILN_OPENCL_DROPIN_ANSWERS_H
#define KILN_OPENCL_DROPIN_ANSWERS_H

#include <stdbool.h>

#include "apis/opencl/backend/opencl.h"
#include "base/span.h"
#include "base/strbuf.h"

/* Of what a question is asked. */
typedef enum kn_answer_kind {
    KN_ANSWER_BUILD = 1,   /* first: the device; second: 0 */
    KN_ANSWER_PROGRAM = 2, /* 0, 0 */
    KN_ANSWER_NAME = 3,    /* first: the kernel; its name */
    KN_ANSWER_KERNEL = 4,  /* first: the kernel; second: 0 */
    KN_ANSWER_ARG = 5,     /* first: the kernel; second: the argument */
    KN_ANSWER_GROUP = 6,   /* first: the kernel; second: the device */
    KN_ANSWER_NOTE = 7     /* no question: what kiln notes at the end, for people */
} kn_answer_kind;

typedef struct kn_answer_query {
    kn_answer_kind kind;
    uint32_t first, second;
    uint32_t name; /* the query's, CL_... */
} kn_answer_query;

/* Asks a program that was built, for `count` devices. Where it is built to an executable its
 * kernels are made, and released again: `kernels`. The result is empty on failure. */
void kn_answers_ask(const kn_opencl_api *api, cl_program program, cl_uint count,
                    const cl_device_id *devices, bool kernels, kn_strbuf *out);

/* Appends what answers no query; nothing where it is empty. */
void kn_answers_append_note(kn_strbuf *out, kn_span note);

/* False if these are not whole answers. */
bool kn_answers_are_sound(kn_span answers);

/* What was answered; false if that question was not kept. Only for sound ones. */
bool kn_answers_find(kn_span answers, const kn_answer_query *query, cl_int *out_code,
                     kn_span *out_value);
/* The number of a kernel; false if it is not known. */
bool kn_answers_kernel(kn_span answers, const char *name, uint32_t *out_kernel);

/* As the driver's functions of this form answer. */
cl_int kn_answers_reply(cl_int code, kn_span answer, size_t size, void *value, size_t *out_size);

#endif
