/* Work that needs file descriptors, in a program that has used up its own. Without kiln such a
 * program has its compiler open already; with it, the compiler is opened at the first miss. */
#ifndef KILN_INTERPOSE_ROOM_H
#define KILN_INTERPOSE_ROOM_H

#include <stdbool.h>

/* Whether this process may have no more than a few descriptors left. Threads: any. */
bool kn_room_is_short(void);

/* Runs it on a thread with a table of descriptors of its own, from which all but standard output
 * and error are closed: the program keeps its own, and what is open at the end is closed. Where the
 * system does not do that it runs on this thread. Blocks: until it has run. */
void kn_room_run(void (*run)(void *user), void *user);

#endif
