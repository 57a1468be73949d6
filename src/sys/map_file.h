/* A whole file as read-only memory, for packs alone (FIELD D5): everything else is read, because a
 * mapped file that is cut short under its reader kills the reader (SIGBUS). A program that replaces
 * a mapped file must publish another one over its name and never write to the old one. */
#ifndef KILN_SYS_MAP_FILE_H
#define KILN_SYS_MAP_FILE_H

#include <stddef.h>

#include "kiln/status.h"
#include "sys/file.h"

typedef struct kn_map_file {
    const void *data; /* page-aligned; NULL for an empty file */
    size_t size;
    kn_file_facts facts; /* of the file that was opened */
} kn_map_file;

/* Links are followed. Costs the same whatever the size. KILN_MISS (no diag) if there is none,
 * KILN_E_INVALID if it is not a regular file, KILN_E_IO. */
kiln_status kn_map_file_open(const char *path, kn_map_file *out_map, kiln_diag *diag);
void kn_map_file_close(kn_map_file *map);

#endif
