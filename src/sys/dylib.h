/* Dynamic libraries: open by a list of names, bind a symbol table, tell what is mapped.
 *
 * A vendor library's symbols are one X-macro list in a .def file, included once to declare the
 * fields of a table struct and once to make kn_symbol rows: X(since, need, ret, name, (args))
 * kn_dylib_bind is one loop over those rows. `since` is the library's version that introduced the
 * symbol (0: always), `need` KN_REQUIRED or KN_OPTIONAL. A NULL optional is reached only behind the
 * capability that promises it.
 *
 * Opening is in dylib_open.c, loading from bytes in dylib_memory.c, binding in dylib_bind.c,
 * modules in module.c; dylib.c is the system's half. */
#ifndef KILN_SYS_DYLIB_H
#define KILN_SYS_DYLIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/device.h"
#include "kiln/status.h"
#include "kiln/unstable/probe.h"

typedef struct kn_dylib kn_dylib;

enum { KN_OPTIONAL = 0, KN_REQUIRED = 1 };

typedef struct kn_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the table struct */
    uint32_t since;
    int need;
} kn_symbol;

/* The names of a vendor's library: first Windows' one, which is in the system's directory, then
 * those of the other systems. */
#ifdef _WIN32
#define KN_LIBRARY_NAMES(dll, ...)                                                                 \
    {                                                                                              \
        dll, NULL                                                                                  \
    }
#else
#define KN_LIBRARY_NAMES(dll, ...)                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#endif

/* Opens the first of `names` (NULL-terminated; sonames or absolute paths, never relative ones) that
 * loads, with RTLD_NOW | RTLD_LOCAL. On failure `*out_outcome` distinguishes missing from unusable
 * (wrong ELF class, unresolved symbol) and the diag names the file and the loader's words. Returns
 * KILN_E_UNAVAILABLE then. */
kiln_status kn_dylib_open(const char *const *names, kn_dylib **out_lib,
                          kiln_probe_outcome *out_outcome, kiln_diag *diag);
/* The same for a library of kiln's whose dependencies the program may have in another version: its
 * calls go to what it was linked with, whatever the program exports by the same name. Where the
 * program brings an allocator of its own, it is opened as any other. */
kiln_status kn_dylib_open_apart(const char *path, kn_dylib **out_lib,
                                kiln_probe_outcome *out_outcome, kiln_diag *diag);
void kn_dylib_close(kn_dylib *lib);
/* Lets go of the handle and leaves the library mapped: for drivers, whose threads, exit handlers
 * and thread-local destructors outlive their last user. Opening it again costs next to nothing. */
void kn_dylib_retire(kn_dylib *lib);
const char *kn_dylib_path(const kn_dylib *lib);         /* of the file that was mapped */
void *kn_dylib_symbol(kn_dylib *lib, const char *name); /* or NULL */

/* Loads a shared object from bytes; each call loads again. `dirs` (NULL-terminated,
 * absolute) is for tests: where to put the bytes; NULL tries an anonymous file in memory, then the
 * temporary directories. KILN_E_REJECTED with the loader's words when the object is at fault,
 * KILN_E_UNAVAILABLE when no place allows execution. */
kiln_status kn_dylib_open_memory(const void *data, size_t size, const char *const *dirs,
                                 kn_dylib **out_lib, kiln_diag *diag);

/* Fills the function pointers of `table`. `version` is what the library says it is (0: unknown): a
 * required symbol that is newer than it is not missed. KILN_E_UNAVAILABLE names the first required
 * symbol that is absent. */
kiln_status kn_dylib_bind(kn_dylib *lib, const kn_symbol *symbols, size_t count, uint32_t version,
                          void *table, kiln_diag *diag);

/* The GNU build id of the mapped module that contains `address`, as hexadecimal (of the image in
 * memory, not of the file at its path), or its size and a digest-free fallback "noid:<bytes>" when
 * it has none; and its path. False if no module contains the address. */
bool kn_module_of_address(const void *address, char *path, size_t path_size, char *build_id,
                          size_t build_id_size);
/* Calls `visit` for every mapped module: path as mapped, build id as above. False when out of
 * memory; nothing was visited then. */
typedef void kn_module_visit(void *user, const char *path, const char *build_id);
bool kn_module_each(kn_module_visit *visit, void *user);
/* Calls `visit` for those that `choose` wants, and for what is needed by those wanted with it
 * (DT_NEEDED, closed over), each once. `choose` is asked with the loader's lock held: it must not
 * load anything. `visit` may be NULL if it wants none. Cheaper than kn_module_each, which looks
 * into every library. */
typedef enum kn_module_choice {
    KN_MODULE_NO,
    KN_MODULE_ITSELF,
    KN_MODULE_WITH_NEEDED,
} kn_module_choice;
typedef kn_module_choice kn_module_choose(void *user, const char *path);
bool kn_module_select(kn_module_choose *choose, kn_module_visit *visit, void *user);
/* Calls `visit` for the module that contains `address` and for everything it needs (DT_NEEDED,
 * closed over), each once, in a fixed order; libc, libm, libpthread, libdl, librt and the loader
 * left out. False when out of memory; nothing was visited then. */
bool kn_module_closure(const void *address, kn_module_visit *visit, void *user);

#endif
