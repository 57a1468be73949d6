/* The compiler half of the cpu backend. */
#ifndef KILN_CPU_BACKEND_COMPILER_H
#define KILN_CPU_BACKEND_COMPILER_H

#include "kiln/sys/backend.h"

#include "apis/cpu/backend/instance.h"
#include "base/strbuf.h"

/* include/kiln/cpu.h as bytes, and its SHA-256; made by embed.cmake. */
extern const unsigned char kn_cpu_header[];
extern const size_t kn_cpu_header_size;
extern const char kn_cpu_header_digest[];

#define CPU_HEADER_NAME "kiln_kernel.h"

/* flags.c: options that are always given to the compiler that calls itself `version`, each with a
 * NUL after it. */
void kn_cpu_flags_fixed(const char *version, kn_strbuf *flags);
/* Flags joined by blanks, for a key. */
void kn_cpu_flags_join(const kn_strbuf *flags, kn_strbuf *line);

#endif
