/* What the system says of a file, as kiln keeps it. For src/sys alone.
 *
 * kn_held_dir_handle is in dir.c, kn_means_missing in fail.c, the others are in file.c. */
#ifndef KILN_SYS_FACTS_H
#define KILN_SYS_FACTS_H

#include "sys/file.h"

/* Whether a file may become so long. A write past the limit that a batch system or a shell has set
 * (RLIMIT_FSIZE, `ulimit -f`) raises SIGXFSZ, which ends a program that never asked for the file:
 * the writer asks first. False with errno EFBIG. */
bool kn_file_may_reach(uint64_t size);

int kn_held_dir_handle(const kn_held_dir *dir);

/* No entry, or a handle to one that another host removed. */
bool kn_means_missing(int error);

struct stat;
void kn_file_take_facts(const struct stat *from, kn_file_facts *out);

#endif
