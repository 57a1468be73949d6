/* Umasks that take rights of the owner: what kiln makes for itself under such a one, it could not
 * use. POSIX. */
#ifndef KILN_SYS_UMASK_H
#define KILN_SYS_UMASK_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether the program's umask is one. False where the system does not say. Blocks: disk. */
bool kn_umask_takes_owners(void);

/* Runs it on a thread whose umask is 077; on this one where the system does not do that. The
 * program's own umask, which all of its other threads share, stays as it is. */
void kn_umask_run_private(void (*run)(void *user), void *user);

/* Gives the owner back what a directory, or an open file, that was just made lacks. */
void kn_umask_mend_dir(const char *path);
void kn_umask_mend_file(int fd, const struct stat *facts);

#endif
