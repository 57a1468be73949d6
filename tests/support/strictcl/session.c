/* See session.h. */
#include "support/strictcl/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGINS = 16 };

static struct {
    pthread_mutex_t lock;
    kiln_cache *cache;
    kn_header_memo *headers;
    struct {
        const char *origin;
        size_t count;
    } rows[ORIGINS];
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

void session_close(void)
{
    kiln_cache_destroy(session.cache);
    session.cache = NULL;
}

void session_open(const char *root)
{
    kiln_cache_options options;
    session_close();
    memset(session.rows, 0, sizeof(session.rows));
    if (kiln_cache_options_init(&options, NULL) != KILN_OK) {
        abort();
    }
    options.root = root;
    options.flags |= root == NULL ? KILN_CACHE_NO_DISK : 0u;
    options.packs = options.remote = NULL;
    if (kiln_cache_create(&options, &session.cache, NULL) != KILN_OK) {
        abort();
    }
    if (session.headers == NULL) {
        session.headers = kn_header_memo_create();
    }
}

size_t session_count(const char *origin)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&session.lock);
    for (size_t i = 0; i < ORIGINS && session.rows[i].origin != NULL; i++) {
        count += strcmp(session.rows[i].origin, origin) == 0 ? session.rows[i].count : 0;
    }
    (void)pthread_mutex_unlock(&session.lock);
    return count;
}

kiln_cache *kn_session_cache(void)
{
    return session.cache;
}

kn_header_memo *kn_session_headers(void)
{
    return session.headers;
}

/* The origins are literals. */
void kn_session_report(const kn_session_event *event)
{
    size_t i = 0;
    (void)pthread_mutex_lock(&session.lock);
    while (i < ORIGINS - 1 && session.rows[i].origin != NULL &&
           strcmp(session.rows[i].origin, event->origin) != 0) {
        i++;
    }
    session.rows[i].origin = event->origin;
    session.rows[i].count++;
    (void)pthread_mutex_unlock(&session.lock);
}
