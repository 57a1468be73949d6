/* What stands behind a program of the application: what it was built from, and what the cache had
 * of it. A miss is built by the driver in the program itself, and then nothing stands behind it,
 * but what a later read of its binary needs. A hit leaves the program as it was made, and loads
 * another one, which answers for it. */
#ifndef KILN_OPENCL_LAYER_BUILD_H
#define KILN_OPENCL_LAYER_BUILD_H

#include "apis/opencl/layer/handles.h"

#include "apis/opencl/dropin/frontend.h"

#define DEVICES_LIMIT 64u

typedef struct kn_layer_build {
    kn_opencl_wish *wish;
    cl_program loaded;  /* a hit of clBuildProgram; NULL: none */
    bool unit;          /* compiled, and can be linked by its key */
    bool deferred;      /* a hit of clCompileProgram: the driver has not compiled it */
    kiln_blob *answers; /* of the entry; NULL: the driver answers */
    /* Of a program of PoCL whose binary nobody has read: */
    kiln_recipe *recipe; /* NULL: of no such program */
    bool takes_linker;
    uint64_t compile_ns;
} kn_layer_build;

/* How clBuildProgram, clCompileProgram and clLinkProgram were called. */
typedef struct kn_layer_arguments {
    cl_uint count;
    const cl_device_id *devices;
    const char *options;
    kn_cl_notify *notify;
    void *user;
    cl_uint header_count; /* of clCompileProgram; programs of clLinkProgram */
    const cl_program *headers;
    const char **names;
} kn_layer_arguments;

/* --- build.c; the program is locked ----------------------------------------------------------- */

/* clBuildProgram, or clCompileProgram with `compile`. *out_notify: the application's callback is to
 * be called, when the program is not locked any more. */
cl_int kn_layer_build_program(kn_layer_program *program, bool compile, const kn_layer_arguments *a,
                              bool *out_notify);
/* The driver's own call; no lock is needed. */
cl_int kn_layer_build_call(cl_program handle, bool compile, const kn_layer_arguments *a,
                           kn_cl_notify *notify, void *user);

/* The driver builds or compiles what the cache was to answer for, since something is asked that
 * only the driver can answer. False where it has kernels. */
bool kn_layer_build_catch_up(kn_layer_program *program);
/* Drops what stands behind a program. */
void kn_layer_build_forget(kn_layer_program *program);
/* Frees memory only: what was loaded is released by kn_layer_build_forget. */
void kn_layer_build_destroy(kn_layer_build *build);

/* --- link.c; no program is locked ------------------------------------------------------------- */

cl_program kn_layer_link_program(cl_context context, const kn_layer_arguments *arguments,
                                 cl_int *code);

/* --- lookup.c --------------------------------------------------------------------------------- */

/* One lookup through the cache: what the driver is asked on a miss, and what came of it. */
typedef struct kn_layer_lookup {
    kn_opencl_call base; /* first; `loaded` is a hit that is loaded */
    kn_opencl_request request;
    /* Asks the driver; its code. *out_program is what was built. */
    cl_int (*build)(void *user, cl_program *out_program);
    void *user;
    bool compile_only; /* nothing is loaded: an entry says that the driver compiled it */
    /* What came of it: */
    kn_job job;
    bool ran; /* the driver was asked: `code` and `program` are its answer */
    cl_int code;
    cl_program program;
    const char *reason; /* why there is no key */
} kn_layer_lookup;

/* The key. False: it cannot be made, or kn_layer_walk_bypass says why it is not to be. */
bool kn_layer_lookup_init(kn_layer_lookup *lookup, kn_opencl_wish *wish, bool compile_only);
void kn_layer_lookup_deinit(kn_layer_lookup *lookup);
/* A hit, or the driver is asked. */
void kn_layer_lookup_go(kn_layer_lookup *lookup);
/* What is kept of it for the program; NULL: nothing, or memory is short. */
kn_layer_build *kn_layer_lookup_take(kn_layer_lookup *lookup);
/* Counts and reports a build past the cache. */
void kn_layer_count_bypass(const char *reason, uint64_t took_ns);

/* --- capture.c -------------------------------------------------------------------------------- */

/* Something is to be read from PoCL later. */
void kn_layer_capture_expect(void);
/* Machine code is being made of something: the end of the process waits for it, for a moment. */
void kn_layer_capture_assembles(void);
/* The application has waited for what it launched. */
void kn_layer_capture_waited(void);
/* Reads what is unread of a program that ends, as far as docs/decisions/0012 allows. Locked. */
void kn_layer_capture_program(kn_layer_program *program);
/* The same for all programs, when the loader leaves the process before it ends. */
void kn_layer_capture_rest(void);

/* --- layer.c ---------------------------------------------------------------------------------- */

const cl_icd_dispatch *kn_layer_target(void);
const kn_opencl_api *kn_layer_api(void);

#endif
