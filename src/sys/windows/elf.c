/* Files that are not loaded; see elf.h. Libraries are PE files here, named as kn_module_of_address
 * names those that are mapped: by the debuggers' GUID, else by the link's stamp, checksum and size.
 * What is an ELF file is one for another system. */
#include "sys/elf.h"

#include <stdint.h>
#include <string.h>
#include <windows.h>

#include "sys/file.h"
#include "sys/windows/loaded.h"

enum { MAX_SECTIONS = 96, MAX_DEBUG_ROWS = 64 };

typedef struct pe_file {
    kn_file *file;
    uint64_t size;
    IMAGE_NT_HEADERS headers;
    IMAGE_SECTION_HEADER sections[MAX_SECTIONS];
    size_t section_count;
} pe_file;

static bool read_range(const pe_file *pe, uint64_t offset, void *to, size_t size)
{
    return offset <= pe->size && size <= pe->size - offset &&
           kn_file_read_at(pe->file, offset, to, size) == KILN_OK;
}

static bool read_headers(pe_file *pe)
{
    IMAGE_DOS_HEADER dos;
    if (!read_range(pe, 0, &dos, sizeof dos) || dos.e_magic != IMAGE_DOS_SIGNATURE ||
        dos.e_lfanew < 0 ||
        !read_range(pe, (uint64_t)dos.e_lfanew, &pe->headers, sizeof pe->headers) ||
        pe->headers.Signature != IMAGE_NT_SIGNATURE) {
        return false;
    }
    const IMAGE_FILE_HEADER *facts = &pe->headers.FileHeader;
    pe->section_count = facts->NumberOfSections;
    return pe->section_count <= MAX_SECTIONS &&
           read_range(pe,
                      (uint64_t)dos.e_lfanew + offsetof(IMAGE_NT_HEADERS, OptionalHeader) +
                          facts->SizeOfOptionalHeader,
                      pe->sections, pe->section_count * sizeof pe->sections[0]);
}

/* Where in the file something lies that is mapped at `address`; UINT64_MAX: nowhere. */
static uint64_t offset_of(const pe_file *pe, uint32_t address)
{
    for (size_t i = 0; i < pe->section_count; i++) {
        const IMAGE_SECTION_HEADER *section = &pe->sections[i];
        if (address >= section->VirtualAddress &&
            address - section->VirtualAddress < section->SizeOfRawData) {
            return (uint64_t)section->PointerToRawData + (address - section->VirtualAddress);
        }
    }
    return UINT64_MAX;
}

static bool read_file_id(const pe_file *pe, char *out, size_t size)
{
    const IMAGE_OPTIONAL_HEADER *facts = &pe->headers.OptionalHeader;
    const IMAGE_DATA_DIRECTORY *where = &facts->DataDirectory[IMAGE_DIRECTORY_ENTRY_DEBUG];
    const size_t count = facts->NumberOfRvaAndSizes > IMAGE_DIRECTORY_ENTRY_DEBUG
                             ? where->Size / sizeof(IMAGE_DEBUG_DIRECTORY)
                             : 0;
    const uint64_t start = offset_of(pe, where->VirtualAddress);
    for (size_t i = 0; start != UINT64_MAX && i < count && i < MAX_DEBUG_ROWS; i++) {
        IMAGE_DEBUG_DIRECTORY row;
        kn_code_view record;
        if (read_range(pe, start + i * sizeof row, &row, sizeof row) &&
            row.Type == IMAGE_DEBUG_TYPE_CODEVIEW && row.AddressOfRawData != 0 &&
            row.SizeOfData >= sizeof record &&
            read_range(pe, offset_of(pe, row.AddressOfRawData), &record, sizeof record) &&
            kn_code_view_is_one(&record) && 2 * sizeof record.id < size) {
            kn_hex_encode(record.id, sizeof record.id, out);
            return true;
        }
    }
    return false;
}

static void take_facts(pe_file *pe, kn_elf_facts *out)
{
    out->machine = pe->headers.FileHeader.Machine;
    out->size = pe->size;
    out->bits = pe->headers.OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR64_MAGIC   ? 64
                : pe->headers.OptionalHeader.Magic == IMAGE_NT_OPTIONAL_HDR32_MAGIC ? 32
                                                                                    : 0;
    if (out->bits != 64) {
        return; /* the rest has another layout */
    }
    if (!read_file_id(pe, out->build_id, sizeof out->build_id) &&
        !kn_link_name(&pe->headers, out->build_id, sizeof out->build_id)) {
        out->build_id[0] = '\0';
    }
}

kiln_status kn_elf_inspect(const char *path, kn_elf_facts *out_facts, kiln_diag *diag)
{
    pe_file pe = {0};
    kn_file_facts facts;
    memset(out_facts, 0, sizeof *out_facts);
    kiln_status status = kn_file_stat(path, true, &facts, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_file_open(path, false, &pe.file, diag);
    if (status != KILN_OK) {
        return status;
    }
    pe.size = facts.size;
    if (read_headers(&pe)) {
        take_facts(&pe, out_facts);
    } else {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a program or library");
    }
    kn_file_close(pe.file);
    return status;
}

bool kn_elf_is_foreign(const char *path, char *why, size_t why_size)
{
    (void)path;
    (void)why;
    (void)why_size;
    return false;
}
