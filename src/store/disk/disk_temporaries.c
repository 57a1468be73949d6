/* The temporaries in a root: most have no name, and go with their writers. Where the system cannot
 * do that, and in the moment in which one replaces an entry, they have one: then they count against
 * the cap, and go when their writer is gone. This file must not know what is written to them. */
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "store/disk/disk.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/publish.h"

#define DAY_NS (24 * KN_HOUR_NS)
#define MAKING_NS (KN_HOUR_NS / 20) /* who makes a header ends itself after two minutes */

typedef struct sweep {
    const kn_disk *disk;
    int64_t now_ns;
    bool remove;
    kn_disk_temporaries found;
} sweep;

/* A lock shows whether its writer lives. Nobody writes one entry for an hour, locked or not: a
 * child that was forked meanwhile may hold the lock for longer. What comes from the future cannot
 * be judged by age for long. */
static bool remove_left_over(const sweep *s, const char *path, const kn_file_facts *facts)
{
    const int64_t age = s->now_ns - facts->mtime_ns;
    if (!s->remove) {
        return false;
    }
    if (age > KN_HOUR_NS || age < -DAY_NS) {
        return kn_file_remove(path, NULL) == KILN_OK;
    }
    return kn_publish_reclaim(path) == KILN_OK;
}

static kiln_status sweep_one(void *user, const char *name)
{
    sweep *s = user;
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    if (strlen(name) > 200 || !kn_publish_is_temporary(name)) {
        return KILN_OK; /* a user may have chosen a root with a "tmp" of his own */
    }
    kn_text_putf(path, sizeof path, "%s/tmp/%s", s->disk->root, name);
    if (kn_file_stat(path, false, &facts, NULL) != KILN_OK || facts.kind != KN_FILE_REGULAR) {
        return KILN_OK;
    }
    const uint64_t weight = kn_disk_weight(facts.size);
    if (remove_left_over(s, path, &facts)) {
        s->found.removed++;
        s->found.removed_bytes += weight;
    } else {
        s->found.files++;
        s->found.bytes += weight;
    }
    return KILN_OK;
}

/* What a compiler process that was killed left of a precompiled header, 100 MB and more. Headers
 * are outside the cap, and so are those that are being made; but nobody is at one for so long. */
static kiln_status sweep_header(void *user, const char *name)
{
    sweep *s = user;
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    if (strspn(name, "0123456789abcdef") < KILN_KEY_TEXT_SIZE - 1 || strlen(name) > 200 ||
        !(kn_text_ends(name, ".tmp") || kn_text_ends(name, ".making"))) {
        return KILN_OK;
    }
    kn_text_putf(path, sizeof path, "%s/pch/%s", s->disk->root, name);
    if (kn_file_stat(path, false, &facts, NULL) != KILN_OK || facts.kind != KN_FILE_REGULAR) {
        return KILN_OK;
    }
    const int64_t age = s->now_ns - facts.mtime_ns;
    const bool dead = age > MAKING_NS || age < -DAY_NS;
    const uint64_t weight = kn_disk_weight(facts.size);
    if (dead && s->remove && kn_file_remove(path, NULL) == KILN_OK) {
        s->found.removed++;
        s->found.removed_bytes += weight;
    } else if (dead && !s->remove) {
        s->found.files++;
        s->found.bytes += weight;
    }
    return KILN_OK;
}

static kn_disk_temporaries list_temporaries(const kn_disk *disk, bool remove)
{
    char dir[KN_DISK_PATH];
    sweep s = {.disk = disk, .now_ns = kn_clock_wall(), .remove = remove};
    kn_disk_path(disk, "tmp", dir);
    /* A directory that cannot be listed now is swept another time. */
    (void)kn_file_list(dir, sweep_one, &s, NULL);
    kn_disk_path(disk, "pch", dir);
    (void)kn_file_list(dir, sweep_header, &s, NULL);
    if (s.found.removed > 0) {
        kn_log(KILN_LOG_INFO, "removed %llu temporary files of killed writers from %s",
               (unsigned long long)s.found.removed, disk->root);
    }
    return s.found;
}

kn_disk_temporaries kn_disk_sweep(const kn_disk *disk)
{
    return list_temporaries(disk, true);
}

kn_disk_temporaries kn_disk_count_temporaries(const kn_disk *disk)
{
    return list_temporaries(disk, false);
}
