/* Nothing: who waits for a child has skipped the test by then; see posix.h. */
