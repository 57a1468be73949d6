/* kiln-replay RECORDING BACK: a worker of `kiln warm RECORDING` (interpose/replay.h). All of it is
 * in kiln's core. Exit 0, 1 for what it was not asked rightly, 2 where there is no core. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "interpose/replay.h"
#include "kiln-interpose/enter.h"

int main(int argc, char **argv)
{
    union {
        void *object;
        kn_interpose_replay_fn *function;
    } entry = {kn_enter_core(KN_INTERPOSE_REPLAY)};
    /* What a compiler prints is no answer. */
    const int answers = dup(STDOUT_FILENO);
    FILE *out = answers >= 0 ? fdopen(answers, "w") : NULL;
    if (argc != 3 || out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return 1;
    }
    if (entry.object == NULL) {
        return 2;
    }
    return entry.function(argv[1], (int)strtol(argv[2], NULL, 10), stdin, out) ? 0 : 1;
}
