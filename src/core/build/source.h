/* A source as it will be compiled: checked, its own directory first among the include dirs. */
#ifndef KILN_CORE_SOURCE_H
#define KILN_CORE_SOURCE_H

#include <stdbool.h>

#include "kiln/cache.h"
#include "kiln/source.h"

typedef struct kn_resolved {
    kiln_source source;   /* what backends get; borrows from the caller's and from below */
    kiln_source searched; /* the same with include dirs as the compiler searches them */
    kiln_source reduced;  /* language, name and entries alone: for later stages */
    const char **include_dirs, **searched_dirs;
    char *dir;       /* of the source's name, or NULL */
    bool not_beside; /* that is not searched */
} kn_resolved;

/* Refuses a source that lacks what it must have: KILN_E_INVALID. */
kiln_status kn_source_check(const kiln_source *source, kiln_diag *diag);

/* Blocks: never. Owns: the result borrows from `source`. Fails: KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status kn_source_resolve(const kiln_source *source, kn_resolved *out_resolved,
                              kiln_diag *diag);
/* Says that the compiler looks into the current directory before all include dirs. */
kiln_status kn_source_search_current(kn_resolved *resolved, kiln_diag *diag);
/* Says that no include is searched in the directory of its includer, the source's own included. */
void kn_source_search_not_beside(kn_resolved *resolved);
void kn_resolved_deinit(kn_resolved *resolved);

/* Adds what a source says to the recipe of a first stage: language, text, defines and options in
 * their order; and the entries, which every stage has. Never a path. */
void kn_source_add_to(const kiln_source *source, kiln_recipe *recipe);
void kn_source_add_entries(const kiln_source *source, kiln_recipe *recipe);

#endif
