/* A small reader of Windows' executable files (PE32+), by the address that their parts have in
 * memory. Reads bytes with bounds; trusts nothing. This file must not know compilers or devices. */
#ifndef KILN_CPU_BACKEND_PE_H
#define KILN_CPU_BACKEND_PE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KN_PE_EXPORTS = 0, KN_PE_IMPORTS = 1 };

typedef struct kn_pe {
    const unsigned char *data;
    size_t size;
    uint16_t machine, flags, section_count;
    const unsigned char *sections;
    uint32_t directories[2][2]; /* address and size of the exports and of the imports */
} kn_pe;

/* False if it is not a whole 64-bit executable file. */
bool kn_pe_read(kn_pe *pe, const void *data, size_t size);
/* `length` bytes at an address in memory; NULL where the file has none. */
const unsigned char *kn_pe_at(const kn_pe *pe, uint32_t address, size_t length);
/* The text at an address, which ends in the file; NULL: there is none. */
const char *kn_pe_text(const kn_pe *pe, uint32_t address);
/* The index-th name that is exported, and the index-th file that is imported from; NULL past the
 * last, or where the table is damaged. Borrowed from the data. */
const char *kn_pe_export(const kn_pe *pe, uint32_t index);
const char *kn_pe_import(const kn_pe *pe, uint32_t index);

#endif
