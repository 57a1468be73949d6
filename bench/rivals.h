/* What bench_cache compares kiln with: stores of bytes by key. A rival that was not built, or
 * cannot be opened, has a NULL handle and is left out of the table. */
#ifndef KILN_BENCH_RIVALS_H
#define KILN_BENCH_RIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rival_ops {
    const char *name;
    /* `root` is a directory of its own. `durable`: a put is on disk when it returns. NULL:
     * cannot. */
    void *(*open)(const char *root, bool durable);
    bool (*put)(void *self, uint32_t key, const void *data, size_t size);
    /* Copies at most `room` bytes out and returns how many there are; 0 if there are none. */
    size_t (*get)(void *self, uint32_t key, void *data, size_t room);
    void (*close)(void *self);
} rival_ops;

extern const rival_ops rival_kiln, rival_files, rival_lmdb, rival_sqlite;
enum { RIVALS = 4 };
extern const rival_ops *const rivals[RIVALS]; /* kiln first */

#endif
