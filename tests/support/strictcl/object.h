/* The objects of the strict driver. */
#ifndef KILN_TESTS_STRICTCL_OBJECT_H
#define KILN_TESTS_STRICTCL_OBJECT_H

#include "support/strictcl/strictcl.h"

enum {
    STRICTCL_PROGRAMS = 512,
    STRICTCL_KERNELS = 1024,
    STRICTCL_TEXT = 1024,
    STRICTCL_NAMES = 8,
    STRICTCL_NAME = 320
};

typedef enum strictcl_made {
    MADE_OF_SOURCE,
    MADE_OF_IL,
    MADE_OF_BINARY,
    MADE_BY_LINK
} strictcl_made;

typedef struct strictcl_built {
    cl_build_status status;
    cl_program_binary_type type;
    char options[64];
} strictcl_built;

struct _cl_program {
    bool alive;
    strictcl_made made;
    cl_uint references, kernels;
    size_t length;
    char text[STRICTCL_TEXT];
    strictcl_built built[STRICTCL_DEVICES];
};

struct _cl_kernel {
    bool alive;
    cl_uint references;
    cl_program program;
    char name[STRICTCL_NAME];
};

/* The lock of all objects, and their tables. */
void strictcl_lock(void);
void strictcl_unlock(void);
const strictcl_manner *strictcl_how(void);
strictcl_counts *strictcl_counted(void);
/* Whether it is alive; counted where it is not. With the lock held, as all that follows. */
bool strictcl_has_program(cl_program program);
bool strictcl_has_kernel(cl_kernel kernel);
/* NULL where there is no room. */
cl_program strictcl_new_program(strictcl_made made, const void *text, size_t length);
cl_kernel strictcl_new_kernel(cl_program program, const char *name);
/* Ends a program without references and kernels. */
void strictcl_drop_program(cl_program program);
/* The number of a device, STRICTCL_DEVICES for none of the context's. */
unsigned strictcl_number(cl_device_id device);
/* NVIDIA's makes one list for three questions, and writes past its end: here it ends the test. */
void strictcl_list_kernels(size_t count, char names[STRICTCL_NAMES][STRICTCL_NAME]);
/* The names of kernels in a text. */
size_t strictcl_find_kernels(const char *text, char names[STRICTCL_NAMES][STRICTCL_NAME]);
bool strictcl_is_executable(const struct _cl_program *program);
/* An answer in the form of OpenCL's queries. */
cl_int strictcl_give(const void *answer, size_t length, size_t size, void *value, size_t *out_size);
#define STRICTCL_BINARY "STRICT"

/* query.c, program.c, object.c: rows of the table. */
void strictcl_add_programs(cl_icd_dispatch *table);
void strictcl_add_kernels(cl_icd_dispatch *table);
void strictcl_add_queries(cl_icd_dispatch *table);

#endif
