/* The programs and kernels that the layer knows, by the driver's own handles. The program that the
 * application made stays the driver's object and its handle; what the cache has stands behind it.
 * So what the layer does not know passes through unharmed. Threads: any. */
#ifndef KILN_OPENCL_LAYER_HANDLES_H
#define KILN_OPENCL_LAYER_HANDLES_H

#include <stdbool.h>
#include <stddef.h>

#include "apis/opencl/layer/api.h"
#include "sys/thread.h"

struct kn_layer_build; /* build.h: what a program was built from */

typedef struct kn_layer_program {
    cl_program handle;
    /* Of the table, and read under its lock alone: */
    struct kn_layer_program *next;
    size_t references; /* the application's */
    size_t kernels;    /* that are known, and not yet released */
    size_t pins;       /* calls that work on it */
    bool gone;         /* off the table: freed with the last pin */
    bool held;         /* the application has released it; its last reference is the layer's, until
                          its kernels are released, too */
    bool given_il;     /* never changes */
    kn_mutex lock;     /* of what follows: one build at a time */
    struct kn_layer_build *build; /* NULL: it is what the driver has, and the driver answers */
    bool plain;                   /* the driver has built it: all is the driver's from now on */
} kn_layer_program;

/* Adds a program with one reference. Where memory is short it stays unknown, and is the driver's.
 */
void kn_handles_add_program(cl_program handle, bool given_il);
/* NULL if it is unknown. Stays until kn_handles_unpin. */
kn_layer_program *kn_handles_pin(cl_program handle);
/* The same for what belongs to a kernel. */
kn_layer_program *kn_handles_pin_kernel(cl_kernel kernel);
void kn_handles_unpin(kn_layer_program *program);
/* Pins every program in turn: the first after `last` (NULL: the first), which is unpinned. */
kn_layer_program *kn_handles_next(kn_layer_program *last);

bool kn_handles_has_kernels(const kn_layer_program *program);
/* The application's. */
size_t kn_handles_count_references(const kn_layer_program *program);
/* Forgets all programs and kernels. What is pinned is freed when it is unpinned. */
void kn_handles_clear(void);

/* Makes a kernel known as one of the program's. False where memory is short. */
bool kn_handles_add_kernel(cl_kernel kernel, kn_layer_program *program);

/* What a reference more or less means. */
typedef enum kn_handles_verdict {
    KN_HANDLES_DRIVER, /* the driver is to be called, and that is all */
    KN_HANDLES_DONE,   /* the driver is not to be called */
    KN_HANDLES_LAST /* nothing refers to *out_program any more: it is off the table, and pinned */
} kn_handles_verdict;

kn_handles_verdict kn_handles_retain_program(cl_program handle);
/* `keep`: whether the layer keeps the last reference of a program that has kernels. */
kn_handles_verdict kn_handles_release_program(cl_program handle,
                                              bool (*keep)(const kn_layer_program *program),
                                              kn_layer_program **out_program);
void kn_handles_retain_kernel(cl_kernel kernel);
kn_handles_verdict kn_handles_release_kernel(cl_kernel kernel, kn_layer_program **out_program);

#endif
