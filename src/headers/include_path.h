/* The places where headers can be: turns a place into a path, looks whether something is there, and
 * reads it. It decides no order of search; closure_walk.c does. */
#ifndef KILN_HEADERS_INCLUDE_PATH_H
#define KILN_HEADERS_INCLUDE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "headers/closure.h"
#include "headers/header_list.h"
#include "key/digest.h"
#include "sys/dir.h"

typedef struct kn_include_path {
    const kn_closure_request *request;
    bool *skipped; /* one an include dir: also a system dir, and searched as that only */
    kn_digest digest;
    kn_strbuf scratch; /* a path */
    kn_strbuf gone;    /* the last directory that kn_include_path_open did not find */
    /* Not 0: a look at a place finds nothing behind a link that changed then or later. */
    int64_t links_since;
    bool teaches; /* a list that holds tells request->memo what its headers are */
    size_t statted;
    size_t read;
} kn_include_path;

/* What is at a place. `text` is set by reading only: for a header in memory it is the request's. */
typedef struct kn_include_file {
    kn_span text;
    void *owned; /* free() */
    kn_stamp stamp;
    int64_t read_ns; /* the wall clock before it was read */
    uint8_t digest[32];
} kn_include_file;

/* KILN_E_NOMEM. */
kiln_status kn_include_path_init(kn_include_path *path, const kn_closure_request *request);
void kn_include_path_deinit(kn_include_path *path);

/* What the answer of a search depends on besides the places, as text: "memory", "folder", number
 * of dirs and which are skipped, completeness. Part of the header list's recipe. */
void kn_include_path_describe(const kn_include_path *path, kn_strbuf *out);

/* Looks at a place; `name` is relative to `dir` unless that is NULL. KILN_OK fills the stamp of a
 * regular file; KILN_MISS: nothing there, a directory, or a base or index that the request does not
 * have; KILN_E_IO: something that cannot be read as a header; KILN_E_NOMEM. */
kiln_status kn_include_path_look(kn_include_path *path, const kn_dir *dir, const kn_place *place,
                                 const char *name, kn_include_file *out_file);

/* Opens a directory of a header list for looking at names in it. KILN_MISS if it is not there, or
 * the request has no such dir; KILN_E_IO if it cannot be opened; KILN_E_NOMEM. Two rows can be one
 * directory (the source's own, and an include dir): it is not looked for twice in a row. */
kiln_status kn_include_path_open(kn_include_path *path, const kn_header_list *list,
                                 const kn_header_list_directory *row, kn_dir *out_dir);
/* Before another look at a list: what was not there may be there by now. */
void kn_include_path_forget(kn_include_path *path);

/* The path of a place that is in a file system, malloc'ed. KILN_MISS for others; KILN_E_NOMEM. */
kiln_status kn_include_path_of(const kn_include_path *path, const kn_place *place, const char *name,
                               char **out_path);

/* Reads a place and digests it; its text stays until kn_include_file_deinit. Statuses as above. */
kiln_status kn_include_path_read(kn_include_path *path, const kn_place *place, const char *name,
                                 kn_include_file *out_file);
void kn_include_file_deinit(kn_include_file *file);

#endif
