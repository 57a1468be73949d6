/* One compile that a program asks NVRTC or hipRTC for: from the cache, or by the real library. */
#ifndef KILN_INTERPOSE_RTC_COMPILE_H
#define KILN_INTERPOSE_RTC_COMPILE_H

#include "engine/job.h"
#include "interpose/rtc_program.h"

/* Compiles with the program's options. The code is what the library would have given. Whatever is
 * wrong with the cache, the real library compiles. Blocks: disk, another's compile, the compiler.
 */
int kn_rtc_program_compile(kn_rtc_program *program);

/* What a compile came to. */
typedef struct kn_rtc_made {
    int code;
    kn_outcome outcome; /* NONE: there is no cache. REFUSED: its key is not the wanted one */
    char reason[256];   /* of PRIVATE */
    kiln_key key;       /* of HIT, STORED */
    uint64_t took_ns, saved_ns;
} kn_rtc_made;

/* The same, for a replay. What has another key than `wanted` is not compiled; NULL: any. */
void kn_rtc_program_make(kn_rtc_program *program, const kiln_key *wanted, kn_rtc_made *out);

#endif
