/* One function that runs when the library is unloaded (dlclose) or the process ends in order:
 * exit() or a return from main, after what the program itself gave to atexit. It does not run after
 * _exit(), quick_exit() or a signal, and never on Windows, where a library is unloaded when its
 * threads have been killed with their locks held.
 *
 * The program's threads may be running meanwhile, and one of them may hold any lock, the caller of
 * exit() too: the function must not wait for a lock, nor call anything of a driver. */
#ifndef KILN_SYS_UNLOAD_H
#define KILN_SYS_UNLOAD_H

typedef void kn_unload_fn(void);

/* There is one; setting the same one again does nothing. Threads: any. */
void kn_unload_set(kn_unload_fn *run);

#endif
