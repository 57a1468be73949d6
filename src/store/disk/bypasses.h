/* Why compiles bypassed the cache, and what that cost: over all processes, by reason.
 *
 * `<root>/bypasses` is a table (row_table.h) of 64 rows of 512 bytes, each found by the digest of
 * its reason; a new reason takes the row that was used longest ago. */
#ifndef KILN_STORE_BYPASSES_H
#define KILN_STORE_BYPASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KN_BYPASS_ROWS 64u
#define KN_BYPASS_WHAT 120u
#define KN_BYPASS_REASON 352u

typedef struct kn_bypass_row {
    uint64_t count, time_ns;
    int64_t last_ns;  /* wall clock */
    uint32_t process; /* who wrote it last */
    bool told;        /* a process that paid for it again has been informed */
    char what[KN_BYPASS_WHAT];
    char reason[KN_BYPASS_REASON];
} kn_bypass_row;

/* Adds one compile. True if another process has paid for this reason before and it was not logged:
 * the caller is to log it now, and the row says that it was done. */
bool kn_bypasses_add(const char *root, const char *what, const char *reason, uint64_t took_ns);

/* Reads the rows that there are, in no order. */
size_t kn_bypasses_read(const char *root, kn_bypass_row rows[KN_BYPASS_ROWS]);

#endif
