/* How tests talk to the preloaded fault injector (faultfs.c).
 *
 * A test that says FAULTFS in its kiln_test() runs with the module preloaded. Its children inherit
 * it, and take their rules from the environment:
 *
 *     KILN_FAULT_PREFIX=/tmp/x      only paths that begin so, and descriptors opened under it
 *     KILN_FAULT=rule;rule;...      rule = op:when:effect[:part]
 *
 *     op      open (openat), write (pwrite, writev), read (pread), fsync (fdatasync), rename,
 *             writeback (sync_file_range), lock (fcntl F_*LK*), mkdir, unlink, rmdir, truncate,
 *             mmap, link (linkat), tmpfile (an open of a file without a name; "open" counts it,
 *             too)
 *     when    "3" the third such call, "3+" it and all later ones, "*" all
 *     part    counts and hits only calls whose path contains this text
 *     effect  ENOSPC, EIO, 28, ...  the call fails so and does nothing
 *             late-EIO              the call is done, and then reported as failed
 *             short                 half of the bytes are written or read, at least one
 *             skip                  (lock) not done, and reported as done
 *             kill, kill-after      SIGKILL before or after the call
 *             stop, stop-after      SIGSTOP before or after the call
 *             sleep-20              a pause of so many milliseconds before the call
 *
 * In the test's own process kt_faultfs_set replaces rules and counters. */
#ifndef KILN_TESTS_FAULTFS_H
#define KILN_TESTS_FAULTFS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int faultfs_set_fn(const char *prefix, const char *rules);
typedef uint64_t faultfs_hits_fn(void);

/* False in sanitizer builds and where the module was not preloaded: skip the test then. */
static inline bool kt_faultfs_available(void)
{
    return dlsym(RTLD_DEFAULT, "faultfs_set") != NULL;
}

/* Aborts on a malformed rule. NULL or "" as rules turns the injector off. */
static inline void kt_faultfs_set(const char *prefix, const char *rules)
{
    faultfs_set_fn *set = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "faultfs_set");
    if (set == NULL || set(prefix, rules) != 0) {
        (void)fprintf(stderr, "faultfs: not preloaded, or bad rules: %s\n",
                      rules != NULL ? rules : "(none)");
        abort();
    }
}

/* Faults injected since the last set. */
static inline uint64_t kt_faultfs_hits(void)
{
    faultfs_hits_fn *hits = NULL;
    *(void **)&hits = dlsym(RTLD_DEFAULT, "faultfs_hits");
    return hits != NULL ? hits() : 0;
}

#endif
