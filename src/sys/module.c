/* What is mapped into the process: paths, build ids, and who needs whom; see dylib.h.
 *
 * One walk lists the modules, a second one (the loader holds its lock in both, and counts what
 * comes and goes) reads the notes of those that are asked for, as each first touch of a library's
 * pages costs more than all the rest. What is found is copied and visited afterwards: a visitor may
 * load and unload libraries. */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "sys/dylib.h"
#include "sys/elf.h"
#include "sys/file.h"

#define ID_TEXT 129 /* of kn_elf_find_build_id */
#define MAX_PATH 4096

/* How often a walk starts again because libraries came or went. */
#define MAX_TRIES 64

/* Its parts belong to the loader: good while it holds its lock and its counts are the same. */
typedef struct module {
    struct dl_phdr_info info;
    const char *file; /* the path's last part; "" for the program itself */
    bool queued, queued_with_needed;
} module;

typedef struct queued {
    size_t module;
    bool expand; /* it is wanted with what it needs */
    bool tell;   /* it is there for the first time */
} queued;

typedef struct search {
    const void *address;      /* of the module that is wanted with all it needs; or */
    kn_module_choose *choose; /* who says which are wanted */
    void *user;
    module *modules;
    size_t count;
    size_t capacity;
    queued *queue; /* modules to be notified about */
    size_t queued;
    kn_strbuf text; /* path and build id of each, each with its NUL */
    bool failed;
    bool moved; /* libraries came or went between the walks */
} search;

/* ---- one mapped module ---- */

static bool module_holds(const struct dl_phdr_info *info, const void *address)
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

static void read_build_id(const struct dl_phdr_info *info, char *build_id)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_NOTE &&
            /* the loader's address is a number */
            kn_elf_find_build_id((const char *)(info->dlpi_addr + segment->p_vaddr),
                                 segment->p_memsz, segment->p_align == 8 ? 8 : 4, build_id)) {
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

/* ---- who needs whom ---- */

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

/* The dynamic section and its strings; false where there is none. */
static bool find_dynamic(const struct dl_phdr_info *info, const ElfW(Dyn) * *out_dynamic,
                         const char **out_strings)
{
    *out_dynamic = NULL;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            *out_dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        }
    }
    *out_strings = *out_dynamic != NULL ? string_table(info, *out_dynamic) : NULL;
    return *out_strings != NULL;
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

static bool has_soname(const struct dl_phdr_info *info, const char *name)
{
    const ElfW(Dyn) * dynamic;
    const char *strings;
    if (!find_dynamic(info, &dynamic, &strings)) {
        return false;
    }
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SONAME) {
            return strcmp(strings + dynamic->d_un.d_val, name) == 0;
        }
    }
    return false;
}

/* By the file's name, which is the soname nearly always; else by the soname. */
static module *find_module(const search *s, const char *name)
{
    const char *file = kn_path_name(name);
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->modules[i].file, file) == 0) {
            return &s->modules[i];
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        if (has_soname(&s->modules[i].info, name)) {
            return &s->modules[i];
        }
    }
    return NULL;
}

/* ---- the two walks ---- */

static int list_module(struct dl_phdr_info *info, size_t size, void *user)
{
    search *s = user;
    (void)size;
    if (s->count == s->capacity) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 64;
        module *modules = realloc(s->modules, capacity * sizeof *modules);
        if (modules == NULL) {
            s->failed = true;
            return 1;
        }
        s->modules = modules;
        s->capacity = capacity;
    }
    s->modules[s->count++] = (module){
        .info = *info, .file = info->dlpi_name != NULL ? kn_path_name(info->dlpi_name) : ""};
    return 0;
}

/* At most twice: by itself, and then with what it needs. */
static void enqueue_module(search *s, module *m, bool expand)
{
    if (!m->queued || (expand && !m->queued_with_needed)) {
        s->queue[s->queued++] = (queued){(size_t)(m - s->modules), expand, !m->queued};
        m->queued_with_needed = expand;
        m->queued = true;
    }
}

/* Those that are wanted by themselves, in the order in which they are mapped. */
static void choose_roots(search *s)
{
    char path[MAX_PATH];
    for (size_t i = 0; i < s->count; i++) {
        module *m = &s->modules[i];
        if (s->choose == NULL) {
            if (s->queued == 0 && module_holds(&m->info, s->address)) {
                enqueue_module(s, m, true);
            }
            continue;
        }
        read_path(&m->info, path, sizeof path);
        const kn_module_choice choice = s->choose(s->user, path);
        if (choice != KN_MODULE_NO) {
            enqueue_module(s, m, choice == KN_MODULE_WITH_NEEDED);
        }
    }
}

static void report_module(search *s, const module *m)
{
    char path[MAX_PATH];
    char build_id[ID_TEXT];
    read_path(&m->info, path, sizeof path);
    read_build_id(&m->info, build_id);
    kn_strbuf_append(&s->text, path, strlen(path) + 1);
    kn_strbuf_append(&s->text, build_id, strlen(build_id) + 1);
}

/* Breadth first, in the order of DT_NEEDED: the same at every start, wherever things are mapped. */
static void walk_closure(search *s)
{
    choose_roots(s);
    for (size_t first = 0; first < s->queued; first++) {
        const module *m = &s->modules[s->queue[first].module];
        const ElfW(Dyn) * dynamic;
        const char *strings;
        if (s->queue[first].tell) {
            report_module(s, m);
        }
        if (!s->queue[first].expand || !find_dynamic(&m->info, &dynamic, &strings)) {
            continue;
        }
        for (; dynamic->d_tag != DT_NULL; dynamic++) {
            const char *name = strings + dynamic->d_un.d_val;
            if (dynamic->d_tag == DT_NEEDED && !is_left_out(kn_path_name(name))) {
                module *next = find_module(s, name);
                if (next != NULL) {
                    enqueue_module(s, next, true);
                }
            }
        }
    }
}

/* The second walk ends at its first module: it is there for the loader's lock. */
static int look_closer(struct dl_phdr_info *info, size_t size, void *user)
{
    search *s = user;
    (void)size;
    const struct dl_phdr_info *before = &s->modules[0].info;
    if (info->dlpi_adds != before->dlpi_adds || info->dlpi_subs != before->dlpi_subs) {
        s->moved = true;
    } else {
        walk_closure(s);
    }
    return 1;
}

static void find_once(search *s)
{
    s->moved = false;
    s->count = s->queued = 0;
    kn_strbuf_clear(&s->text);
    (void)dl_iterate_phdr(list_module, s);
    free(s->queue);
    s->queue = malloc((2 * s->count + 1) * sizeof *s->queue);
    s->failed = s->failed || s->queue == NULL;
    if (!s->failed && s->count > 0) {
        (void)dl_iterate_phdr(look_closer, s);
    }
}

/* Finds, and then visits. False when out of memory. */
static bool run_search(search *s, kn_module_visit *visit)
{
    int tries = 0;
    kn_strbuf_init(&s->text, 0);
    do {
        find_once(s);
    } while (s->moved && !s->failed && ++tries < MAX_TRIES);
    const bool found = !s->failed && !s->moved && kn_strbuf_ok(&s->text);
    const char *at = kn_strbuf_text(&s->text);
    const char *end = at + (found ? s->text.length : 0);
    while (at < end) {
        const char *build_id = at + strlen(at) + 1;
        visit(s->user, at, build_id);
        at = build_id + strlen(build_id) + 1;
    }
    free(s->queue);
    free(s->modules);
    kn_strbuf_deinit(&s->text);
    return found;
}

/* ---- the public half ---- */

typedef struct place {
    const void *address;
    char *path;
    size_t path_size;
    char *build_id;
    size_t build_id_size;
} place;

static int visit_if_holding(struct dl_phdr_info *info, size_t size, void *user)
{
    const place *wanted = user;
    char build_id[ID_TEXT];
    (void)size;

    if (!module_holds(info, wanted->address)) {
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
    place wanted = {address, path, path_size, build_id, build_id_size};
    return dl_iterate_phdr(visit_if_holding, &wanted) == 1;
}

static kn_module_choice choose_all(void *user, const char *path)
{
    (void)user;
    (void)path;
    return KN_MODULE_ITSELF;
}

bool kn_module_each(kn_module_visit *visit, void *user)
{
    search s = {.choose = choose_all, .user = user};
    return run_search(&s, visit);
}

bool kn_module_select(kn_module_choose *choose, kn_module_visit *visit, void *user)
{
    search s = {.choose = choose, .user = user};
    return run_search(&s, visit);
}

bool kn_module_closure(const void *address, kn_module_visit *visit, void *user)
{
    search s = {.address = address, .user = user};
    return run_search(&s, visit);
}
