/* The source files that a PTX text names in .file directives. ptxas looks at each that comes
 * without a time, and writes its time and size into the table of lines of what it makes: the one
 * thing in a CUBIN that neither its input nor its options say.
 *
 * The size is in the key. The time is not, since the same sources have another one on every
 * machine: it is put into the table of a hit, where the table has it. */
#ifndef KILN_CUDA_SHIM_PTX_FILES_H
#define KILN_CUDA_SHIM_PTX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/strbuf.h"
#include "kiln/cache.h"

typedef struct kn_ptx_file {
    char *path;
    bool there;
    bool loose; /* its time is not in the key */
    uint64_t time, size;
} kn_ptx_file;

typedef struct kn_ptx_files {
    kn_ptx_file *items;
    size_t count;
} kn_ptx_files;

/* Finds the directives and looks at the files. False where a directive is not understood, or when
 * out of memory. Blocks: disk. The caller calls deinit in any case. */
bool kn_ptx_files_find(kn_span text, kn_ptx_files *out_files);
void kn_ptx_files_deinit(kn_ptx_files *files);

/* True if the files are as they were when they were found. Blocks: disk. */
bool kn_ptx_files_hold(const kn_ptx_files *files);

void kn_ptx_files_add_to(const kn_ptx_files *files, kiln_recipe *recipe);

/* Where the code has the times of loose files: pairs of file and offset, for
 * kn_ptx_files_set_times. False if a time is found where no table of lines has one: such code is
 * not to be kept. */
bool kn_ptx_files_locate_times(const kn_ptx_files *files, kn_span code, kn_strbuf *out_places);
/* Writes this machine's times. False if a place is not one. */
bool kn_ptx_files_set_times(const kn_ptx_files *files, kn_span places, char *code, size_t length);

#endif
