/* See environment.h. */
#include "exec/environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "exec/site.h"
#include "kiln-interpose/find.h"

static const int majors[] = {12, 13};
enum { MAJORS = sizeof(majors) / sizeof(*majors) };

static char *copy_text(cli_pool *pool, const char *text)
{
    return pool_text(pool, text, strlen(text));
}

/* --- where kiln's libraries lie --------------------------------------------------------------- */

/* Seen from the directory of this program. */
static const char *const library_places[] = {"../libexec/kiln", "../lib/kiln",
                                             "../../libexec/kiln"};

static char *join(cli_pool *pool, const char *directory, const char *name)
{
    return pool_format(pool, "%s/%s", directory, name);
}

static char *find_libraries(cli_pool *pool, kiln_diag *diag)
{
    char self[PATH_MAX];
    const char *named = getenv("KILN_LIBEXEC");
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    const char *own = host_folder_of(pool, self);
    for (size_t i = 0; i <= sizeof(library_places) / sizeof(*library_places); i++) {
        char *place = i > 0 && own != NULL ? join(pool, own, library_places[i - 1]) : NULL;
        char *library = i == 0 ? (named != NULL ? copy_text(pool, named) : NULL) : place;
        char *core = library != NULL ? join(pool, library, "libkiln-interpose.so") : NULL;
        char resolved[PATH_MAX];
        if (core != NULL && host_exists(core) && realpath(library, resolved) != NULL) {
            return copy_text(pool, resolved);
        }
    }
    (void)kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                        "install the package kiln whole, or set KILN_LIBEXEC to its directory",
                        "kiln exec", "libkiln-interpose.so is not next to this command");
    return NULL;
}

/* --- where the program's NVRTC lies ----------------------------------------------------------- */

static char *find_program(cli_pool *pool, const char *name)
{
    const char *list = getenv("PATH");
    char resolved[PATH_MAX];
    if (strchr(name, '/') != NULL) {
        return realpath(name, resolved) != NULL ? copy_text(pool, resolved) : NULL;
    }
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        char *path = pool_format(pool, "%.*s/%s", (int)length, list, name);
        if (path != NULL && length > 0 && access(path, X_OK) == 0) {
            return path; /* a link of a virtual environment is not followed: its wheels are there */
        }
        list += length + (list[length] != '\0');
    }
    return NULL;
}

static char *find_real(cli_pool *pool, const char *program, int major)
{
    char path[KN_FIND_PATH];
    const char *const wheels[] = {pool_format(pool, "nvidia/cu%d/lib/libnvrtc.so.%d", major, major),
                                  pool_format(pool, "nvidia/cuda_nvrtc/lib/libnvrtc.so.%d", major)};
    char *wheel = exec_site_find(pool, program, wheels, 2);
    if (wheel != NULL) {
        return wheel;
    }
    return kn_find_nvrtc(major, NULL, path, sizeof(path)) ? copy_text(pool, path) : NULL;
}

/* --- what is set ------------------------------------------------------------------------------ */

bool exec_environment_add(exec_environment *environment, const char *name, const char *value)
{
    if (name == NULL || value == NULL || environment->count == EXEC_SETTINGS_MAX) {
        return false;
    }
    environment->settings[environment->count++] = (exec_setting){name, value};
    return true;
}

/* `first` in front of what the variable holds. */
static bool add_list(cli_pool *pool, exec_environment *environment, const char *name,
                     const char *first)
{
    const char *rest = getenv(name);
    const bool has_rest = rest != NULL && *rest != '\0';
    return first != NULL &&
           exec_environment_add(
               environment, name,
               pool_format(pool, "%s%s%s", first, has_rest ? ":" : "", has_rest ? rest : ""));
}

static bool add_nvrtc(cli_pool *pool, exec_environment *environment, const char *libraries)
{
    const char *preload = "";
    const char *path = "";
    for (size_t i = 0; i < environment->nvrtc_count; i++) {
        const int major = environment->nvrtc[i].major;
        const char *comma = i > 0 ? ":" : "";
        preload = pool_format(pool, "%s%s%s", preload, comma, environment->nvrtc[i].front);
        path = pool_format(pool, "%s%s%s/nvrtc/%d", path, comma, libraries, major);
        if (preload == NULL || path == NULL ||
            !exec_environment_add(environment, pool_format(pool, "KILN_NVRTC_%d", major),
                                  environment->nvrtc[i].real)) {
            return false;
        }
    }
    if (environment->nvrtc_count == 0) {
        return true;
    }
    const char *cudnn = environment->nvrtc[environment->nvrtc_count - 1].front;
    return add_list(pool, environment, "LD_PRELOAD", preload) &&
           add_list(pool, environment, "LD_LIBRARY_PATH", path) &&
           (getenv("CUDNN_NVRTC_OVERRIDE_PATH") != NULL ||
            exec_environment_add(environment, "CUDNN_NVRTC_OVERRIDE_PATH", cudnn));
}

/* ptxas by PATH only for a program that finds one there without kiln; Triton falls back on its own
 * where kiln's finds no real one. What the user named stays the real one. */
static bool add_ptxas(cli_pool *pool, exec_environment *environment, const char *libraries,
                      const char *program)
{
    static const char *const variables[] = {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"};
    static const char *const kept[] = {"KILN_TRITON_PTXAS", "KILN_TRITON_PTXAS_BLACKWELL"};
    static const char *const tools[] = {"ptxas", "ptxas-blackwell"};
    static const char *const package[] = {"triton/backends/nvidia/bin/ptxas"};
    char *own = pool_format(pool, "%s/ptxas", libraries);
    char *ptxas = own != NULL ? join(pool, own, "ptxas") : NULL;
    if (ptxas == NULL || !host_exists(ptxas)) {
        return ptxas != NULL;
    }
    bool added = find_program(pool, "ptxas") == NULL || add_list(pool, environment, "PATH", own);
    char *triton = exec_site_find(pool, program, package, 1);
    if (triton != NULL) {
        triton[strlen(triton) - strlen(package[0]) - 1] = '\0';
        added = added && exec_environment_add(environment, "KILN_TRITON", triton);
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        const char *named = getenv(variables[i]);
        if (named != NULL && named[0] != '\0') {
            added = added && exec_environment_add(environment, kept[i], named);
        }
        added =
            added && exec_environment_add(environment, variables[i],
                                          pool_format(pool, "%s/triton/%s", libraries, tools[i]));
    }
    return added;
}

kiln_status exec_environment_make(cli_pool *pool, const char *program, exec_environment *out,
                                  kiln_diag *diag)
{
    memset(out, 0, sizeof(*out));
    const char *libraries = find_libraries(pool, diag);
    const char *file = libraries != NULL && program != NULL ? find_program(pool, program) : NULL;
    if (libraries == NULL) {
        return KILN_E_UNAVAILABLE;
    }
    out->libraries = libraries;
    for (size_t i = 0; i < MAJORS; i++) {
        const char *real = find_real(pool, file, majors[i]);
        const char *front =
            pool_format(pool, "%s/nvrtc/%d/libnvrtc.so.%d", libraries, majors[i], majors[i]);
        if (front == NULL) {
            return diag_no_memory(diag, "kiln exec");
        }
        /* A name that the program could not have loaded must not appear because of kiln. */
        if (real != NULL && host_exists(front)) {
            out->nvrtc[out->nvrtc_count].major = majors[i];
            out->nvrtc[out->nvrtc_count].real = real;
            out->nvrtc[out->nvrtc_count++].front = front;
        }
    }
    return add_nvrtc(pool, out, libraries) && add_ptxas(pool, out, libraries, file)
               ? KILN_OK
               : diag_no_memory(diag, "kiln exec");
}

bool exec_environment_apply(const exec_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++) {
        if (setenv(environment->settings[i].name, environment->settings[i].value, 1) != 0) {
            return false;
        }
    }
    return true;
}

/* In single quotes, where a shell reads nothing but their end. */
static void print_quoted(const char *text, FILE *file)
{
    (void)fputc('\'', file);
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)fputs("'\\''", file);
        } else {
            (void)fputc(*text, file);
        }
    }
    (void)fputc('\'', file);
}

void exec_environment_print(const exec_environment *environment, FILE *file)
{
    for (size_t i = 0; i < environment->count; i++) {
        (void)fprintf(file, "export %s=", environment->settings[i].name);
        print_quoted(environment->settings[i].value, file);
        (void)fputc('\n', file);
    }
}
