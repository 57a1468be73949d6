/* The module for Redis and Valkey: entries and leases. hiredis frames commands and takes answers
 * apart; the bytes travel over a wire of our own. A loadable library of its own: it knows
 * kiln/sys/remote.h and nothing else of kiln. */
#include "redis.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "wire.h"

#define DEFAULT_PORT 6379
#define CHUNK 16384
#define SLACK ((size_t)64 << 10)
#define NAME_ROOM 512

#define MOST_ELEMENTS 2                  /* of anything that is asked for here */
#define MOST_BYTES ((uint64_t)512 << 20) /* of a value: proto-max-bulk-len */

typedef struct connection {
    wire *wire;
    redisReader *reader;
    const kiln_remote_server *server;
    redisReplyObjectFunctions plain, bounded; /* what makes replies: hiredis's own, and ours */
    bool too_many;                            /* elements, in an answer */
    bool too_large;                           /* a value that says so itself */
} connection;

#define fail wire_fail

/* --- one request ------------------------------------------------------------------------------ */

static kiln_status fail_unreadable(const connection *c, kiln_remote_call *call)
{
    if (c->too_many) {
        return fail(call, KILN_E_CORRUPT, "the reply has more parts than were requested");
    }
    return fail(call, c->reader->err == REDIS_ERR_OOM ? KILN_E_NOMEM : KILN_E_CORRUPT,
                c->reader->errstr);
}

/* An answer that does not end. One that is a value begins with its length, after its type. */
static kiln_status fail_endless(connection *c, kiln_remote_call *call)
{
    const redisReader *r = c->reader;
    char digits[24] = "";
    const size_t size = r->len - r->pos;
    memcpy(digits, r->buf + r->pos, size < sizeof digits - 1 ? size : sizeof digits - 1);
    const unsigned long long length = strtoull(digits, NULL, 10);
    c->too_large = length > c->server->max_bytes && length <= MOST_BYTES;
    return fail(call, KILN_E_CORRUPT, "the response is larger than max-bytes");
}

static kiln_status read_reply(connection *c, uint64_t deadline, kiln_remote_call *call,
                              redisReply **out_reply)
{
    char chunk[CHUNK];
    void *reply = NULL;
    for (;;) {
        if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
            return fail_unreadable(c, call);
        }
        if (reply != NULL) {
            *out_reply = reply;
            return KILN_OK;
        }
        if (c->reader->len - c->reader->pos > c->server->max_bytes + SLACK) {
            return fail_endless(c, call);
        }
        size_t size = 0;
        kiln_status status = wire_receive(c->wire, chunk, sizeof chunk, &size, deadline, call);
        if (status != KILN_OK) {
            return status;
        }
        if (redisReaderFeed(c->reader, chunk, size) != REDIS_OK) {
            return fail_unreadable(c, call);
        }
    }
}

/* Sends one command and takes its answer, which must not be an error. */
static kiln_status ask_server(connection *c, kiln_remote_call *call, uint64_t deadline, int count,
                              const char *const *words, const size_t *sizes, redisReply **out_reply)
{
    /* hiredis does not change them; its declaration says so only half. */
    const char **argv = (const char **)(uintptr_t)words;
    char *command = NULL;
    *out_reply = NULL;
    if (c->wire == NULL) {
        return fail(call, KILN_E_UNAVAILABLE, "the connection was closed after an error");
    }
    /* An int until hiredis 1. */
    const long long length = redisFormatCommandArgv(&command, count, argv, sizes);
    if (length < 0) {
        return fail(call, KILN_E_NOMEM, "out of memory");
    }
    kiln_status status = wire_send(c->wire, command, (size_t)length, deadline, call);
    redisFreeCommand(command);
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
    return ask_server(c, call, deadline, count, words, sizes, out_reply);
}

static kiln_status fail_unexpected(kiln_remote_call *call, redisReply *reply)
{
    freeReplyObject(reply);
    return fail(call, KILN_E_CORRUPT, "the reply does not follow the Redis protocol");
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
    return wire_now() + call->limit_ms;
}

/* --- bounds ----------------------------------------------------------------------------------- */

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

/* hiredis believes what a server says of an array's length, and makes room for it. */
static void *make_array(const redisReadTask *task, array_size elements)
{
    connection *c = task->privdata;
    c->too_many = c->too_many || elements > MOST_ELEMENTS;
    return c->too_many ? NULL : c->plain.createArray(task, elements);
}

static void bound_replies(connection *c)
{
    c->plain = *c->reader->fn;
    c->bounded = c->plain;
    c->bounded.createArray = make_array;
    c->reader->fn = &c->bounded;
    c->reader->privdata = c;
}

/* --- connect ---------------------------------------------------------------------------------- */

static void redis_disconnect(void *self)
{
    connection *c = self;
    if (c == NULL) {
        return;
    }
    if (c->reader != NULL) {
        redisReaderFree(c->reader);
    }
    wire_close(c->wire);
    free(c);
}

/* Takes `w` over when that works. */
static connection *make_connection(const kiln_remote_server *server, wire *w)
{
    connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->server = server;
    c->reader = redisReaderCreate();
    if (c->reader == NULL) {
        free(c);
        return NULL;
    }
    c->wire = w;
    bound_replies(c);
    return c;
}

void *redis_over(struct wire *w, const kiln_remote_server *server)
{
    return make_connection(server, w);
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
            return fail_unexpected(call, reply);
        }
        freeReplyObject(reply);
        reply = NULL;
    }
    if (status == KILN_OK && s->path[0] == '/' && s->path[1] != '\0') {
        const char *words[] = {"SELECT", s->path + 1};
        status = ask_text(c, call, deadline, 2, words, &reply);
        if (status == KILN_OK && !is_ok(reply)) {
            return fail_unexpected(call, reply);
        }
        freeReplyObject(reply);
    }
    return status;
}

static kiln_status redis_connect(const kiln_remote_server *server, kiln_remote_call *call,
                                 void **out_connection)
{
    const uint64_t deadline = deadline_of(call);
    const uint16_t port = server->port != 0 ? server->port : DEFAULT_PORT;
    wire *w = NULL;
    *out_connection = NULL;
    kiln_status status =
        wire_connect(server, port, strcmp(server->scheme, "rediss") == 0, deadline, call, &w);
    if (status != KILN_OK) {
        return status;
    }
    connection *c = make_connection(server, w);
    if (c == NULL) {
        wire_close(w);
        return fail(call, KILN_E_NOMEM, "out of memory");
    }
    status = log_in(c, deadline, call);
    if (status != KILN_OK) {
        redis_disconnect(c);
        return status;
    }
    *out_connection = c;
    return KILN_OK;
}

/* --- requests --------------------------------------------------------------------------------- */

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
        return fail_unexpected(call, reply);
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
    c->too_large = false;
    kiln_status status = ask_text(c, call, deadline_of(call), 2, words, &reply);
    if (c->too_large) { /* the rest of it is not waited for: the next request needs a new connection
                         */
        wire_close(c->wire);
        c->wire = NULL;
        return KILN_E_UNSUPPORTED;
    }
    if (status != KILN_OK) {
        return status;
    }
    if (reply->type == REDIS_REPLY_NIL) {
        freeReplyObject(reply);
        return KILN_MISS;
    }
    if (reply->type != REDIS_REPLY_STRING) {
        return fail_unexpected(call, reply);
    }
    if (reply->len > c->server->max_bytes) {
        freeReplyObject(reply);
        return fail(call, KILN_E_UNSUPPORTED, "the response is larger than max-bytes");
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
    kiln_status status = ask_server(c, call, deadline_of(call), count, words, sizes, &reply);
    if (status != KILN_OK) {
        return status;
    }
    /* Nil: there is one already. */
    if (!is_ok(reply) && !is_nil(reply)) {
        return fail_unexpected(call, reply);
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
        return fail_unexpected(call, reply);
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
    return fail_unexpected(call, reply);
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

const kiln_remote_module_ops *kiln_remote_module(void)
{
    return &ops;
}
