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

/* options.c: what the options of a C compiler mean for a key, by a closed list for gcc and clang.
 * Pure text work: opens nothing and calls nobody. */
typedef struct kn_cpu_option_facts {
    const char *reason; /* why the compile bypasses the cache, static; NULL if it need not */
    bool names;         /* the object holds the names of files: debug information */
} kn_cpu_option_facts;

/* Reads options one by one, as the compiler's command line has them. */
void kn_cpu_options_read(const char *const *options, size_t count, kn_cpu_option_facts *out);

#endif
