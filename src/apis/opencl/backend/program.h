/* A loaded program: its kernels with what they take, and the memory of which launch shapes its
 * binary already holds. */
#ifndef KILN_OPENCL_BACKEND_PROGRAM_H
#define KILN_OPENCL_BACKEND_PROGRAM_H

#include <stdatomic.h>

#include "apis/opencl/backend/input.h"
#include "apis/opencl/backend/opencl.h"

/* Facts of an artifact. "opencl.params" is what a driver forgets when it loads a binary; the others
 * are there for PoCL only: capture.c. */
#define KN_OPENCL_FACT_PARAMS "opencl.params"
#define KN_OPENCL_FACT_SHAPES "opencl.shapes"
#define KN_OPENCL_FACT_OPTIONS "opencl.options"
#define KN_OPENCL_FACT_DIR "opencl.folder"
/* Machine code of a binary that is NVIDIA's PTX: nvidia.c. */
#define KN_OPENCL_FACT_CODE "opencl.code"

/* --- kernels.c -------------------------------------------------------------------------------- */

typedef struct kn_opencl_kernel {
    char *name;
    char *attributes; /* as the driver gives them; NULL where the program is from a binary */
    char *qualifiers; /* a tab and words for each parameter; NULL like attributes, or not known */
    kiln_param *params;
    size_t param_count;
    cl_kernel handle;
    kn_mutex lock;    /* from the first clSetKernelArg to the enqueue: a cl_kernel has one set of
                         arguments */
    size_t fixed[3];  /* reqd_work_group_size, or zeros */
    size_t max_group; /* work-items in a group of this kernel */
    cl_ulong fixed_local; /* bytes of local memory in addition to the arguments' */
} kn_opencl_kernel;

typedef struct kn_opencl_kernels {
    kn_opencl_kernel *items;
    size_t count;
} kn_opencl_kernels;

/* Lists a program's kernels, in order of name. With a fact (not NULL) parameters come from there,
 * and a program that does not fit it is KILN_E_REJECTED; else the driver is asked. */
kiln_status kn_opencl_kernels_init(const kn_opencl_site *site, cl_program program, const char *fact,
                                   size_t fact_size, kn_opencl_kernels *kernels, kiln_diag *diag);
void kn_opencl_kernels_deinit(const kn_opencl_api *api, kn_opencl_kernels *kernels);
void kn_opencl_kernels_to_fact(const kn_opencl_kernels *kernels, kn_strbuf *fact);
/* The same as KILN_FACT_ENTRIES: names, attributes (which PoCL forgets), qualifiers of parameters
 * (which NVIDIA forgets). */
void kn_opencl_kernels_to_entries(const kn_opencl_kernels *kernels, kn_strbuf *fact);
kn_opencl_kernel *kn_opencl_kernel_find(const kn_opencl_kernels *kernels, const char *name);

/* --- capture.c -------------------------------------------------------------------------------- */

#define KN_OPENCL_MAX_SHAPES 64u

/* What PoCL compiles a work-group function for. */
typedef struct kn_opencl_shape {
    char kernel[128];
    uint64_t local[3];
    bool zero_offset, small_grid;
} kn_opencl_shape;

typedef struct kn_opencl_capture {
    bool enabled;
    kn_mutex lock; /* guards all below but input and header */
    kn_opencl_shape shapes[KN_OPENCL_MAX_SHAPES];
    cl_event events[KN_OPENCL_MAX_SHAPES]; /* of a shape's first launch; NULL once captured */
    bool held[KN_OPENCL_MAX_SHAPES];       /* in the binary */
    size_t count;
    bool failed;
    bool general; /* POCL_WORK_GROUP_SPECIALIZATION=0: launches take what every binary holds */
    bool unread;  /* nobody has read the binary of the program that was built from source */
    kn_opencl_input input; /* to build the same program again */
    unsigned char header[KN_POCL_HEADER];
    char *params, *log;
    size_t params_size;
} kn_opencl_capture;

/* Does nothing but leave `capture` disabled where a capture cannot work or pay. */
void kn_opencl_capture_init(kn_opencl_capture *capture, const kn_opencl_device *device,
                            const kiln_source *source, const kiln_artifact *artifact);
void kn_opencl_capture_deinit(kn_opencl_capture *capture, const kn_opencl_api *api);
kn_opencl_shape kn_opencl_shape_of(const char *kernel, const uint64_t *global,
                                   const uint64_t *local, const uint64_t *offset);
/* True for a shape that the binary does not hold and that has not been launched. Where PoCL makes
 * one function for all shapes of a kernel, *shape becomes that one. */
bool kn_opencl_capture_wants(kn_opencl_capture *capture, kn_opencl_shape *shape);
/* As lines of KN_OPENCL_FACT_SHAPES: those that a binary of these kernels holds when it is read
 * because POCL_BINARY_SPECIALIZE_WG asks for them. */
void kn_opencl_shapes_asked_for(const kn_opencl_kernels *kernels, kn_strbuf *text);
/* Records the launch of a wanted shape; retains the event. */
void kn_opencl_capture_add(kn_opencl_capture *capture, const kn_opencl_api *api,
                           const kn_opencl_shape *shape, cl_event event);

/* --- compile.c -------------------------------------------------------------------------------- */

/* The machine code of such PTX as a fact of the artifact. */
kiln_status kn_opencl_keep_code(const kn_opencl_unit *unit, const kiln_host *host, const char *ptx,
                                kiln_artifact *artifact, kiln_diag *diag);

/* --- program.c -------------------------------------------------------------------------------- */

typedef struct kn_opencl_program {
    cl_program handle;
    kn_opencl_kernels kernels;
    kn_opencl_capture capture;
    bool is_ptx;           /* of which machine code can be made, and nobody has made it yet */
    atomic_bool assembled; /* or tried to */
} kn_opencl_program;

/* Makes a loaded program of a built one; takes handle and kernels over. NULL when out of memory,
 * and then takes nothing. */
kn_opencl_program *kn_opencl_program_adopt(const kn_opencl_device *device, cl_program handle,
                                           const kn_opencl_kernels *kernels,
                                           const kiln_source *source,
                                           const kiln_artifact *artifact);

#endif
