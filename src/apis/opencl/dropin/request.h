/* One request to the OpenCL drop-in: the device described, the options read, the key made. Shared
 * by building and capturing, which must agree on the key. */
#ifndef KILN_OPENCL_DROPIN_REQUEST_H
#define KILN_OPENCL_DROPIN_REQUEST_H

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/dropin/wish.h"
#include "headers/closure.h"

/* What quotes around an include directory may mean to a driver: nothing, a part of the name, or (to
 * PoCL 3.1) blanks in it. Each reading with the current directory searched first, and without. */
#define KN_OPENCL_READINGS 3
#define KN_OPENCL_CLOSURES (2 * KN_OPENCL_READINGS)

/* One text of the wish, and what it includes. */
typedef struct kn_opencl_part {
    const kn_opencl_text *given;
    kiln_source sources[KN_OPENCL_READINGS]; /* for the includes: text and directories */
    char **dirs[KN_OPENCL_READINGS];
    size_t dir_count;
    bool dirs_quoted; /* else one reading is all there is */
    kn_closure *closures[KN_OPENCL_CLOSURES];
} kn_opencl_part;

typedef struct kn_opencl_request {
    kiln_cache *cache;
    kiln_cache *own_cache; /* opened for this request */
    kn_dylib *lib;
    kn_opencl_api api;
    kn_opencl_wish *wish;  /* retained */
    kn_opencl_unit unit;   /* of the first device; all are of one platform */
    kn_opencl_site site;   /* the same */
    kn_opencl_part *parts; /* one for each text of the wish */
    kiln_recipe *recipe;
    char bypass[256]; /* why it bypasses the cache; "" if it does not */
} kn_opencl_request;

kiln_status kn_opencl_request_init(kn_opencl_request *request, kiln_cache *cache,
                                   kn_opencl_wish *wish, kiln_diag *diag);
/* The same for what stands under the library's functions, and must call those below it. */
kiln_status kn_opencl_request_init_under(kn_opencl_request *request, kiln_cache *cache,
                                         kn_opencl_wish *wish, const kn_opencl_api *api,
                                         kiln_diag *diag);
/* Makes its key that of an entry of the OpenCL layer, which has what the driver said of the program
 * besides. `compile_only`: of one that is compiled, to be linked later. */
kiln_status kn_opencl_request_mark_layer(kn_opencl_request *request, bool compile_only,
                                         kiln_diag *diag);
void kn_opencl_request_deinit(kn_opencl_request *request);

/* False when a header is no longer what the key says. */
bool kn_opencl_request_still_true(kn_opencl_request *request);
/* Keeps the lists of headers, for the next time. */
void kn_opencl_request_save(kn_opencl_request *request);

#endif
