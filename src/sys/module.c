/* What is mapped into the process: paths, build ids, and who needs whom; see dylib.h.
 *
 * Everything is copied while the loader holds its lock and visited afterwards: a visitor may load
 * and unload libraries. */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "sys/dylib.h"
#include "sys/file.h"

#define MAX_ID_BYTES 64
#define ID_TEXT (2 * MAX_ID_BYTES + 1)
#define MAX_PATH 4096

/* Offsets into the text that all modules share. `needed` is a row of names, ended by an empty one.
 */
typedef struct module {
    size_t path;
    size_t soname;
    size_t needed;
    char build_id[ID_TEXT];
    bool holds_address;
    bool visited;
} module;

typedef struct snapshot {
    module *modules;
    size_t count;
    size_t capacity;
    kn_strbuf text;
    const void *address;
    bool failed;
} snapshot;

/* ---- one mapped module ---- */

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && at >= start && at - start < segment->p_memsz) {
            return true;
        }
    }
    return false;
}

static size_t align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

/* The build id among the notes of one segment. */
static bool read_notes(const char *notes, size_t size, size_t alignment, char *build_id)
{
    size_t at = 0;
    while (size - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note;
        size_t data = name + align_up(note.n_namesz, 4);
        data = alignment == 8 ? align_up(data, 8) : data;
        if (data > size || note.n_descsz > size - data) {
            return false;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
            note.n_descsz <= MAX_ID_BYTES) {
            kn_hex_encode(notes + data, note.n_descsz, build_id);
            return true;
        }
        at = align_up(data + note.n_descsz, alignment);
        if (at > size) {
            return false;
        }
    }
    return false;
}

static void read_build_id(const struct dl_phdr_info *info, char *build_id)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE &&
            /* the loader's address is a number */
            read_notes((const char *)(info->dlpi_addr + segment->p_vaddr), segment->p_memsz,
                       segment->p_align == 8 ? 8 : 4, build_id)) {
            return;
        }
        bytes += segment->p_type == PT_LOAD ? segment->p_memsz : 0;
    }
    kn_text_putf(build_id, ID_TEXT, "noid:%llu", (unsigned long long)bytes);
}

/* The loader gives no name to the program itself. */
static void read_path(const struct dl_phdr_info *info, char *path, size_t path_size)
{
    if (info->dlpi_name != NULL && info->dlpi_name[0] != '\0') {
        kn_text_put(path, path_size, info->dlpi_name);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", path, path_size - 1);
    path[length > 0 ? length : 0] = '\0';
}

/* ---- the snapshot ---- */

static size_t add_text(snapshot *snap, const char *text)
{
    size_t at = snap->text.length;
    kn_strbuf_append(&snap->text, text, strlen(text) + 1);
    return at;
}

/* The string table of a dynamic section: relocated in place by glibc, not so in the vdso, by musl
 * and on some processors. */
static const char *string_table(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic)
{
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_STRTAB) {
            uintptr_t at = dynamic->d_un.d_ptr;
            at += at < info->dlpi_addr ? info->dlpi_addr : 0;
            return (const char *)at;
        }
    }
    return NULL;
}

static void read_dynamic(snapshot *snap, const struct dl_phdr_info *info, module *out)
{
    const ElfW(Dyn) *dynamic = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    const char *strings = dynamic != NULL ? string_table(info, dynamic) : NULL;
    const char *soname = "";

    out->needed = snap->text.length;
    for (const ElfW(Dyn) *d = dynamic; strings != NULL && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_NEEDED) {
            (void)add_text(snap, strings + d->d_un.d_val);
        } else if (d->d_tag == DT_SONAME) {
            soname = strings + d->d_un.d_val;
        }
    }
    (void)add_text(snap, "");
    out->soname = add_text(snap, soname);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *user)
{
    snapshot *snap = user;
    char path[MAX_PATH];
    (void)size;

    if (snap->count == snap->capacity) {
        size_t capacity = snap->capacity > 0 ? 2 * snap->capacity : 64;
        module *modules = realloc(snap->modules, capacity * sizeof *modules);
        if (modules == NULL) {
            snap->failed = true;
            return 1;
        }
        snap->modules = modules;
        snap->capacity = capacity;
    }
    module *added = &snap->modules[snap->count++];
    *added = (module){.holds_address = snap->address != NULL && holds(info, snap->address)};
    read_path(info, path, sizeof path);
    read_build_id(info, added->build_id);
    added->path = add_text(snap, path);
    read_dynamic(snap, info, added);
    return 0;
}

static void release_snapshot(snapshot *snap)
{
    free(snap->modules);
    kn_strbuf_deinit(&snap->text);
}

static bool take_snapshot(snapshot *snap, const void *address)
{
    *snap = (snapshot){.address = address};
    kn_strbuf_init(&snap->text, 0);
    (void)dl_iterate_phdr(add_module, snap);
    if (snap->failed || !kn_strbuf_ok(&snap->text)) {
        release_snapshot(snap);
        return false;
    }
    return true;
}

static const char *text_at(const snapshot *snap, size_t at)
{
    return kn_strbuf_text(&snap->text) + at;
}

/* ---- the public half ---- */

typedef struct search {
    const void *address;
    char *path;
    size_t path_size;
    char *build_id;
    size_t build_id_size;
} search;

static int visit_if_holding(struct dl_phdr_info *info, size_t size, void *user)
{
    const search *wanted = user;
    char build_id[ID_TEXT];
    (void)size;

    if (!holds(info, wanted->address)) {
        return 0;
    }
    read_build_id(info, build_id);
    if (wanted->path_size > 0) {
        read_path(info, wanted->path, wanted->path_size);
    }
    kn_text_put(wanted->build_id, wanted->build_id_size, build_id);
    return 1;
}

bool kn_module_of_address(const void *address, char *path, size_t path_size, char *build_id,
                          size_t build_id_size)
{
    search wanted = {address, path, path_size, build_id, build_id_size};
    return dl_iterate_phdr(visit_if_holding, &wanted) == 1;
}

bool kn_module_each(kn_module_visit *visit, void *user)
{
    snapshot snap;
    if (!take_snapshot(&snap, NULL)) {
        return false;
    }
    for (size_t i = 0; i < snap.count; i++) {
        visit(user, text_at(&snap, snap.modules[i].path), snap.modules[i].build_id);
    }
    release_snapshot(&snap);
    return true;
}

/* The C library and the loader: every program has them, and they compile nothing. */
static bool is_left_out(const char *name)
{
    static const char *const prefixes[] = {"libc.so",  "libm.so",    "libpthread.so", "libdl.so",
                                           "librt.so", "ld-linux",   "ld-musl",       "ld64.so",
                                           "ld.so",    "linux-vdso", "linux-gate"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (kn_text_starts(name, prefixes[i])) {
            return true;
        }
    }
    return false;
}

static module *find_module(const snapshot *snap, const char *name)
{
    for (size_t i = 0; i < snap->count; i++) {
        const module *m = &snap->modules[i];
        if (strcmp(text_at(snap, m->soname), name) == 0 ||
            strcmp(kn_path_name(text_at(snap, m->path)), kn_path_name(name)) == 0) {
            return &snap->modules[i];
        }
    }
    return NULL;
}

/* Breadth first, in the order of DT_NEEDED: the same at every start, wherever things are mapped. */
static void visit_closure(snapshot *snap, size_t *queue, kn_module_visit *visit, void *user)
{
    size_t first = 0;
    size_t last = 0;
    for (size_t i = 0; i < snap->count && last == 0; i++) {
        if (snap->modules[i].holds_address) {
            snap->modules[i].visited = true;
            queue[last++] = i;
        }
    }
    while (first < last) {
        const module *m = &snap->modules[queue[first++]];
        visit(user, text_at(snap, m->path), m->build_id);
        for (const char *name = text_at(snap, m->needed); name[0] != '\0';
             name += strlen(name) + 1) {
            module *next = is_left_out(kn_path_name(name)) ? NULL : find_module(snap, name);
            if (next != NULL && !next->visited) {
                next->visited = true;
                queue[last++] = (size_t)(next - snap->modules);
            }
        }
    }
}

bool kn_module_closure(const void *address, kn_module_visit *visit, void *user)
{
    snapshot snap;
    if (!take_snapshot(&snap, address)) {
        return false;
    }
    size_t *queue = malloc((snap.count + 1) * sizeof *queue);
    if (queue != NULL) {
        visit_closure(&snap, queue, visit, user);
    }
    bool visited = queue != NULL;
    free(queue);
    release_snapshot(&snap);
    return visited;
}
