/* What the fuzzer and the tests of the Redis module need besides its one function. */
#ifndef KILN_REMOTES_REDIS_H
#define KILN_REMOTES_REDIS_H

#include <kiln/sys/remote.h>

KILN_API const kiln_remote_module_ops *kiln_remote_module(void);

/* A connection over a wire that is connected and logged in; it is taken over. NULL: no memory, and
 * the wire is the caller's. */
struct wire;
void *redis_over(struct wire *w, const kiln_remote_server *server);

#endif
