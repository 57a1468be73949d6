/* Looking at remotes and making keys: the public half. This file must not know what a server
 * speaks. */
#include "kiln/unstable/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "store/remote/remotes.h"
#include "sys/clock.h"
#include "sys/env.h"
#include "sys/random.h"

/* --- check ------------------------------------------------------------------------------------ */

/* One look at one remote. */
typedef struct inspection {
    kn_remote *remote;
    kn_remote_session session;
    kiln_remote_report *report;
    char name[KN_REMOTE_NAME];
} inspection;

static bool note_outcome(inspection *i, kiln_status status, const char *doing)
{
    if (status != KILN_OK && i->report->why[0] == '\0') {
        const char *why = i->session.call.why;
        kn_text_putf(i->report->why, sizeof i->report->why, "%s: %s", doing,
                     why[0] != '\0' ? why : kiln_status_text(status));
    }
    i->session.call.why[0] = '\0';
    i->session.deadline = kn_clock_now() + i->remote->url.upload_ms * UINT64_C(1000000);
    (void)kn_remote_arm(&i->session);
    return status == KILN_OK;
}

static bool ping_inspected(inspection *i, kiln_status *out_status)
{
    const kiln_remote_module_ops *ops = i->remote->ops;
    for (int n = 0; n < 3; n++) {
        int64_t clock = 0;
        const uint64_t start = kn_clock_now();
        *out_status = ops->ping(i->session.connection, &i->session.call, &clock);
        if (!note_outcome(i, *out_status, "querying it")) {
            return false;
        }
        const uint64_t took = kn_clock_now() - start;
        if (n == 0 || took < i->report->latency_ns) {
            i->report->latency_ns = took;
            i->report->has_clock = (i->remote->ops->caps & KILN_REMOTE_CLOCK) != 0 && clock != 0;
            i->report->clock_ahead_ns =
                i->report->has_clock ? clock + (int64_t)(took / 2) - kn_clock_wall() : 0;
        }
    }
    return true;
}

static void read_and_write(inspection *i)
{
    static const char text[] = "kiln remote check";
    const kiln_remote_module_ops *ops = i->remote->ops;
    void *connection = i->session.connection, *data = NULL;
    kiln_remote_call *call = &i->session.call;
    size_t size = 0;
    bool wrote = false;
    if (i->remote->url.writes) {
        wrote = note_outcome(i, ops->put(connection, call, i->name, text, sizeof text, true),
                             "writing");
    }
    if (i->remote->url.reads) { /* who only writes need not be allowed to read */
        kiln_status status = ops->get(connection, call, i->name, &data, &size);
        const bool same = size == sizeof text && memcmp(data, text, sizeof text) == 0;
        free(data);
        if (wrote) {
            status = status == KILN_MISS || (status == KILN_OK && !same) ? KILN_E_CORRUPT : status;
        } else {
            status = status == KILN_MISS ? KILN_OK : status;
        }
        i->report->readable = note_outcome(i, status, "reading");
    }
    if (wrote) {
        const kiln_status status = ops->remove(connection, call, i->name);
        (void)note_outcome(i, status == KILN_E_UNSUPPORTED ? KILN_OK : status, "removing");
    }
    i->report->writable = wrote && (i->report->readable || !i->remote->url.reads);
}

static void inspect_remote(kn_remote *remote, kiln_remote_report *report)
{
    inspection i = {.remote = remote, .report = report};
    kiln_key key;
    for (size_t n = 0; n < sizeof key.bytes; n += sizeof(uint64_t)) {
        const uint64_t bits = kn_random_u64();
        memcpy(key.bytes + n, &bits, sizeof bits);
    }
    kn_remote_key_name(&key, i.name);
    kiln_status status = kn_remote_enter(remote, remote->url.upload_ms, &i.session);
    /* A server that answers with an error, such as a password that is missing, is there. */
    const bool answers = note_outcome(&i, status, "connecting") && ping_inspected(&i, &status);
    report->reachable = answers || status == KILN_E_IO;
    if (answers) {
        report->leases = (remote->ops->caps & KILN_REMOTE_LEASES) != 0 &&
                         remote->url.lease_ms > 0 && remote->url.reads && remote->url.writes;
        read_and_write(&i);
    }
    /* Whatever became of the last request, nobody else uses this connection. */
    kn_remote_leave(&i.session, KILN_E_UNAVAILABLE);
}

static kiln_status check_one(const char *text, size_t length, kn_stats *stats,
                             const kn_trust *trust, kiln_remote_report *report, kiln_diag *diag)
{
    kn_remote_url url;
    kn_remote *remote = NULL;
    kiln_diag own = KILN_DIAG_INIT;
    memset(report, 0, sizeof *report);
    report->struct_size = sizeof *report;
    kiln_status status = kn_remote_url_parse(text, length, &url, diag);
    if (status != KILN_OK) {
        return status;
    }
    memcpy(report->name, url.shown, sizeof report->name);
    kn_text_put(report->takes, sizeof report->takes,
                url.reads ? kn_trust_describe(trust, url.unsigned_native)
                          : "nothing: the URL says write-only");
    status = kn_remote_open(&url, trust, stats, &remote, &own);
    if (status == KILN_OK) {
        inspect_remote(remote, report);
        kn_remote_close(remote);
    } else {
        kn_text_putf(report->why, sizeof report->why, "%s", own.why);
    }
    kiln_diag_clear(&own);
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

kiln_status kiln_remote_check(const char *list, kiln_remote_report_fn *visit, void *user,
                              kiln_diag *diag)
{
    const char *text = NULL;
    size_t length = 0;
    kn_trust trust;
    list = list != NULL ? list : kn_env_get("KILN_REMOTE");
    kiln_status status = kn_trust_open(&trust, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_stats *stats = calloc(1, sizeof *stats);
    if (stats == NULL) {
        kn_trust_close(&trust);
        return kn_no_memory(diag, "checking remotes");
    }
    kn_stats_init(stats);
    while (status == KILN_OK && list != NULL && kn_remote_url_next(&list, &text, &length)) {
        kiln_remote_report report;
        status = check_one(text, length, stats, &trust, &report, diag);
        if (status == KILN_OK) {
            status = visit(user, &report);
        }
    }
    kn_stats_deinit(stats);
    free(stats);
    kn_trust_close(&trust);
    return status;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void format_public_key(const kn_public_key *public_key, char out[KILN_PUBLIC_KEY_TEXT_SIZE])
{
    static const char word[] = "kiln-ed25519 ";
    _Static_assert(sizeof word + 2 * sizeof(kn_public_key) == KILN_PUBLIC_KEY_TEXT_SIZE,
                   "the text of a public key");
    memcpy(out, word, sizeof word - 1);
    kn_hex_encode(public_key->bytes, sizeof public_key->bytes, out + sizeof word - 1);
}

kiln_status kiln_signing_key_generate(const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE],
                                      kiln_diag *diag)
{
    kn_public_key public_key;
    out_public[0] = '\0';
    kiln_status status = kn_sign_generate(path, &public_key, diag);
    if (status == KILN_OK) {
        format_public_key(&public_key, out_public);
    }
    return status;
}

kiln_status kiln_signing_key_show(const char *path, char out_public[KILN_PUBLIC_KEY_TEXT_SIZE],
                                  kiln_diag *diag)
{
    kn_public_key public_key;
    out_public[0] = '\0';
    kiln_status status = kn_sign_public(path, &public_key, diag);
    if (status == KILN_OK) {
        format_public_key(&public_key, out_public);
    }
    return status;
}
