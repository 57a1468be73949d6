/* What names a library; for src/sys/windows alone. */
#ifndef KILN_SYS_WINDOWS_LOADED_H
#define KILN_SYS_WINDOWS_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <windows.h>

#include "base/text.h"

/* "RSDS", a GUID and a count: what names a build to debuggers. */
typedef struct kn_code_view {
    char magic[4];
    unsigned char id[20];
} kn_code_view;

static inline bool kn_code_view_is_one(const kn_code_view *record)
{
    return memcmp(record->magic, "RSDS", sizeof record->magic) == 0;
}

/* The name of a build without one: the link's stamp, checksum and size. False where there is
 * neither stamp nor checksum. */
static inline bool kn_link_name(const IMAGE_NT_HEADERS *headers, char *out, size_t size)
{
    const unsigned long stamp = headers->FileHeader.TimeDateStamp;
    const unsigned long sum = headers->OptionalHeader.CheckSum;
    kn_text_putf(out, size, "%08lx%08lx%08lx", stamp, sum,
                 (unsigned long)headers->OptionalHeader.SizeOfImage);
    return stamp != 0 || sum != 0;
}

#endif
