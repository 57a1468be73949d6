/* What the fuzzer of the HTTP module needs besides its one function. */
#ifndef KILN_REMOTES_HTTP_H
#define KILN_REMOTES_HTTP_H

#include <kiln/sys/remote.h>

KILN_API const kiln_remote_module_ops *kiln_remote_module(void);

/* As the table's connect, but over the local socket that listens at `path`, borrowed. */
kiln_status http_connect_local(const char *path, const kiln_remote_server *server,
                               kiln_remote_call *call, void **out_connection);

#endif
