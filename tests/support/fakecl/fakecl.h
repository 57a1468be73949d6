/* A program of the fake OpenCL library, and its kernels: "k", "k1", "k2". */
#ifndef KILN_TESTS_FAKECL_H
#define KILN_TESTS_FAKECL_H

#include <stdatomic.h>
#include <stddef.h>

#include "apis/opencl/backend/symbols.h"

#define FAKECL_KERNELS 80
#define FAKECL_NAMES 1024

struct _cl_program {
    char *text;
    size_t length;
    int kernels_made, from_binary, is_code;
    atomic_uint references;
};

cl_uint fakecl_count_kernels(cl_program program);
/* For what makes a list of them: FAKE_NVIDIA ends the process where the names are long, as NVIDIA's
 * writes past the list's end. */
cl_uint fakecl_make_list(cl_program program);

/* Ends the process as a driver's bug would, where the variable is set, to a text that `text` (NULL:
 * any) has in it. */
void fakecl_may_die(const char *variable, const char *text);

/* FAKE_NVIDIA: their names, and what a build leaves: the text, which PTX has as a comment, and its
 * kernels. */
void fakecl_list_kernels(cl_program program, char names[FAKECL_NAMES]);
cl_int fakecl_make_ptx(cl_program program);

#endif
