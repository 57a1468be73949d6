/* The disk tier's get, put and remove. This file must not know other tiers, nor who asks. */
#include "store/disk/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/stages.h"
#include "base/text.h"
#include "key/recipe.h"
#include "store/disk/disk_entry.h"
#include "store/disk/kin.h"
#include "store/disk/losses.h"
#include "store/format/entry.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/publish.h"

#define FRESH_LISTING_NS INT64_C(2000000000)
#define HITS_TO_HOLD 4u
#define JANITOR_GRACE_NS UINT64_C(250000000)

static const char tag[] =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This directory is a cache of compiled GPU kernels made by kiln. It can be removed at any "
    "time.\n"
    "# Backup programs that know https://bford.info/cachedir/ leave it out.\n";

/* Who owns the root decides whose entries are read. */
static void disk_facts(kn_disk *disk)
{
    kn_file_facts facts;
    if (kn_file_stat(disk->root, false, &facts, NULL) == KILN_OK) {
        disk->root_inode = facts.inode;
        disk->root_device = facts.device;
        atomic_store(&disk->owner, facts.owner);
    }
}

kiln_status kn_disk_open(const kn_disk_options *options, kn_stats *stats, kn_disk **out_disk,
                         kiln_diag *diag)
{
    *out_disk = NULL;
    if (strlen(options->root) > KN_DISK_ROOT) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "choose a shorter path", "opening the cache",
                             "its path has more than %d bytes", KN_DISK_ROOT);
    }
    kn_disk *disk = calloc(1, sizeof *disk);
    char *root = kn_text_copy(options->root);
    if (disk == NULL || root == NULL) {
        free(disk);
        free(root);
        return kn_no_memory(diag, "opening the cache");
    }
    disk->root = root;
    disk->root_length = strlen(root);
    disk->max_bytes = options->max_bytes;
    disk->max_files = options->max_files;
    disk->min_free = options->min_free;
    disk->max_age_ns = options->max_age_ns;
    disk->read_only = options->read_only;
    disk->sync = options->sync;
    disk->stats = stats;
    atomic_init(&disk->owner, UINT32_MAX); /* unknown, until there is a root */
    kn_mutex_init(&disk->mutex);
    kn_cond_init(&disk->janitor.changed);
    disk->janitor.grace_ns = JANITOR_GRACE_NS;
    disk_facts(disk);
    *out_disk = disk;
    return KILN_OK;
}

void kn_disk_close(kn_disk *disk)
{
    if (disk == NULL) {
        return;
    }
    kn_disk_janitor_end(disk);
    kn_cond_deinit(&disk->janitor.changed);
    kn_disk_target *target = atomic_load(&disk->targets);
    while (target != NULL) {
        kn_disk_target *next = target->next;
        kn_held_dir_close(atomic_load(&target->dir));
        free(target);
        target = next;
    }
    kn_mutex_deinit(&disk->mutex);
    free(disk->root);
    free(disk);
}

/* --- paths ------------------------------------------------------------------------------------ */

static char *append_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

/* "ab/cdef.kiln". Not by a format, which costs a hit as much as its system calls for opening and
 * closing. */
static void put_name(char *at, const kiln_key *key)
{
    char hex[KILN_KEY_TEXT_SIZE];
    kiln_key_format(key, hex);
    at = append_text(at, hex, 2);
    *at++ = '/';
    at = append_text(at, hex + 2, KILN_KEY_TEXT_SIZE - 3);
    (void)append_text(at, ".kiln", sizeof ".kiln");
}

void kn_disk_entry_path(const kn_disk *disk, const char *target, const kiln_key *key,
                        char path[KN_DISK_PATH])
{
    char *at = append_text(path, disk->root, disk->root_length); /* at most KN_DISK_ROOT */
    at = append_text(at, "/v1/", 4);
    const size_t target_length = strlen(target);
    at = append_text(at, target,
                     target_length < KN_TARGET_LENGTH ? target_length : KN_TARGET_LENGTH);
    *at++ = '/';
    put_name(at, key);
}

void kn_disk_path(const kn_disk *disk, const char *name, char path[KN_DISK_PATH])
{
    kn_text_putf(path, KN_DISK_PATH, "%s/%s", disk->root, name);
}

uint64_t kn_disk_weight(uint64_t file_size)
{
    return (file_size + KN_DISK_BLOCK - 1) / KN_DISK_BLOCK * KN_DISK_BLOCK;
}

/* --- targets ---------------------------------------------------------------------------------- */

static kn_disk_target *find_target(kn_disk *disk, const char *name)
{
    kn_disk_target *target = atomic_load(&disk->targets);
    while (target != NULL && strcmp(target->name, name) != 0) {
        target = target->next;
    }
    return target;
}

/* With the mutex held. Out of memory: its entries are not found by key alone. */
static kiln_status add_target(void *user, const char *name)
{
    kn_disk *disk = user;
    if (kn_target_valid(name) && find_target(disk, name) == NULL) {
        kn_disk_target *target = calloc(1, sizeof *target);
        if (target != NULL) {
            kn_text_put(target->name, sizeof target->name, name);
            target->next = atomic_load(&disk->targets);
            atomic_store(&disk->targets, target);
        }
    }
    return KILN_OK;
}

kn_disk_target *kn_disk_need_target(kn_disk *disk, const char *name)
{
    kn_disk_target *target = find_target(disk, name);
    if (target == NULL) {
        kn_mutex_lock(&disk->mutex);
        (void)add_target(disk, name);
        kn_mutex_unlock(&disk->mutex);
        target = find_target(disk, name);
    }
    return target;
}

/* Lists the targets again if their directory may have changed. A change in the same tick of the
 * file system's clock as the listing would not show: a directory that was young then is listed
 * again. */
static void refresh_targets(kn_disk *disk)
{
    char dir[KN_DISK_PATH];
    kn_file_facts facts;
    kn_disk_path(disk, "v1", dir);
    kn_mutex_lock(&disk->mutex);
    if (kn_file_stat(dir, true, &facts, NULL) == KILN_OK &&
        (facts.mtime_ns != disk->listed_mtime_ns ||
         disk->listed_at_ns - facts.mtime_ns < FRESH_LISTING_NS)) {
        disk->listed_mtime_ns = facts.mtime_ns;
        disk->listed_at_ns = kn_clock_wall();
        /* What could not be listed now is looked for again at the next miss. */
        if (kn_file_list(dir, add_target, disk, NULL) != KILN_OK) {
            disk->listed_mtime_ns = 0;
        }
    }
    kn_mutex_unlock(&disk->mutex);
}

/* Calls `try_target` for the targets known, and then for those that have come since, until one has
 * an answer. A directory that cannot be read is none: it counts where no other has one. */
typedef kiln_status target_fn(kn_disk *disk, const char *target, void *user);
static kiln_status each_between(kn_disk *disk, kn_disk_target *first, const kn_disk_target *end,
                                target_fn *try_target, void *user)
{
    kiln_status status = KILN_MISS;
    for (kn_disk_target *t = first; t != end; t = t->next) {
        kiln_status here = try_target(disk, t->name, user);
        if (here != KILN_MISS && here != KILN_E_IO) {
            return here;
        }
        status = here == KILN_E_IO ? here : status;
    }
    return status;
}

static kiln_status each_target(kn_disk *disk, target_fn *try_target, void *user)
{
    kn_disk_target *known = atomic_load(&disk->targets);
    kiln_status status = each_between(disk, known, NULL, try_target, user);
    if (status == KILN_MISS || status == KILN_E_IO) {
        refresh_targets(disk);
        kiln_status later =
            each_between(disk, atomic_load(&disk->targets), known, try_target, user);
        status = later == KILN_MISS ? status : later;
    }
    return status;
}

typedef struct location {
    const kiln_key *key;
    const char *target;
} location;

static kiln_status try_locate(kn_disk *disk, const char *target, void *user)
{
    location *where = user;
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    kn_disk_entry_path(disk, target, where->key, path);
    kiln_status status = kn_file_stat(path, false, &facts, NULL);
    where->target = status == KILN_OK ? target : NULL;
    return status == KILN_OK ? KILN_OK : KILN_MISS;
}

const char *kn_disk_locate(kn_disk *disk, const kiln_key *key)
{
    location where = {.key = key, .target = NULL};
    return each_target(disk, try_locate, &where) == KILN_OK ? where.target : NULL;
}

/* --- get -------------------------------------------------------------------------------------- */

/* Moves the stamp of an entry that is in use, at most once an hour; one from the future as well. */
static void stamp_entry(kn_disk *disk, const char *path, int64_t used_ns)
{
    int64_t age = kn_clock_wall_roughly() - used_ns;
    if (!disk->read_only && (age > KN_HOUR_NS || age < -KN_HOUR_NS) && kn_disk_root_stands(disk)) {
        /* Without it the entry only looks older than it is. */
        (void)kn_file_touch(path);
    }
}

void kn_disk_stamp(kn_disk *disk, const kiln_key *key)
{
    char path[KN_DISK_PATH];
    kn_file_facts facts;
    const char *target = disk->read_only ? NULL : kn_disk_locate(disk, key);
    if (target != NULL) {
        kn_disk_entry_path(disk, target, key, path);
        if (kn_file_stat(path, false, &facts, NULL) == KILN_OK) {
            stamp_entry(disk, path, facts.mtime_ns);
        }
    }
}

typedef struct lookup {
    const kiln_key *key;
    kiln_blob **out_blob;
    kiln_diag *diag;
} lookup;

/* Removes what is in an entry's place; with `seen`, only if that is what still lies there: others
 * that met the same damage may have put a good one in its place. False if it stays. */
static bool drop_file(kn_disk *disk, const char *path, const kn_file_facts *seen)
{
    kn_file_facts now;
    const uint32_t counts = kn_stats_counts(disk->stats);
    if (disk->read_only || !kn_disk_root_stands(disk) ||
        (seen != NULL && (kn_file_stat(path, false, &now, NULL) != KILN_OK ||
                          now.inode != seen->inode || now.device != seen->device)) ||
        (kn_file_remove(path, NULL) != KILN_OK && kn_file_remove_dir(path) != KILN_OK)) {
        return false;
    }
    const uint64_t weight = seen != NULL ? kn_disk_weight(seen->size) : 0;
    kn_stats_departed(disk->stats, &(kn_departure){.counts = counts, .files = 1, .bytes = weight});
    return true;
}

/* After some hits: a program that reads one kernel has no use for it. */
static void hold_open(kn_disk *disk, const char *name, kn_disk_target *target)
{
    char path[KN_DISK_PATH];
    kn_held_dir *dir = NULL;
    if (target == NULL) {
        (void)kn_disk_need_target(disk, name);
    } else if (atomic_fetch_add_explicit(&target->hits, 1, memory_order_relaxed) + 1 ==
               HITS_TO_HOLD) {
        kn_text_putf(path, sizeof path, "%s/v1/%.64s", disk->root, target->name);
        if (kn_held_dir_open(path, &dir, NULL) == KILN_OK) {
            atomic_store(&target->dir, dir);
        }
    }
}

/* By the directory that is held open, and by the path where that does not have it. */
static kiln_status open_target_entry(kn_disk *disk, const char *name, const kiln_key *key,
                                     const char *path, kn_disk_entry *out_entry, kiln_diag *diag)
{
    kn_disk_target *target = find_target(disk, name);
    const kn_held_dir *dir =
        target != NULL && !atomic_load_explicit(&target->stale, memory_order_relaxed)
            ? atomic_load_explicit(&target->dir, memory_order_acquire)
            : NULL;
    if (dir != NULL) {
        char in_dir[KILN_KEY_TEXT_SIZE + sizeof "/.kiln"];
        put_name(in_dir, key);
        const kn_disk_place held = {dir, in_dir, disk};
        const kiln_status status = kn_disk_entry_open(&held, key, out_entry, diag);
        if (status == KILN_OK || status == KILN_E_CORRUPT) {
            return status;
        }
        kiln_diag_clear(diag); /* it may lie where the path leads by now */
    }
    const kn_disk_place place = {NULL, path, disk};
    kiln_status status = kn_disk_entry_open(&place, key, out_entry, diag);
    if (status == KILN_OK && dir != NULL) {
        atomic_store(&target->stale, true);
    } else if (status == KILN_OK) {
        hold_open(disk, name, target);
    }
    return status;
}

static kiln_status try_get(kn_disk *disk, const char *target, void *user)
{
    const lookup *what = user;
    char path[KN_DISK_PATH];
    kn_disk_entry file;
    kn_disk_entry_path(disk, target, what->key, path);
    kiln_status status = open_target_entry(disk, target, what->key, path, &file, what->diag);
    if (status == KILN_OK) {
        status = kn_disk_entry_to_blob(&file, what->out_blob, what->diag);
    }
    if (status == KILN_OK) {
        stamp_entry(disk, path, file.facts.mtime_ns);
        return KILN_OK;
    }
    if (status != KILN_E_CORRUPT && status != KILN_E_INVALID) {
        return status;
    }
    if (!kn_disk_root_stands(disk)) {
        return KILN_MISS;
    }
    if (status == KILN_E_INVALID) {
        /* A link, a directory, or something huge: nothing that kiln has put there. */
        (void)drop_file(disk, path, NULL);
        return KILN_E_CORRUPT;
    }
    const bool dropped = drop_file(disk, path, &file.facts);
    if (dropped) {
        kn_losses_note_one(disk->root, what->key, KN_LOSS_CORRUPT);
    }
    kn_log(KILN_LOG_WARN, "a damaged cache entry was %s: %s", dropped ? "dropped" : "skipped",
           path);
    return status;
}

static kiln_status disk_get(void *self, const kiln_key *key, const char *target,
                            kiln_blob **out_blob, kiln_diag *diag)
{
    kn_disk *disk = self;
    lookup what = {.key = key, .out_blob = out_blob, .diag = diag};
    *out_blob = NULL;
    return target != NULL ? try_get(disk, target, &what) : each_target(disk, try_get, &what);
}

/* --- put and remove --------------------------------------------------------------------------- */

/* What makes the root known as a cache, to backup programs and to people. Where it also holds other
 * files, they must not be left out of backups. */
static void leave_tag(const kn_disk *disk)
{
    char path[KN_DISK_PATH], tmp[KN_DISK_PATH];
    kn_file_facts facts;
    kn_publish publish;
    kn_disk_path(disk, "CACHEDIR.TAG", path);
    kn_disk_path(disk, "tmp", tmp);
    if (kn_file_stat(path, false, &facts, NULL) == KILN_MISS && kn_disk_is_root_all_ours(disk) &&
        kn_publish_begin_unnamed(&publish, tmp, path, NULL) == KILN_OK) {
        kn_publish_write(&publish, tag, sizeof tag - 1);
        /* The cache works without it. */
        (void)kn_publish_commit(&publish, false, NULL);
    }
}

/* No put waits for the disk: a wait takes milliseconds, and whole seconds may pass until the name
 * of the entry is on the disk. What a power failure tears is found by its checksum. A compiled
 * entry is written at once, so that only the last seconds are lost; a note, a list of headers and a
 * copy cost little to make again, and the system writes them when it likes. */
static bool is_written_at_once(const kn_disk *disk, const kn_tier_put *what)
{
    return disk->sync && !what->copy && !kn_recipe_is_note(what->recipe) &&
           !kn_recipe_is_of_stage(what->recipe, kn_stage_headers);
}

static kiln_status publish_parts(const kn_disk *disk, const char *path, const kn_entry_parts *parts,
                                 bool at_once, bool *out_made_new, kiln_diag *diag)
{
    char tmp[KN_DISK_PATH];
    kn_publish publish;
    kn_disk_path(disk, "tmp", tmp);
    kiln_status status = kn_publish_begin_unnamed(&publish, tmp, path, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kn_span all[] = {kn_span_of(parts->header, sizeof parts->header), parts->body,
                           parts->recipe};
    kn_publish_write_parts(&publish, all, sizeof all / sizeof *all);
    if (at_once) {
        kn_publish_start_writing(&publish);
    }
    status = kn_publish_commit(&publish, false, diag);
    *out_made_new = publish.made_new;
    return status;
}

static kiln_status disk_put(void *self, const kn_tier_put *what, kiln_diag *diag)
{
    kn_disk *disk = self;
    char path[KN_DISK_PATH];
    kn_entry_parts parts;
    kn_file_facts old;
    const kn_entry_request request = {.key = what->key,
                                      .recipe = what->recipe,
                                      .blob = what->blob,
                                      .created_ns = kn_clock_wall()};
    kiln_status status = kn_entry_write(&request, &parts, diag);
    if (status != KILN_OK) {
        return status;
    }
    uint64_t weight = kn_disk_weight(kn_entry_parts_size(&parts));
    status = kn_disk_check_root(disk, diag);
    if (status == KILN_OK) {
        status = kn_disk_check_space(disk, weight, diag);
    }
    if (status == KILN_OK && weight > disk->max_bytes) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "raise KILN_CACHE_MAX_SIZE",
                               "storing an entry", "it is larger than the whole cache may be");
    }
    if (status != KILN_OK) {
        goto cleanup;
    }
    kn_disk_entry_path(disk, what->target, what->key, path);
    const kn_totals coming = {.files = 1, .bytes = (int64_t)weight};
    kn_landing landing = {.files = coming.files, .bytes = coming.bytes};
    const bool due = kn_disk_make_room(disk, what->key, &coming, &landing.counts);
    bool replaces = kn_file_stat(path, false, &old, NULL) == KILN_OK;
    if (replaces && old.kind == KN_FILE_DIR) { /* no rename replaces it */
        replaces = false;
        (void)kn_file_remove_dir(path); /* one that holds something belongs to another */
    }
    bool made_new = false;
    status = publish_parts(disk, path, &parts, is_written_at_once(disk, what), &made_new, diag);
    (void)atomic_fetch_add(&disk->puts, 1);
    /* What was there may have been evicted meanwhile, and is off the totals then. */
    replaces = replaces && !made_new;
    if (status == KILN_OK) {
        kn_stats_add(disk->stats, KN_COUNT_put_bytes, kn_entry_parts_size(&parts));
        leave_tag(disk);
        if (!kn_recipe_is_note(what->recipe)) {
            kn_kin_note(disk->root, what->recipe);
        }
    }
    kn_stats_landed(disk->stats, &landing);
    if (status != KILN_OK || replaces) {
        uint64_t gone = status != KILN_OK ? weight : kn_disk_weight(old.size);
        kn_stats_moved(disk->stats, &(kn_totals){.files = -1, .bytes = -(int64_t)gone});
    }
    if (due) {
        kn_disk_janitor_start(disk);
    }
cleanup:
    kn_entry_parts_deinit(&parts);
    return status;
}

static kiln_status disk_remove(void *self, const kiln_key *key, kiln_diag *diag)
{
    kn_disk *disk = self;
    char path[KN_DISK_PATH];
    kn_file_facts facts = {0};
    const char *target = kn_disk_locate(disk, key);
    if (target == NULL) {
        return KILN_MISS;
    }
    const uint32_t counts = kn_stats_counts(disk->stats);
    kn_disk_entry_path(disk, target, key, path);
    kiln_status status = kn_disk_root_stands(disk) ? kn_file_stat(path, false, &facts, diag)
                                                   : kn_disk_check_root(disk, diag);
    if (status == KILN_OK) {
        status = kn_file_remove(path, diag);
    }
    if (status == KILN_OK) {
        kn_losses_note_one(disk->root, key, KN_LOSS_EVICTED);
        kn_stats_departed(
            disk->stats,
            &(kn_departure){.counts = counts, .files = 1, .bytes = kn_disk_weight(facts.size)});
    }
    return status;
}

static void disk_close(void *self)
{
    kn_disk_close(self);
}

const kn_tier_ops kn_disk_ops = {
    .name = "disk",
    .origin = KILN_ORIGIN_DISK,
    .caps = KN_TIER_WRITES,
    .get = disk_get,
    .lacks = kn_disk_lacks,
    .put = disk_put,
    .remove = disk_remove,
    .close = disk_close,
};

static const kn_tier_ops read_only_ops = {
    .name = "disk",
    .origin = KILN_ORIGIN_DISK,
    .caps = 0,
    .get = disk_get,
    .lacks = kn_disk_lacks,
    .close = disk_close,
};

kn_tier kn_disk_tier(kn_disk *disk)
{
    return (kn_tier){disk->read_only ? &read_only_ops : &kn_disk_ops, disk};
}
