/* What the tests of the recorder share: a cache that records, and programs that are recorded. */
#ifndef KILN_TESTS_RECORDER_WORLD_H
#define KILN_TESTS_RECORDER_WORLD_H

#include <stdint.h>

#include <kiln/unstable/counters.h>

#include "record/recorder.h"

typedef struct recorder_world {
    char *root;      /* of the test */
    char *recording; /* root/recorded, which is not made yet */
    kiln_cache *cache;
} recorder_world;

int rw_setup(void **state);
int rw_teardown(void **state);

/* Opens the cache, which records programs up to `max_bytes` (0: the default) in `recording`. */
kiln_cache *rw_open(recorder_world *w, uint64_t max_bytes);
void rw_close(recorder_world *w);

kiln_key rw_key(const char *text);
/* Records a program of this text and header under a key; false: it need not, or cannot be. */
bool rw_record(kiln_cache *cache, const char *key, const char *text, const char *header);
uint64_t rw_counter(const recorder_world *w, enum kiln_counter counter);

/* Opens the recording, which is whole, and reads every text of every program; the uses. */
size_t rw_count_uses(const char *recording);
/* Files below recording/kind. */
size_t rw_count(const recorder_world *w, const char *kind);

#endif
