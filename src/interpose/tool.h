/* A tool of another project that kiln stands in for: named in keys, run on files in memory, or put
 * in this process's place. Linux. */
#ifndef KILN_INTERPOSE_TOOL_H
#define KILN_INTERPOSE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "kiln/cache.h"

/* Names the file in keys: by its build id, or by its content. The digest of that is remembered by
 * what the system says of the file, so that a hit does not read it. False if it is not an ELF file.
 * Blocks: disk. */
bool kn_tool_identify(kiln_cache *cache, const char *path, char *out, size_t size);

/* Files that live as long as this process, for the tool: read by "/proc/self/fd/N". */
int kn_tool_memory_file(kn_span content);
void kn_tool_memory_name(int file, char out[32]);
/* malloc'ed, with a NUL after it; NULL when out of memory or over 1 GiB. */
char *kn_tool_memory_read(int file, size_t *out_length);

/* Runs the tool with its output and errors in two files of memory. It ends with this process. False
 * if it did not exit by itself. */
bool kn_tool_run(const char *path, char *const *argv, int out_file, int error_file, int *out_code);

/* Puts the tool into this process's place; returns only if that fails. */
void kn_tool_become(const char *path, char *const *argv);

#endif
