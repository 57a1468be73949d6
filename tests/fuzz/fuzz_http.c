/* Any bytes as what a web server answers: the first byte chooses what was asked, the rest is the
 * answer, and then the server hangs up. What a lookup gave is believed or not as usual. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "programs/kiln-remotes/http.h"

#include "fuzz/remote_ask.h"

#define MOST ((size_t)64 << 10)

static void ask(const kiln_remote_module_ops *ops, void *connection, unsigned what)
{
    kiln_remote_call call = {.limit_ms = 60000};
    remote_ask(ops, connection, &call, what % REMOTE_QUESTIONS, (what & 128) != 0);
    if (memchr(call.why, '\0', sizeof call.why) == NULL) {
        abort();
    }
}

/* A server at a local socket: a connection is given the answer and its end, until it is asked to
 * stop. */
typedef struct speaker {
    const uint8_t *data;
    size_t size;
    int listener, stop[2];
    char path[108];
    pthread_t thread;
} speaker;

static void speak(const speaker *s, int client)
{
    char heard[4096];
    size_t at = 0;
    while (at < s->size) {
        ssize_t sent = send(client, s->data + at, s->size - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            break;
        }
        at += (size_t)sent;
    }
    (void)shutdown(client, SHUT_WR);
    while (recv(client, heard, sizeof heard, 0) > 0) {
    }
    (void)close(client);
}

static void *run(void *user)
{
    const speaker *s = user;
    struct pollfd both[2] = {{.fd = s->listener, .events = POLLIN},
                             {.fd = s->stop[0], .events = POLLIN}};
    while (poll(both, 2, -1) > 0 && both[1].revents == 0) {
        int client = accept(s->listener, NULL, NULL);
        if (client >= 0) {
            speak(s, client);
        }
    }
    return NULL;
}

static bool start(speaker *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(s->path, sizeof s->path, "/tmp/kiln-fuzz-http-%d", (int)getpid());
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", s->path);
    (void)unlink(s->path);
    s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    return pipe(s->stop) == 0 &&
           bind(s->listener, (struct sockaddr *)&address, sizeof address) == 0 &&
           listen(s->listener, 8) == 0 && pthread_create(&s->thread, NULL, run, s) == 0;
}

static void end(speaker *s)
{
    (void)close(s->stop[1]); /* heard as an end of it */
    (void)pthread_join(s->thread, NULL);
    (void)close(s->stop[0]);
    (void)close(s->listener);
    (void)unlink(s->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *none = "";
    const kiln_remote_server server = {.struct_size = sizeof server,
                                       .scheme = "http",
                                       .user = none,
                                       .password = none,
                                       .host = "server",
                                       .path = none,
                                       .prefix = none,
                                       .token = none,
                                       .ca_file = none,
                                       .cert_file = none,
                                       .key_file = none,
                                       .region = none,
                                       .endpoint = none,
                                       .layout = "subdirs",
                                       .connect_ms = 60000,
                                       .max_bytes = 4096};
    kiln_remote_call call = {.limit_ms = 60000};
    void *connection = NULL;
    speaker s = {.data = data + 1, .size = size - 1};
    if (size == 0 || size > MOST || !start(&s)) {
        return 0;
    }
    if (http_connect_local(s.path, &server, &call, &connection) == KILN_OK) {
        ask(kiln_remote_module(), connection, data[0]);
        ask(kiln_remote_module(), connection, data[0]);
        kiln_remote_module()->disconnect(connection);
    }
    end(&s);
    return 0;
}
