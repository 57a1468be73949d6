/* Machine code of NVIDIA's PTX for the entries of the drop-in and of the layer, made in the
 * background and stored in the place of the PTX alone (apis/opencl/backend/nvidia.c). It needs no
 * driver. Does not know how a program is built. */
#ifndef KILN_OPENCL_DROPIN_ASSEMBLE_H
#define KILN_OPENCL_DROPIN_ASSEMBLE_H

#include "apis/opencl/dropin/request.h"

typedef struct kn_opencl_assembler kn_opencl_assembler;

/* True where an entry's bytes are PTX and code should be made of them. */
bool kn_opencl_assemble_wanted(const kn_opencl_request *request, const kiln_blob *blob);

/* The entry's bytes with the code, and its facts. KILN_E_UNAVAILABLE where there is no ptxas. */
kiln_status kn_opencl_assemble_blob(uint32_t capability, const kiln_blob *blob,
                                    kiln_blob **out_blob, kiln_diag *diag);

kiln_status kn_opencl_assembler_create(kiln_cache *cache, kn_opencl_assembler **out_assembler,
                                       kiln_diag *diag);
/* Waits for what it has to do, a moment or as long as it is worth; the rest is left to a later
 * process. NULL is allowed. */
void kn_opencl_assembler_finish(kn_opencl_assembler *assembler);
void kn_opencl_assembler_destroy(kn_opencl_assembler *assembler);
/* Takes the request's recipe over, and a reference of the blob; takes neither without memory.
 * `worth_ns` is what this process has lost for lack of the code. */
void kn_opencl_assembler_add(kn_opencl_assembler *assembler, kn_opencl_request *request,
                             kiln_blob *blob, uint64_t worth_ns);

#endif
