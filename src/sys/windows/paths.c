/* Well-known places; see paths.h. The cache is under %LOCALAPPDATA%, which is the user's own and
 * does not travel with a roaming profile. Where code is kept that will run, nothing is taken on
 * trust: not who owns a directory, nor who may write to it. */
#include "sys/paths.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include <shlobj.h>

#include "base/text.h"
#include "sys/env.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/paths_system.h"
#include "sys/windows/access.h"
#include "sys/windows/facts.h"
#include "sys/windows/wide.h"

#define PATH_ROOM 4096

/* ---- where the cache is ---- */

/* The directory that %LOCALAPPDATA% should name, for processes that were started without it
 * (services, cleaned environments); malloc'ed, or NULL. */
static char *registered_local_data(void)
{
    static const GUID local_data = {
        0xf1b32785, 0x6fba, 0x4fcf, {0x9d, 0x55, 0x7b, 0x8e, 0x7f, 0x15, 0x70, 0x91}};
    typedef HRESULT(WINAPI * get_dir_fn)(const GUID *, DWORD, HANDLE, wchar_t **);
    typedef void(WINAPI * free_fn)(void *);
    HMODULE shell = LoadLibraryExW(L"shell32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    HMODULE ole = LoadLibraryExW(L"ole32.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    char *dir = NULL;
    if (shell != NULL && ole != NULL) {
        FARPROC found = GetProcAddress(shell, "SHGetKnownFolderPath");
        FARPROC freeing = GetProcAddress(ole, "CoTaskMemFree");
        get_dir_fn get_dir = NULL;
        free_fn give_back = NULL;
        wchar_t *wide = NULL;
        memcpy(&get_dir, &found, sizeof get_dir);
        memcpy(&give_back, &freeing, sizeof give_back);
        if (get_dir != NULL && give_back != NULL) {
            if (get_dir(&local_data, 0, NULL, &wide) == 0 && wide != NULL) {
                dir = kn_narrow_path(wide);
            }
            give_back(wide);
        }
    }
    if (ole != NULL) {
        (void)FreeLibrary(ole);
    }
    if (shell != NULL) {
        (void)FreeLibrary(shell);
    }
    return dir;
}

char *kn_paths_default_root(void)
{
    const char *caches = kn_paths_variable("LOCALAPPDATA");
    if (caches != NULL) {
        return kn_path_join(caches, "kiln");
    }
    char *dir = registered_local_data();
    dir = dir != NULL ? dir : kn_paths_temporary(); /* which is the user's own here */
    char *path = dir != NULL ? kn_path_join(dir, "kiln") : NULL;
    free(dir);
    return path;
}

/* ---- may it be used ---- */

static kiln_status judge_access(kn_access access, const char *who, const char *path,
                                kiln_diag *diag)
{
    switch (access) {
    case KN_ACCESS_OWN:
        return KILN_OK;
    case KN_ACCESS_FOREIGN:
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                             "the cache directory belongs to %s", who);
    case KN_ACCESS_OTHERS_WRITE:
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "take that right away (icacls), or " KN_CHOOSE_ANOTHER, path,
                             "the cache directory can be written to by %s", who);
    case KN_ACCESS_UNPROTECTED:
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER ", on NTFS", path,
                             "the cache directory is world-writable");
    default:
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                             "the permissions of the cache directory cannot be read");
    }
}

static HANDLE open_dir(const char *path)
{
    return kn_open(path, FILE_READ_ATTRIBUTES | READ_CONTROL, OPEN_EXISTING,
                   FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, KN_RETRY_READ_MS);
}

/* A link (or junction) that another user made can be turned to elsewhere at any time. */
static kiln_status refuse_foreign_links(char *path, kiln_diag *diag)
{
    for (char *p = path + 3;; p++) {
        char end = *p;
        if (end != '/' && end != '\\' && end != '\0') {
            continue;
        }
        *p = '\0';
        kn_file_facts facts = {0};
        char who[128];
        HANDLE handle = open_dir(path);
        bool there = handle != INVALID_HANDLE_VALUE && kn_file_take_facts(handle, &facts);
        bool foreign =
            there && facts.kind == KN_FILE_LINK && kn_access_of(handle, who) == KN_ACCESS_FOREIGN;
        if (handle != INVALID_HANDLE_VALUE) {
            (void)CloseHandle(handle);
        }
        if (foreign) {
            return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                                 "it is a link that belongs to %s", who);
        }
        *p = end;
        if (!there || end == '\0') {
            return KILN_OK;
        }
    }
}

kiln_status kn_paths_claim(char *path, kiln_diag *diag)
{
    kn_file_facts facts;
    kiln_status status = refuse_foreign_links(path, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (kn_file_make_dir(path, diag) != KILN_OK) {
        if (diag != NULL) {
            diag->status = KILN_E_UNAVAILABLE;
        }
        return KILN_E_UNAVAILABLE;
    }
    HANDLE handle = open_dir(path);
    if (handle == INVALID_HANDLE_VALUE || !kn_file_take_facts(handle, &facts)) {
        status = kn_fail(diag, KILN_E_UNAVAILABLE, (int)GetLastError(),
                         "cannot open cache directory", path);
    } else if (facts.kind == KN_FILE_LINK) {
        status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_CACHE_DIR to the directory itself",
                          path, "the cache directory is a link");
    } else {
        char who[128];
        status = judge_access(kn_access_of(handle, who), who, path, diag);
    }
    if (handle != INVALID_HANDLE_VALUE) {
        (void)CloseHandle(handle);
    }
    return status;
}

/* ---- other places ---- */

char *kn_paths_temporary(void)
{
    wchar_t dir[PATH_ROOM];
    DWORD length = GetTempPathW(PATH_ROOM, dir);
    if (length == 0 || length >= PATH_ROOM) {
        return NULL;
    }
    if (dir[length - 1] == L'\\' && length > 3) {
        dir[length - 1] = L'\0';
    }
    return kn_narrow_path(dir);
}

char *kn_paths_own_program(void)
{
    wchar_t *wide = malloc(PATH_ROOM * sizeof *wide);
    DWORD length = wide != NULL ? GetModuleFileNameW(NULL, wide, PATH_ROOM) : 0;
    char *path = length > 0 && length < PATH_ROOM ? kn_narrow_path(wide) : NULL;
    free(wide);
    return path;
}

static bool is_file(const char *path)
{
    kn_file_facts facts;
    return kn_file_stat(path, true, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_REGULAR;
}

/* In $KILN_LIBEXEC, or next to the module this code is in: where Windows looks for libraries, too.
 */
static char *find_own(const char *name)
{
    const char *named = kn_paths_variable("KILN_LIBEXEC");
    char *module = named == NULL ? kn_paths_own_module() : NULL;
    char *dir = named != NULL ? kn_text_copy(named) : module != NULL ? kn_path_dir(module) : NULL;
    char *path = dir != NULL ? kn_path_join(dir, name) : NULL;
    free(dir);
    free(module);
    if (path == NULL || !is_file(path)) {
        free(path);
        return NULL;
    }
    return path;
}

/* `name` with ".exe" where it has no such end; malloc'ed. */
static char *program_name(const char *name)
{
    char whole[PATH_ROOM];
    bool ends = kn_text_ends(name, ".exe") || kn_text_ends(name, ".EXE");
    kn_text_putf(whole, sizeof whole, "%s%s", name, ends ? "" : ".exe");
    return kn_text_copy(whole);
}

char *kn_paths_helper(const char *name)
{
    char *whole = program_name(name);
    char *found = whole != NULL ? find_own(whole) : NULL;
    free(whole);
    return found;
}

char *kn_paths_module(const char *name)
{
    return find_own(name);
}

static char *search_list(const char *list, const char *name)
{
    while (list != NULL && list[0] != '\0') {
        size_t length = strcspn(list, KN_PATH_LIST_SEPARATOR);
        char *dir = kn_text_copy_n(list, length);
        char *path = dir != NULL && kn_path_is_absolute(dir) /* never the current one */
                         ? kn_path_join(dir, name)
                         : NULL;
        free(dir);
        if (path != NULL && is_file(path)) {
            return path;
        }
        free(path);
        list += length + (list[length] != '\0' ? 1 : 0);
    }
    return NULL;
}

char *kn_paths_find_program(const char *name)
{
    char *whole = name[0] != '\0' ? program_name(name) : NULL;
    char *found = NULL;
    if (whole == NULL) {
        return NULL;
    }
    if (strpbrk(whole, "/\\") == NULL) {
        found = search_list(kn_env_get("PATH"), whole);
    } else if (kn_path_is_absolute(whole) && is_file(whole)) {
        found = kn_text_copy(whole);
    }
    free(whole);
    return found;
}

void kn_paths_find_programs(kn_program *programs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kn_program *program = &programs[i];
        program->path = kn_paths_find_program(program->name);
        program->facts = (kn_file_facts){0};
        if (program->path != NULL &&
            kn_file_stat(program->path, true, &program->facts, NULL) != KILN_OK) {
            free(program->path);
            program->path = NULL; /* it has just gone */
        }
    }
}
