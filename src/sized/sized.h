/* Structs that carry their own size, from callers who were compiled with another version of the
 * headers: what kiln/status.h promises of them. A function that takes such a struct looks at it
 * through kn_sized_view (one) or kn_sized_list (an array), and fills one through kn_sized_give, or
 * kn_sized_begin and kn_sized_end; it reads no member of what the caller gave before. */
#ifndef KILN_SIZED_SIZED_H
#define KILN_SIZED_SIZED_H

#include "kiln/status.h"

#include <stddef.h>

#include "sized/sized_last.h"

/* More than a struct will ever grow by: a larger struct_size was never set. */
#define KN_SIZED_GROWTH_MAX ((size_t)4096)

typedef struct kn_sized_facts {
    const char *name;
    size_t size_at; /* of struct_size */
    size_t first;   /* what every caller has */
    size_t size;    /* what this library knows */
} kn_sized_facts;

/* KN_SIZED(kiln_source): the facts of a struct, where its header is included. */
#define KN_SIZED(type) (&(const kn_sized_facts)KN_SIZED_FACTS(type, KN_SIZED_LAST_##type))
#define KN_SIZED_FACTS(type, last)                                                                 \
    {                                                                                              \
#type, offsetof(type, struct_size), offsetof(type, last) + sizeof(((type *)NULL)->last),   \
            sizeof(type)                                                                           \
    }

/* What the caller gave, as this library's struct: `given` itself when it has this size, otherwise
 * `room` (one struct), filled with what the caller's has and zeros. NULL after a diag
 * (KILN_E_INVALID): too small, or with something in it that this library does not know. */
const void *kn_sized_view(const kn_sized_facts *facts, const void *given, void *room,
                          kiln_diag *diag);

/* The same for `count` of them that lie one after the other, as far apart as their maker's
 * struct_size says. *out_list is `given` itself where that will do; otherwise a copy, also in
 * *out_copy: free() that in any case. `count` 0 gives `given`.
 * Fails: KILN_E_INVALID (also where the sizes differ, or the list is NULL), KILN_E_NOMEM. */
kiln_status kn_sized_list(const kn_sized_facts *facts, const void *given, size_t count,
                          const void **out_list, void **out_copy, kiln_diag *diag);

/* Fills the caller's struct from `value`, this library's: as far as the caller's reaches, with
 * zeros after what this library knows. struct_size stays the caller's. Fails: KILN_E_INVALID
 * (struct_size); nothing is written then. */
kiln_status kn_sized_give(const kn_sized_facts *facts, const void *value, void *out,
                          kiln_diag *diag);

/* For a struct that is filled while a call works: begin looks at the caller's size before anything
 * is done, and zeroes the caller's struct and `value`, this library's, but for their sizes; end
 * gives `value`. */
kiln_status kn_sized_begin(const kn_sized_facts *facts, void *out, void *value, kiln_diag *diag);
void kn_sized_end(const kn_sized_facts *facts, const void *value, void *out);

/* The same for `count` of them that lie one after the other, as far apart as the first one's
 * struct_size says; KILN_E_INVALID also where the sizes differ. */
kiln_status kn_sized_begin_list(const kn_sized_facts *facts, void *out, size_t count, void *values,
                                kiln_diag *diag);
void kn_sized_end_list(const kn_sized_facts *facts, const void *values, size_t count, void *out);

#endif
