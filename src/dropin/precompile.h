/* What a replay of recordings makes of a call of the OpenCL drop-in: the entry that it would store.
 */
#ifndef KILN_DROPIN_PRECOMPILE_H
#define KILN_DROPIN_PRECOMPILE_H

#include "dropin/opencl_wish.h"
#include "kiln/program.h"

/* Compiles through `cache` what is wished for, as kiln_opencl_build would. `source` names it in
 * messages; its entries are checked. Fills of `info` origin, key, compiles and compile_ns. Blocks:
 * disk, compiler. KILN_E_UNSUPPORTED for what bypasses the cache. */
kiln_status kn_dropin_compile_wish(kiln_cache *cache, kn_opencl_wish *wish,
                                   const kiln_source *source, kiln_blob **out_blob,
                                   kiln_build_info *info, kiln_diag *diag);

#endif
