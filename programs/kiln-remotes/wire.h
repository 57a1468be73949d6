/* A way for bytes to and from a server, plain or under TLS, for the modules whose protocol's
 * library brings none that kiln can use: hiredis's own blocks, raises SIGPIPE, and has TLS only in
 * newer versions.
 *
 * The socket never blocks: every wait is a poll of at most 50 ms, so that the limit of a request
 * holds however slowly a server answers, and a request to stop is noticed.
 *
 * wire.c has sockets and OpenSSL, windows/wire.c leaves both to libcurl. */
#ifndef KILN_REMOTES_WIRE_H
#define KILN_REMOTES_WIRE_H

#include <kiln/sys/remote.h>

typedef struct wire wire;

/* Milliseconds of a clock that only goes forward: deadlines are in it. */
uint64_t wire_now(void);
/* Notes why a call fails, as one line. Returns `status`. */
kiln_status wire_fail(kiln_remote_call *call, kiln_status status, const char *why);

/* Connects to the server's host at `port`; with `tls`, shakes hands and checks whose certificate it
 * is: against server->ca_file or the system's list, and against the host's name or address.
 * KILN_E_UNAVAILABLE, KILN_E_TIMEOUT, KILN_E_CANCELLED, KILN_E_NOMEM. */
kiln_status wire_connect(const kiln_remote_server *server, uint16_t port, bool tls,
                         uint64_t deadline, kiln_remote_call *call, wire **out_wire);
void wire_close(wire *w);

/* All of it. */
kiln_status wire_send(wire *w, const void *data, size_t size, uint64_t deadline,
                      kiln_remote_call *call);
/* One byte or more. KILN_E_UNAVAILABLE when the server closed the connection. */
kiln_status wire_receive(wire *w, void *data, size_t room, size_t *out_size, uint64_t deadline,
                         kiln_remote_call *call);

#endif
