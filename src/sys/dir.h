/* A directory held open, to look at many names in it: the walk down to it is made once, and the
 * system walks one name a look instead of a path. Nothing else about it is fixed: what is in it is
 * looked up each time. */
#ifndef KILN_SYS_DIR_H
#define KILN_SYS_DIR_H

#include <stdbool.h>

#include "kiln/status.h"
#include "sys/file.h"

typedef struct kn_dir {
    int handle;
} kn_dir;

/* KILN_MISS if there is no such directory; KILN_E_IO if it cannot be entered, or no handle is left:
 * then its names can still be looked at by their paths. No diag: this is not shown to users. */
kiln_status kn_dir_open(const char *path, kn_dir *out_dir);
void kn_dir_close(kn_dir *dir);

/* As kn_file_stat of the name in it. */
kiln_status kn_dir_stat(const kn_dir *dir, const char *name, bool follow, kn_file_facts *out_facts);

#endif
