/* ptxas as a process, answered from the cache (docs/guide/exec.md). */
#ifndef KILN_INTERPOSE_PTXAS_H
#define KILN_INTERPOSE_PTXAS_H

/* What a ptxas that is called as argv says does: the same files, output, errors and exit code. A
 * command line that kiln does not follow is the real one's, which takes this process's place.
 * `self` is the path by which this program was started. */
int kn_ptxas_main(const char *self, int argc, char **argv);

#endif
