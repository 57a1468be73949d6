/* The key of a compile that another program asks NVRTC or hipRTC for. */
#ifndef KILN_INTERPOSE_RTC_KEY_H
#define KILN_INTERPOSE_RTC_KEY_H

#include "headers/closure.h"
#include "interpose/rtc_program.h"

typedef struct kn_rtc_key {
    kiln_recipe *recipe;
    kn_closure *closure;
    kiln_source source;
    kn_rtc_options options;
    char *dir;
    bool watch_name;  /* the code may hold the directory of the source's name, which is not keyed */
    char bypass[256]; /* why it bypasses the cache; "" if it does not */
} kn_rtc_key;

/* Makes the key of a compile with the program's options. What cannot be keyed sets `bypass`.
 * KILN_E_NOMEM, KILN_E_INVALID. Blocks: disk. Owns: until deinit it borrows from the program. */
kiln_status kn_rtc_key_init(kn_rtc_key *key, kiln_cache *cache, const kn_rtc_program *program,
                            const kn_rtc_identity *identity, kiln_diag *diag);
/* Whether what a compile gave may be stored under the key: code that holds the directory of the
 * caller's source may not. */
bool kn_rtc_key_fits(const kn_rtc_key *key, const kn_rtc_program *program, kn_span payload);
void kn_rtc_key_deinit(kn_rtc_key *key);

#endif
