/* An OpenCL program that went through the cache, handed to the recorder (record/recorder.h). */
#ifndef KILN_DROPIN_OPENCL_RECORD_H
#define KILN_DROPIN_OPENCL_RECORD_H

#include "dropin/opencl_request.h"
#include "record/request.h"

/* Records what a request wished for, under the key that its recipe has, or had. `flags`:
 * KN_RECORDED_LAYER, and what goes with it. A program for several devices at once, whose key has
 * all of them, is not recorded: it has no single target. Fails: never. */
void kn_opencl_record(const kn_opencl_request *request, const kiln_key *key, uint32_t flags,
                      uint64_t compile_ns);

#endif
