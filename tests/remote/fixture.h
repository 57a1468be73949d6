/* What the tests of remotes over real servers share: a server, roots for four machines, and a look
 * at a remote. */
#ifndef KILN_TESTS_REMOTE_FIXTURE_H
#define KILN_TESTS_REMOTE_FIXTURE_H

#include "remote/servers.h"

#include "kiln/unstable/remote.h"

#define PATIENT "timeout=20s&connect-timeout=20s&flush=20s"

typedef struct fixture {
    ks_server server;
    char *dir, *roots[4];
    char url[256];
    bool redis;
} fixture;

static inline int setup_redis(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->redis = true;
    ks_redis(&f->server);
    (void)snprintf(f->url, sizeof f->url, "redis://:s3cr3t@127.0.0.1:%d/2?ttl=1h&" PATIENT,
                   f->server.port);
    f->dir = ks_roots_create(f->roots, 4);
    return 0;
}

static inline int setup_nginx(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    ks_nginx(&f->server);
    (void)snprintf(f->url, sizeof f->url, "http://127.0.0.1:%d/kiln/a?" PATIENT, f->server.port);
    f->dir = ks_roots_create(f->roots, 4);
    return 0;
}

static inline int setup_none(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    f->dir = ks_roots_create(f->roots, 4);
    return 0;
}

static inline int teardown(void **state)
{
    fixture *f = *state;
    ks_end(&f->server);
    ks_roots_remove(f->dir, f->roots, 4);
    free(f);
    return 0;
}

static inline kiln_status keep_report(void *user, const kiln_remote_report *report)
{
    *(kiln_remote_report *)user = *report;
    return KILN_OK;
}

static inline kiln_remote_report check(const char *url)
{
    kiln_remote_report report;
    memset(&report, 0, sizeof report);
    assert_int_equal(kiln_remote_check(url, keep_report, &report, NULL), KILN_OK);
    return report;
}

#endif
