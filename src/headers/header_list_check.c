/* See header_list_check.h. The rows of a directory are looked at together, by their last names in
 * the opened directory; rows of no directory, and those of a directory that cannot be opened, by
 * their paths. */
#include "headers/header_list_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "sys/clock.h"
#include "sys/thread.h"

#define READ_FEW 64u    /* headers: up to so many, a thread takes longer than it saves */
#define READ_THREADS 4u /* the caller's among them */

typedef struct check {
    kn_include_path *path;
    kn_header_list *list;
    kn_map missing; /* first directories of names: whether they are there */
    kn_list_look look;
    bool pays;
    int64_t now_ns;
    uint32_t *unread; /* headers whose stamps are not enough */
    size_t unread_count;
} check;

/* True if a directory lies below one that is not there: then nothing is in it. Most directories
 * that are searched without success are like that (cuda/std/ next to the source), and each first
 * directory of a name is looked at once. */
static bool below_nothing(check *c, const kn_header_list_directory *row)
{
    static char there, missing;
    char key[8 + 64];
    const char *name = kn_header_list_name(c->list, row->name);
    const size_t length = strcspn(name, "/");
    if (length == 0 || length >= 64 || length + 1 >= row->length ||
        row->base == KN_PLACE_ABSOLUTE) {
        return false;
    }
    kn_put_u32((unsigned char *)key, (uint32_t)row->base);
    kn_put_u32((unsigned char *)key + 4, row->index);
    memcpy(key + 8, name, length);
    const char *known = kn_map_find(&c->missing, key, 8 + length);
    if (known == NULL) {
        kn_dir dir;
        kn_header_list_directory first = *row;
        first.length = (uint32_t)length + 1;
        kiln_status status = kn_include_path_open(c->path, c->list, &first, &dir);
        if (status == KILN_OK) {
            kn_dir_close(&dir);
        }
        c->path->statted += status != KILN_MISS; /* else it is counted already */
        known = status == KILN_MISS ? &missing : &there;
        (void)kn_map_put(&c->missing, key, 8 + length, (void *)(uintptr_t)known,
                         NULL); /* or again */
    }
    return known == &missing;
}

/* What is at a place: in its directory, or with `dir` NULL by its path. */
static kiln_status look_at_place(check *c, const kn_dir *dir, const kn_place *place,
                                 kn_include_file *out_file)
{
    const char *name = kn_header_list_name(c->list, place->name);
    const uint32_t before = dir != NULL ? c->list->dirs[place->dir - 1].length : 0;
    return kn_include_path_look(c->path, dir, place, name + before, out_file);
}

static kiln_status check_absent(check *c, const kn_dir *dir, const kn_place *place)
{
    kn_include_file file;
    const kiln_status expected = place->base == KN_PLACE_SHIPS ? KILN_OK : KILN_MISS;
    const kiln_status status = look_at_place(c, dir, place, &file);
    if (status == expected) {
        return KILN_OK;
    }
    return status == KILN_E_NOMEM ? status : KILN_MISS;
}

/* What a header holds now, compared with its row. */
static kiln_status compare_header(check *c, kn_header_list_header *row, const kn_stamp *stamp,
                                  const uint8_t digest[32])
{
    const bool same = memcmp(digest, row->digest, sizeof row->digest) == 0;
    if (same && c->look != KN_LOOK_UNTOUCHED && row->place.base != KN_PLACE_MEMORY) {
        row->stamp = *stamp;
        c->pays = c->pays || kn_stamp_holds(&row->stamp, &row->stamp, c->now_ns);
    }
    return same ? KILN_OK : KILN_MISS;
}

/* A file that was written and written back in between has other times, if the clock shows it. */
static bool same_times(const kn_stamp *then, const kn_stamp *now)
{
    return then->mtime_ns == now->mtime_ns && then->ctime_ns == now->ctime_ns;
}

static kiln_status check_header(check *c, const kn_dir *dir, kn_header_list_header *row)
{
    kn_include_file file;
    uint8_t digest[32];
    if (row->place.base != KN_PLACE_MEMORY) {
        kiln_status status = look_at_place(c, dir, &row->place, &file);
        if (status != KILN_OK || file.stamp.size != row->stamp.size) {
            return status == KILN_E_NOMEM ? status : KILN_MISS;
        }
        if (kn_stamp_holds(&row->stamp, &file.stamp, c->list->recorded_ns)) {
            if (c->path->teaches) {
                kn_header_memo_put(c->path->request->memo, &file.stamp, c->list->recorded_ns,
                                   row->digest);
            }
            return KILN_OK;
        }
        if (c->look == KN_LOOK_UNTOUCHED && !same_times(&row->stamp, &file.stamp)) {
            return KILN_MISS;
        }
        if (kn_header_memo_find(c->path->request->memo, &file.stamp, digest)) {
            return compare_header(c, row, &file.stamp, digest);
        }
        if (c->look == KN_LOOK_KNOWN) {
            return KILN_MISS;
        }
    }
    c->unread[c->unread_count++] = (uint32_t)(row - c->list->headers);
    return KILN_OK;
}

/* All rows of one directory; `dir` NULL: by their paths. */
static kiln_status check_rows(check *c, const kn_header_list_directory *row, const kn_dir *dir)
{
    kiln_status status = KILN_OK;
    for (uint32_t at = row->first_absent; at != 0 && status == KILN_OK;) {
        const kn_place *place = &c->list->absent[at - 1];
        status = check_absent(c, dir, place);
        at = place->next;
    }
    for (uint32_t at = row->first_header; at != 0 && status == KILN_OK;) {
        kn_header_list_header *header = &c->list->headers[at - 1];
        status = check_header(c, dir, header);
        at = header->place.next;
    }
    return status;
}

/* True for one header or two, or for one absent place that is in the place's own directory. */
static bool has_few_rows(const kn_header_list *list, const kn_header_list_directory *row)
{
    if (row->first_header == 0) {
        return row->length == 0 &&
               (row->first_absent == 0 || list->absent[row->first_absent - 1].next == 0);
    }
    const uint32_t second = list->headers[row->first_header - 1].place.next;
    return row->first_absent == 0 && (second == 0 || list->headers[second - 1].place.next == 0);
}

static kiln_status check_dir(check *c, const kn_header_list_directory *row)
{
    kn_dir dir;
    if (has_few_rows(c->list, row)) {
        return check_rows(c, row, NULL); /* opening and closing it would take longer */
    }
    if (row->first_header == 0 && below_nothing(c, row)) {
        return KILN_OK;
    }
    kiln_status status = kn_include_path_open(c->path, c->list, row, &dir);
    if (status == KILN_E_IO) {
        return check_rows(c, row, NULL);
    }
    if (status != KILN_OK) {
        return status == KILN_MISS && row->first_header == 0 ? KILN_OK : status;
    }
    status = check_rows(c, row, &dir);
    kn_dir_close(&dir);
    return status;
}

static kiln_status check_all(check *c)
{
    kn_header_list *list = c->list;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < list->absent_count && status == KILN_OK; i++) {
        if (list->absent[i].dir == 0) {
            status = check_absent(c, NULL, &list->absent[i]);
        }
    }
    for (size_t i = 0; i < list->dir_count && status == KILN_OK; i++) {
        status = check_dir(c, &list->dirs[i]);
    }
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        if (list->headers[i].place.dir == 0) {
            status = check_header(c, NULL, &list->headers[i]);
        }
    }
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct header_read {
    const kn_header_list_header *row;
    kn_stamp stamp;  /* all 0 for a header in memory */
    int64_t read_ns; /* the wall clock before that */
    uint8_t digest[32];
} header_read;

typedef struct reader {
    kn_include_path path; /* of this reader: it has a digest of its own, and counts for itself */
    const kn_header_list *list;
    header_read *reads;
    size_t count;
    kiln_status status;
    kn_thread *thread;
} reader;

static kiln_status read_row(reader *r, header_read *read)
{
    kn_include_file file;
    const kn_place *place = &read->row->place;
    const kiln_status status =
        kn_include_path_read(&r->path, place, kn_header_list_name(r->list, place->name), &file);
    if (status != KILN_OK) {
        return status == KILN_E_NOMEM ? status : KILN_MISS;
    }
    read->stamp = file.stamp;
    read->read_ns = file.read_ns;
    memcpy(read->digest, file.digest, sizeof(read->digest));
    kn_include_file_deinit(&file);
    return KILN_OK;
}

static void read_rows(void *user)
{
    reader *r = (reader *)user;
    r->status = kn_digest_init(&r->path.digest) ? KILN_OK : KILN_E_NOMEM;
    if (r->status != KILN_OK) {
        return;
    }
    for (size_t i = 0; i < r->count && r->status == KILN_OK; i++) {
        r->status = read_row(r, &r->reads[i]);
    }
    kn_digest_deinit(&r->path.digest);
}

static size_t count_readers(size_t count)
{
    const uint32_t processors = count > READ_FEW ? kn_thread_processors() : 1;
    const size_t most = processors < READ_THREADS ? processors : READ_THREADS;
    const size_t worth = 1 + count / READ_FEW;
    return most < worth ? most : worth;
}

/* Fills the stamps and digests, in several threads where that pays: most of the time is that of
 * opening files. KILN_MISS if one cannot be read. */
static kiln_status read_all(kn_include_path *path, const kn_header_list *list, header_read *reads,
                            size_t count)
{
    reader readers[READ_THREADS] = {0};
    const size_t used = count_readers(count);
    kiln_status status = KILN_OK;
    for (size_t i = used; i > 0; i--) {
        reader *r = &readers[i - 1];
        const size_t begin = count * (i - 1) / used;
        r->path = (kn_include_path){.request = path->request};
        r->list = list;
        r->reads = reads + begin;
        r->count = count * i / used - begin;
        if (i == 1 || kn_thread_start(read_rows, r, &r->thread, NULL) != KILN_OK) {
            read_rows(r);
        }
    }
    for (size_t i = 0; i < used; i++) {
        if (readers[i].thread != NULL) {
            kn_thread_join_gone(readers[i].thread);
        }
        path->read += readers[i].path.read;
        status =
            status == KILN_OK || readers[i].status == KILN_E_NOMEM ? readers[i].status : status;
    }
    return status;
}

/* All that was left to be read, together. */
static kiln_status read_headers(check *c)
{
    header_read *reads = (header_read *)calloc(c->unread_count, sizeof(*reads));
    if (reads == NULL) {
        return KILN_E_NOMEM;
    }
    for (size_t i = 0; i < c->unread_count; i++) {
        reads[i].row = &c->list->headers[c->unread[i]];
    }
    kiln_status status = read_all(c->path, c->list, reads, c->unread_count);
    for (size_t i = 0; i < c->unread_count && status == KILN_OK; i++) {
        kn_header_list_header *row = &c->list->headers[c->unread[i]];
        kn_header_memo_put(c->path->request->memo, &reads[i].stamp, reads[i].read_ns,
                           reads[i].digest);
        status = compare_header(c, row, &reads[i].stamp, reads[i].digest);
    }
    free(reads);
    return status;
}

kiln_status kn_header_list_check(kn_include_path *path, kn_header_list *list, kn_list_look look,
                                 bool *out_pays)
{
    check c = {.path = path, .list = list, .look = look, .now_ns = kn_clock_wall()};
    kn_map_init(&c.missing);
    kn_include_path_forget(path);
    c.unread = (uint32_t *)calloc(list->header_count + 1, sizeof(*c.unread));
    kiln_status status = c.unread != NULL ? check_all(&c) : KILN_E_NOMEM;
    if (status == KILN_OK && c.unread_count > 0) {
        status = read_headers(&c);
    }
    free(c.unread);
    kn_map_deinit(&c.missing);
    *out_pays = status == KILN_OK && c.pays;
    if (*out_pays) {
        list->recorded_ns = c.now_ns;
    }
    return status;
}
