/* What one NVRTC keeps for its whole process, so that a compile's result depends on more than its
 * own source and options. Seen with NVRTC 13.0:
 *
 *   - Some environment variables are read when the library is loaded, and never again.
 *   - After a compile with -restrict every later compile of the process is made with it, too.
 *
 * Calling sequence: kn_nvrtc_process_loading() before the library is loaded,
 * kn_nvrtc_process_compiling() before each real compile, and kn_nvrtc_process_reason() before the
 * cache is asked and again after the compile, before its result is stored.
 * Threads: any. Opens nothing and never fails. */
#ifndef KILN_CUDA_OPTIONS_NVRTC_PROCESS_H
#define KILN_CUDA_OPTIONS_NVRTC_PROCESS_H

#include <stddef.h>

void kn_nvrtc_process_loading(void);

/* `options` as nvrtcCompileProgram gets them. */
void kn_nvrtc_process_compiling(const char *const *options, size_t count);

/* Why a compile with these options bypasses the cache, static; NULL if it need not. */
const char *kn_nvrtc_process_reason(const char *const *options, size_t count);

#endif
