/* Sockets with deadlines. This file must not know what is said over them. */
#include "wire_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 50

uint64_t wire_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

kiln_status wire_fail(kiln_remote_call *call, kiln_status status, const char *why)
{
    (void)snprintf(call->why, sizeof call->why, "%s", why);
    for (char *c = call->why; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    return status;
}

/* Waits until the socket can do `events`. */
static kiln_status wait_for(int socket, short events, uint64_t deadline, kiln_remote_call *call)
{
    for (;;) {
        uint64_t now = wire_now();
        if (call->stop != NULL && call->stop(call->user)) {
            return KILN_E_CANCELLED;
        }
        if (now >= deadline) {
            return wire_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
        }
        uint64_t left = deadline - now;
        struct pollfd one = {.fd = socket, .events = events};
        int got = poll(&one, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (got > 0) {
            return KILN_OK;
        }
        if (got < 0 && errno != EINTR) {
            return wire_fail(call, KILN_E_UNAVAILABLE, strerror(errno));
        }
    }
}

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* --- connect ---------------------------------------------------------------------------------- */

static kiln_status finish_connect(int socket, uint64_t deadline, kiln_remote_call *call)
{
    int error = 0;
    socklen_t size = sizeof error;
    kiln_status status = wait_for(socket, POLLOUT, deadline, call);
    if (status != KILN_OK) {
        return status == KILN_E_TIMEOUT ? wire_fail(call, status, "timeout while connecting")
                                        : status;
    }
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        return wire_fail(call, KILN_E_UNAVAILABLE, strerror(error != 0 ? error : errno));
    }
    return KILN_OK;
}

static kiln_status connect_to(const struct addrinfo *address, uint64_t deadline,
                              kiln_remote_call *call, int *out_socket)
{
    int one = 1;
    int s = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *out_socket = -1;
    if (s < 0) {
        return wire_fail(call, KILN_E_UNAVAILABLE, strerror(errno));
    }
    kiln_status status = KILN_OK;
    if (connect(s, address->ai_addr, address->ai_addrlen) != 0) {
        status = errno == EINPROGRESS ? finish_connect(s, deadline, call)
                                      : wire_fail(call, KILN_E_UNAVAILABLE, strerror(errno));
    }
    if (status != KILN_OK) {
        (void)close(s);
        return status;
    }
    /* A request is one piece and waits for its answer. */
    (void)setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *out_socket = s;
    return KILN_OK;
}

/* One address of a host after the other; each gets its share of the time that is left. */
static kiln_status connect_any(const struct addrinfo *list, uint64_t deadline,
                               kiln_remote_call *call, int *out_socket)
{
    kiln_status status = wire_fail(call, KILN_E_UNAVAILABLE, "the host name has no address");
    uint64_t left = 0;
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        left++;
    }
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next, left--) {
        uint64_t now = wire_now();
        uint64_t share = now < deadline ? (deadline - now + left - 1) / left : 0;
        status = connect_to(at, now + share, call, out_socket);
        if (status == KILN_OK || status == KILN_E_CANCELLED) {
            break;
        }
    }
    return status;
}

kiln_status wire_connect(const kiln_remote_server *server, uint16_t port, bool tls,
                         uint64_t deadline, kiln_remote_call *call, wire **out_wire)
{
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char service[8];
    int s = -1;
    *out_wire = NULL;
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    int error = getaddrinfo(server->host, service, &wanted, &list);
    if (error != 0) {
        return wire_fail(call, KILN_E_UNAVAILABLE, gai_strerror(error));
    }
    kiln_status status = connect_any(list, deadline, call, &s);
    freeaddrinfo(list);
    if (status != KILN_OK) {
        return status;
    }
    wire *w = wire_over(s);
    if (w == NULL) {
        (void)close(s);
        return wire_fail(call, KILN_E_NOMEM, "out of memory");
    }
    if (tls) {
        status = wire_tls_start(w, server, deadline, call);
    }
    if (status != KILN_OK) {
        wire_close(w);
        return status;
    }
    *out_wire = w;
    return KILN_OK;
}

wire *wire_over(int socket)
{
    struct stat facts;
    wire *w = calloc(1, sizeof *w);
    if (w != NULL) {
        w->socket = socket;
        const bool known = fstat(socket, &facts) == 0;
        w->device = known ? facts.st_dev : 0;
        w->inode = known ? facts.st_ino : 0;
    }
    return w;
}

bool wire_is_whole(const wire *w)
{
    struct stat facts;
    return fstat(w->socket, &facts) == 0 && facts.st_dev == w->device && facts.st_ino == w->inode;
}

void wire_close(wire *w)
{
    if (w != NULL) {
        wire_tls_end(w);
        if (wire_is_whole(w)) {
            (void)close(w->socket);
        }
        free(w);
    }
}

/* --- bytes ------------------------------------------------------------------------------------ */

kiln_status wire_plain_send(wire *w, const void *data, size_t size, uint64_t deadline,
                            kiln_remote_call *call)
{
    const char *at = data;
    if (!wire_is_whole(w)) {
        return wire_fail(call, KILN_E_UNAVAILABLE, "the program has closed the connection");
    }
    while (size > 0) {
        ssize_t sent = send(w->socket, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0) {
            at += sent;
            size -= (size_t)sent;
            continue;
        }
        if (sent < 0 && !would_block(errno)) {
            return wire_fail(call, KILN_E_UNAVAILABLE, strerror(errno));
        }
        kiln_status status = wait_for(w->socket, POLLOUT, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
    }
    return KILN_OK;
}

kiln_status wire_plain_receive(wire *w, void *data, size_t room, size_t *out_size,
                               uint64_t deadline, kiln_remote_call *call)
{
    *out_size = 0;
    if (!wire_is_whole(w)) {
        return wire_fail(call, KILN_E_UNAVAILABLE, "the program has closed the connection");
    }
    for (;;) {
        kiln_status status = wait_for(w->socket, POLLIN, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
        ssize_t got = recv(w->socket, data, room, MSG_DONTWAIT);
        if (got > 0) {
            *out_size = (size_t)got;
            return KILN_OK;
        }
        if (got == 0) {
            return wire_fail(call, KILN_E_UNAVAILABLE, "the server closed the connection");
        }
        if (!would_block(errno)) {
            return wire_fail(call, KILN_E_UNAVAILABLE, strerror(errno));
        }
    }
}

kiln_status wire_send(wire *w, const void *data, size_t size, uint64_t deadline,
                      kiln_remote_call *call)
{
    return w->tls != NULL ? wire_tls_send(w, data, size, deadline, call)
                          : wire_plain_send(w, data, size, deadline, call);
}

kiln_status wire_receive(wire *w, void *data, size_t room, size_t *out_size, uint64_t deadline,
                         kiln_remote_call *call)
{
    return w->tls != NULL ? wire_tls_receive(w, data, room, out_size, deadline, call)
                          : wire_plain_receive(w, data, room, out_size, deadline, call);
}
