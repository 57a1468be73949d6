/* What the tests of kiln/opencl.h share: a client of whatever libOpenCL is found. */
#ifndef KILN_TESTS_DROPIN_OPENCL_RIG_H
#define KILN_TESTS_DROPIN_OPENCL_RIG_H

#include "apis/opencl/backend/symbols.h"
#include "kiln/opencl.h"
#include "support/opencl_child.h"

#define RIG_DEVICES 4

typedef struct rig_client {
    kn_dylib *lib;
    kn_opencl_api api;
    cl_device_id devices[RIG_DEVICES];
    cl_uint device_count;
    cl_context context;
    kiln_cache *cache;
} rig_client;

/* A context of all devices of the first platform, without a cache; false where there is none. */
bool rig_open_driver(rig_client *c);
/* The same with the default cache. */
bool rig_open(rig_client *c);
void rig_close(rig_client *c);

/* scale(buffer) over 64 items, in groups of 16; what came of the first item, which was 10. */
int rig_scale(const rig_client *c, cl_device_id device, cl_program program);

/* Builds in several threads at once: no two get one program. */
typedef kiln_status rig_build_fn(rig_client *c, const char *options, cl_program *out_program);
kiln_status rig_build_in_threads(rig_client *c, rig_build_fn *build, const char *options);

#endif
