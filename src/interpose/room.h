/* Compiles in a process that is at its limit of file descriptors. Without kiln such a program has
 * loaded its compiler before; kiln loads the compiler at the first miss, which needs descriptors.
 */
#ifndef KILN_INTERPOSE_ROOM_H
#define KILN_INTERPOSE_ROOM_H

#include <stdbool.h>

/* Whether this process may have only a few descriptors left. Threads: any. */
bool kn_room_is_short(void);

/* Calls run(user) on a thread with its own descriptor table (unshare(2), CLONE_FILES). Only
 * standard output and error stay open in that table; the program's table doesn't change.
 * Descriptors that `run` leaves open are closed. Where unshare is refused, calls run(user) on this
 * thread. Blocks: until `run` returns. */
void kn_room_run(void (*run)(void *user), void *user);

#endif
