/* A strict OpenCL driver inside the process, as the table of functions that a loader gives to a
 * layer. It knows which of its handles are alive, counts every call with one that is not, and loses
 * with a binary what real drivers lose: log, options, attributes, names of arguments. "Compiling"
 * copies the text; each "__kernel NAME" in it is a kernel with one argument. Text with "broken" in
 * it does not compile, with "loose" it does not link; an option -bad is refused. The addresses of
 * released objects come again at once. Threads: any, but for open and close. */
#ifndef KILN_TESTS_STRICTCL_H
#define KILN_TESTS_STRICTCL_H

#include <stdbool.h>
#include <stddef.h>

#include "apis/opencl/layer/api.h"

#define STRICTCL_DEVICES 2u

typedef struct strictcl_manner {
    cl_uint devices;        /* of the context: 1 or 2 */
    bool is_pocl;           /* the platform calls itself PoCL, whose binaries are read late */
    bool is_nvidia;         /* or NVIDIA: a binary is a text that ends in two NULs, machine code
                               ("\177ELF") is accepted */
    bool counts_kernels;    /* a program's reference count has one for each of its kernels */
    bool gives_failed_link; /* a link that fails returns a program with the error */
    bool calls_back_late;   /* callbacks come from another thread, after the call has returned */
    bool fails_late;        /* and of a build that failed, though the call returned the error */
    bool refuses_binaries;
    unsigned build_ms; /* a build of a text takes so long */
} strictcl_manner;

typedef struct strictcl_counts {
    size_t alive;     /* programs and kernels */
    size_t strangers; /* calls with a handle that was not alive */
    size_t compiled, linked, loaded, il;
    size_t read; /* binaries of programs */
    size_t code; /* of those that were loaded */
} strictcl_counts;

/* Forgets all objects and counts. */
void strictcl_open(const strictcl_manner *manner);
/* Waits for callbacks that are to come. */
void strictcl_settle(void);
strictcl_counts strictcl_count(void);

const cl_icd_dispatch *strictcl_dispatch(void);
cl_context strictcl_context(void);
cl_device_id strictcl_device(unsigned index);

#endif
