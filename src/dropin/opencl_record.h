/* An OpenCL program that went through the cache, handed to the recorder (record/recorder.h). */
#ifndef KILN_DROPIN_OPENCL_RECORD_H
#define KILN_DROPIN_OPENCL_RECORD_H

#include "dropin/opencl_request.h"
#include "record/recorder.h"

/* A program for several devices at once, whose key has all of them, is not recorded: it has no
 * single target. */
bool kn_opencl_is_recorded(const kn_opencl_request *request);
/* Fills a draft and its target with what a request wished for. `flags`: KN_RECORDED_LAYER, and what
 * goes with it. */
void kn_opencl_draft(const kn_opencl_request *request, uint32_t flags, kn_draft *draft,
                     char *target, size_t size);
void kn_opencl_record(const kn_opencl_request *request, const kiln_key *key, uint32_t flags,
                      uint64_t compile_ns);

#endif
