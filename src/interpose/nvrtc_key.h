/* The key of a compile that another program asks NVRTC for. */
#ifndef KILN_INTERPOSE_NVRTC_KEY_H
#define KILN_INTERPOSE_NVRTC_KEY_H

#include "headers/closure.h"
#include "interpose/nvrtc_program.h"

/* The NVRTC behind a program, by its files: what a hit depends on without opening it. */
typedef struct kn_nvrtc_identity {
    char nvrtc[140], builtins[140]; /* build ids, or sizes */
    char builtins_name[64];         /* libnvrtc-builtins.so.13.0 */
} kn_nvrtc_identity;

/* KILN_E_UNAVAILABLE where the library's files cannot be read. */
kiln_status kn_nvrtc_identity_find(const kn_nvrtc_real *library, kn_nvrtc_identity *out,
                                   kiln_diag *diag);
/* True if the library that is mapped is the one that the keys name. */
bool kn_nvrtc_identity_holds(const kn_nvrtc_identity *identity, const kn_nvrtc_table *real);

typedef struct kn_nvrtc_key {
    kiln_recipe *recipe;
    kn_closure *closure;
    kiln_source source;
    const char **options, **directories;
    char *folder;
    bool watch_name;  /* the code may hold the directory of the source's name, which is not keyed */
    char bypass[256]; /* why it bypasses the cache; "" if it does not */
} kn_nvrtc_key;

/* Makes the key of a compile with the program's options. What cannot be keyed sets `bypass`.
 * KILN_E_NOMEM, KILN_E_INVALID. Blocks: disk. Owns: until deinit it borrows from the program. */
kiln_status kn_nvrtc_key_init(kn_nvrtc_key *key, kiln_cache *cache, const kn_nvrtc_program *program,
                              const kn_nvrtc_identity *identity, kiln_diag *diag);
/* Whether what a compile gave may be stored under the key: code that holds the directory of the
 * caller's source may not. */
bool kn_nvrtc_key_fits(const kn_nvrtc_key *key, const kn_nvrtc_program *program, kn_span payload);
void kn_nvrtc_key_deinit(kn_nvrtc_key *key);

#endif
