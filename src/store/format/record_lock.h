/* Locks on the record of statistics: bytes of its own file, far past its end.
 *
 * A process may be stopped while it holds one, for hours. So nobody waits for long: who has waited
 * KN_RECORD_STUCK_NS puts a copy of the file in the place of the file, on which nobody holds
 * anything, and goes on with that. The one who was passed over finds out by kn_record_is_locked;
 * what it wrote meanwhile went into the old file, or into the copy if it came before (kn_record's
 * `copied` says which). To pass over a process that was merely slow is as harmless.
 *
 * What lies in the place of the file, and is not a file or belongs to another user, can go from a
 * root of ours. */
#ifndef KILN_STORE_FORMAT_RECORD_LOCK_H
#define KILN_STORE_FORMAT_RECORD_LOCK_H

#include "sys/lock.h"

/* The evictor's, and a writer's. Then those of who replaces the file. */
enum { KN_RECORD_EVICT = 1 << 20, KN_RECORD_STATS, KN_RECORD_REPLACE };

#define KN_RECORD_STUCK_NS UINT64_C(20000000)

/* Waits at most `patience_ns`; with less than KN_RECORD_STUCK_NS nobody is passed over. Where there
 * are no locks, the answer is that it is held. KILN_E_BUSY; KILN_E_IO. */
kiln_status kn_record_lock(const char *path, uint64_t byte, uint64_t patience_ns,
                           kn_lock_file **out_lock);
/* Whether it has been held from kn_record_lock until now. */
bool kn_record_is_locked(const kn_lock_file *lock, const char *path);
/* The same for who has just written. A copy that is being made at this moment is waited for, for a
 * moment: what was written may be in it or not. */
bool kn_record_is_settled(kn_lock_file *lock, const char *path);
/* NULL is fine. */
void kn_record_unlock(kn_lock_file *lock, uint64_t byte);

/* Removes what is in the place of a file. True if it is gone. */
bool kn_record_clear_the_way(const char *path);

#endif
