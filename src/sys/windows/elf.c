/* Files that are not loaded; see elf.h. There are no ELF libraries here: a file is distinguished
 * from a missing one, and that is all. */
#include "sys/elf.h"

#include <string.h>

#include "sys/file.h"

kiln_status kn_elf_inspect(const char *path, kn_elf_facts *out_facts, kiln_diag *diag)
{
    kn_file_facts facts;
    memset(out_facts, 0, sizeof *out_facts);
    kiln_status status = kn_file_stat(path, true, &facts, diag);
    return status == KILN_OK
               ? kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not an ELF file")
               : status;
}

kiln_status kn_elf_inspect_bytes(const void *data, size_t size, kn_elf_facts *out_facts,
                                 kiln_diag *diag)
{
    (void)data;
    (void)size;
    memset(out_facts, 0, sizeof *out_facts);
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, "an object", "ELF is not for Windows");
}

bool kn_elf_is_foreign(const char *path, char *why, size_t why_size)
{
    (void)path;
    (void)why;
    (void)why_size;
    return false;
}
