/* What kiln-nvrtc is asked, as it lies in the request's bytes; and its parts.
 *
 * Request and answer are lists of frames: a letter, a length (u32, little-endian) and that many
 * bytes; text has a NUL after it that the length does not count.
 * src/apis/cuda/backend/helper.c is the other side.
 * Request: V version "1", S source, N its name, O option, E name expression, K what is
 * wanted (c CUBIN, p PTX, l LTO IR); P path of the precompiled header without its ending, T length
 * of the leading directives (decimal), F a file that the header is made of (four u64: size, mtime,
 * ctime, inode; then the path; size UINT64_MAX: nothing may be there).
 * Answer: R NVRTC's result (decimal), G log, B binary, W lowered names in order, Q what became of
 * the precompiled header (u used, n none, r refused). */
#ifndef KILN_NVRTC_REQUEST_H
#define KILN_NVRTC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_OPTIONS = 2048, MAX_EXPRESSIONS = 4096, MAX_FILES = 65536 };

typedef struct request {
    const char *nvrtc, *builtins; /* paths, from the command line */
    char *source;
    const char *name;
    const char *options[MAX_OPTIONS + 4];
    int option_count;
    const char *expressions[MAX_EXPRESSIONS];
    size_t expression_count;
    char kind;
    const char *pch;              /* NULL: none is wanted */
    size_t leading;               /* bytes of the source */
    const char *files[MAX_FILES]; /* bodies of the F frames */
    size_t file_count;
} request;

typedef enum pch_use { PCH_NONE, PCH_USE, PCH_CREATE } pch_use;

/* compile.c: compiles and, with `answer`, writes the answer to standard output. `path` is the
 * precompiled header's for PCH_USE and PCH_CREATE. True if NVRTC was content and, for PCH_CREATE,
 * the file was made; *out_refused: PCH_USE, and NVRTC would not have it. */
bool compile(request *asked, pch_use use, const char *path, bool answer, bool *out_refused);

/* precompile.c: the header to use now ("" if none), made next to this process if it is not there:
 * `path` holds 4096 bytes. */
pch_use precompile(request *asked, char *path);

#endif
