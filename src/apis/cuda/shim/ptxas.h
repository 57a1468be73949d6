/* ptxas as a process, answered from the cache (docs/use/exec.md). */
#ifndef KILN_CUDA_SHIM_PTXAS_H
#define KILN_CUDA_SHIM_PTXAS_H

/* Exported by the core. What a ptxas that is called as argv says does: the same files, output,
 * errors and exit code, which it returns. A command line that kiln does not follow is that of the
 * real one, the program `tool`, which takes this process's place; -1 where that fails. */
#define KN_INTERPOSE_PTXAS "kn_interpose_ptxas"
typedef int kn_interpose_ptxas_fn(const char *tool, int argc, char **argv);

#endif
