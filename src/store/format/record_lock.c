/* Locks on a small file that is replaced when a holder stands still. This file must not know who
 * evicts. */
#include "store/format/record_lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "store/format/stats.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/publish.h"

#define MS UINT64_C(1000000)
#define FIRST_PAUSE (MS / 50)
#define REPLACERS 4 /* processes that may stand still in replacing the file */
#define READS 5
#define FILES 64 /* that others may put there meanwhile */

bool kn_record_clear_the_way(const char *path)
{
    kn_file_facts facts, dir;
    char *root = kn_path_dir(path);
    bool in_the_way = root != NULL && kn_file_stat(root, false, &dir, NULL) == KILN_OK &&
                      kn_file_stat(path, false, &facts, NULL) == KILN_OK &&
                      (facts.kind != KN_FILE_REGULAR || facts.owner != dir.owner);
    free(root);
    return in_the_way &&
           (kn_file_remove(path, NULL) == KILN_OK || kn_file_remove_dir(path) == KILN_OK);
}

static kiln_status open_record(const char *path, kn_lock_file **out_lock)
{
    if (kn_lock_file_open(path, out_lock, NULL) != KILN_OK &&
        (!kn_record_clear_the_way(path) || kn_lock_file_open(path, out_lock, NULL) != KILN_OK)) {
        return KILN_E_IO;
    }
    return KILN_OK;
}

/* --- replacing -------------------------------------------------------------------------------- */

/* Who wrote last: while that changes, the byte goes round. */
static uint32_t find_last_writer(const char *path)
{
    kn_record record = {.writer = 0};
    void *data = NULL;
    size_t size = 0;
    if (kn_file_read(path, KN_RECORD_SIZE, true, &data, &size, NULL, NULL) == KILN_OK) {
        (void)kn_record_parse(kn_span_of(data, size), &record);
    }
    free(data);
    return record.writer;
}

typedef struct copies {
    const char *dir;
    const char *own; /* NULL: all are others' */
} copies;

static kiln_status drop_copy(void *user, const char *name)
{
    const copies *c = user;
    kn_record record;
    void *data = NULL;
    size_t size = 0;
    char *path = kn_publish_is_temporary(name) ? kn_path_join(c->dir, name) : NULL;
    if (path != NULL && (c->own == NULL || strcmp(path, c->own) != 0) &&
        kn_file_read(path, KN_RECORD_SIZE, true, &data, &size, NULL, NULL) == KILN_OK &&
        kn_record_parse(kn_span_of(data, size), &record) == KILN_OK) {
        (void)kn_file_remove(path, NULL);
    }
    free(data);
    free(path);
    return KILN_OK;
}

/* A process that stands still just before it puts its copy into the file's place would do so later,
 * over all that was written meanwhile. Without its copy it cannot. Of two that do this to each
 * other after they have written their own copies, one goes on at most. */
static void drop_copies(const char *dir, const char *own)
{
    copies c = {.dir = dir, .own = own};
    (void)kn_file_list(dir, drop_copy, &c, NULL);
}

static char *copies_dir(const char *path)
{
    char *root = kn_path_dir(path);
    char *dir = root != NULL ? kn_path_join(root, "tmp") : NULL;
    free(root);
    return dir;
}

/* A copy in memory, and of which writer's record it is one. */
typedef struct record_copy {
    void *data;
    size_t size;
    uint32_t writer;
} record_copy;

/* The copy says what it is one of. What is damaged stays so. */
static kiln_status read_for_copy(const char *path, record_copy *copy)
{
    kn_record record = {.writer = 0};
    kiln_status status = KILN_E_CORRUPT;
    *copy = (record_copy){.data = NULL};
    for (int i = 0; i < READS && status == KILN_E_CORRUPT; i++) {
        if (i > 0) { /* half of another's write */
            free(copy->data);
            kn_clock_sleep(MS);
        }
        if (kn_file_read(path, KN_RECORD_SIZE, true, &copy->data, &copy->size, NULL, NULL) !=
            KILN_OK) {
            return KILN_E_IO;
        }
        status = kn_record_parse(kn_span_of(copy->data, copy->size), &record);
    }
    copy->writer = record.writer;
    if (status == KILN_OK && record.copied[0] != record.writer) {
        for (size_t i = KN_RECORD_COPIES - 1; i > 0; i--) {
            record.copied[i] = record.copied[i - 1];
        }
        record.copied[0] = record.writer;
        kn_record_write(&record, copy->data);
    }
    return KILN_OK;
}

/* KILN_MISS: another was faster, or has written meanwhile. */
static kiln_status publish_copy(const kn_lock_file *old, const char *path, const char *dir)
{
    record_copy copy;
    kn_publish publish;
    kiln_status status = read_for_copy(path, &copy);
    if (status == KILN_OK) {
        status = kn_publish_begin(&publish, dir, path, NULL);
    }
    if (status == KILN_OK) {
        kn_publish_insist(&publish);
        kn_publish_write(&publish, copy.data, copy.size);
        drop_copies(dir, publish.temporary);
        if (kn_lock_file_is_at(old, path) && find_last_writer(path) == copy.writer) {
            status = kn_publish_commit(&publish, false, NULL);
            status = status == KILN_OK || kn_lock_file_is_at(old, path) ? status : KILN_MISS;
        } else {
            kn_publish_abort(&publish);
            status = KILN_MISS;
        }
    }
    free(copy.data);
    return status;
}

static kiln_status put_copy(const kn_lock_file *old, const char *path)
{
    char *dir = copies_dir(path);
    kiln_status status = dir != NULL ? publish_copy(old, path, dir) : KILN_E_NOMEM;
    free(dir);
    return status;
}

/* `tried`: how often this process has waited for another one that replaces the file. False: it
 * cannot be replaced. */
static bool replace_file(kn_lock_file *old, const char *path, unsigned tried)
{
    const uint64_t byte = KN_RECORD_REPLACE + (uint64_t)tried;
    kiln_status status = kn_lock_try(old, byte);
    if (status != KILN_OK) {
        return status == KILN_E_BUSY;
    }
    status = put_copy(old, path);
    if (status == KILN_OK) {
        kn_log(KILN_LOG_INFO,
               "a process that holds the cache's statistics, %s, makes no progress: no longer "
               "waiting for it",
               path);
    }
    kn_lock_drop(old, byte);
    return status == KILN_OK || status == KILN_MISS;
}

/* --- locking ---------------------------------------------------------------------------------- */

typedef struct record_wait {
    uint64_t deadline;
    uint64_t ns;       /* for one file */
    uint32_t writer;   /* the last one, when the waiting for this file began */
    unsigned replaced; /* files */
} record_wait;

/* One file, until it is locked, replaced, or the time is over. KILN_MISS: replaced. */
static kiln_status lock_one(kn_lock_file *lock, const char *path, uint64_t byte, record_wait *wait)
{
    uint64_t pause = FIRST_PAUSE;
    const uint64_t deadline = kn_clock_now() + wait->ns;
    for (bool first = true;; first = false) {
        const kiln_status status = kn_lock_try(lock, byte);
        if (!kn_lock_file_is_at(lock, path)) {
            return KILN_MISS;
        }
        if (status != KILN_E_BUSY) {
            return status == KILN_E_UNSUPPORTED ? KILN_OK : status;
        }
        if (kn_clock_now() >= deadline) {
            return KILN_E_BUSY;
        }
        if (first && byte == KN_RECORD_STATS) {
            wait->writer = find_last_writer(path);
        }
        kn_clock_sleep(pause);
        pause = pause < MS ? pause * 2 : MS;
    }
}

/* A wait for one file that ended without the lock. True: wait for the one that is there now. */
static bool goes_on(kn_lock_file *lock, const char *path, uint64_t byte, record_wait *wait)
{
    if (wait->ns < KN_RECORD_STUCK_NS) {
        return false;
    }
    const uint32_t writer = byte == KN_RECORD_STATS ? find_last_writer(path) : wait->writer;
    if (writer != wait->writer) { /* slow, and not stuck */
        wait->writer = writer;
        return kn_clock_now() < wait->deadline;
    }
    return wait->replaced < REPLACERS && replace_file(lock, path, wait->replaced++);
}

kiln_status kn_record_lock(const char *path, uint64_t byte, uint64_t patience_ns,
                           kn_lock_file **out_lock)
{
    const bool brief = byte == KN_RECORD_STATS && patience_ns > KN_RECORD_STUCK_NS;
    record_wait wait = {.deadline = kn_clock_now() + patience_ns,
                        .ns = brief ? KN_RECORD_STUCK_NS : patience_ns};
    *out_lock = NULL;
    for (int files = 0; files < FILES; files++) {
        kn_lock_file *lock = NULL;
        kiln_status status = open_record(path, &lock);
        if (status != KILN_OK) {
            return status;
        }
        status = lock_one(lock, path, byte, &wait);
        if (status == KILN_OK) {
            *out_lock = lock;
            return KILN_OK;
        }
        const bool more =
            status == KILN_MISS || (status == KILN_E_BUSY && goes_on(lock, path, byte, &wait));
        kn_lock_file_close(lock);
        if (!more) {
            return status;
        }
    }
    return KILN_E_BUSY;
}

bool kn_record_is_locked(const kn_lock_file *lock, const char *path)
{
    return lock != NULL && kn_lock_file_is_at(lock, path);
}

bool kn_record_is_settled(kn_lock_file *lock, const char *path)
{
    const uint64_t deadline = kn_clock_now() + KN_RECORD_STUCK_NS;
    /* In this order: a copy that begins later has what was written. */
    while (kn_lock_is_any_held(lock, KN_RECORD_REPLACE, REPLACERS)) {
        if (!kn_lock_file_is_at(lock, path)) {
            break;
        }
        if (kn_clock_now() >= deadline) {
            /* Who stands still in copying looks again before the copy is put there, or has looked.
             */
            char *dir = copies_dir(path);
            if (dir != NULL) {
                drop_copies(dir, NULL);
            }
            free(dir);
            break;
        }
        kn_clock_sleep(FIRST_PAUSE);
    }
    return kn_lock_file_is_at(lock, path);
}

void kn_record_unlock(kn_lock_file *lock, uint64_t byte)
{
    if (lock != NULL) {
        kn_lock_drop(lock, byte);
        kn_lock_file_close(lock);
    }
}
