/* The module for HTTP and S3: GET, PUT, HEAD and DELETE on <base>/<2 hex>/<62 hex>, over libcurl.
 * nginx with WebDAV, bazel-remote and artifact servers speak that; S3 is the same with signatures.
 * A loadable library of its own: it knows kiln/sys/remote.h and nothing else of kiln.
 *
 * Redirects are not followed: they would send the credentials, or the entry, somewhere else. */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include "transfer.h"

#define URL_ROOM 2048
#define FIRST_ROOM ((size_t)64 << 10)

typedef struct connection {
    CURL *easy;
    CURLM *multi;
    const kiln_remote_server *server;
    char base[URL_ROOM];
    char detail[CURL_ERROR_SIZE]; /* libcurl's own words */
    const char *local_path;       /* of a socket to use instead of the network, or NULL */
    int64_t date_s;               /* of the last answer's "Date:"; 0: it had none */
} connection;

/* An answer's body, bounded. */
typedef struct body {
    char *data;
    size_t size, room, limit;
    bool too_large, no_memory;
} body;

static size_t take_body(char *data, size_t one, size_t count, void *user)
{
    body *b = user;
    size_t size = one * count; /* one is 1, says libcurl */
    if (size > b->limit - b->size) {
        b->too_large = true;
        return 0;
    }
    if (size > b->room - b->size) {
        size_t room = b->room > 0 ? b->room : FIRST_ROOM;
        while (room - b->size < size) {
            room *= 2;
        }
        char *larger = realloc(b->data, room);
        if (larger == NULL) {
            b->no_memory = true;
            return 0;
        }
        b->data = larger;
        b->room = room;
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return size;
}

/* A header of the answer. Of all of them only the date is looked at. */
static size_t take_header(char *data, size_t one, size_t count, void *user)
{
    static const char name[] = "date:";
    connection *c = user;
    char text[64];
    const size_t size = one * count, start = sizeof name - 1;
    if (size > start && size - start < sizeof text && strncasecmp(data, name, start) == 0) {
        memcpy(text, data + start, size - start);
        text[size - start] = '\0';
        const time_t date = curl_getdate(text, NULL);
        c->date_s = date > 0 ? (int64_t)date : 0;
    }
    return size;
}

/* --- connect ---------------------------------------------------------------------------------- */

/* host:port, with brackets where the host is an IPv6 address. */
static void put_authority(const kiln_remote_server *s, char *out, size_t room)
{
    bool bare = strchr(s->host, ':') != NULL;
    char port[8] = "";
    if (s->port != 0) {
        (void)snprintf(port, sizeof port, ":%u", (unsigned)s->port);
    }
    (void)snprintf(out, room, "%s%s%s%s", bare ? "[" : "", s->host, bare ? "]" : "", port);
}

/* Whom the bucket is asked for, and what is signed: the same. */
static const char *region_of(const kiln_remote_server *s)
{
    const char *region = s->region[0] != '\0' ? s->region : getenv("AWS_REGION");
    return region != NULL && region[0] != '\0' ? region : "us-east-1";
}

static bool make_base(connection *c)
{
    const kiln_remote_server *s = c->server;
    char authority[512];
    int length = 0;
    put_authority(s, authority, sizeof authority);
    if (strcmp(s->scheme, "s3") != 0) {
        length = snprintf(c->base, sizeof c->base, "%s://%s%s", s->scheme, authority, s->path);
    } else if (s->endpoint[0] != '\0') {
        size_t end = strlen(s->endpoint);
        while (end > 0 && s->endpoint[end - 1] == '/') {
            end--; /* "//bucket" is another name */
        }
        length =
            snprintf(c->base, sizeof c->base, "%.*s/%s%s", (int)end, s->endpoint, s->host, s->path);
    } else {
        length = snprintf(c->base, sizeof c->base, "https://%s.s3.%s.amazonaws.com%s", s->host,
                          region_of(s), s->path);
    }
    return length > 0 && (size_t)length < sizeof c->base;
}

static void http_disconnect(void *self)
{
    connection *c = self;
    if (c != NULL) {
        curl_easy_cleanup(c->easy);
        (void)curl_multi_cleanup(c->multi);
        free(c);
    }
}

/* libcurl connects with the first request; here is only what can fail without a server. */
static kiln_status http_connect(const kiln_remote_server *server, kiln_remote_call *call,
                                void **out_connection)
{
    *out_connection = NULL;
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return transfer_fail(call, KILN_E_NOMEM, "out of memory");
    }
    c->server = server;
    c->easy = curl_easy_init();
    c->multi = curl_multi_init();
    if (c->easy == NULL || c->multi == NULL || !make_base(c)) {
        http_disconnect(c);
        return transfer_fail(call, KILN_E_UNAVAILABLE, "libcurl could not be initialized");
    }
    *out_connection = c;
    return KILN_OK;
}

kiln_status http_connect_local(const char *path, const kiln_remote_server *server,
                               kiln_remote_call *call, void **out_connection)
{
    kiln_status status = http_connect(server, call, out_connection);
    if (status == KILN_OK && *out_connection != NULL) {
        ((connection *)*out_connection)->local_path = path;
    }
    return status;
}

/* --- one request ------------------------------------------------------------------------------ */

/* Adds "NAME: VALUE", however long that is: session tokens have no bound. False: no memory. */
static bool add_header(struct curl_slist **headers, const char *name, const char *value)
{
    const size_t room = strlen(name) + strlen(value) + 3;
    char *line = malloc(room);
    if (line == NULL) {
        return false;
    }
    (void)snprintf(line, room, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    *headers = longer != NULL ? longer : *headers;
    free(line);
    return longer != NULL;
}

static bool set_up_s3(connection *c, struct curl_slist **headers)
{
    const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    const char *session = getenv("AWS_SESSION_TOKEN");
    char scope[300];
    if (id == NULL || secret == NULL) {
        return true; /* a public bucket */
    }
    (void)snprintf(scope, sizeof scope, "aws:amz:%.250s:s3", region_of(c->server));
    (void)curl_easy_setopt(c->easy, CURLOPT_AWS_SIGV4, scope);
    (void)curl_easy_setopt(c->easy, CURLOPT_USERNAME, id);
    (void)curl_easy_setopt(c->easy, CURLOPT_PASSWORD, secret);
    /* S3 wants it, libcurl before 8 does not send it by itself. */
    return add_header(headers, "x-amz-content-sha256", "UNSIGNED-PAYLOAD") &&
           (session == NULL || session[0] == '\0' ||
            add_header(headers, "x-amz-security-token", session));
}

static bool set_up_login(connection *c, struct curl_slist **headers)
{
    const kiln_remote_server *s = c->server;
    if (strcmp(s->scheme, "s3") == 0) {
        return set_up_s3(c, headers);
    }
    if (s->user[0] != '\0') {
        (void)curl_easy_setopt(c->easy, CURLOPT_USERNAME, s->user);
        (void)curl_easy_setopt(c->easy, CURLOPT_PASSWORD, s->password);
    } else if (s->token[0] != '\0') {
        (void)curl_easy_setopt(c->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        (void)curl_easy_setopt(c->easy, CURLOPT_XOAUTH2_BEARER, s->token);
    }
    if (s->netrc) {
        (void)curl_easy_setopt(c->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    }
    return true;
}

static bool set_up(connection *c, const kiln_remote_call *call, const char *url, body *answer,
                   struct curl_slist **headers)
{
    const kiln_remote_server *s = c->server;
    curl_easy_reset(c->easy); /* keeps the connection */
    (void)curl_easy_setopt(c->easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#if LIBCURL_VERSION_NUM >= 0x075700
    /* A request that has run out of time does not wait for the thread that looks a name up. */
    (void)curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
    (void)curl_easy_setopt(c->easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)s->connect_ms);
    (void)curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)call->limit_ms);
    (void)curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_body);
    (void)curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(c->easy, CURLOPT_USERAGENT, "kiln");
    (void)curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, c);
    c->date_s = 0;
    c->detail[0] = '\0';
    (void)curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->detail);
    transfer_set_tls(c->easy, s);
    if (c->local_path != NULL) {
        (void)curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, c->local_path);
    }
    if (strcmp(s->scheme, "s3") == 0) {
        /* An "Expect:" would be signed and not sent. */
        (void)curl_easy_setopt(c->easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 50L);
    } else {
        *headers = curl_slist_append(*headers, "Expect:");
    }
    return set_up_login(c, headers);
}

static kiln_status meaning_of(const connection *c, CURLcode code, const body *answer,
                              kiln_remote_call *call)
{
    switch (code) {
    case CURLE_OK:
        return KILN_OK;
    case CURLE_WRITE_ERROR:
        if (answer->no_memory) {
            return transfer_fail(call, KILN_E_NOMEM, "out of memory");
        }
        return transfer_fail(call, KILN_E_CORRUPT, "the response is larger than max-bytes");
    case CURLE_FILESIZE_EXCEEDED: /* it says so itself, before it comes */
        return transfer_fail(call, KILN_E_UNSUPPORTED, "the response is larger than max-bytes");
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_HTTP2:
        return transfer_fail(call, KILN_E_CORRUPT, curl_easy_strerror(code));
    default:
        return transfer_meaning(code, c->detail, call);
    }
}

/* Runs what is set up. */
static kiln_status perform_request(connection *c, kiln_remote_call *call, const body *answer,
                                   long *out_code)
{
    CURLcode code = CURLE_OK;
    *out_code = 0;
    if (curl_multi_add_handle(c->multi, c->easy) != CURLM_OK) {
        return transfer_fail(call, KILN_E_UNAVAILABLE, "libcurl could not be initialized");
    }
    kiln_status status = transfer_run(c->multi, c->easy, call, &code);
    if (status == KILN_OK) {
        status = meaning_of(c, code, answer, call);
        (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, out_code);
    }
    (void)curl_multi_remove_handle(c->multi, c->easy);
    return status;
}

static kiln_status refuse_status(kiln_remote_call *call, long code)
{
    (void)snprintf(call->why, sizeof call->why, "the server answered %ld%s", code,
                   code == 401 ? ": authentication is required (netrc, token-file, cert-file)"
                               : "");
    return KILN_E_IO;
}

static void put_url(const connection *c, const char *name, char *url, size_t room)
{
    const char *layout = c->server->layout;
    if (strcmp(layout, "bazel") == 0) {
        (void)snprintf(url, room, "%s/ac/%s", c->base, name);
    } else if (strcmp(layout, "flat") == 0) {
        (void)snprintf(url, room, "%s/%s", c->base, name);
    } else {
        (void)snprintf(url, room, "%s/%.2s/%s", c->base, name, name + 2);
    }
}

/* One request; `data` NULL: none is sent. The body is the caller's to free in every case. */
static kiln_status send_request(connection *c, kiln_remote_call *call, const char *method,
                                const char *name, const void *data, size_t size, bool replace,
                                body *answer, long *out_code)
{
    char url[URL_ROOM + 80];
    struct curl_slist *headers = NULL;
    put_url(c, name, url, sizeof url);
    if (!set_up(c, call, url, answer, &headers)) {
        curl_slist_free_all(headers);
        return transfer_fail(call, KILN_E_NOMEM, "out of memory");
    }
    if (strcmp(method, "GET") == 0) {
        const uint64_t most = c->server->max_bytes;
        (void)curl_easy_setopt(c->easy, CURLOPT_MAXFILESIZE_LARGE,
                               (curl_off_t)(most < INT64_MAX ? most : INT64_MAX));
    }
    if (strcmp(method, "HEAD") == 0) {
        (void)curl_easy_setopt(c->easy, CURLOPT_NOBODY, 1L);
    } else if (data != NULL) {
        (void)curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        (void)curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, data);
        headers = curl_slist_append(headers, "Content-Type: application/octet-stream");
        if (!replace) {
            headers = curl_slist_append(headers, "If-None-Match: *");
        }
    }
    (void)curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST,
                           strcmp(method, "HEAD") == 0 ? NULL : method);
    (void)curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
    kiln_status status = perform_request(c, call, answer, out_code);
    curl_slist_free_all(headers);
    return status;
}

/* --- requests --------------------------------------------------------------------------------- */

static kiln_status http_ping(void *self, kiln_remote_call *call, int64_t *out_clock_ns)
{
    body answer = {.limit = FIRST_ROOM};
    long code = 0;
    *out_clock_ns = 0;
    /* A name that nobody has: any answer but a server error will do. */
    static const char nobody[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const connection *c = self;
    kiln_status status = send_request(self, call, "HEAD", nobody, NULL, 0, true, &answer, &code);
    free(answer.data);
    if (status == KILN_OK && code >= 500) {
        status = refuse_status(call, code);
    }
    if (status == KILN_OK && c->date_s > 0 && c->date_s < INT64_C(4000000000)) {
        /* Whole seconds: half of one is the best guess. */
        *out_clock_ns = c->date_s * INT64_C(1000000000) + INT64_C(500000000);
    }
    return status;
}

static kiln_status http_get(void *self, kiln_remote_call *call, const char *name, void **out_data,
                            size_t *out_size)
{
    const connection *c = self;
    const uint64_t limit = c->server->max_bytes;
    body answer = {.limit = limit < SIZE_MAX ? (size_t)limit : SIZE_MAX};
    long code = 0;
    *out_data = NULL;
    *out_size = 0;
    kiln_status status = send_request(self, call, "GET", name, NULL, 0, true, &answer, &code);
    if (status == KILN_OK && code == 200 && answer.size > 0) {
        *out_data = answer.data;
        *out_size = answer.size;
        return KILN_OK;
    }
    free(answer.data);
    if (status == KILN_E_UNSUPPORTED && code != 200) {
        status = KILN_OK; /* a long way to say what the code says */
    }
    if (status != KILN_OK) {
        return status;
    }
    return code == 404 || code == 410 ? KILN_MISS
           : code == 200              ? transfer_fail(call, KILN_E_CORRUPT, "the response is empty")
                                      : refuse_status(call, code);
}

static kiln_status http_put(void *self, kiln_remote_call *call, const char *name, const void *data,
                            size_t size, bool replace)
{
    body answer = {.limit = FIRST_ROOM};
    long code = 0;
    kiln_status status = send_request(self, call, "PUT", name, data, size, replace, &answer, &code);
    free(answer.data);
    if (status != KILN_OK) {
        return status;
    }
    /* 412 and 409: there is one already, or another writer was first. */
    bool there = !replace && (code == 412 || code == 409);
    if ((code >= 200 && code < 300) || there) {
        return KILN_OK;
    }
    const connection *c = self;
    status = refuse_status(call, code);
    if (code == 400 && strcmp(c->server->layout, "bazel") == 0) {
        (void)snprintf(
            call->why, sizeof call->why,
            "the server answered 400: start bazel-remote with --disable_http_ac_validation");
    }
    return status;
}

static kiln_status http_remove(void *self, kiln_remote_call *call, const char *name)
{
    body answer = {.limit = FIRST_ROOM};
    long code = 0;
    kiln_status status = send_request(self, call, "DELETE", name, NULL, 0, true, &answer, &code);
    free(answer.data);
    if (status != KILN_OK) {
        return status;
    }
    if (code == 405 || code == 501) {
        (void)refuse_status(call, code);
        return KILN_E_UNSUPPORTED; /* bazel-remote: what is old goes by itself */
    }
    return code == 404                 ? KILN_MISS
           : code >= 200 && code < 300 ? KILN_OK
                                       : refuse_status(call, code);
}

static const kiln_remote_module_ops ops = {
    .abi = KILN_REMOTE_ABI,
    .struct_size = sizeof ops,
    .name = "http",
    .schemes = "http https s3",
    .caps = KILN_REMOTE_CLOCK,
    .connect = http_connect,
    .disconnect = http_disconnect,
    .ping = http_ping,
    .get = http_get,
    .put = http_put,
    .remove = http_remove,
};

const kiln_remote_module_ops *kiln_remote_module(void)
{
    return &ops;
}
