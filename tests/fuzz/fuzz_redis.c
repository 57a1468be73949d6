/* Any bytes as what a Redis server answers: the first byte chooses what was asked, the rest is the
 * answer, and then the server hangs up. What a lookup gave is believed or not as usual. */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "programs/kiln-remotes/redis.h"
#include "programs/kiln-remotes/wire_socket.h"

#include "fuzz/remote_ask.h"

#define MOST ((size_t)64 << 10) /* a socket's buffer holds that */

static void ask(const kiln_remote_module_ops *ops, void *connection, unsigned what)
{
    kiln_remote_call call = {.limit_ms = 60000};
    const unsigned question = what % (REMOTE_QUESTIONS + 3);
    switch (question) {
    case REMOTE_QUESTIONS:
        (void)ops->lease(connection, &call, REMOTE_NAME, "token", 1000);
        break;
    case REMOTE_QUESTIONS + 1:
        (void)ops->renew(connection, &call, REMOTE_NAME, "token", 1000);
        break;
    case REMOTE_QUESTIONS + 2:
        (void)ops->drop(connection, &call, REMOTE_NAME, "token");
        break;
    default:
        remote_ask(ops, connection, &call, question, (what & 128) != 0);
        break;
    }
    if (memchr(call.why, '\0', sizeof call.why) == NULL || strchr(call.why, '\n') != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *none = "";
    const kiln_remote_server server = {.struct_size = sizeof server,
                                       .scheme = "redis",
                                       .user = none,
                                       .password = none,
                                       .host = none,
                                       .path = none,
                                       .prefix = "kiln:",
                                       .token = none,
                                       .ttl_ms = 1000,
                                       .max_bytes = 4096};
    int ends[2];
    if (size == 0 || size > MOST || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        return 0;
    }
    wire *w = wire_over(ends[0]);
    if (w == NULL) {
        abort();
    }
    void *connection = redis_over(w, &server);
    if (connection == NULL) {
        wire_close(w);
    } else if (write(ends[1], data + 1, size - 1) == (ssize_t)size - 1) {
        (void)shutdown(ends[1], SHUT_WR);
        /* Twice: the second answer is what the first one left over. */
        ask(kiln_remote_module(), connection, data[0]);
        ask(kiln_remote_module(), connection, data[0]);
    }
    if (connection != NULL) {
        kiln_remote_module()->disconnect(connection);
    }
    (void)close(ends[1]);
    return 0;
}
