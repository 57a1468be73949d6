/* The module for Redis and Valkey: entries and leases, over hiredis. A loadable library of its own:
 * it knows kiln/sys/remote.h and nothing else of kiln.
 *
 * The socket never blocks: every wait is a poll of at most 50 ms, so that the limit of a request
 * holds however slowly a server answers, and somebody who wants to stop is heard. */
#include <kiln/sys/remote.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <hiredis/hiredis.h>

#define DEFAULT_PORT 6379
#define SLICE_MS 50
#define SLACK ((size_t)64 << 10)
#define NAME_ROOM 512

#define MOST_ELEMENTS 2 /* of anything that is asked for here */

typedef struct connection {
    redisContext *redis;
    const kiln_remote_server *server;
    redisReplyObjectFunctions plain, bounded; /* what makes replies: hiredis's own, and ours */
} connection;

/* --- time --------------------------------------------------------------------------------------
 */

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static kiln_status fail(kiln_remote_call *call, kiln_status status, const char *why)
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
        uint64_t now = now_ms();
        if (call->stop != NULL && call->stop(call->user)) {
            return KILN_E_CANCELLED;
        }
        if (now >= deadline) {
            return fail(call, KILN_E_TIMEOUT, "the server did not answer in time");
        }
        uint64_t left = deadline - now;
        struct pollfd one = {.fd = socket, .events = events};
        int got = poll(&one, 1, left < SLICE_MS ? (int)left : SLICE_MS);
        if (got > 0) {
            return KILN_OK;
        }
        if (got < 0 && errno != EINTR) {
            return fail(call, KILN_E_UNAVAILABLE, strerror(errno));
        }
    }
}

/* --- one request -------------------------------------------------------------------------------
 */

static kiln_status broken(const connection *c, kiln_remote_call *call)
{
    bool nonsense = c->redis->err == REDIS_ERR_PROTOCOL;
    return fail(call, nonsense ? KILN_E_CORRUPT : KILN_E_UNAVAILABLE, c->redis->errstr);
}

static kiln_status send_all(connection *c, uint64_t deadline, kiln_remote_call *call)
{
    int done = 0;
    while (!done) {
        kiln_status status = wait_for(c->redis->fd, POLLOUT, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
        if (redisBufferWrite(c->redis, &done) != REDIS_OK) {
            return broken(c, call);
        }
    }
    return KILN_OK;
}

static kiln_status read_reply(connection *c, uint64_t deadline, kiln_remote_call *call,
                              redisReply **out_reply)
{
    void *reply = NULL;
    for (;;) {
        if (redisGetReplyFromReader(c->redis, &reply) != REDIS_OK) {
            return broken(c, call);
        }
        if (reply != NULL) {
            *out_reply = reply;
            return KILN_OK;
        }
        if (c->redis->reader->len - c->redis->reader->pos > c->server->max_bytes + SLACK) {
            return fail(call, KILN_E_CORRUPT, "the answer is larger than max-bytes");
        }
        kiln_status status = wait_for(c->redis->fd, POLLIN, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
        if (redisBufferRead(c->redis) != REDIS_OK) {
            return broken(c, call);
        }
    }
}

/* Sends one command and takes its answer, which must not be an error. */
static kiln_status ask(connection *c, kiln_remote_call *call, uint64_t deadline, int count,
                       const char *const *words, const size_t *sizes, redisReply **out_reply)
{
    /* hiredis does not change them; its declaration says so only half. */
    const char **argv = (const char **)(uintptr_t)words;
    *out_reply = NULL;
    if (redisAppendCommandArgv(c->redis, count, argv, sizes) != REDIS_OK) {
        return fail(call, KILN_E_NOMEM, "out of memory");
    }
    kiln_status status = send_all(c, deadline, call);
    if (status == KILN_OK) {
        status = read_reply(c, deadline, call, out_reply);
    }
    if (*out_reply != NULL && (*out_reply)->type == REDIS_REPLY_ERROR) {
        status = fail(call, KILN_E_IO, (*out_reply)->str);
        freeReplyObject(*out_reply);
        *out_reply = NULL;
    }
    return status;
}

#define MAX_WORDS 8

/* The same for words that are text. */
static kiln_status ask_text(connection *c, kiln_remote_call *call, uint64_t deadline, int count,
                            const char *const *words, redisReply **out_reply)
{
    size_t sizes[MAX_WORDS];
    for (int i = 0; i < count; i++) {
        sizes[i] = strlen(words[i]);
    }
    return ask(c, call, deadline, count, words, sizes, out_reply);
}

static kiln_status nonsense(kiln_remote_call *call, redisReply *reply)
{
    freeReplyObject(reply);
    return fail(call, KILN_E_CORRUPT, "the server's answer makes no sense");
}

static bool is_ok(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0;
}

static bool is_nil(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_NIL;
}

static void name_of(const connection *c, const char *kind, const char *name, char out[NAME_ROOM])
{
    (void)snprintf(out, NAME_ROOM, "%.400s%s%s", c->server->prefix, kind, name);
}

static uint64_t deadline_of(const kiln_remote_call *call)
{
    return now_ms() + call->limit_ms;
}

/* --- bounds ------------------------------------------------------------------------------------
 */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* hiredis believes what a server says of an array's length, and makes room for it. */
static void *make_array(const redisReadTask *task, array_size elements)
{
    const connection *c = task->privdata;
    return elements > MOST_ELEMENTS ? NULL : c->plain.createArray(task, elements);
}

static void bound_replies(connection *c)
{
    c->plain = *c->redis->reader->fn;
    c->bounded = c->plain;
    c->bounded.createArray = make_array;
    c->redis->reader->fn = &c->bounded;
    c->redis->reader->privdata = c;
}

/* --- connect -----------------------------------------------------------------------------------
 */

static void redis_disconnect(void *self)
{
    connection *c = self;
    if (c == NULL) {
        return;
    }
    if (c->redis != NULL) {
        redisFree(c->redis);
    }
    free(c);
}

static kiln_status finish_connect(const connection *c, uint64_t deadline, kiln_remote_call *call)
{
    int error = 0;
    socklen_t size = sizeof error;
    kiln_status status = wait_for(c->redis->fd, POLLOUT, deadline, call);
    if (status != KILN_OK) {
        return status == KILN_E_TIMEOUT ? fail(call, status, "no connection in time") : status;
    }
    if (getsockopt(c->redis->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        return fail(call, KILN_E_UNAVAILABLE, strerror(error != 0 ? error : errno));
    }
    return KILN_OK;
}

static kiln_status log_in(connection *c, uint64_t deadline, kiln_remote_call *call)
{
    const kiln_remote_server *s = c->server;
    const char *password = s->password[0] != '\0' ? s->password : s->token;
    redisReply *reply = NULL;
    kiln_status status = KILN_OK;
    if (password[0] != '\0') {
        const char *words[] = {"AUTH", s->user, password};
        const char *short_words[] = {"AUTH", password};
        bool named = s->user[0] != '\0';
        status = ask_text(c, call, deadline, named ? 3 : 2, named ? words : short_words, &reply);
        if (status == KILN_OK && !is_ok(reply)) {
            return nonsense(call, reply);
        }
        freeReplyObject(reply);
        reply = NULL;
    }
    if (status == KILN_OK && s->path[0] == '/' && s->path[1] != '\0') {
        const char *words[] = {"SELECT", s->path + 1};
        status = ask_text(c, call, deadline, 2, words, &reply);
        if (status == KILN_OK && !is_ok(reply)) {
            return nonsense(call, reply);
        }
        freeReplyObject(reply);
    }
    return status;
}

static kiln_status redis_connect(const kiln_remote_server *server, kiln_remote_call *call,
                                 void **out_connection)
{
    uint64_t deadline = deadline_of(call);
    *out_connection = NULL;
    if (strcmp(server->scheme, "redis") != 0) {
        return fail(call, KILN_E_UNAVAILABLE, "no TLS to Redis here: use a tunnel, or https");
    }
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return fail(call, KILN_E_NOMEM, "out of memory");
    }
    c->server = server;
    c->redis = redisConnectNonBlock(server->host, server->port != 0 ? server->port : DEFAULT_PORT);
    if (c->redis == NULL || c->redis->err != 0) {
        kiln_status status =
            c->redis != NULL ? broken(c, call) : fail(call, KILN_E_NOMEM, "out of memory");
        redis_disconnect(c);
        return status;
    }
    bound_replies(c);
    kiln_status status = finish_connect(c, deadline, call);
    if (status == KILN_OK) {
        status = log_in(c, deadline, call);
    }
    if (status != KILN_OK) {
        redis_disconnect(c);
        return status;
    }
    *out_connection = c;
    return KILN_OK;
}

/* --- requests ----------------------------------------------------------------------------------
 */

static bool to_number(const redisReply *reply, int64_t *out)
{
    char *end = NULL;
    if (reply->type != REDIS_REPLY_STRING) {
        return false;
    }
    errno = 0;
    *out = strtoll(reply->str, &end, 10);
    return errno == 0 && end != reply->str && *end == '\0';
}

static kiln_status redis_ping(void *self, kiln_remote_call *call, int64_t *out_clock_ns)
{
    const char *words[] = {"TIME"};
    redisReply *reply = NULL;
    int64_t seconds = 0, micros = 0;
    kiln_status status = ask_text(self, call, deadline_of(call), 1, words, &reply);
    if (status != KILN_OK) {
        return status;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !to_number(reply->element[0], &seconds) || !to_number(reply->element[1], &micros) ||
        seconds < 0 || seconds > INT64_C(4000000000) || micros < 0 || micros > 999999) {
        return nonsense(call, reply);
    }
    freeReplyObject(reply);
    *out_clock_ns = seconds * INT64_C(1000000000) + micros * 1000;
    return KILN_OK;
}

static kiln_status redis_get(void *self, kiln_remote_call *call, const char *name, void **out_data,
                             size_t *out_size)
{
    connection *c = self;
    char full[NAME_ROOM];
    redisReply *reply = NULL;
    *out_data = NULL;
    *out_size = 0;
    name_of(c, "", name, full);
    const char *words[] = {"GET", full};
    kiln_status status = ask_text(c, call, deadline_of(call), 2, words, &reply);
    if (status != KILN_OK) {
        return status;
    }
    if (reply->type == REDIS_REPLY_NIL) {
        freeReplyObject(reply);
        return KILN_MISS;
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len > c->server->max_bytes) {
        return nonsense(call, reply);
    }
    void *data = malloc(reply->len > 0 ? reply->len : 1);
    if (data != NULL) {
        memcpy(data, reply->str, reply->len);
        *out_data = data;
        *out_size = reply->len;
    }
    freeReplyObject(reply);
    return data != NULL ? KILN_OK : fail(call, KILN_E_NOMEM, "out of memory");
}

static kiln_status redis_put(void *self, kiln_remote_call *call, const char *name, const void *data,
                             size_t size, bool replace)
{
    connection *c = self;
    char full[NAME_ROOM], ttl[24];
    redisReply *reply = NULL;
    name_of(c, "", name, full);
    const char *words[MAX_WORDS] = {"SET", full, data};
    size_t sizes[MAX_WORDS] = {3, strlen(full), size};
    int count = 3;
    if (!replace) {
        words[count] = "NX";
        sizes[count++] = 2;
    }
    if (c->server->ttl_ms > 0) {
        (void)snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)c->server->ttl_ms);
        words[count] = "PX";
        sizes[count++] = 2;
        words[count] = ttl;
        sizes[count++] = strlen(ttl);
    }
    kiln_status status = ask(c, call, deadline_of(call), count, words, sizes, &reply);
    if (status != KILN_OK) {
        return status;
    }
    /* Nil: there is one already. */
    if (!is_ok(reply) && !is_nil(reply)) {
        return nonsense(call, reply);
    }
    freeReplyObject(reply);
    return KILN_OK;
}

static kiln_status one_integer(connection *c, kiln_remote_call *call, int count,
                               const char *const *words)
{
    redisReply *reply = NULL;
    kiln_status status = ask_text(c, call, deadline_of(call), count, words, &reply);
    if (status != KILN_OK) {
        return status;
    }
    if (reply->type != REDIS_REPLY_INTEGER) {
        return nonsense(call, reply);
    }
    status = reply->integer > 0 ? KILN_OK : KILN_MISS;
    freeReplyObject(reply);
    return status;
}

static kiln_status redis_remove(void *self, kiln_remote_call *call, const char *name)
{
    char full[NAME_ROOM];
    name_of(self, "", name, full);
    const char *words[] = {"DEL", full};
    return one_integer(self, call, 2, words);
}

static kiln_status redis_lease(void *self, kiln_remote_call *call, const char *name,
                               const char *token, uint32_t ttl_ms)
{
    char full[NAME_ROOM], ttl[16];
    redisReply *reply = NULL;
    name_of(self, "lease:", name, full);
    (void)snprintf(ttl, sizeof ttl, "%u", (unsigned)ttl_ms);
    const char *words[] = {"SET", full, token, "NX", "PX", ttl};
    kiln_status status = ask_text(self, call, deadline_of(call), 6, words, &reply);
    if (status != KILN_OK) {
        return status;
    }
    if (is_ok(reply) || is_nil(reply)) {
        status = is_ok(reply) ? KILN_OK : KILN_E_BUSY;
        freeReplyObject(reply);
        return status;
    }
    return nonsense(call, reply);
}

/* Only the holder may renew or drop: compare and act in one step. */
static kiln_status redis_renew(void *self, kiln_remote_call *call, const char *name,
                               const char *token, uint32_t ttl_ms)
{
    static const char script[] = "if redis.call('get',KEYS[1])==ARGV[1] then "
                                 "return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";
    char full[NAME_ROOM], ttl[16];
    name_of(self, "lease:", name, full);
    (void)snprintf(ttl, sizeof ttl, "%u", (unsigned)ttl_ms);
    const char *words[] = {"EVAL", script, "1", full, token, ttl};
    return one_integer(self, call, 6, words);
}

static kiln_status redis_drop(void *self, kiln_remote_call *call, const char *name,
                              const char *token)
{
    static const char script[] = "if redis.call('get',KEYS[1])==ARGV[1] then "
                                 "return redis.call('del',KEYS[1]) else return 0 end";
    char full[NAME_ROOM];
    name_of(self, "lease:", name, full);
    const char *words[] = {"EVAL", script, "1", full, token};
    return one_integer(self, call, 5, words);
}

static const kiln_remote_module_ops ops = {
    .abi = KILN_REMOTE_ABI,
    .struct_size = sizeof ops,
    .name = "redis",
    .schemes = "redis rediss",
    .caps = KILN_REMOTE_LEASES | KILN_REMOTE_CLOCK,
    .connect = redis_connect,
    .disconnect = redis_disconnect,
    .ping = redis_ping,
    .get = redis_get,
    .put = redis_put,
    .remove = redis_remove,
    .lease = redis_lease,
    .renew = redis_renew,
    .drop = redis_drop,
};

KILN_API const kiln_remote_module_ops *kiln_remote_module(void);

const kiln_remote_module_ops *kiln_remote_module(void)
{
    return &ops;
}
