/* What the headers of an ELF file say, read without loading it. For src/sys alone. */
#ifndef KILN_SYS_ELF_H
#define KILN_SYS_ELF_H

#include <stdbool.h>
#include <stddef.h>

/* True if the file at `path` cannot be mapped into this process; `why` then says so ("it is a
 * 32-bit library, this program is a 64-bit one"). False if it looks right, or cannot be read. */
bool kn_elf_is_foreign(const char *path, char *why, size_t why_size);

#endif
