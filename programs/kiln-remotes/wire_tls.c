/* TLS over a wire: OpenSSL speaks to two buffers in memory, and what is in them travels as plain
 * bytes do, with the same deadlines and without SIGPIPE.
 *
 * A server is who it says it is, or there is no connection: there is no option to turn that off. */
#include "wire_socket.h"

#include <stdio.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define CHUNK 16384

/* What went wrong, of the certificate if it was that. */
static kiln_status fail_tls(const wire *w, kiln_remote_call *call)
{
    char text[KILN_REMOTE_WHY];
    const long verdict = w->tls != NULL ? SSL_get_verify_result(w->tls) : X509_V_OK;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (verdict != X509_V_OK) {
        (void)snprintf(text, sizeof text, "the server's certificate was rejected: %s",
                       X509_verify_cert_error_string(verdict));
    } else {
        (void)snprintf(text, sizeof text, "TLS: %s",
                       reason != NULL ? reason : "the operation failed");
    }
    ERR_clear_error();
    return wire_fail(call, KILN_E_UNAVAILABLE, text);
}

/* --- the two buffers -------------------------------------------------------------------------- */

/* Sends what OpenSSL wants said. */
static kiln_status flush_output(wire *w, uint64_t deadline, kiln_remote_call *call)
{
    char chunk[CHUNK];
    BIO *out = SSL_get_wbio(w->tls);
    kiln_status status = KILN_OK;
    while (status == KILN_OK && BIO_ctrl_pending(out) > 0) {
        int size = BIO_read(out, chunk, sizeof chunk);
        status =
            size > 0 ? wire_plain_send(w, chunk, (size_t)size, deadline, call) : fail_tls(w, call);
    }
    return status;
}

static kiln_status fill_input(wire *w, uint64_t deadline, kiln_remote_call *call)
{
    char chunk[CHUNK];
    size_t size = 0;
    kiln_status status = wire_plain_receive(w, chunk, sizeof chunk, &size, deadline, call);
    if (status == KILN_OK && BIO_write(SSL_get_rbio(w->tls), chunk, (int)size) != (int)size) {
        status = wire_fail(call, KILN_E_NOMEM, "out of memory");
    }
    return status;
}

/* Does what OpenSSL needs after a call of it that gave `result`. KILN_OK: call it again. */
static kiln_status heed_result(wire *w, int result, uint64_t deadline, kiln_remote_call *call)
{
    int wants = SSL_get_error(w->tls, result);
    if (wants == SSL_ERROR_ZERO_RETURN) {
        return wire_fail(call, KILN_E_UNAVAILABLE, "the server closed the connection");
    }
    if (wants != SSL_ERROR_WANT_READ && wants != SSL_ERROR_WANT_WRITE) {
        kiln_status status = fail_tls(w, call);
        /* The server may hear why, if it listens. */
        kiln_remote_call last = {.limit_ms = 0};
        (void)flush_output(w, wire_now(), &last);
        return status;
    }
    kiln_status status = flush_output(w, deadline, call);
    return status == KILN_OK && wants == SSL_ERROR_WANT_READ ? fill_input(w, deadline, call)
                                                             : status;
}

/* --- start and end ---------------------------------------------------------------------------- */

/* A key with a password is of no use here, and nobody is asked for one. */
static int no_password(char *buffer, int size, int writing, void *user)
{
    (void)writing;
    (void)user;
    if (size > 0) {
        buffer[0] = '\0';
    }
    return 0;
}

static kiln_status set_up_files(SSL_CTX *context, const kiln_remote_server *s,
                                kiln_remote_call *call)
{
    int good = s->ca_file[0] != '\0' ? SSL_CTX_load_verify_locations(context, s->ca_file, NULL)
                                     : SSL_CTX_set_default_verify_paths(context);
    if (good != 1) {
        ERR_clear_error();
        return wire_fail(call, KILN_E_UNAVAILABLE, "ca-file cannot be read as certificates");
    }
    if (s->cert_file[0] == '\0') {
        return KILN_OK;
    }
    const char *key = s->key_file[0] != '\0' ? s->key_file : s->cert_file;
    SSL_CTX_set_default_passwd_cb(context, no_password);
    if (SSL_CTX_use_certificate_chain_file(context, s->cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
        ERR_clear_error();
        return wire_fail(call, KILN_E_UNAVAILABLE,
                         "cert-file and key-file are not a certificate and its key");
    }
    return KILN_OK;
}

/* Whose certificate it must be. */
static bool expect_host(SSL *tls, const char *host)
{
    X509_VERIFY_PARAM *expected = SSL_get0_param(tls);
    X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(expected, host) == 1) {
        return true;
    }
    ERR_clear_error();
    return SSL_set1_host(tls, host) == 1 && SSL_set_tlsext_host_name(tls, host) == 1;
}

static kiln_status make_tls(wire *w, const kiln_remote_server *server, kiln_remote_call *call)
{
    /* Without this, OpenSSL frees what it has when the process leaves, under an upload's feet. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    w->context = SSL_CTX_new(TLS_client_method());
    if (w->context == NULL || SSL_CTX_set_min_proto_version(w->context, TLS1_2_VERSION) != 1) {
        return fail_tls(w, call);
    }
    SSL_CTX_set_verify(w->context, SSL_VERIFY_PEER, NULL);
    kiln_status status = set_up_files(w->context, server, call);
    if (status != KILN_OK) {
        return status;
    }
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    w->tls = in != NULL && out != NULL ? SSL_new(w->context) : NULL;
    if (w->tls == NULL) {
        (void)BIO_free(in);
        (void)BIO_free(out);
        return fail_tls(w, call);
    }
    SSL_set_bio(w->tls, in, out);
    return expect_host(w->tls, server->host) ? KILN_OK : fail_tls(w, call);
}

kiln_status wire_tls_start(wire *w, const kiln_remote_server *server, uint64_t deadline,
                           kiln_remote_call *call)
{
    ERR_clear_error();
    kiln_status status = make_tls(w, server, call);
    while (status == KILN_OK) {
        int result = SSL_connect(w->tls);
        if (result == 1) {
            return flush_output(w, deadline, call);
        }
        status = heed_result(w, result, deadline, call);
    }
    return status;
}

void wire_tls_end(wire *w)
{
    SSL_free(w->tls); /* and its buffers */
    SSL_CTX_free(w->context);
    w->tls = NULL;
    w->context = NULL;
}

/* --- bytes ------------------------------------------------------------------------------------ */

kiln_status wire_tls_send(wire *w, const void *data, size_t size, uint64_t deadline,
                          kiln_remote_call *call)
{
    const char *at = data;
    kiln_status status = KILN_OK;
    ERR_clear_error();
    while (status == KILN_OK && size > 0) {
        int result = SSL_write(w->tls, at, (int)(size < CHUNK ? size : CHUNK));
        if (result > 0) {
            at += result;
            size -= (size_t)result;
            status = flush_output(w, deadline, call);
        } else {
            status = heed_result(w, result, deadline, call);
        }
    }
    return status;
}

kiln_status wire_tls_receive(wire *w, void *data, size_t room, size_t *out_size, uint64_t deadline,
                             kiln_remote_call *call)
{
    kiln_status status = KILN_OK;
    *out_size = 0;
    ERR_clear_error();
    while (status == KILN_OK) {
        int result = SSL_read(w->tls, data, (int)(room < CHUNK ? room : CHUNK));
        if (result > 0) {
            *out_size = (size_t)result;
            return KILN_OK;
        }
        status = heed_result(w, result, deadline, call);
    }
    return status;
}
