/* ptxas of kiln: a process that answers from the cache, or becomes the real one. It is found as
 * LIBEXEC/ptxas/ptxas by PATH, and as LIBEXEC/triton/ptxas by Triton's variables. */
#include <sys/auxv.h>

#include "interpose/ptxas.h"

int main(int argc, char **argv)
{
    /* The path that was started: argv[0] may be anything. */
    const unsigned long self = getauxval(AT_EXECFN);
    return kn_ptxas_main(self != 0 ? (const char *)self : argv[0], argc, argv); // NOLINT
}
