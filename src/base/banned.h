/* Functions that are easy to misuse become compile errors. Included by the build for every file of
 * the library; the replacement is in strbuf.h, span.h or sys/. */
#ifndef KILN_BASE_BANNED_H
#define KILN_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi atol localtime gmtime ctime     \
    asctime
#endif

#endif
