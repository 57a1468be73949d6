/* libkiln-audit.so: an auditor (rtld-audit(7)) for the processes that `kiln exec --audit` and
 * `kiln doctor -- PROGRAM` start.
 *
 *   KILN_AUDIT_REPORT=FILE  gets a line for each library and process that compiles kernels
 *   KILN_AUDIT_SERVE=1      a program that opens NVRTC, nvJitLink or hipRTC by its absolute
 *                           path gets kiln's library, if it is the very one that kiln's
 *                           library would call
 *
 * The dynamic linker gives an auditor a C library of its own, so it links libc alone, allocates
 * nothing, and can fail without being noticed: then a name stays as it is. */
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compilers/libraries.h"

#define EXPORT __attribute__((visibility("default")))
#define PATH_SIZE 4096

static struct {
    int report; /* -1: nobody reads one */
    bool serves;
    const char
        *requester; /* who asked for the library that is opened next; under the linker's lock */
} audit = {.report = -1};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* --- the report ------------------------------------------------------------------------------- */

enum { LIBRARY, LAYER, PROGRAM };

/* What compiles, or loads a compiler; kiln's layers, which a loader opens, or does not. */
static const struct {
    int kind;
    char name[24]; /* of a library: how it begins */
} known[] = {
#define KN_LIBRARY(id, variable, stem, shim, ...) {LIBRARY, stem ".so"}, {LIBRARY, shim ".so"},
#define KN_KNOWN_LAYER(id, stem, ...) {LIBRARY, stem ".so"}, {LAYER, "libkiln-" #id ".so"},
#define KN_KNOWN_LIBRARY(stem, ...) {LIBRARY, stem ".so"},
#define KN_KNOWN_PROGRAM(name, ...) {PROGRAM, name},
#include "compilers/known.def"
#include "compilers/libraries.def"
};

static bool is_known(int kind, const char *name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (known[i].kind == kind && (kind == LIBRARY ? starts_with(name, known[i].name)
                                                      : strcmp(name, known[i].name) == 0)) {
            return true;
        }
    }
    return false;
}

/* One line, written at once: other processes append to the same file. */
static void write_line(const char *kind, const char *path, const char *requester)
{
    char line[2 * PATH_SIZE];
    const int length = snprintf(line, sizeof(line), "%s\t%ld\t%s\t%s\n", kind, (long)getpid(), path,
                                requester != NULL ? requester : "");
    if (audit.report >= 0 && length > 0 && (size_t)length < sizeof(line) &&
        strcspn(path, "\n\t") == strlen(path)) {
        const ssize_t written = write(audit.report, line, (size_t)length);
        (void)written; /* a report that cannot be written is nobody's failure */
    }
}

static void report_process(void)
{
    char self[PATH_SIZE];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    if (length > 0) {
        write_line(is_known(PROGRAM, name_of(self)) ? "compiler" : "process", self, "");
    }
}

/* --- a library by its absolute path --------------------------------------------------------- */

/* The major version in "libnvrtc.so.13.0.48"; 0: it is not this library. */
static int major_of(const kn_library *library, const char *name)
{
    static const char suffix[] = ".so.";
    const size_t stem = strlen(library->stem);
    if (!starts_with(name, library->stem) || !starts_with(name + stem, suffix)) {
        return 0;
    }
    char *end = NULL;
    const long major = strtol(name + stem + sizeof(suffix) - 1, &end, 10);
    return (*end == '\0' || *end == '.') && major > 0 && major < 100 ? (int)major : 0;
}

static bool is_same_file(const char *left, const char *right)
{
    struct stat a;
    struct stat b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Whether a path lies in the directory of kiln's libraries, which `kiln exec` names. */
static bool is_of_kiln(const char *path)
{
    const char *own = getenv("KILN_AUDIT_LIBEXEC");
    return own != NULL && own[0] != '\0' && starts_with(path, own) && path[strlen(own)] == '/';
}

static const char *find_front_of(const kn_library *library, const char *path)
{
    static char front[PATH_SIZE]; /* the linker reads it before its lock is released */
    char variable[32];
    const int major = major_of(library, name_of(path));
    if (major == 0) {
        return NULL;
    }
    (void)snprintf(variable, sizeof(variable), "KILN_%s_%d", library->variable, major);
    const char *real = getenv(variable);
    const int length =
        snprintf(front, sizeof(front), "%s/%s/%d/%s.so.%d", getenv("KILN_AUDIT_LIBEXEC"),
                 library->id, major, library->shim, major);
    const bool fits = length > 0 && (size_t)length < sizeof(front);
    return fits && real != NULL && is_same_file(path, real) && access(front, R_OK) == 0 ? front
                                                                                        : NULL;
}

/* kiln's library for the one that a path names; NULL: the path stays as it is. */
static const char *find_front(const char *path, const char *requester)
{
    const char *front = NULL;
    if (is_of_kiln(path) || is_of_kiln(requester)) {
        return NULL;
    }
    for (int i = 0; front == NULL && i < KN_LIBRARIES; i++) {
        front =
            kn_library_keeps_name(&kn_libraries[i]) ? find_front_of(&kn_libraries[i], path) : NULL;
    }
    return front;
}

/* --- what the dynamic linker calls ------------------------------------------------------------ */

EXPORT unsigned int la_version(unsigned int version)
{
    const char *report = getenv("KILN_AUDIT_REPORT");
    const char *serves = getenv("KILN_AUDIT_SERVE");
    if (report != NULL && report[0] == '/') {
        audit.report = open(report, O_WRONLY | O_APPEND | O_CLOEXEC);
    }
    audit.serves = serves != NULL && serves[0] == '1' && getenv("KILN_AUDIT_LIBEXEC") != NULL;
    report_process();
    /* Compiled against another glibc, the structures that are used here are the same. */
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static const char *path_of(const uintptr_t *cookie)
{
    const struct link_map *map = NULL;
    memcpy(&map, cookie, sizeof(map)); /* la_objopen leaves the linker's own cookie in place */
    return map != NULL && map->l_name != NULL ? map->l_name : "";
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
    const char *found = NULL;
    if (flag == LA_SER_ORIG) {
        audit.requester = path_of(cookie);
        found = audit.serves && name[0] == '/' ? find_front(name, audit.requester) : NULL;
    }
    return (char *)(uintptr_t)(found != NULL ? found : name);
}

EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie)
{
    (void)list;
    (void)cookie;
    if (map->l_name != NULL && is_known(LIBRARY, name_of(map->l_name))) {
        write_line("library", map->l_name, audit.requester);
    } else if (map->l_name != NULL && is_known(LAYER, name_of(map->l_name))) {
        write_line("layer", map->l_name, audit.requester);
    }
    return 0; /* bindings are not audited, so calls cost what they cost without an auditor */
}
