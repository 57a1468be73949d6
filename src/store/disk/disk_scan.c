/* The walk over targets, their 256 directories, and the entries in them. */
#include "store/disk/disk_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "key/recipe.h"
#include "sys/clock.h"
#include "sys/file.h"

#define NAME_LENGTH 67 /* 62 digits and ".kiln" */
#define TICK_STEP 16
#define TICK_NS UINT64_C(20000000)

typedef struct scan {
    kn_disk *disk;
    kn_disk_file_fn *visit;
    void *user;
    kiln_diag *diag;
    const char *target;
    int only;            /* one directory; -1: all */
    const char *prefix;  /* the two digits */
    bool ended;          /* by the visitor */
    kiln_status failure; /* of the first directory that could not be listed */
    char dir[KN_DISK_PATH];
} scan;

static kiln_status scan_entry(void *user, const char *name)
{
    scan *s = user;
    char hex[KILN_KEY_TEXT_SIZE];
    char path[KN_DISK_PATH];
    kn_disk_file file = {.target = s->target, .path = path};
    kn_file_facts facts;
    if (strlen(name) != NAME_LENGTH || strcmp(name + 62, ".kiln") != 0) {
        return KILN_OK;
    }
    kn_text_putf(hex, sizeof hex, "%.2s%.62s", s->prefix, name);
    if (!kn_hex_decode(hex, file.key.bytes, sizeof file.key.bytes)) {
        return KILN_OK;
    }
    kn_disk_entry_path(s->disk, s->target, &file.key, path);
    if (kn_file_stat(path, false, &facts, NULL) != KILN_OK || facts.kind != KN_FILE_REGULAR) {
        return KILN_OK;
    }
    file.size = facts.size;
    file.used_ns = facts.mtime_ns;
    kiln_status status = s->visit(s->user, &file);
    s->ended = status != KILN_OK;
    return status;
}

/* Lists one directory. What is in one that cannot be listed is passed over: the rest must be kept
 * small all the same. */
static kiln_status scan_dir(scan *s, const char *dir, kn_file_visit *visit)
{
    kiln_status status = kn_file_list(dir, visit, s, s->failure == KILN_OK ? s->diag : NULL);
    if (status == KILN_OK || status == KILN_MISS || s->ended) {
        return status == KILN_MISS && !s->ended ? KILN_OK : status;
    }
    s->failure = s->failure == KILN_OK ? status : s->failure;
    return KILN_OK;
}

static kiln_status scan_prefix(void *user, const char *name)
{
    scan *s = user;
    unsigned char byte;
    if (strlen(name) != 2 || !kn_hex_decode(name, &byte, 1)) {
        return KILN_OK;
    }
    char dir[KN_DISK_PATH];
    kn_text_putf(dir, sizeof dir, "%s/%.2s", s->dir, name);
    s->prefix = name;
    return scan_dir(s, dir, scan_entry);
}

static kiln_status scan_target(void *user, const char *name)
{
    scan *s = user;
    if (!kn_target_valid(name)) {
        return KILN_OK;
    }
    s->target = name;
    kn_text_putf(s->dir, sizeof s->dir, "%s/v1/%.64s", s->disk->root, name);
    if (s->only >= 0) {
        char prefix[3];
        kn_text_putf(prefix, sizeof prefix, "%02x", (unsigned)s->only & 0xffu);
        return scan_prefix(s, prefix);
    }
    return scan_dir(s, s->dir, scan_prefix);
}

kiln_status kn_disk_scan(kn_disk *disk, const char *target, int dir, kn_disk_file_fn *visit,
                         void *user, kiln_diag *diag)
{
    scan s = {.disk = disk, .visit = visit, .user = user, .diag = diag, .only = dir};
    kiln_status status;
    if (target != NULL) {
        status = scan_target(&s, target);
    } else {
        char all[KN_DISK_PATH];
        kn_disk_path(disk, "v1", all);
        status = scan_dir(&s, all, scan_target);
    }
    return status == KILN_OK ? s.failure : status;
}

/* --- progress --------------------------------------------------------------------------------- */

static void report_scan(kn_disk_ticker *ticker)
{
    const kn_disk *disk = ticker->disk;
    uint64_t total = ticker->total > ticker->done ? ticker->total : ticker->done;
    disk->progress(disk->progress_user, ticker->done, total);
}

void kn_disk_ticker_start(kn_disk_ticker *ticker, const kn_disk *disk)
{
    kn_record record;
    *ticker = (kn_disk_ticker){.disk = disk->progress != NULL ? disk : NULL};
    /* About as many as the totals say; a guess that is wrong moves the end, not the work. */
    if (ticker->disk != NULL && kn_stats_read(disk->stats, &record, NULL) == KILN_OK) {
        ticker->total = record.files;
    }
}

void kn_disk_tick(kn_disk_ticker *ticker)
{
    ticker->done++;
    if (ticker->disk == NULL || ticker->done % TICK_STEP != 0) {
        return;
    }
    uint64_t now = kn_clock_now();
    if (now - ticker->told_ns >= TICK_NS) {
        ticker->told_ns = now;
        report_scan(ticker);
    }
}

void kn_disk_ticker_end(kn_disk_ticker *ticker)
{
    if (ticker->disk != NULL) {
        ticker->total = ticker->done;
        report_scan(ticker);
    }
}
