/* AMD's processors as a code object's ELF header names them (LLVM, "User Guide for AMDGPU Backend",
 * ELF header). Pure tables. */
#ifndef KILN_HIP_BACKEND_PROCESSOR_H
#define KILN_HIP_BACKEND_PROCESSOR_H

#include <stdint.h>

/* EF_AMDGPU_MACH of "gfx90a"; 0 for one that is newer than the table. */
uint32_t kn_hip_processor_mach(const char *name);

#endif
