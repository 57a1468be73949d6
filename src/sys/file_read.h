/* Reading a whole file through a handle of the system's. For src/sys alone. The last two are in
 * file.c. */
#ifndef KILN_SYS_FILE_READ_H
#define KILN_SYS_FILE_READ_H

#include "sys/file.h"

#ifdef _WIN32
typedef void *kn_handle;
#else
typedef int kn_handle;
#endif

/* Where a file is read to. */
typedef struct kn_room {
    size_t before; /* free bytes in front of it; 0: it begins where the memory does */
    const kn_file_gate *gate;
    char *memory;
    size_t at, size;
} kn_room;

/* Reads a regular file of at most `limit` bytes, with a NUL after it, into memory that it makes;
 * `facts` are the handle's. */
kiln_status kn_file_read_handle(kn_handle handle, const kn_file_facts *facts, const char *path,
                                size_t limit, kn_room *to, kiln_diag *diag);

/* Each system's: reads until `size` bytes or the end of the file; and opens and reads a file, whose
 * facts are left alone on failure. */
kiln_status kn_file_read_some(kn_handle handle, const char *path, char *data, size_t size,
                              size_t *out_got, kiln_diag *diag);
kiln_status kn_file_read_room(const kn_held_dir *dir, const char *path, size_t limit, bool nofollow,
                              kn_room *to, kn_file_facts *out_facts, kiln_diag *diag);

#endif
