/* AddressSanitizer's runtime, linked as a library, refuses a program in which another library comes
 * before it. kiln's libraries do, and replace none of its functions. `kiln exec` preloads them by a
 * path with KN_PRELOAD_MARK in it (exec/preload.h), and a library whose path holds that name is the
 * runtime itself to this check. So an AddressSanitizer of any version accepts the order, whatever
 * options the program has.
 *
 * What is left to do here: a runtime that comes late, behind other libraries, must be refused as
 * without kiln. The runtime asks a program for options by a function, before it checks the order.
 * kiln's function takes the name out of the path where the runtime is late. It also gives the
 * option that accepts the order, for a loader by which `kiln exec` could not use such a path.
 *
 * This runs before the runtime has found the functions that it stands in front of. So it calls none
 * of the C library that it intercepts, and is compiled without the compiler's own calls of them. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mark.h"

#define EXPORT __attribute__((visibility("default")))

static bool starts_with(const char *text, const char *start)
{
    while (*start != '\0' && *text == *start) {
        text++;
        start++;
    }
    return *start == '\0';
}

/* NULL: the text does not hold it. */
static const char *find_part(const char *text, const char *part)
{
    while (*text != '\0' && !starts_with(text, part)) {
        text++;
    }
    return *text != '\0' ? text : NULL;
}

/* Of a library of kiln's, the length of the directory that all of them lie below: of
 * LIBEXEC/preload/haswell/libnvrtc.so.13, or of LIBEXEC/nvrtc/13/libnvrtc.so.13. */
static size_t measure_place(const char *path)
{
    size_t ends[3] = {0, 0, 0};
    for (size_t i = 0; path[i] != '\0'; i++) {
        if (path[i] == '/') {
            ends[0] = ends[1];
            ends[1] = ends[2];
            ends[2] = i;
        }
    }
    return ends[0];
}

static bool lies_below(const char *path, const char *other, size_t length)
{
    for (size_t i = 0; i <= length; i++) {
        if (path[i] == '\0' || path[i] != other[i]) {
            return false;
        }
    }
    return true; /* with the slash */
}

static bool holds_address(const struct dl_phdr_info *info, const void *address)
{
    const ElfW(Addr) at = (ElfW(Addr))address;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && at >= start && at - start < part->p_memsz) {
            return true;
        }
    }
    return false;
}

typedef struct first_library {
    const char *own;  /* the path of this library */
    const char *name; /* the first that is not kiln's */
} first_library;

static int find_own(struct dl_phdr_info *info, size_t size, void *user)
{
    static const char here[] = "";
    first_library *first = user;
    (void)size;
    if (!holds_address(info, here)) {
        return 0;
    }
    first->own = info->dlpi_name;
    return 1;
}

static int find_first(struct dl_phdr_info *info, size_t size, void *user)
{
    first_library *first = user;
    const char *name = info->dlpi_name;
    (void)size;
    if (name == NULL || *name == '\0' || starts_with(name, "linux-") ||
        lies_below(name, first->own, measure_place(first->own))) {
        return 0; /* the program, the kernel's part, kiln's */
    }
    first->name = name;
    return 1;
}

/* Slashes in the place of the name and the dots behind it: the path leads to the same file. */
static int remove_mark(struct dl_phdr_info *info, size_t size, void *user)
{
    const char *mark = info->dlpi_name != NULL ? find_part(info->dlpi_name, KN_PRELOAD_MARK) : NULL;
    (void)size;
    (void)user;
    for (size_t i = 0; mark != NULL && i < sizeof(KN_PRELOAD_MARK) - 1; i++) {
        ((volatile char *)(uintptr_t)mark)[i] = '/';
    }
    return 0;
}

EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    first_library first = {NULL, NULL};
    if (dl_iterate_phdr(find_own, &first) == 0 || first.own == NULL ||
        dl_iterate_phdr(find_first, &first) == 0) {
        return "";
    }
    if (find_part(first.name, "libasan.so") != NULL ||
        find_part(first.name, "libclang_rt.asan") != NULL) {
        return "verify_asan_link_order=0";
    }
    (void)dl_iterate_phdr(remove_mark, NULL);
    return "";
}
