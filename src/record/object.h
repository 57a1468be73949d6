/* Files of a recording that are named by their content: texts (zstd where that is smaller),
 * programs, and the uses, which are named by a key.
 *
 *     RECORDING/objects/ab/<sha256 of the text>
 *     RECORDING/programs/ab/<sha256 of the file>
 *     RECORDING/uses/ab/<key>
 *
 * Each is written under another name and renamed, so that a reader sees all of it or nothing, and
 * two that write the same name write the same bytes. */
#ifndef KILN_RECORD_OBJECT_H
#define KILN_RECORD_OBJECT_H

#include "kiln/cache.h"
#include "record/request.h"

/* Larger texts are not recorded: KILN_E_UNSUPPORTED. */
#define KN_OBJECT_MAX ((size_t)64 << 20)
/* No use is larger. */
#define KN_OBJECT_USE_MAX ((size_t)64 << 10)

/* "objects", "programs" or "uses" below `root`; free(). NULL: no memory. */
char *kn_object_path(const char *root, const char *kind, const uint8_t digest[KN_DIGEST_SIZE]);

/* Stores a text unless it is there. `out_written`: bytes that the disk has more; 0 if it was there.
 * Threads: any, and any number of processes. Blocks: disk. Fails: KILN_E_IO, KILN_E_NOMEM,
 * KILN_E_UNSUPPORTED. */
kiln_status kn_object_put(const char *root, const void *text, size_t length, kn_object *out_object,
                          uint64_t *out_written, kiln_diag *diag);
/* Reads one and verifies that it is the text of that digest and size. *out_text has a NUL after its
 * end; free(). KILN_MISS, KILN_E_CORRUPT, KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_object_get(const char *root, const kn_object *object, char **out_text,
                          kiln_diag *diag);

/* Encodes a program and stores it unless it is there; its digest. As kn_object_put. */
kiln_status kn_object_put_program(const char *root, const kn_recorded *program,
                                  uint8_t out_digest[KN_DIGEST_SIZE], uint64_t *out_written,
                                  kiln_diag *diag);
/* Stores a use, in the place of an earlier one. As kn_object_put. */
kiln_status kn_object_put_use(const char *root, const kiln_key *key, const kn_recorded_use *use,
                              uint64_t *out_written, kiln_diag *diag);
/* Whether a use is there; one stat. `out_age_s`, may be NULL: how long ago it was touched. */
bool kn_object_has_use(const char *root, const kiln_key *key, uint64_t *out_age_s);
/* Sets the time of its last use to now, and counts one day more. False if it is not there. */
bool kn_object_stamp_use(const char *root, const kiln_key *key);

#endif
