/* The tool of another project that kiln stands in for. Links libc alone. */
#ifndef KILN_INTERPOSE_FIND_TOOL_H
#define KILN_INTERPOSE_FIND_TOOL_H

/* The ptxas that the caller would have run without kiln; `self` is the path by which this program
 * was started:
 *   .../triton/NAME   for Triton: what its user named ($KILN_TRITON_PTXAS, $KILN_TRITON_PTXAS_
 *                     BLACKWELL), PyTorch's own where Inductor is at work, the one in Triton's
 *                     package, next to the libtriton.so of the parent or where $KILN_TRITON says
 *   .../NAME          $KILN_PTXAS, or the next one in $PATH
 *
 * Those of other installations of kiln's are passed over. malloc'ed; NULL if there is none. Blocks:
 * disk. */
char *kn_tool_find(const char *self);

#endif
