/* One compile that a program asks NVRTC or hipRTC for: from the cache, or by the real library. */
#ifndef KILN_INTERPOSE_RTC_COMPILE_H
#define KILN_INTERPOSE_RTC_COMPILE_H

#include "interpose/rtc_program.h"

/* Compiles with the program's options. The code is what the library would have given. Whatever is
 * wrong with the cache, the real library compiles. Blocks: disk, another's compile, the compiler.
 */
int kn_rtc_program_compile(kn_rtc_program *program);

#endif
