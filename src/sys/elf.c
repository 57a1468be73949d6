/* ELF headers and notes of a file. Knows nothing of symbols or of loading. */
#include "sys/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { MAX_PROGRAM_HEADERS = 64, MAX_NOTE = 4096, HEAD_SIZE = 4096, MAX_ID_BYTES = 64 };

/* A file, whose first bytes are in memory. */
typedef struct elf_reader {
    int handle;
    const unsigned char *data; /* the first `held` bytes */
    uint64_t held;
    uint64_t size;
} elf_reader;

static bool read_range(const elf_reader *reader, uint64_t offset, void *to, size_t size)
{
    if (offset > reader->size || size > reader->size - offset) {
        return false;
    }
    if (offset <= reader->held && size <= reader->held - offset) {
        memcpy(to, reader->data + offset, size);
        return true;
    }
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(reader->handle, (char *)to + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

bool kn_elf_find_build_id(const void *notes, size_t size, size_t alignment, char *out_id)
{
    const char *bytes = notes;
    size_t at = 0;
    while (size - at >= sizeof(Elf64_Nhdr)) { /* the same in files of 32 bits */
        Elf64_Nhdr note;
        memcpy(&note, bytes + at, sizeof note);
        size_t name = at + sizeof note;
        size_t data = name + align_up(note.n_namesz, 4);
        data = alignment == 8 ? align_up(data, 8) : data;
        if (data > size || note.n_descsz > size - data) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(bytes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= MAX_ID_BYTES) {
            kn_hex_encode(bytes + data, note.n_descsz, out_id);
            return true;
        }
        at = align_up(data + note.n_descsz, alignment);
        if (at > size) {
            return false;
        }
    }
    return false;
}

static void scan_notes(const elf_reader *reader, const Elf64_Phdr *segment, kn_elf_facts *facts)
{
    unsigned char notes[MAX_NOTE];
    const size_t take =
        segment->p_filesz < sizeof(notes) ? (size_t)segment->p_filesz : sizeof(notes);
    if (read_range(reader, segment->p_offset, notes, take)) {
        (void)kn_elf_find_build_id(notes, take, segment->p_align == 8 ? 8 : 4, facts->build_id);
    }
}

static void scan_headers_64(const elf_reader *reader, const Elf64_Ehdr *header, kn_elf_facts *facts)
{
    for (uint64_t i = 0; i < header->e_phnum && i < MAX_PROGRAM_HEADERS; i++) {
        Elf64_Phdr program;
        if (header->e_phentsize < sizeof(program) ||
            !read_range(reader, header->e_phoff + i * header->e_phentsize, &program,
                        sizeof(program))) {
            return;
        }
        facts->interpreted = facts->interpreted || program.p_type == PT_INTERP;
        if (program.p_type == PT_NOTE && facts->build_id[0] == '\0') {
            scan_notes(reader, &program, facts);
        }
    }
}

static kiln_status inspect_elf(const elf_reader *reader, const char *what, kn_elf_facts *facts,
                               kiln_diag *diag)
{
    unsigned char ident[EI_NIDENT];
    const unsigned int one = 1;
    const bool little = *(const unsigned char *)&one == 1;
    if (!read_range(reader, 0, ident, sizeof(ident)) || memcmp(ident, ELFMAG, SELFMAG) != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "it is not an ELF file");
    }
    if (ident[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what,
                             "it is an ELF file of another byte order");
    }
    facts->size = reader->size;
    facts->bits = ident[EI_CLASS] == ELFCLASS32 ? 32 : 64;
    /* e_machine lies at the same place in both classes. */
    Elf64_Ehdr header;
    memset(&header, 0, sizeof(header));
    if (!read_range(reader, 0, &header,
                    facts->bits == 32 ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr))) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "its header is cut short");
    }
    facts->machine = header.e_machine;
    if (facts->bits == 64) {
        scan_headers_64(reader, &header, facts);
    }
    return KILN_OK;
}

kiln_status kn_elf_inspect(const char *path, kn_elf_facts *out_facts, kiln_diag *diag)
{
    memset(out_facts, 0, sizeof(*out_facts));
    kn_elf_facts facts = {0};
    int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (handle < 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return KILN_MISS;
        }
        return kiln_diag_set(diag, KILN_E_IO, NULL, path, "cannot open it: %s", strerror(errno));
    }
    kiln_status status;
    struct stat st;
    if (fstat(handle, &st) != 0 || !S_ISREG(st.st_mode)) {
        status = kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a regular file");
        goto cleanup;
    }
    /* The headers and, as linkers lay files out, the notes: one call in place of a dozen. */
    unsigned char head[HEAD_SIZE];
    const ssize_t held = pread(handle, head, sizeof(head), 0);
    const elf_reader reader = {handle, head, held > 0 ? (uint64_t)held : 0, (uint64_t)st.st_size};
    status = inspect_elf(&reader, path, &facts, diag);
    if (status == KILN_OK) {
        *out_facts = facts;
    }
cleanup:
    (void)close(handle);
    return status;
}

bool kn_elf_is_foreign(const char *path, char *why, size_t why_size)
{
    kn_elf_facts theirs;
    kn_elf_facts ours;
    const unsigned int our_bits = 8 * sizeof(void *);
    kiln_status status = kn_elf_inspect(path, &theirs, NULL);
    if (status == KILN_E_INVALID) {
        kn_text_put(why, why_size, "it is empty or not a shared library");
        return true;
    }
    if (status != KILN_OK) {
        return false;
    }
    if (theirs.bits != our_bits) {
        kn_text_putf(why, why_size, "it is a %u-bit library, this program is a %u-bit one",
                     (unsigned int)theirs.bits, our_bits);
        return true;
    }
    if (kn_elf_inspect("/proc/self/exe", &ours, NULL) == KILN_OK &&
        theirs.machine != ours.machine) {
        kn_text_putf(why, why_size, "it is for another kind of processor (ELF machine %u, not %u)",
                     (unsigned int)theirs.machine, (unsigned int)ours.machine);
        return true;
    }
    return false;
}
