/* Well-known places; see paths.h. Where code is kept that will run, nothing is taken on trust: not
 * who owns a directory, nor that a path still means what it says. */
#include "sys/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/env.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/paths_system.h"

#define MAX_PATH 4096

/* ---- where the cache is ---- */

static bool is_own_home(const char *path)
{
    struct stat facts;
    if (path == NULL || !kn_path_is_absolute(path) || stat(path, &facts) != 0 ||
        !S_ISDIR(facts.st_mode)) {
        return false;
    }
    if (facts.st_uid == geteuid()) {
        return true;
    }
    /* Root can write anywhere, and would leave files in a user's home that the user cannot remove.
     */
    return geteuid() != 0 && access(path, W_OK) == 0;
}

/* The home in the password database, malloc'ed, or NULL. */
static char *registered_home(void)
{
    struct passwd entry;
    struct passwd *found = NULL;
    size_t size = 16384;
    char *buffer = malloc(size);
    char *home = NULL;
    if (buffer == NULL) {
        return NULL;
    }
    if (getpwuid_r(geteuid(), &entry, buffer, size, &found) == 0 && found != NULL &&
        is_own_home(found->pw_dir)) {
        home = kn_text_copy(found->pw_dir);
    }
    free(buffer);
    return home;
}

char *kn_paths_default_root(void)
{
    const char *home = kn_paths_variable("HOME");
    char name[32] = ".cache/kiln";
    char *dir = NULL;
    if (!is_own_home(home)) {
        home = dir = registered_home();
    }
    if (home == NULL) {
        kn_text_putf(name, sizeof name, "kiln-%lu", (unsigned long)geteuid());
        home = dir = kn_paths_temporary();
    }
    char *path = home != NULL ? kn_path_join(home, name) : NULL;
    free(dir);
    return path;
}

/* ---- may it be used ---- */

/* A link that another user (but root) made can be turned to elsewhere at any time. *out_mode is
 * what the path itself leads to, 0 for nothing. */
static kiln_status refuse_foreign_links(char *path, mode_t *out_mode, kiln_diag *diag)
{
    *out_mode = 0;
    for (char *p = path + 1;; p++) {
        struct stat facts;
        char end = *p;
        if (end != '/' && end != '\0') {
            continue;
        }
        *p = '\0';
        bool there = lstat(path, &facts) == 0;
        if (there && S_ISLNK(facts.st_mode) && facts.st_uid != geteuid() && facts.st_uid != 0) {
            return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                                 "it is a link that belongs to user %lu",
                                 (unsigned long)facts.st_uid);
        }
        *p = end;
        if (!there || end == '\0') {
            *out_mode = there ? facts.st_mode : 0;
            return KILN_OK;
        }
    }
}

/* File systems without owners and modes of their own: FAT, exFAT, NTFS, 9P (WSL), SMB. */
static bool mount_sets_modes(int fd)
{
    static const unsigned long types[] = {0x4d44,     0x2011bab0, 0x5346544e, 0x7366746e,
                                          0x01021997, 0xff534d42, 0xfe534d42, 0x517b};
    struct statfs facts;
    if (fstatfs(fd, &facts) == 0) {
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
            if (((unsigned long)facts.f_type & 0xffffffffUL) == types[i]) {
                return true;
            }
        }
    }
    return false;
}

/* Looks at the directory that was opened, not at what the path may mean by now. */
static kiln_status check_opened(int fd, const char *path, kiln_diag *diag)
{
    struct stat facts;
    char fix[512];
    if (fstat(fd, &facts) != 0) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, errno, "cannot look at", path);
    }
    if (facts.st_uid != geteuid()) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                             "the cache directory belongs to user %lu, not to user %lu",
                             (unsigned long)facts.st_uid, (unsigned long)geteuid());
    }
    if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        if (mount_sets_modes(fd)) {
            kn_text_put(fix, sizeof fix,
                        KN_CHOOSE_ANOTHER ", on another file system: this one's "
                                          "mount decides modes, and chmod changes none");
        } else {
            kn_text_putf(fix, sizeof fix, "run chmod go-w '%s', or " KN_CHOOSE_ANOTHER, path);
        }
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, path,
                             "the cache directory is %s (mode %04o)",
                             (facts.st_mode & S_IWOTH) != 0 ? "world-writable" : "group-writable",
                             (unsigned)(facts.st_mode & 07777));
    }
    return KILN_OK;
}

/* "link/" and "link/." would be followed in spite of O_NOFOLLOW. */
static void strip_end(char *path)
{
    size_t length = strlen(path);
    while (length > 1 &&
           (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/'))) {
        path[--length] = '\0';
    }
}

kiln_status kn_paths_claim(char *path, kiln_diag *diag)
{
    mode_t mode = 0;
    strip_end(path);
    kiln_status status = refuse_foreign_links(path, &mode, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (S_ISLNK(mode)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set KILN_CACHE_DIR to the directory itself",
                             path, "the cache directory is a link");
    }
    if (!S_ISDIR(mode) && kn_file_make_dir(path, diag) != KILN_OK) {
        if (diag != NULL) {
            diag->status = KILN_E_UNAVAILABLE;
        }
        return KILN_E_UNAVAILABLE;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, errno, "cannot open cache directory", path);
    }
    status = check_opened(fd, path, diag);
    (void)close(fd);
    return status;
}

/* ---- other places ---- */

char *kn_paths_temporary(void)
{
    const char *dir = kn_paths_variable("TMPDIR");
    return kn_text_copy(dir != NULL ? dir : "/tmp");
}

char *kn_paths_own_program(void)
{
    return kn_path_resolve("/proc/self/exe");
}

static bool is_program(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

static bool is_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Seen from the directory of the module this code is in. */
static const char *const helper_places[] = {
    "kiln",                     /* <prefix>/lib/<multiarch>: one directory for each architecture */
    "../libexec/kiln",          /* <prefix>/lib or <prefix>/bin; build tree, from programs/kiln */
    "../../libexec/kiln",       /* <prefix>/lib/<multiarch> */
    "../programs/libexec/kiln", /* build tree, from src */
    ".",
};

static char *find_own(const char *name, bool (*is_right)(const char *path))
{
    const char *named = kn_paths_variable("KILN_LIBEXEC");
    if (named != NULL) {
        char *path = kn_path_join(named, name);
        if (path != NULL && is_right(path)) {
            return path;
        }
        free(path);
    }
    char *module = kn_paths_own_module();
    char *dir = module != NULL ? kn_path_dir(module) : NULL;
    char *found = NULL;
    for (size_t i = 0;
         dir != NULL && found == NULL && i < sizeof helper_places / sizeof helper_places[0]; i++) {
        char path[MAX_PATH];
        kn_text_putf(path, sizeof path, "%s/%s/%s", dir, helper_places[i], name);
        found = is_right(path) ? kn_text_copy(path) : NULL;
    }
    free(dir);
    free(module);
    return found;
}

char *kn_paths_helper(const char *name)
{
    return find_own(name, is_program);
}

char *kn_paths_module(const char *name)
{
    return find_own(name, is_file);
}

/* Longer ones are none: the system takes no longer paths. */
#define PROGRAM_PATH 4096

/* The directory that `list` begins with is named in it before. */
static bool is_repeated(const char *whole, const char *list, size_t length)
{
    while (whole < list) {
        const size_t before = strcspn(whole, ":");
        if (before == length && memcmp(whole, list, length) == 0) {
            return true;
        }
        whole += before + 1;
    }
    return false;
}

/* `path` holds a directory of `length` bytes, and has room for the name. */
static void look_in(char *path, size_t length, kn_program *program)
{
    struct stat facts;
    const size_t name_size = strlen(program->name) + 1;
    if (length + name_size >= PROGRAM_PATH) {
        return;
    }
    memcpy(path + length, program->name, name_size);
    if (stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0) {
        kn_file_take_facts(&facts, &program->facts);
        program->path = kn_text_copy(path);
    }
}

void kn_paths_find_programs(kn_program *programs, size_t count)
{
    const char *whole = kn_env_get("PATH");
    whole = whole != NULL ? whole : "/usr/local/bin:/usr/bin:/bin";
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        programs[i].path = NULL;
        programs[i].facts = (kn_file_facts){0};
        left += programs[i].name[0] != '\0' && strchr(programs[i].name, '/') == NULL;
    }
    for (const char *list = whole; list[0] != '\0' && left > 0;) {
        char path[PROGRAM_PATH];
        size_t length = strcspn(list, ":");
        const char *next = list + length + (list[length] != '\0' ? 1 : 0);
        if (list[0] == '/' && length < sizeof path - 1 && /* never the cwd */
            !is_repeated(whole, list, length)) {
            memcpy(path, list, length);
            if (path[length - 1] != '/') {
                path[length++] = '/';
            }
            for (size_t i = 0; i < count; i++) {
                kn_program *program = &programs[i];
                if (program->path == NULL && program->name[0] != '\0' &&
                    strchr(program->name, '/') == NULL) {
                    look_in(path, length, program);
                    left -= program->path != NULL;
                }
            }
        }
        list = next;
    }
}

char *kn_paths_find_program(const char *name)
{
    kn_program program = {.name = name};
    if (strchr(name, '/') != NULL) {
        return strlen(name) < PROGRAM_PATH && kn_path_is_absolute(name) && is_program(name)
                   ? kn_text_copy(name)
                   : NULL;
    }
    kn_paths_find_programs(&program, 1);
    return program.path;
}
