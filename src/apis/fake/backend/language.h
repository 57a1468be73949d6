/* The toy language and its code: stores of expressions in reverse Polish notation, once for each
 * work-item.
 *
 *     #include "scale.fake"                       as everywhere
 *     #define SCALE 3
 *     warn this is shown as a warning
 *     fail this is a compile error
 *     kernel saxpy a:float x:floats y:floats
 *     y = a x * y +
 *
 * A parameter is name:type with the types float, int, floats, ints (buffers) and local. A line
 * "buffer = EXPRESSION" stores at the work-item's linear index, "buffer [ EXPRESSION ] =
 * EXPRESSION" elsewhere. Expressions know numbers, words that are defined, the parameters (a
 * buffer's name is its element at the linear index; "INDEX buffer @" another one), the names i
 * (linear index), gx gy gz (global ids), nx ny nz (global sizes), lx (local id in x), and + - * /
 * %. */
#ifndef KILN_FAKE_BACKEND_LANGUAGE_H
#define KILN_FAKE_BACKEND_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/source.h"
#include "kiln/status.h"

#include "base/strbuf.h"

#define FAKE_KERNELS_MAX 16u
#define FAKE_OPS_MAX 4096u
#define FAKE_NAME_SIZE 32u
#define FAKE_STACK_MAX 32u

typedef enum kn_fake_type {
    FAKE_FLOAT = 0,
    FAKE_INT,
    FAKE_FLOATS,
    FAKE_INTS,
    FAKE_LOCAL,
    FAKE_TYPE_COUNT,
} kn_fake_type;

/* One step: push a number, push something, or store. */
typedef enum kn_fake_step_kind {
    FAKE_PUSH_NUMBER = 0, /* value */
    FAKE_PUSH_PARAM,      /* index: a value, or a buffer's element at i */
    FAKE_PUSH_NAME,       /* index: into the names i gx gy gz nx ny nz lx */
    FAKE_PUSH_ELEMENT,    /* index: a buffer; pops the element's index */
    FAKE_OPERATE,         /* index: the operator's character */
    FAKE_STORE,           /* index: a buffer; pops the value, stores at i */
    FAKE_STORE_AT,        /* index: a buffer; pops the value, then the element's index */
    FAKE_STEP_COUNT,
} kn_fake_step_kind;

typedef struct kn_fake_step {
    uint32_t kind;
    uint32_t index;
    double value;
} kn_fake_step;

typedef struct kn_fake_kernel {
    char name[FAKE_NAME_SIZE];
    uint32_t param_count;
    struct {
        char name[FAKE_NAME_SIZE];
        uint32_t type; /* kn_fake_type */
    } params[16];
    uint32_t first; /* steps */
    uint32_t count;
} kn_fake_kernel;

/* Whole programs; plain data, so that it is its own binary form after a header. */
typedef struct kn_fake_code {
    uint32_t kernel_count;
    uint32_t step_count;
    kn_fake_kernel kernels[FAKE_KERNELS_MAX];
    kn_fake_step *steps; /* malloc'ed */
} kn_fake_code;

/* Compiles a source. `log` receives warnings and errors as "name:line: error: text". KILN_E_COMPILE
 * if there was an error. */
kiln_status kn_fake_parse(const kiln_source *source, kn_fake_code *out_code, kn_strbuf *log,
                          kiln_diag *diag);
void kn_fake_code_deinit(kn_fake_code *code);

/* Bytes of a program, and back; false if they are not one. */
void kn_fake_code_write(const kn_fake_code *code, kn_strbuf *out);
bool kn_fake_code_read(const void *data, size_t size, kn_fake_code *out_code);

#endif
