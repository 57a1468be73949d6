/* Reads headers of a header list: many of them in several threads, since most of the time is that
 * of opening files. */
#ifndef KILN_HEADERS_HEADER_LIST_READ_H
#define KILN_HEADERS_HEADER_LIST_READ_H

#include "headers/include_path.h"

typedef struct kn_header_read {
    const kn_header_list_header *row;
    kn_stamp stamp;  /* all 0 for a header in memory */
    int64_t read_ns; /* the wall clock before that */
    uint8_t digest[32];
} kn_header_read;

#define KN_HEADER_READ_FEW 64u    /* up to so many, a thread takes longer than it saves */
#define KN_HEADER_READ_THREADS 4u /* the caller's among them */

/* Fills the stamps and digests of all rows, which lie in `list`. KILN_MISS if one cannot be
 * read, KILN_E_NOMEM. Blocks: disk. */
kiln_status kn_header_list_read(kn_include_path *path, const kn_header_list *list,
                                kn_header_read *reads, size_t count);

#endif
