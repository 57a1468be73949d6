/* Opens the remotes that are configured, and agrees through them on who compiles. */
#include "store/remote/remotes.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/probe.h"

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "key/digest.h"
#include "sized/sized.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"

#define MS UINT64_C(1000000)
#define FIRST_PAUSE (4 * MS)
#define LAST_PAUSE (250 * MS)
#define BOOT_ID 36 /* characters */

/* --- modules ---------------------------------------------------------------------------------- */

static const struct {
    const char *scheme, *module;
} schemes[] = {
    {"redis", KN_MODULE_FILE("redis")}, {"rediss", KN_MODULE_FILE("redis")},
    {"http", KN_MODULE_FILE("http")},   {"https", KN_MODULE_FILE("http")},
    {"s3", KN_MODULE_FILE("http")},
};

static const char *module_for(const char *scheme)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(schemes[i].scheme, scheme) == 0) {
            return schemes[i].module;
        }
    }
    return NULL;
}

/* The module's table as this library knows it, or NULL. */
static const kiln_remote_module_ops *view_module(const kiln_remote_module_ops *ops,
                                                 kiln_remote_module_ops *room)
{
    return ops != NULL && ops->abi == KILN_REMOTE_ABI
               ? kn_sized_view(KN_SIZED(kiln_remote_module_ops), ops, room, NULL)
               : NULL;
}

static bool is_whole(const kiln_remote_module_ops *ops)
{
    return ops->connect != NULL && ops->disconnect != NULL && ops->ping != NULL &&
           ops->get != NULL && ops->put != NULL && ops->remove != NULL &&
           (!(ops->caps & KILN_REMOTE_LEASES) ||
            (ops->lease != NULL && ops->renew != NULL && ops->drop != NULL));
}

kiln_status kn_remote_open(kn_remote_url *url, const kn_trust *trust, kn_stats *stats,
                           kn_remote **out_remote, kiln_diag *diag)
{
    kn_dylib *module = NULL;
    kiln_remote_module_fn *get_ops = NULL;
    kiln_probe_outcome outcome;
    const char *name = module_for(url->server.scheme);
    char *path = name != NULL ? kn_paths_module(name) : NULL;
    *out_remote = NULL;
    kiln_status status = KILN_OK;
    if (path == NULL) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                               name != NULL ? "install it, or set KILN_LIBEXEC to its directory"
                                            : "redis, rediss, http, https and s3 are known",
                               url->shown, name != NULL ? "%s is not there" : "%s: no such scheme",
                               name != NULL ? name : url->server.scheme);
    } else {
        status = kn_dylib_open_apart(path, &module, &outcome, diag);
    }
    if (status == KILN_OK) {
        void *symbol = kn_dylib_symbol(module, "kiln_remote_module");
        memcpy(&get_ops, &symbol, sizeof get_ops);
        kiln_remote_module_ops room;
        const kiln_remote_module_ops *ops = view_module(get_ops != NULL ? get_ops() : NULL, &room);
        if (ops == NULL || !is_whole(ops)) {
            status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the one of this kiln", path,
                                   "it is a module of another version");
        } else {
            status = kn_remote_open_with(url, ops, trust, stats, out_remote, diag);
        }
    }
    free(path);
    kn_remote_url_deinit(url);
    if (*out_remote == NULL) {
        kn_dylib_close(module);
        return status;
    }
    (*out_remote)->module = module;
    return status;
}

/* --- the list --------------------------------------------------------------------------------- */

static kiln_status open_one_remote(kn_remotes *remotes, const char *text, size_t length,
                                   kn_stats *stats, kiln_diag *diag)
{
    kn_remote_url url;
    kiln_diag own = KILN_DIAG_INIT;
    if (remotes->count == KN_REMOTES_MAX) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "KILN_REMOTE", "more than %d remotes",
                             KN_REMOTES_MAX);
    }
    kiln_status status = kn_remote_url_parse(text, length, &url, diag);
    if (status != KILN_OK) {
        return status;
    }
    char shown[sizeof url.shown];
    memcpy(shown, url.shown, sizeof shown);
    kn_remote *remote = NULL;
    status = kn_remote_open(&url, &remotes->trust, stats, &remote, &own);
    if (remote != NULL) {
        remotes->list[remotes->count++] = remote;
    } else if (status != KILN_E_NOMEM) {
        kn_log_once(KILN_LOG_WARN, "continuing without the remote %s: %s%s%s", shown, own.why,
                    own.fix[0] != '\0' ? "; " : "", own.fix);
        status = KILN_OK;
    }
    kiln_diag_clear(&own);
    return status;
}

static void close_all(kn_remotes *remotes)
{
    for (size_t i = 0; i < remotes->count; i++) {
        kn_remote_close(remotes->list[i]);
    }
    remotes->count = 0;
}

kiln_status kn_remotes_open(const char *list, kn_stats *stats, const char *root,
                            kn_remotes **out_remotes, kiln_diag *diag)
{
    const char *text = NULL;
    size_t length = 0;
    *out_remotes = NULL;
    if (list == NULL || list[strspn(list, " \t\r\n")] == '\0') {
        return KILN_OK;
    }
    kn_remotes *remotes = calloc(1, sizeof *remotes);
    if (remotes == NULL) {
        return kn_no_memory(diag, "opening remotes");
    }
    remotes->root = root;
    kiln_status status = kn_trust_open(&remotes->trust, diag);
    while (status == KILN_OK && kn_remote_url_next(&list, &text, &length)) {
        status = open_one_remote(remotes, text, length, stats, diag);
    }
    if (status == KILN_OK && remotes->trust.policy == KN_TRUST_SIGNED &&
        !kn_signer_trusts_any(remotes->trust.signer)) {
        kn_log_once(KILN_LOG_WARN, "KILN_TRUST=signed and no key in KILN_TRUSTED_KEYS: nothing "
                                   "from a remote will be used");
    }
    if (status != KILN_OK) {
        close_all(remotes);
        kn_remotes_destroy(remotes);
        return status;
    }
    *out_remotes = remotes;
    return KILN_OK;
}

kn_tier kn_remotes_tier(const kn_remotes *remotes, size_t index)
{
    kn_remote *remote = remotes->list[index];
    return (kn_tier){kn_remote_tier(remote), remote};
}

void kn_remotes_given(kn_remotes *remotes, size_t count, bool taken)
{
    if (remotes == NULL) {
        return;
    }
    for (size_t i = count; i < remotes->count; i++) {
        kn_remote_close(remotes->list[i]);
    }
    remotes->count = taken ? count : 0;
}

void kn_remotes_destroy(kn_remotes *remotes)
{
    if (remotes != NULL) {
        kn_trust_close(&remotes->trust);
        free(remotes);
    }
}

void kn_remotes_flush(kn_remotes *remotes)
{
    for (size_t i = 0; remotes != NULL && i < remotes->count; i++) {
        kn_remote_flush(remotes->list[i]);
    }
}

void kn_remotes_finish(kn_remotes *remotes)
{
    const uint64_t started = kn_clock_now();
    for (size_t i = 0; remotes != NULL && i < remotes->count; i++) {
        kn_remote_finish(remotes->list[i], started);
    }
}

/* --- leases ----------------------------------------------------------------------------------- */

/* A quarter more or less, so that many who wait do not ask in step. */
static uint64_t with_jitter(uint64_t pause)
{
    return pause - pause / 4 + kn_random_u64() % (pause / 2);
}

/* The same for all processes of this host, since it started, that have this root; others cannot
 * have it. False where the system does not say. */
static bool name_lease(const char *root, const kiln_key *key, char token[KN_REMOTE_TOKEN])
{
    struct {
        unsigned char boot[BOOT_ID + 4];
        uint64_t device, inode;
        kiln_key key;
    } of;
    uint8_t digest[KN_DIGEST_SIZE];
    kn_file_facts facts;
    kn_file *boot = NULL;
    memset(&of, 0, sizeof of);
    bool good = root != NULL && kn_file_stat(root, false, &facts, NULL) == KILN_OK &&
                kn_file_open("/proc/sys/kernel/random/boot_id", false, &boot, NULL) == KILN_OK &&
                kn_file_read_at(boot, 0, of.boot, BOOT_ID) == KILN_OK;
    if (good) {
        of.device = facts.device;
        of.inode = facts.inode;
        of.key = *key;
        good = kn_digest_of(&of, sizeof of, digest);
    }
    kn_file_close(boot);
    if (good) {
        kn_hex_encode(digest, (KN_REMOTE_TOKEN - 1) / 2, token);
    }
    return good;
}

/* On one remote. `token` NULL: any. */
static kiln_status lease_of(kn_remote *remote, const kiln_key *key, const char *token,
                            uint64_t deadline, kn_remotes_look *look, void *user)
{
    const uint64_t start = kn_clock_now();
    uint64_t pause = FIRST_PAUSE;
    bool waited = false;
    for (;;) {
        kiln_status status =
            token != NULL ? kn_remote_lease_as(remote, key, token) : kn_remote_lease(remote, key);
        if (status == KILN_E_TIMEOUT) {
            return KILN_E_UNAVAILABLE; /* the server's: nobody has been waited for */
        }
        if (status != KILN_OK && status != KILN_E_BUSY) {
            return status;
        }
        /* The one before may have finished between our look and our lease. */
        kn_remote_forget_miss(remote, key);
        if (look(user)) {
            if (status == KILN_OK) {
                kn_remote_lease_drop(remote, key);
            }
            return KILN_MISS;
        }
        if (status == KILN_OK) {
            return KILN_OK;
        }
        if (kn_clock_now() >= deadline) {
            return KILN_E_TIMEOUT;
        }
        kn_stats_add(remote->stats, KN_COUNT_remote_waits, !waited);
        waited = true;
        const uint64_t slept = kn_clock_now();
        kn_clock_sleep(with_jitter(pause));
        kn_remote_waited(remote, kn_clock_now() - slept);
        /* An eighth of what was waited: nobody is much later than need be, and the server has rest.
         */
        pause = (kn_clock_now() - start) / 8;
        pause = pause > FIRST_PAUSE ? pause : FIRST_PAUSE;
        pause = pause < LAST_PAUSE ? pause : LAST_PAUSE;
    }
}

kiln_status kn_remotes_lease(kn_remotes *remotes, const kiln_key *key, bool alone,
                             uint64_t deadline, kn_remotes_look *look, void *user)
{
    char token[KN_REMOTE_TOKEN];
    const bool named = alone && remotes != NULL && name_lease(remotes->root, key, token);
    kiln_status status = KILN_E_UNSUPPORTED;
    for (size_t i = 0; remotes != NULL && i < remotes->count; i++) {
        status = lease_of(remotes->list[i], key, named ? token : NULL, deadline, look, user);
        if (status == KILN_OK || status == KILN_MISS || status == KILN_E_TIMEOUT) {
            break;
        }
    }
    return status;
}

void kn_remotes_lease_drop(kn_remotes *remotes, const kiln_key *key)
{
    for (size_t i = 0; remotes != NULL && i < remotes->count; i++) {
        kn_remote_lease_drop(remotes->list[i], key);
    }
}
