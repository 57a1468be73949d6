/* The exit codes of the command, in one table: --help prints it, the man page repeats it, and a
 * test compares the two. */
#ifndef KILN_PROGRAM_EXIT_H
#define KILN_PROGRAM_EXIT_H

#include <kiln/status.h>

/* X(name, value, text). Values are stable. */
#define EXIT_MAP(X)                                                                                \
    X(EXIT_FINE, 0, "success")                                                                     \
    X(EXIT_FAILED, 1, "a kernel does not compile, does not run, or gives a wrong result")          \
    X(EXIT_USAGE, 2,                                                                               \
      "wrong usage, or input that cannot be read: options, files, variables, backends")            \
    X(EXIT_UNAVAILABLE, 3, "the requested backend, device or compiler is unavailable")             \
    X(EXIT_CACHE, 4, "the cache cannot be used")                                                   \
    X(EXIT_DAMAGE, 5, "damaged entries were found")                                                \
    X(EXIT_TROUBLE, 6, "anything else: out of memory, output that cannot be written, a bug")

typedef enum exit_code {
#define EXIT_ENUM(name, value, text) name = (value),
    EXIT_MAP(EXIT_ENUM)
#undef EXIT_ENUM
} exit_code;

/* The exit code for a status, where a command has no better one. */
exit_code exit_of(kiln_status status);

#endif
