/* The first bytes of an ELF file; see elf.h. */
#include "sys/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static bool read_header(const char *path, ElfW(Ehdr) * out_header, size_t *out_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return false;
    }
    memset(out_header, 0, sizeof *out_header);
    ssize_t got = read(fd, out_header, sizeof *out_header);
    (void)close(fd);
    *out_size = got > 0 ? (size_t)got : 0;
    return got >= 0;
}

bool kn_elf_is_foreign(const char *path, char *why, size_t why_size)
{
    ElfW(Ehdr) theirs;
    ElfW(Ehdr) ours;
    size_t size;
    size_t ours_size;
    const int our_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

    if (!read_header(path, &theirs, &size)) {
        return false;
    }
    if (size < EI_NIDENT || memcmp(theirs.e_ident, ELFMAG, SELFMAG) != 0) {
        kn_text_put(why, why_size, size == 0 ? "it is empty" : "it is not a shared library");
        return true;
    }
    if (theirs.e_ident[EI_CLASS] != our_class) {
        kn_text_putf(why, why_size, "it is a %s-bit library, this program is a %s-bit one",
                     theirs.e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
                     our_class == ELFCLASS64 ? "64" : "32");
        return true;
    }
    if (size == sizeof theirs && read_header("/proc/self/exe", &ours, &ours_size) &&
        ours_size == sizeof ours && theirs.e_machine != ours.e_machine) {
        kn_text_putf(why, why_size, "it is for another kind of processor (ELF machine %u, not %u)",
                     (unsigned)theirs.e_machine, (unsigned)ours.e_machine);
        return true;
    }
    return false;
}
