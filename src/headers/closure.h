/* The header half of a key: every file a source reaches through #include, found as the compiler
 * finds it, in taken branches or not, with the digest of its content.
 *
 * Calling sequence, in the walk of a kernel (all requests of one kernel, one thread):
 *
 *     kn_closure_find(&request, &closure, diag)        before the store is asked
 *     if (closure->bypass) compile without the cache, kiln_cache_count_bypass(..., closure->reason)
 *     kn_closure_add_to(closure, recipe, diag)         recipe: a copy of `first`, or `first` itself
 *     ... look the recipe up; on a miss compile ...
 *     if (kn_closure_still_true(closure)) put          a header edited during the compile: do not
 *     kn_closure_save(closure)                         when the caller has what it waits for
 *     kn_closure_destroy(closure)
 *
 * Where a header is looked for, in this order (the order of gcc, clang and NVRTC):
 *   "x" a header in memory of exactly that name; the includer's directory; the include dirs; the
 *        system dirs. If both of the first two exist, both count, since compilers differ there.
 *        In a header in memory "x" may be, and all count: one in memory next to it, the same below
 *        the current directory, the first on the search path.
 *   <x> as above without the includer's directory.
 *   include_next: every dir of the path that has the name counts.
 *   An include dir that is also a system dir keeps the system dir's place only, with gcc and clang;
 *        NVRTC, which gets both as include dirs, searches it twice (dirs_in_order).
 *
 * A source without includes costs one scan of its text and nothing else; one with a header list
 * that vouches for it (list_vouches) is not scanned. The name of a computed include is evaluated
 * (macro_expand.h): all that it may be is looked for.
 *
 * What a closure says in a key, and the files and places that it names, are in closure_key.c.
 *
 * What cannot be known is not guessed: `bypass` is set, with a reason for the log. A failed status
 * means out of memory or a wrong request only. This file must not know any backend. */
#ifndef KILN_HEADERS_CLOSURE_H
#define KILN_HEADERS_CLOSURE_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/cache.h"
#include "kiln/source.h"
#include "kiln/status.h"
#include "kiln/sys/backend.h"

#include "headers/header_list.h"
#include "headers/header_memo.h"

/* Bounds; a source that passes one bypasses the cache. */
#define KN_CLOSURE_MAX_FILES 20000u
#define KN_CLOSURE_MAX_PLACES 400000u
#define KN_CLOSURE_MAX_DEPTH 200u
#define KN_CLOSURE_MAX_FILE_SIZE ((size_t)16 << 20)
#define KN_CLOSURE_MAX_BYTES ((size_t)512 << 20)
#define KN_CLOSURE_MAX_NAME 4096u

typedef struct kn_closure_request {
    /* text (a file's content already read), include dirs, defines, options, headers in memory. If
     * the compiler also searches the source's own directory for <x>, it is an include dir here. */
    const kiln_source *source;
    /* Where the compiler looks first for "x" written in the source itself: its file's directory, or
     * "." where the compiler searches the current directory. NULL: nowhere. */
    const char *dir;
    /* How the compiler searches. Where the search is complete, an include that is nowhere must be
     * in a branch not taken if the compile succeeds. Else such an include bypasses the cache,
     * unless ships_header says that it comes with the toolchain. Outlives the closure. */
    const kiln_include_rules *rules;
    uint32_t effects; /* KILN_OPTION_ bits; with KILN_OPTION_NOT_BESIDE `dir` is NULL */
    /* Included as <name> by every compile, though no text says so; one that is nowhere is ignored.
     * Used during kn_closure_find only. */
    const char *const *implied;
    size_t implied_count;
    const char *const *system_dirs; /* searched after the include dirs; all of them, in order */
    size_t system_dir_count;
    bool (*ships_header)(void *user, const char *name); /* may be NULL */
    void *user;
    kiln_cache *cache; /* where header lists are kept; NULL: none, every file is read every time */
    /* Everything but headers: source text, options, defines, toolchain and target identity. Used
     * during kn_closure_find only; its key finds the header list. May be NULL without a cache. */
    const kiln_recipe *first;
    bool list_vouches; /* `first` has the text of this source and of no other: a list that is kept
                          under it says that the text was scanned */
    /* Digests of headers that other closures of this process have read; NULL: none. It outlives the
     * closure. */
    kn_header_memo *memo;
    /* What a long list says may be taken as so and looked at meanwhile, in a thread of its own: the
     * optimistic walk, whose states are drawn in core/build/build.c. The caller asks
     * kn_closure_settle before it is relied on. */
    bool assume;
} kn_closure_request;

/* Readable; made and changed by the functions below only. */
typedef struct kn_closure {
    bool bypass;
    char reason[256];     /* why, for a log line: "scale.cl:12: computed #include"; "" if not */
    size_t headers;       /* files reached, headers in memory included */
    size_t files_read;    /* opened and read during kn_closure_find */
    size_t files_statted; /* looked for, found or not */
    bool source_scanned;  /* the text of the source was read: no list vouches for it */
    bool from_list;       /* the headers came from a stored list that still holds */
    bool from_walk;       /* they are those of an earlier source of this process */
    bool save_pays;       /* kn_closure_save has something to write */
    bool assumed;         /* kn_closure_settle has yet to be asked */
} kn_closure;

/* Finds the closure of a source.
 * Blocks: disk. Owns: *out_closure is the caller's, kn_closure_destroy(); until then
 * it borrows the source, the directory and the strings of the system dirs, not `first` nor the
 * lists.
 * Fails: KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status kn_closure_find(const kn_closure_request *request, kn_closure **out_closure,
                            kiln_diag *diag);
void kn_closure_destroy(kn_closure *closure);

/* Of a closure that was assumed: waits for the look at its files. KILN_OK: it is so, and the
 * closure is like any other from now on; KILN_MISS: it is not, and nothing that was made of it may
 * be used: the closure is found again, without assuming. KILN_E_NOMEM. Of any other closure:
 * KILN_OK. */
kiln_status kn_closure_settle(kn_closure *closure);

/* Whether the code may hold the names of files: a text or an option mentions __FILE__ or its like,
 * or the request says so. kn_closure_add_to puts them into the key then. */
bool kn_closure_names_matter(const kn_closure *closure);
/* Whether the source itself or an option mentions it; a header's own __FILE__ is the header's. */
bool kn_closure_source_names(const kn_closure *closure);
/* Whether an include or a __has_include of the source or of a header in a file may ask for exactly
 * this name. To NVRTC the source itself is a header of its own name. */
bool kn_closure_asks_for(const kn_closure *closure, const char *name);

/* Adds one "header" field for each file (name as written, SHA-256) in the order in which they are
 * reached, those of system dirs left out, and an "includes" field that fixes which include reaches
 * which file and the content of those of system dirs. Nothing at all for
 * a source without includes. No path and no time is in them; where names matter, "name" fields have
 * the names of the source and the headers as far as the code can hold them. KILN_E_INVALID after a
 * bypass. */
kiln_status kn_closure_add_to(const kn_closure *closure, kiln_recipe *recipe, kiln_diag *diag);

/* Whether the list of headers is kept in a form that other machines can use, and its key. */
bool kn_closure_shared_key(kn_closure *closure, kiln_key *out_key);

/* Calls `visit` for every place that was looked at: with its stamp, or NULL where nothing was.
 * KILN_MISS if one of the files is too new for its times to tell a change. */
typedef kiln_status kn_closure_place_fn(void *user, const char *path, const kn_stamp *stamp);
kiln_status kn_closure_places(const kn_closure *closure, kn_closure_place_fn *visit, void *user);

/* The same for one who will look again: every place that was looked at, young files too, and those
 * met before a bypass. */
kiln_status kn_closure_watch(const kn_closure *closure, kn_closure_place_fn *visit, void *user);

/* Calls `visit` for every header that is in a file: its path as the compiler opens it, the digest
 * and the size that its content had when the key was made, and whether a system dir had it. One
 * that two includes reach is given twice. Nothing is given after a bypass, or of a closure that has
 * yet to be settled. */
typedef struct kn_closure_file {
    const char *path; /* valid during the call */
    const uint8_t *digest;
    uint64_t size;
    bool system;
} kn_closure_file;
typedef kiln_status kn_closure_file_fn(void *user, const kn_closure_file *file);
kiln_status kn_closure_files(const kn_closure *closure, kn_closure_file_fn *visit, void *user);

/* After a compile: true if what was found still is what is there, untouched meanwhile, so that the
 * output belongs to the key. Costs one stat a place; reads only files too new to trust their times.
 */
bool kn_closure_still_true(kn_closure *closure);

/* Writes the header list if it is new or the next start would profit; call it off the critical path
 * and after a success only. Errors are logged by the store and fail no one. */
void kn_closure_save(kn_closure *closure);

#endif
