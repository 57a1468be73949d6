/* What is mapped into the process: paths, identities, and who needs whom; see dylib.h.
 *
 * Every module that is looked at is held meanwhile: another thread may unload it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <psapi.h>

#include "base/text.h"
#include "sys/dylib.h"
#include "sys/windows/loaded.h"
#include "sys/windows/wide.h"

#define MAX_MODULES 4096
#define PATH_ROOM 4096
#define ID_TEXT 64

/* ---- one mapped module ---- */

static const char *image_of(HMODULE module)
{
    return (const char *)module; /* the handle is the address */
}

static const IMAGE_NT_HEADERS *headers_of(HMODULE module)
{
    const IMAGE_DOS_HEADER *dos = (const IMAGE_DOS_HEADER *)(const void *)image_of(module);
    return (const IMAGE_NT_HEADERS *)(const void *)(image_of(module) + dos->e_lfanew);
}

/* A table of the image, or NULL where it has none. */
static const void *table_of(HMODULE module, unsigned which, size_t *out_size)
{
    const IMAGE_OPTIONAL_HEADER *facts = &headers_of(module)->OptionalHeader;
    const IMAGE_DATA_DIRECTORY *where = &facts->DataDirectory[which];
    if (which >= facts->NumberOfRvaAndSizes || where->VirtualAddress == 0 || where->Size == 0 ||
        where->VirtualAddress >= facts->SizeOfImage) {
        return NULL;
    }
    *out_size = where->Size;
    return image_of(module) + where->VirtualAddress;
}

static bool read_debug_id(HMODULE module, char *build_id)
{
    size_t size = 0;
    const IMAGE_DEBUG_DIRECTORY *rows = table_of(module, IMAGE_DIRECTORY_ENTRY_DEBUG, &size);
    for (size_t i = 0; rows != NULL && i < size / sizeof *rows; i++) {
        kn_code_view record;
        if (rows[i].Type != IMAGE_DEBUG_TYPE_CODEVIEW || rows[i].SizeOfData < sizeof record ||
            rows[i].AddressOfRawData == 0) {
            continue;
        }
        memcpy(&record, image_of(module) + rows[i].AddressOfRawData, sizeof record);
        if (kn_code_view_is_one(&record)) {
            kn_hex_encode(record.id, sizeof record.id, build_id);
            return true;
        }
    }
    return false;
}

/* The debuggers' name for the build; else the link's stamp, checksum and size; else the size. */
static void read_build_id(HMODULE module, char build_id[ID_TEXT])
{
    const IMAGE_NT_HEADERS *headers = headers_of(module);
    if (!read_debug_id(module, build_id) && !kn_link_name(headers, build_id, ID_TEXT)) {
        kn_text_putf(build_id, ID_TEXT, "noid:%lu",
                     (unsigned long)headers->OptionalHeader.SizeOfImage);
    }
}

static bool read_path(HMODULE module, char *path, size_t path_size)
{
    wchar_t *wide = malloc(PATH_ROOM * sizeof *wide);
    DWORD length = wide != NULL ? GetModuleFileNameW(module, wide, PATH_ROOM) : 0;
    char *narrow = length > 0 && length < PATH_ROOM ? kn_narrow_path(wide) : NULL;
    free(wide);
    kn_text_put(path, path_size, narrow != NULL ? narrow : "");
    free(narrow);
    return narrow != NULL;
}

/* The module that contains `address`, held; NULL if there is none. */
static HMODULE hold_module(const void *address)
{
    HMODULE module = NULL;
    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCWSTR)address, &module) !=
                   0
               ? module
               : NULL;
}

/* ---- several ---- */

typedef struct module_list {
    HMODULE *modules; /* each held */
    size_t count;
} module_list;

static bool list_init(module_list *list)
{
    *list = (module_list){.modules = malloc(MAX_MODULES * sizeof(HMODULE))};
    return list->modules != NULL;
}

static void list_deinit(module_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        (void)FreeLibrary(list->modules[i]);
    }
    free(list->modules);
}

/* Takes over the caller's hold. */
static void list_add(module_list *list, HMODULE module)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->modules[i] == module) {
            (void)FreeLibrary(module);
            return;
        }
    }
    if (list->count == MAX_MODULES) {
        (void)FreeLibrary(module);
        return;
    }
    list->modules[list->count++] = module;
}

/* All modules of the process, each held. */
static bool list_all(module_list *list)
{
    HMODULE *found = malloc(MAX_MODULES * sizeof(HMODULE));
    DWORD bytes = 0;
    if (found == NULL || !list_init(list)) {
        free(found);
        return false;
    }
    if (EnumProcessModules(GetCurrentProcess(), found, MAX_MODULES * sizeof(HMODULE), &bytes) ==
        0) {
        bytes = 0;
    }
    for (size_t i = 0; i < bytes / sizeof(HMODULE) && i < MAX_MODULES; i++) {
        HMODULE held = hold_module((const void *)found[i]); /* it may be gone by now */
        if (held != NULL) {
            list_add(list, held);
        }
    }
    free(found);
    return true;
}

static void visit_modules(const module_list *list, kn_module_visit *visit, void *user)
{
    for (size_t i = 0; i < list->count; i++) {
        char path[PATH_ROOM];
        char build_id[ID_TEXT];
        (void)read_path(list->modules[i], path, sizeof path);
        read_build_id(list->modules[i], build_id);
        visit(user, path, build_id);
    }
}

/* ---- the public half ---- */

bool kn_module_of_address(const void *address, char *path, size_t path_size, char *build_id,
                          size_t build_id_size)
{
    char id[ID_TEXT];
    HMODULE module = hold_module(address);
    if (module == NULL) {
        return false;
    }
    read_build_id(module, id);
    if (path_size > 0) {
        (void)read_path(module, path, path_size);
    }
    kn_text_put(build_id, build_id_size, id);
    (void)FreeLibrary(module);
    return true;
}

/* The system itself and the C library: every program has them, and they compile nothing. */
static bool is_left_out(const char *name)
{
    static const char *const prefixes[] = {
        "api-ms-",   "ext-ms-", "ntdll.",   "kernel32.", "kernelbase.",   "ucrtbase",  "msvcrt.",
        "vcruntime", "msvcp",   "user32.",  "win32u.",   "gdi32",         "advapi32.", "sechost.",
        "rpcrt4.",   "ole32.",  "combase.", "bcrypt",    "libwinpthread", "libgcc_s"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (_strnicmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds what one module of the list imports, in the order of its table. */
static void add_needed(module_list *list, HMODULE module)
{
    size_t size = 0;
    const IMAGE_IMPORT_DESCRIPTOR *rows = table_of(module, IMAGE_DIRECTORY_ENTRY_IMPORT, &size);
    for (size_t i = 0; rows != NULL && i < size / sizeof *rows && rows[i].Name != 0; i++) {
        const char *name = image_of(module) + rows[i].Name;
        wchar_t *wide = is_left_out(name) ? NULL : kn_wide(name);
        HMODULE needed = NULL;
        if (wide != NULL && GetModuleHandleExW(0, wide, &needed) != 0) {
            list_add(list, needed);
        }
        free(wide);
    }
}

/* What those from the `first` on need, and what these need, and so on. */
static void add_closure(module_list *list, size_t first)
{
    for (size_t i = first; i < list->count; i++) {
        add_needed(list, list->modules[i]);
    }
}

bool kn_module_each(kn_module_visit *visit, void *user)
{
    module_list list;
    if (!list_all(&list)) {
        return false;
    }
    visit_modules(&list, visit, user);
    list_deinit(&list);
    return true;
}

/* Those that are wanted with what they need come first, so that what is wanted alone cannot hide
 * what it is needed for. */
bool kn_module_select(kn_module_choose *choose, kn_module_visit *visit, void *user)
{
    module_list all;
    module_list chosen;
    if (!list_all(&all)) {
        return false;
    }
    unsigned char *wanted = calloc(all.count + 1, 1);
    if (wanted == NULL || !list_init(&chosen)) {
        free(wanted);
        list_deinit(&all);
        return false;
    }
    for (size_t i = 0; i < all.count; i++) {
        char path[PATH_ROOM];
        (void)read_path(all.modules[i], path, sizeof path);
        wanted[i] = (unsigned char)choose(user, path);
        if (wanted[i] == KN_MODULE_WITH_NEEDED) {
            list_add(&chosen, hold_module(all.modules[i]));
        }
    }
    add_closure(&chosen, 0);
    for (size_t i = 0; i < all.count; i++) {
        if (wanted[i] == KN_MODULE_ITSELF) {
            list_add(&chosen, hold_module(all.modules[i]));
        }
    }
    if (visit != NULL) {
        visit_modules(&chosen, visit, user);
    }
    list_deinit(&chosen);
    list_deinit(&all);
    free(wanted);
    return true;
}

bool kn_module_closure(const void *address, kn_module_visit *visit, void *user)
{
    module_list list;
    if (!list_init(&list)) {
        return false;
    }
    HMODULE first = hold_module(address);
    if (first != NULL) {
        list_add(&list, first);
    }
    add_closure(&list, 0);
    visit_modules(&list, visit, user);
    list_deinit(&list);
    return true;
}
