/* kiln-replay RECORDING BACK SCRATCH: a worker of `kiln warm RECORDING` (interpose/replay.h). All
 * of it is in kiln's core. Exit 0, 1 for what it was not asked rightly, 2 where there is no core.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/host.h"
#include "interpose/replay.h"
#include "kiln-interpose/enter.h"

/* A handle that no program of a compiler's gets. */
static FILE *take_handle(int handle, const char *mode)
{
    const int copy = fcntl(handle, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return copy >= 0 ? fdopen(copy, mode) : NULL;
}

int main(int argc, char **argv)
{
    host_pass_on_interrupts();
    FILE *in = take_handle(STDIN_FILENO, "r");
    FILE *out = take_handle(STDOUT_FILENO, "w");
    union {
        void *object;
        kn_interpose_replay_fn *function;
    } entry = {kn_enter_core(KN_INTERPOSE_REPLAY)};
    /* What a compiler prints is no answer. */
    if (argc != 4 || in == NULL || out == NULL || freopen("/dev/null", "r", stdin) == NULL ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return 1;
    }
    if (entry.object == NULL) {
        return 2;
    }
    return entry.function(argv[1], (int)strtol(argv[2], NULL, 10), argv[3], in, out) ? 0 : 1;
}
