/* Programs of the drop-in from source, to an entry's bytes, and from them, for one device or
 * several. Knows the driver's calls; no cache and no key. */
#ifndef KILN_OPENCL_DROPIN_MAKE_H
#define KILN_OPENCL_DROPIN_MAKE_H

#include "apis/opencl/dropin/request.h"

/* Compiles what is wished for: clBuildProgram, or clCompileProgram for each text and clLinkProgram.
 * KILN_E_COMPILE has the log of what failed. */
kiln_status kn_opencl_make(const kn_opencl_request *request, cl_program *out_program,
                           kiln_diag *diag);

/* clCompileProgram of a text's `program`, with programs of its headers for the call. */
kiln_status kn_opencl_make_compiled(const kn_opencl_api *api, const kn_opencl_wish *wish,
                                    const kn_opencl_text *text, cl_program program,
                                    kiln_diag *diag);
/* Compiles the first text with clCompileProgram, and links nothing. */
kiln_status kn_opencl_make_unit(const kn_opencl_request *request, cl_program *out_program,
                                kiln_diag *diag);

/* The program's binaries: of one device as it is, of several one after another. KILN_MISS (no diag)
 * when the driver has none to give. */
kiln_status kn_opencl_make_bytes(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                 bool is_pocl, cl_program program, kiln_blob **out_blob,
                                 kiln_diag *diag);

/* What an entry of the OpenCL layer has: these bytes, with what the driver says of the program. */
kiln_status kn_opencl_make_answered(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                    bool is_pocl, cl_program program, kiln_blob **out_blob,
                                    kiln_diag *diag);
/* The same of a program that is compiled only, to be linked later: what the driver says of it. */
kiln_status kn_opencl_make_unit_answers(const kn_opencl_site *site, const kn_opencl_wish *wish,
                                        cl_program program, kiln_blob **out_blob, kiln_diag *diag);

/* False where kiln itself finds that they are none, which no driver need see. */
bool kn_opencl_make_is_sound(const kn_opencl_request *request, const kiln_blob *blob);
/* Loads them. KILN_E_REJECTED when the driver does not accept them. */
kiln_status kn_opencl_make_loaded(const kn_opencl_request *request, const kiln_blob *blob,
                                  cl_program *out_program, kiln_diag *diag);

#endif
