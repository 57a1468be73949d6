/* Facts about an ELF file that is not loaded: its build id and its machine. A warm start names a
 * compiler library in a key without paying for opening it (NVRTC: 5 ms); the compile compares with
 * the image that was mapped (kn_module_of_address) before storing anything. */
#ifndef KILN_SYS_ELF_H
#define KILN_SYS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#include "base/text.h"

typedef struct kn_elf_facts {
    char build_id[129]; /* GNU build id as hexadecimal, "" if the file has none */
    uint16_t machine;   /* e_machine */
    uint8_t bits;       /* 32 or 64 */
    bool interpreted;   /* a program that the system's loader starts */
    uint64_t size;      /* of the file */
} kn_elf_facts;

/* On Windows, where libraries are PE files: the same of those, build_id being the identity that
 * kn_module_of_address gives.
 *
 * Reads the header, the program headers and the notes of a file. KILN_MISS (no diag) if there is no
 * such file, KILN_E_INVALID if it is not an ELF file of this machine's byte order, KILN_E_IO. */
kiln_status kn_elf_inspect(const char *path, kn_elf_facts *out_facts, kiln_diag *diag);

/* What a key names the file by: its build id, or its size where it has none. */
static inline void kn_elf_identify(const kn_elf_facts *facts, char *out, size_t size)
{
    if (facts->build_id[0] != '\0') {
        kn_text_put(out, size, facts->build_id);
    } else {
        kn_text_putf(out, size, "noid:%llu", (unsigned long long)facts->size);
    }
}

/* The GNU build id among the notes of one segment, whose alignment is 4 or 8, as hexadecimal of at
 * most 128 digits. False if there is none. */
bool kn_elf_find_build_id(const void *notes, size_t size, size_t alignment, char *out_id);

/* True if the file at `path` cannot be mapped into this process; `why` then says so ("it is a
 * 32-bit library, this program is a 64-bit one"). False if it looks right, or cannot be read. */
bool kn_elf_is_foreign(const char *path, char *why, size_t why_size);

#endif
