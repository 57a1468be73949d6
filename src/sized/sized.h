/* Structs that carry their own size, from callers who were compiled with another version of the
 * headers: what kiln/status.h promises of them. A function that takes such a struct looks at it
 * through kn_sized_view (one) or kn_sized_list (an array), and fills one through kn_sized_give;
 * it reads no member of what the caller gave before. */
#ifndef KILN_SIZED_SIZED_H
#define KILN_SIZED_SIZED_H

#include "kiln/status.h"

#define KN_SIZED(type, last) KN_SIZED_##type,
typedef enum kn_sized {
#include "sized/sized.def"
    KN_SIZED_COUNT
} kn_sized;
#undef KN_SIZED

/* More than a struct will ever grow by: a larger struct_size was never set. */
#define KN_SIZED_GROWTH_MAX ((size_t)4096)

typedef struct kn_sized_facts {
    const char *name;
    size_t size_at; /* of struct_size */
    size_t first;   /* what every caller has */
    size_t size;    /* what this library knows */
} kn_sized_facts;

const kn_sized_facts *kn_sized_of(kn_sized kind);

/* What the caller gave, as this library's struct: `given` itself when it has this size, otherwise
 * `room` (one struct), filled with what the caller's has and zeros. NULL after a diag
 * (KILN_E_INVALID): too small, or with something in it that this library does not know. */
const void *kn_sized_view(kn_sized kind, const void *given, void *room, kiln_diag *diag);

/* The same for `count` of them that lie one after the other, as far apart as their maker's
 * struct_size says. *out_list is `given` itself where that will do; otherwise a copy, also in
 * *out_copy: free() that in any case. `count` 0 gives `given`.
 * Fails: KILN_E_INVALID (also where the sizes differ, or the list is NULL), KILN_E_NOMEM. */
kiln_status kn_sized_list(kn_sized kind, const void *given, size_t count, const void **out_list,
                          void **out_copy, kiln_diag *diag);

/* Fills the caller's struct from `value`, this library's: as far as the caller's reaches, with
 * zeros after what this library knows. struct_size stays the caller's. Fails: KILN_E_INVALID
 * (struct_size); nothing is written then. */
kiln_status kn_sized_give(kn_sized kind, const void *value, void *out, kiln_diag *diag);

#endif
