/* See header_list_read.h. */
#include "headers/header_list_read.h"

#include <string.h>

#include "sys/thread.h"

typedef struct reader {
    kn_include_path path; /* of this reader: it has a digest of its own, and counts for itself */
    const kn_header_list *list;
    kn_header_read *reads;
    size_t count;
    kiln_status status;
    kn_thread *thread;
} reader;

static kiln_status read_row(reader *r, kn_header_read *read)
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
    const uint32_t processors = count > KN_HEADER_READ_FEW ? kn_thread_processors() : 1;
    const size_t most = processors < KN_HEADER_READ_THREADS ? processors : KN_HEADER_READ_THREADS;
    const size_t worth = 1 + count / KN_HEADER_READ_FEW;
    return most < worth ? most : worth;
}

kiln_status kn_header_list_read(kn_include_path *path, const kn_header_list *list,
                                kn_header_read *reads, size_t count)
{
    reader readers[KN_HEADER_READ_THREADS] = {0};
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
