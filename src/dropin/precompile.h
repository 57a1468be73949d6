/* What a replay of recordings makes of a call of OpenCL: the entry that the drop-in would store, or
 * the layer. */
#ifndef KILN_DROPIN_PRECOMPILE_H
#define KILN_DROPIN_PRECOMPILE_H

#include "apis/opencl/dropin/wish.h"
#include "kiln/program.h"

/* Whose call it was, and so whose entry is made. */
typedef enum kn_wish_of {
    KN_WISH_OF_DROPIN,
    KN_WISH_OF_LAYER,
    KN_WISH_OF_LAYER_UNIT, /* clCompileProgram: one text, to be linked later */
} kn_wish_of;

/* Compiles through `cache` what is wished for, as kiln_opencl_build would, or the layer. Binaries
 * are read at once, also PoCL's. `source` names it in messages; its entries are checked. Fills of
 * `info` origin, key, compiles and compile_ns. Blocks: disk, compiler. KILN_E_UNSUPPORTED for what
 * bypasses the cache. */
kiln_status kn_dropin_compile_wish(kiln_cache *cache, kn_opencl_wish *wish, kn_wish_of of,
                                   const kiln_source *source, kiln_blob **out_blob,
                                   kiln_build_info *info, kiln_diag *diag);

#endif
