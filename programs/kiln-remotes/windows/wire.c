/* A wire over libcurl, which connects, speaks TLS through Windows (Schannel), and then hands bytes
 * on as they are. Everything that waits is a slice of 50 ms, but for TLS that cannot get rid of
 * what it has begun to say: that ends with the limit of the request. */
#include "kiln-remotes/wire.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <winsock2.h>

#include "kiln-remotes/transfer.h"

#define SLICE_MS 50
#define URL_ROOM 300

struct wire {
    CURL *easy;
    CURLM *multi; /* keeps the connection */
    curl_socket_t socket;
    uint64_t started; /* what libcurl counts the limits of this connection from, or a bit before */
    char detail[CURL_ERROR_SIZE];
};

uint64_t wire_now(void)
{
    return transfer_now();
}

/* What servers and libraries say, as one line. */
static kiln_status make_line(kiln_remote_call *call, kiln_status status)
{
    for (char *c = call->why; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    return status;
}

kiln_status wire_fail(kiln_remote_call *call, kiln_status status, const char *why)
{
    return make_line(call, transfer_fail(call, status, why));
}

static uint64_t time_left(uint64_t deadline)
{
    const uint64_t now = wire_now();
    return now < deadline ? deadline - now : 0;
}

/* Waits until the socket can be read from, or written to. */
static kiln_status wait_for(const wire *w, bool writing, uint64_t deadline, kiln_remote_call *call)
{
    for (;;) {
        const uint64_t left = time_left(deadline);
        fd_set one;
        if (call->stop != NULL && call->stop(call->user)) {
            return KILN_E_CANCELLED;
        }
        if (left == 0) {
            return wire_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
        }
        struct timeval slice = {.tv_usec = 1000 * (long)(left < SLICE_MS ? left : SLICE_MS)};
        one.fd_count = 1;
        one.fd_array[0] = w->socket;
        const int got = select(0, writing ? NULL : &one, writing ? &one : NULL, NULL, &slice);
        if (got > 0) {
            return KILN_OK;
        }
        if (got < 0) {
            return wire_fail(call, KILN_E_UNAVAILABLE, "the connection is broken");
        }
    }
}

/* --- connect ---------------------------------------------------------------------------------- */

static bool set_up(wire *w, const kiln_remote_server *server, uint16_t port, bool tls,
                   uint64_t left)
{
    char url[URL_ROOM];
    const bool bare = strchr(server->host, ':') != NULL; /* an IPv6 address */
    const int length = snprintf(url, sizeof url, "%s://%s%s%s:%u/", tls ? "https" : "http",
                                bare ? "[" : "", server->host, bare ? "]" : "", (unsigned)port);
    if (length < 0 || (size_t)length >= sizeof url) {
        return false;
    }
    transfer_set_tls(w->easy, server);
    return curl_easy_setopt(w->easy, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_SSL_ENABLE_ALPN, 0L) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->detail) == CURLE_OK &&
           curl_easy_setopt(w->easy, CURLOPT_TIMEOUT_MS, (long)left) == CURLE_OK &&
           curl_multi_add_handle(w->multi, w->easy) == CURLM_OK;
}

static kiln_status run_connect(wire *w, kiln_remote_call *call)
{
    CURLcode code = CURLE_OK;
    kiln_status status = transfer_run(w->multi, w->easy, call, &code);
    if (status == KILN_E_TIMEOUT || code == CURLE_OPERATION_TIMEDOUT) {
        return wire_fail(call, KILN_E_TIMEOUT, "timeout while connecting");
    }
    if (status == KILN_OK && code != CURLE_OK) {
        return make_line(call, transfer_meaning(code, w->detail, call));
    }
    if (status == KILN_OK &&
        (curl_easy_getinfo(w->easy, CURLINFO_ACTIVESOCKET, &w->socket) != CURLE_OK ||
         w->socket == CURL_SOCKET_BAD)) {
        status = wire_fail(call, KILN_E_UNAVAILABLE, "the server closed the connection");
    }
    return status;
}

kiln_status wire_connect(const kiln_remote_server *server, uint16_t port, bool tls,
                         uint64_t deadline, kiln_remote_call *call, wire **out_wire)
{
    const uint64_t left = time_left(deadline);
    *out_wire = NULL;
    if (left == 0) {
        return wire_fail(call, KILN_E_TIMEOUT, "timeout while connecting");
    }
    wire *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return wire_fail(call, KILN_E_NOMEM, "out of memory");
    }
    w->started = wire_now();
    w->easy = curl_easy_init();
    w->multi = curl_multi_init();
    kiln_status status = KILN_OK;
    if (w->easy == NULL || w->multi == NULL || !set_up(w, server, port, tls, left)) {
        status = wire_fail(call, KILN_E_UNAVAILABLE, "libcurl could not be initialized");
    }
    if (status == KILN_OK) {
        status = run_connect(w, call);
    }
    if (status != KILN_OK) {
        wire_close(w);
        return status;
    }
    *out_wire = w;
    return KILN_OK;
}

void wire_close(wire *w)
{
    if (w == NULL) {
        return;
    }
    if (w->easy != NULL && w->multi != NULL) {
        (void)curl_multi_remove_handle(w->multi, w->easy);
    }
    curl_easy_cleanup(w->easy);
    (void)curl_multi_cleanup(w->multi);
    free(w);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* libcurl counts from when it connected. A connection of more than 24 days fails, and
 * another one is made. */
static void limit_call(wire *w, uint64_t deadline)
{
    const uint64_t limit = deadline - w->started;
    (void)curl_easy_setopt(w->easy, CURLOPT_TIMEOUT_MS,
                           (long)(limit < LONG_MAX ? limit : LONG_MAX));
}

static kiln_status fail_transfer(const wire *w, CURLcode code, kiln_remote_call *call)
{
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return wire_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
    }
    return wire_fail(call, code == CURLE_OUT_OF_MEMORY ? KILN_E_NOMEM : KILN_E_UNAVAILABLE,
                     w->detail[0] != '\0' ? w->detail : curl_easy_strerror(code));
}

kiln_status wire_send(wire *w, const void *data, size_t size, uint64_t deadline,
                      kiln_remote_call *call)
{
    const char *at = data;
    w->detail[0] = '\0';
    limit_call(w, deadline);
    while (size > 0) {
        size_t sent = 0;
        if (time_left(deadline) == 0) {
            return wire_fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
        }
        const CURLcode code = curl_easy_send(w->easy, at, size, &sent);
        if (code != CURLE_OK && code != CURLE_AGAIN) {
            return time_left(deadline) == 0 ? fail_transfer(w, CURLE_OPERATION_TIMEDOUT, call)
                                            : fail_transfer(w, code, call);
        }
        at += sent;
        size -= sent;
        kiln_status status = sent == 0 && size > 0 ? wait_for(w, true, deadline, call) : KILN_OK;
        if (status != KILN_OK) {
            return status;
        }
    }
    return KILN_OK;
}

kiln_status wire_receive(wire *w, void *data, size_t room, size_t *out_size, uint64_t deadline,
                         kiln_remote_call *call)
{
    *out_size = 0;
    w->detail[0] = '\0';
    limit_call(w, deadline);
    for (;;) {
        size_t got = 0;
        const CURLcode code = curl_easy_recv(w->easy, data, room, &got);
        if (code == CURLE_OK && got > 0) {
            *out_size = got;
            return KILN_OK;
        }
        if (code == CURLE_OK) {
            return wire_fail(call, KILN_E_UNAVAILABLE, "the server closed the connection");
        }
        if (code != CURLE_AGAIN) {
            return fail_transfer(w, code, call);
        }
        kiln_status status = wait_for(w, false, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
    }
}
