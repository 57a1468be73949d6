/* ptxas of kiln: a process that answers from the cache, or becomes the real one. It is found as
 * LIBEXEC/ptxas/ptxas by PATH, and as LIBEXEC/triton/ptxas by Triton's variables. It links libc
 * alone, so that it starts wherever the real one does; the core is opened when it runs. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "apis/cuda/shim/ptxas.h"
#include "enter.h"
#include "find_tool.h"

enum { EXIT_NOT_FOUND = 127 };

/* The exit code; -1: the real one is to do it. */
static int ask_core(const char *tool, int argc, char **argv)
{
    union {
        void *object;
        kn_interpose_ptxas_fn *function;
    } entry = {argc > 0 ? kn_enter_core(KN_INTERPOSE_PTXAS) : NULL};
    return entry.object != NULL ? entry.function(tool, argc, argv) : -1;
}

int main(int argc, char **argv)
{
    /* The path that was started: argv[0] may be anything. */
    const unsigned long started = getauxval(AT_EXECFN);
    const char *self = started != 0 ? (const char *)started : argv[0]; // NOLINT
    char *tool = kn_tool_find(self);
    if (tool == NULL) {
        (void)fprintf(stderr,
                      "kiln: %s: no other ptxas is found (install CUDA's, or set "
                      "KILN_PTXAS to its path)\n",
                      self);
        return EXIT_NOT_FOUND;
    }
    int code = ask_core(tool, argc, argv);
    if (code < 0) {
        argv[0] = tool;
        (void)execv(tool, argv);
        (void)fprintf(stderr, "kiln: %s: %s (reinstall the CUDA toolkit, or set KILN_PTXAS)\n",
                      tool, strerror(errno));
        code = EXIT_NOT_FOUND;
    }
    free(tool);
    return code;
}
