/* A server between a machine and a real one that is honest at first and then is not: for tests of
 * trouble in the middle of traffic. */
#ifndef KILN_TESTS_REMOTE_TURNCOAT_H
#define KILN_TESTS_REMOTE_TURNCOAT_H

#include "remote/servers.h"

typedef enum kt_turn {
    KT_GARBAGE, /* every answer is noise */
    KT_SILENCE, /* nothing is passed on any more */
    KT_CUT,     /* half of an answer, then it hangs up; so does every connection after it */
    KT_SLOW,    /* one byte of the answer every 10 ms */
    KT_FLIP,    /* one bit of each answer is another: what a bad cable does past a checksum */
} kt_turn;

typedef struct kt_turncoat {
    kt_turn turn;
    int real_port, port, listener;
    _Atomic int honest; /* answers until it turns */
    atomic_bool stop;
    atomic_int turned;   /* answers since */
    atomic_int accepted; /* connections */
    pthread_t thread;
} kt_turncoat;

static inline bool kt_send(int s, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(s, data, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* An answer of the real server on its way. False: hang up. */
static inline bool kt_pass_on(kt_turncoat *t, int client, char *data, size_t size)
{
    static const char noise[] = "\x89\xff$7 HTTP/9 nonsense *3\n:\r\n";
    if (atomic_fetch_sub(&t->honest, 1) > 0) {
        return kt_send(client, data, size);
    }
    atomic_fetch_add(&t->turned, 1);
    switch (t->turn) {
    case KT_GARBAGE:
        return kt_send(client, noise, sizeof noise - 1);
    case KT_SILENCE:
        return true;
    case KT_CUT:
        (void)kt_send(client, data, size / 2);
        return false;
    case KT_FLIP:
        data[size / 2] ^= 4;
        return kt_send(client, data, size);
    case KT_SLOW:
        break;
    }
    for (size_t i = 0; i < size && !atomic_load(&t->stop); i++) {
        (void)usleep(10000);
        if (!kt_send(client, data + i, 1)) {
            return false;
        }
    }
    return true;
}

static inline void kt_relay(kt_turncoat *t, int client, int real)
{
    char data[8192];
    struct pollfd both[2] = {{.fd = client, .events = POLLIN}, {.fd = real, .events = POLLIN}};
    while (!atomic_load(&t->stop)) {
        if (poll(both, 2, 20) <= 0) {
            continue;
        }
        for (int i = 0; i < 2; i++) {
            if (both[i].revents == 0) {
                continue;
            }
            ssize_t got = recv(both[i].fd, data, sizeof data, 0);
            if (got <= 0 || !(i == 0 ? kt_send(real, data, (size_t)got)
                                     : kt_pass_on(t, client, data, (size_t)got))) {
                return;
            }
        }
    }
}

typedef struct kt_guest {
    kt_turncoat *turncoat;
    int client;
    pthread_t thread;
} kt_guest;

static inline void *kt_serve(void *user)
{
    const kt_guest *guest = user;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)guest->turncoat->real_port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int real = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(real, (struct sockaddr *)&address, sizeof address) == 0) {
        kt_relay(guest->turncoat, guest->client, real);
    }
    (void)close(real);
    (void)close(guest->client);
    return NULL;
}

static inline void *kt_turncoat_run(void *user)
{
    enum { GUESTS = 256 };
    kt_turncoat *t = user;
    kt_guest *guests = calloc(GUESTS, sizeof *guests);
    size_t count = 0;
    while (!atomic_load(&t->stop) && count < GUESTS) {
        struct pollfd one = {.fd = t->listener, .events = POLLIN};
        if (poll(&one, 1, 20) <= 0) {
            continue;
        }
        int client = accept(t->listener, NULL, NULL);
        guests[count] = (kt_guest){.turncoat = t, .client = client};
        if (client >= 0 &&
            pthread_create(&guests[count].thread, NULL, kt_serve, &guests[count]) == 0) {
            count++;
            atomic_fetch_add(&t->accepted, 1);
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(guests[i].thread, NULL);
    }
    free(guests);
    return NULL;
}

static inline void kt_turncoat_start(kt_turncoat *t, kt_turn turn, int real_port, int honest)
{
    t->turn = turn;
    t->real_port = real_port;
    atomic_init(&t->honest, honest);
    atomic_init(&t->turned, 0);
    atomic_init(&t->accepted, 0);
    atomic_init(&t->stop, false);
    t->listener = ks_listen(0, &t->port);
    assert_int_equal(pthread_create(&t->thread, NULL, kt_turncoat_run, t), 0);
}

static inline void kt_turncoat_end(kt_turncoat *t)
{
    atomic_store(&t->stop, true);
    (void)pthread_join(t->thread, NULL);
    (void)close(t->listener);
}

#endif
