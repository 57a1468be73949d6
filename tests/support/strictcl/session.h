/* The layers' session for tests: in the place of src/interpose/session.c, with a cache of the
 * test's own choice, and counts in the place of a report. */
#ifndef KILN_TESTS_STRICTCL_SESSION_H
#define KILN_TESTS_STRICTCL_SESSION_H

#include "interpose/session.h"

/* A cache in memory, or on disk in `root`, until the next call. */
void session_open(const char *root);
/* None: what the layer gets where the cache cannot be opened. */
void session_close(void);
/* How many builds had this origin since the last call of session_open. */
size_t session_count(const char *origin);

#endif
