/* One request to the OpenCL drop-in: the device described, the options read, the key made. Shared
 * by building and capturing, which must agree on the key. */
#ifndef KILN_DROPIN_OPENCL_REQUEST_H
#define KILN_DROPIN_OPENCL_REQUEST_H

#include "kiln/opencl.h"

#include "backends/opencl/opencl.h"
#include "headers/closure.h"

typedef struct kn_opencl_request {
    kiln_cache *cache;
    kiln_cache *own_cache; /* opened for this request */
    kn_dylib *lib;
    kn_opencl_api api;
    kn_opencl_unit unit;
    kn_opencl_site site;
    const char *text, *options; /* as the caller gave them; options never NULL */
    kiln_source source;         /* for the includes: text and folders */
    char **folders;
    size_t folder_count;
    kiln_recipe *recipe;
    kn_closure *closures[2];
    char bypass[256]; /* why it goes past the cache; "" if it does not */
} kn_opencl_request;

kiln_status kn_opencl_request_init(kn_opencl_request *request, kiln_cache *cache,
                                   cl_context context, cl_device_id device, const char *text,
                                   const char *options, kiln_diag *diag);
void kn_opencl_request_deinit(kn_opencl_request *request);

/* False when a header is no longer what the key says. */
bool kn_opencl_request_still_true(kn_opencl_request *request);

#endif
