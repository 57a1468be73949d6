/* See exports.h. Only the table of dynamic symbols is looked at; a file is mapped, so that the rest
 * of a library of 100 MB is not read. */
#include "exec/exports.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct mapped_file {
    const unsigned char *bytes;
    size_t size;
} mapped_file;

typedef struct symbol_table {
    const Elf64_Sym *symbols;
    size_t count;
    const char *names;
    size_t names_size; /* the last byte is a NUL */
} symbol_table;

static bool map_file(const char *path, mapped_file *out)
{
    struct stat facts;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0) {
        bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        out->size = (size_t)facts.st_size;
    }
    if (file >= 0) {
        (void)close(file);
    }
    out->bytes = bytes != MAP_FAILED ? (const unsigned char *)bytes : NULL;
    return bytes != MAP_FAILED;
}

static bool lies_within(const mapped_file *file, uint64_t offset, uint64_t size)
{
    return offset <= file->size && size <= file->size - offset && offset % 8 == 0;
}

/* The section table and its entry of this number; NULL if the file has none. */
static const Elf64_Shdr *find_section(const mapped_file *file, size_t number)
{
    Elf64_Ehdr header;
    if (file->size < sizeof(header)) {
        return NULL;
    }
    memcpy(&header, file->bytes, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr) || number >= header.e_shnum ||
        !lies_within(file, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr))) {
        return NULL;
    }
    return (const Elf64_Shdr *)(const void *)(file->bytes + header.e_shoff) + number;
}

static bool find_symbols(const mapped_file *file, symbol_table *out)
{
    const Elf64_Shdr *section = NULL;
    size_t number = 0;
    while ((section = find_section(file, number)) != NULL && section->sh_type != SHT_DYNSYM) {
        number++;
    }
    const Elf64_Shdr *strings = section != NULL ? find_section(file, section->sh_link) : NULL;
    if (strings == NULL || !lies_within(file, section->sh_offset, section->sh_size) ||
        strings->sh_size == 0 || strings->sh_offset > file->size ||
        strings->sh_size > file->size - strings->sh_offset) {
        return false;
    }
    out->symbols = (const Elf64_Sym *)(const void *)(file->bytes + section->sh_offset);
    out->count = (size_t)(section->sh_size / sizeof(Elf64_Sym));
    out->names = (const char *)file->bytes + strings->sh_offset;
    out->names_size = (size_t)strings->sh_size;
    return out->names[out->names_size - 1] == '\0';
}

/* The name of a function that the library exports, NULL for other symbols. */
static const char *name_of_export(const symbol_table *table, size_t at)
{
    const Elf64_Sym *symbol = &table->symbols[at];
    const bool exported =
        symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && symbol->st_name < table->names_size;
    return exported ? table->names + symbol->st_name : NULL;
}

static bool has_export(const symbol_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *own = name_of_export(table, i);
        if (own != NULL && strcmp(own, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool covers_table(const symbol_table *front, const symbol_table *real, const char *prefix)
{
    for (size_t i = 0; i < real->count; i++) {
        const char *name = name_of_export(real, i);
        if (name != NULL && strncmp(name + strspn(name, "_"), prefix, strlen(prefix)) == 0 &&
            !has_export(front, name)) {
            return false;
        }
    }
    return true;
}

bool exec_exports_have(const char *real, const char *name)
{
    mapped_file file = {NULL, 0};
    symbol_table table;
    const bool has =
        map_file(real, &file) && find_symbols(&file, &table) && has_export(&table, name);
    if (file.bytes != NULL) {
        (void)munmap((void *)(uintptr_t)file.bytes, file.size);
    }
    return has;
}

bool exec_exports_cover(const char *front, const char *real, const char *prefix)
{
    mapped_file files[2] = {{NULL, 0}, {NULL, 0}};
    symbol_table tables[2];
    const bool covered = map_file(front, &files[0]) && map_file(real, &files[1]) &&
                         find_symbols(&files[0], &tables[0]) &&
                         find_symbols(&files[1], &tables[1]) &&
                         covers_table(&tables[0], &tables[1], prefix);
    for (size_t i = 0; i < 2; i++) {
        if (files[i].bytes != NULL) {
            (void)munmap((void *)(uintptr_t)files[i].bytes, files[i].size);
        }
    }
    return covered;
}
