/* A wire of POSIX sockets: what wire.c, wire_tls.c and a test with sockets of its own share. */
#ifndef KILN_REMOTES_WIRE_SOCKET_H
#define KILN_REMOTES_WIRE_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "wire.h"

struct ssl_st;
struct ssl_ctx_st;

struct wire {
    int socket;
    dev_t device; /* with the next one, what the socket is known by */
    ino_t inode;
    struct ssl_ctx_st *context;
    struct ssl_st *tls; /* NULL: plain */
};

/* Whether the descriptor is still the socket: a program that closes all descriptors may have a file
 * of its own under that number, which nothing must be written to. */
bool wire_is_whole(const wire *w);

/* Over a socket that is connected, and is taken over when that works. NULL: no memory. */
wire *wire_over(int socket);

kiln_status wire_plain_send(wire *w, const void *data, size_t size, uint64_t deadline,
                            kiln_remote_call *call);
kiln_status wire_plain_receive(wire *w, void *data, size_t room, size_t *out_size,
                               uint64_t deadline, kiln_remote_call *call);
kiln_status wire_tls_start(wire *w, const kiln_remote_server *server, uint64_t deadline,
                           kiln_remote_call *call);
kiln_status wire_tls_send(wire *w, const void *data, size_t size, uint64_t deadline,
                          kiln_remote_call *call);
kiln_status wire_tls_receive(wire *w, void *data, size_t room, size_t *out_size, uint64_t deadline,
                             kiln_remote_call *call);
void wire_tls_end(wire *w);

#endif
