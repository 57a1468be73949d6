/* A program as it was asked for: all that a compile of it needs but the target, with texts by their
 * digests; and one use of it, which has the target. Both are views: they borrow what they name.
 *
 * Recording one:
 *
 *     kn_recorded program = {.frontend = KN_FRONTEND_WALK, .language = source->language, ...};
 *     kn_object_put(root, text, length, &object, ...)    for each text and header: digest, size
 *     kn_recorded_encode(&program, &bytes)               the program's file; its name is its digest
 *
 * Reading one: kn_recorded_decode; kn_recorded_deinit frees the lists, the strings lie in the
 * bytes. docs/reference/formats.md is the specification. */
#ifndef KILN_RECORD_REQUEST_H
#define KILN_RECORD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"
#include "key/digest.h"
#include "kiln/source.h"

typedef enum kn_recorded_frontend {
#define KN_FRONTEND(id, number, name) KN_FRONTEND_##id = (number),
#include "record/frontends.def"
#undef KN_FRONTEND
} kn_recorded_frontend;

/* "opencl"; NULL for a number that this kiln does not know. */
const char *kn_recorded_frontend_name(kn_recorded_frontend frontend);

/* A text by its content: the name of a file below objects/. */
typedef struct kn_object {
    uint8_t digest[KN_DIGEST_SIZE];
    uint64_t size;
} kn_object;

/* A header that was given in memory. */
typedef struct kn_recorded_header {
    const char *name;
    kn_object text;
} kn_recorded_header;

/* One text; those with options and headers of their own are OpenCL's. The other frontends have one
 * text and use its headers, and leave `options` "" (theirs is the program's list). */
typedef struct kn_recorded_text {
    kn_object text;
    const char *options; /* never NULL */
    const kn_recorded_header *headers;
    size_t header_count;
} kn_recorded_text;

/* A file that the text reached, at the path under which the compiler opens it, relative ones as
 * seen from `dir`. */
typedef struct kn_recorded_file {
    const char *path;
    kn_object content;
    bool system; /* found in a directory of the toolchain's own: not written out by a replay */
} kn_recorded_file;

/* What a flag says, or'ed. */
enum {
    KN_RECORDED_LINK = 1u << 0,    /* opencl: clCompileProgram and clLinkProgram */
    KN_RECORDED_DROPIN = 1u << 1,  /* walk: it came through a drop-in, which places no source */
    KN_RECORDED_LAYER = 1u << 2,   /* opencl: it came through the layer, whose entries are others */
    KN_RECORDED_COMPILE = 1u << 3, /* opencl: compiled only, to be linked later */
    KN_RECORDED_RUNTIME = 1u << 4, /* hiprtc: it called the hipRTC that is in HIP's runtime */
};

typedef struct kn_recorded {
    kn_recorded_frontend frontend;
    uint32_t flags;
    kiln_language language;
    const char *name; /* as the caller gave it; NULL: none */
    const char *dir;  /* the current directory, absolute; "" if it does not matter */
    const kn_recorded_text *texts;
    size_t text_count;
    const kiln_define *defines;
    size_t define_count;
    const char *const *options; /* nvrtc, hiprtc: all of them, one for one, -I among them */
    size_t option_count;
    const char *const *include_dirs; /* as they were given, without the source's own directory */
    size_t include_dir_count;
    const char *const *entries; /* kernels; nvrtc, hiprtc: name expressions */
    size_t entry_count;
    const char *link_options; /* opencl; never NULL */
    const kn_recorded_file *files;
    size_t file_count;
} kn_recorded;

/* Begin with this, so that no string is NULL that must not be. */
#define KN_RECORDED_INIT                                                                           \
    (kn_recorded)                                                                                  \
    {                                                                                              \
        .dir = "", .link_options = ""                                                              \
    }

/* One use: the file uses/ab/<key>, where the key is that of the compile's recipe (of the walk's
 * first stage). */
typedef struct kn_recorded_use {
    uint8_t program[KN_DIGEST_SIZE];
    /* "BACKEND:NAME". Where the backend compiles for names, what kiln_compile takes: "cuda:sm_90",
     * "cpu:x86-64-v3", "vulkan:spirv". Else the device's kiln_device_info.target:
     * "opencl:opencl-pocl-cpu". Of the nvrtc and hiprtc frontends the option's value,
     * "cuda:compute_75", "hip:gfx90a:xnack-"; "cuda:" if no option names one. */
    const char *target;
    int64_t first_ns;    /* the first use, since 1970 */
    uint64_t compile_ns; /* what the compile took; 0: it is not known */
    uint32_t days;       /* on how many it was used; 0 of one that is new is 1 */
} kn_recorded_use;

/* Appends the file's bytes. The buffer's failure is the only one. False, and nothing appended, for
 * what no reader would take: a list or a string over its limit. */
bool kn_recorded_encode(const kn_recorded *program, kn_strbuf *out);
bool kn_recorded_use_encode(const kn_recorded_use *use, kn_strbuf *out);

/* Strings are borrowed from `bytes`. KILN_E_CORRUPT for anything that was not encoded here: a wrong
 * magic, version, length, checksum, or a count that the bytes cannot hold. KILN_E_UNSUPPORTED for a
 * later version. KILN_E_NOMEM. After a failure there is nothing to deinit. */
kiln_status kn_recorded_decode(kn_span bytes, kn_recorded *out_program, kiln_diag *diag);
void kn_recorded_deinit(kn_recorded *program);
kiln_status kn_recorded_use_decode(kn_span bytes, kn_recorded_use *out_use, kiln_diag *diag);

#endif
