/* Writes programs into the recording of a cache as they go through it.
 *
 *     kn_draft draft;
 *     if (kn_draft_begin(&draft, cache, &key)) {
 *         draft.program.frontend = ...;                what the caller has as it is, borrowed
 *         kn_draft_add_text(&draft, ...);          each text, with its headers in memory
 *         kn_draft_add_closure(&draft, closure);   each list of headers
 *         kn_draft_end(&draft, target, compile_ns);
 *     }
 *
 * Where a cache records nothing, begin is a comparison. Where the program is in the recording it
 * costs one stat, and nothing after that in this process. A program is written by the thread that
 * asked for it: what has gone through the cache is in the recording even if the process is killed
 * next. Nothing here fails or delays its caller beyond that: what cannot be recorded is counted,
 * and the first is logged with its reason.
 *
 * Threads: any, each with a draft of its own. After fork() the child may go on. */
#ifndef KILN_RECORD_RECORDER_H
#define KILN_RECORD_RECORDER_H

#include "base/map.h"
#include "headers/closure.h"
#include "kiln/cache.h"
#include "record/request.h"

typedef struct kn_draft {
    kn_recorded program; /* texts, files and the directory are filled here */
    kn_recorded_use use;
    kiln_key key;
    kiln_cache *cache;
    struct kn_recorder *recorder;
    kn_recorded_text *texts;
    kn_recorded_file *files;
    size_t file_capacity;
    kn_map paths; /* of `files` */
    char *dir;
    bool needs_dir;   /* a path is relative, or the code may name files */
    uint64_t written; /* bytes that the recording has more */
    kiln_status failure;
    kiln_diag diag; /* of the failure */
} kn_draft;

/* False: this use need not be recorded, or cannot be; there is nothing to end then. */
bool kn_draft_begin(kn_draft *draft, kiln_cache *cache, const kiln_key *key);
/* A text, with options of its own ("" but for OpenCL's) and its headers in memory, whose names are
 * borrowed. */
void kn_draft_add_text(kn_draft *draft, const void *text, size_t length, const char *options,
                       const kiln_header *headers, size_t header_count);
/* What a closure reached; NULL is one without files. A header that is no longer what the key says
 * fails the draft. */
void kn_draft_add_closure(kn_draft *draft, const kn_closure *closure);
/* Writes the program and its use, unless something failed, and ends the draft. `compile_ns`: what
 * the compile took; 0: it is not known. */
void kn_draft_end(kn_draft *draft, const char *target, uint64_t compile_ns);

#endif
