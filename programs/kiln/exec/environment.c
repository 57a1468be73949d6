/* See environment.h. */
#include "exec/environment.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "exec/exports.h"
#include "exec/preload.h"
#include "exec/site.h"
#include "kiln-interpose/find.h"

static char *copy_text(cli_pool *pool, const char *text)
{
    return pool_text(pool, text, strlen(text));
}

/* --- where kiln's libraries lie --------------------------------------------------------------- */

/* Seen from the directory of this program, and from that of libkiln.so, which is the system's in a
 * package of a distribution. */
static const char *const places_of_program[] = {"../libexec/kiln", "../lib/kiln",
                                                "../../libexec/kiln", NULL};
static const char *const places_of_library[] = {"kiln", "../libexec/kiln", "../../libexec/kiln",
                                                NULL};

static char *join_path(cli_pool *pool, const char *directory, const char *name)
{
    return pool_format(pool, "%s/%s", directory, name);
}

/* NULL where the directory's name would fall apart in the lists that it goes into. */
static char *check_directory(cli_pool *pool, const char *directory, kiln_diag *diag)
{
    if (strpbrk(directory, ": ") == NULL) {
        return copy_text(pool, directory);
    }
    (void)kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                        "install kiln in a directory without a blank or a colon in its name",
                        "kiln exec", "%s: LD_PRELOAD is cut there, and OPENCL_LAYERS at a colon",
                        directory);
    return NULL;
}

/* `dir` without links, if the core lies in it. NULL: it does not. */
static char *take_directory(cli_pool *pool, const char *directory)
{
    char resolved[PATH_MAX];
    const char *core = directory != NULL ? join_path(pool, directory, KN_CORE) : NULL;
    return core != NULL && host_exists(core) && realpath(directory, resolved) != NULL
               ? copy_text(pool, resolved)
               : NULL;
}

static char *take_place(cli_pool *pool, const char *file, const char *const *places)
{
    char *found = NULL;
    const char *dir = file != NULL ? host_dir_of(pool, file) : NULL;
    for (size_t i = 0; dir != NULL && found == NULL && places[i] != NULL; i++) {
        found = take_directory(pool, join_path(pool, dir, places[i]));
    }
    return found;
}

static const char *find_own_library(void)
{
    Dl_info info;
    const void *address = dlsym(RTLD_DEFAULT, "kiln_version");
    return address != NULL && dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}

static char *find_libraries(cli_pool *pool, kiln_diag *diag)
{
    char self[PATH_MAX];
    char library[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    const char *own = find_own_library();
    const bool resolved = own != NULL && realpath(own, library) != NULL;
    char *found = take_directory(pool, getenv("KILN_LIBEXEC"));
    found = found != NULL ? found : take_place(pool, self, places_of_program);
    found = found != NULL ? found : take_place(pool, resolved ? library : NULL, places_of_library);
    if (found != NULL) {
        return check_directory(pool, found, diag);
    }
    (void)kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                        "install the whole package kiln, or set KILN_LIBEXEC to its directory",
                        "kiln exec", KN_CORE " is not next to this command");
    return NULL;
}

/* --- where the program's libraries lie -------------------------------------------------------- */

/* As execvp(3) finds it, kiln's own ptxas left out. */
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
        /* A directory may be searched, and cannot be run: execvp passes it over. */
        if (path != NULL && length > 0 && access(path, X_OK) == 0 && !host_is_dir(path) &&
            !kn_find_is_shim(path)) {
            return path; /* a link of a virtual environment is not followed: its wheels are there */
        }
        list += length + (list[length] != '\0');
    }
    return NULL;
}

/* A library that was found, and the one of kiln's that stands in for it. */
typedef struct found_library {
    int major;
    const char *real, *front;
} found_library;

static char *find_real(cli_pool *pool, const kn_library *kind, const exec_sites *sites, int major)
{
    char path[KN_FIND_PATH];
    if (kind->wheel[0] != '\0') {
        const char *const wheels[] = {
            pool_format(pool, "nvidia/cu%d/lib/%s.so.%d", major, kind->stem, major),
            pool_format(pool, "nvidia/%s/lib/%s.so.%d", kind->wheel, kind->stem, major)};
        char *wheel = exec_site_find(pool, sites, wheels, 2);
        if (wheel != NULL) {
            return wheel;
        }
    }
    return kn_find_library(kind, major, NULL, path, sizeof(path)) ? copy_text(pool, path) : NULL;
}

/* --- what is set ------------------------------------------------------------------------------ */

void exec_environment_add(exec_environment *environment, const char *name, const char *value)
{
    if (name == NULL || value == NULL || environment->count == EXEC_SETTINGS_MAX) {
        environment->failed = true;
        return;
    }
    environment->settings[environment->count++] = (exec_setting){name, value};
}

static bool has_element(const char *list, const char *element)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ":");
        if (length == strlen(element) && memcmp(list, element, length) == 0) {
            return true;
        }
        list += length + (list[length] == ':');
    }
    return false;
}

/* Two lists as one; either may be empty. NULL if one is, or memory runs out. */
static const char *join_lists(cli_pool *pool, const char *first, const char *last)
{
    if (first == NULL || last == NULL) {
        return NULL;
    }
    const bool both = first[0] != '\0' && last[0] != '\0';
    return pool_format(pool, "%s%s%s", first, both ? ":" : "", last);
}

static const char *get_list(const char *name)
{
    const char *list = getenv(name);
    return list != NULL ? list : "";
}

void exec_environment_append(exec_environment *environment, const char *name, const char *last)
{
    const char *list = get_list(name);
    if (last == NULL || !has_element(list, last)) {
        exec_environment_add(environment, name, join_lists(environment->pool, list, last));
    }
}

/* `first` in front of what the variable holds. */
static void prepend_list(exec_environment *environment, const char *name, const char *first)
{
    exec_environment_add(environment, name, join_lists(environment->pool, first, get_list(name)));
}

/* The lists to preload and to search. */
typedef struct front_lists {
    const char *preload, *path;
} front_lists;

static void add_front(exec_environment *environment, const kn_library *kind,
                      const found_library *library, front_lists *lists)
{
    cli_pool *pool = environment->pool;
    lists->preload = join_lists(pool, lists->preload,
                                exec_preload_path(pool, environment->libraries, library->front));
    if (kn_library_keeps_name(kind)) {
        lists->path = join_lists(pool, lists->path, host_dir_of(pool, library->front));
    }
    exec_environment_add(environment,
                         pool_format(pool, "KILN_%s_%d", kind->variable, library->major),
                         library->real);
}

/* Those that are installed: a name that the program could not have loaded must not appear because
 * of kiln. Each has new functions with its releases, documented or not: a library with one that
 * kiln's lacks is left alone. */
static bool find_library(const exec_environment *environment, const kn_library *kind,
                         const exec_sites *sites, found_library *library)
{
    cli_pool *pool = environment->pool;
    library->real = find_real(pool, kind, sites, library->major);
    library->front = pool_format(pool, "%s/%s/%d/%s.so.%d", environment->libraries, kind->id,
                                 library->major, kind->shim, library->major);
    return library->real != NULL && library->front != NULL && host_exists(library->front) &&
           (kind->needs[0] == '\0' || exec_exports_have(library->real, kind->needs)) &&
           exec_exports_cover(library->front, library->real, kind->prefix);
}

static void add_fronts(exec_environment *environment, const exec_sites *sites)
{
    front_lists lists = {"", ""};
    for (int i = 0; i < KN_LIBRARIES; i++) {
        const kn_library *kind = &kn_libraries[i];
        for (int major = kind->first; major <= kind->last; major++) {
            found_library library = {.major = major};
            if (find_library(environment, kind, sites, &library)) {
                add_front(environment, kind, &library, &lists);
            }
        }
    }
    if (lists.preload == NULL || lists.path == NULL) {
        environment->failed = true;
        return;
    }
    if (lists.preload[0] != '\0') {
        exec_preload_add(environment, lists.preload);
    }
    if (lists.path[0] != '\0') {
        prepend_list(environment, "LD_LIBRARY_PATH", lists.path);
    }
}

static bool is_program(const char *path)
{
    struct stat facts;
    return path[0] == '/' && stat(path, &facts) == 0 && S_ISREG(facts.st_mode) &&
           access(path, X_OK) == 0;
}

/* Triton's variable for one ptxas, behind which is what the user named. A name that is relative,
 * carries options or is not a program means what Triton makes of it, so it stays; and so does
 * kiln's own, which an outer `kiln exec` has set. */
static void add_triton_ptxas(exec_environment *environment, const char *variable, const char *tool,
                             const char *kept)
{
    const char *named = getenv(variable);
    const bool has_name = named != NULL && named[0] != '\0';
    const char *own = pool_format(environment->pool, "%s/triton/%s", environment->libraries, tool);
    if (own != NULL && has_name && (strcmp(named, own) == 0 || !is_program(named))) {
        return;
    }
    /* Another installation's is not a real ptxas; what the user named is kept already. */
    if (has_name && !kn_find_is_shim(named)) {
        exec_environment_add(environment, kept, named);
    }
    exec_environment_add(environment, variable, own);
}

/* ptxas by PATH only for a program that finds one there without kiln; Triton falls back on its own
 * where kiln's finds no real one. */
static void add_ptxas(exec_environment *environment, const exec_sites *sites)
{
    static const char *const package[] = {"triton/backends/nvidia/bin/ptxas"};
    cli_pool *pool = environment->pool;
    char *own = pool_format(pool, "%s/ptxas", environment->libraries);
    char *ptxas = own != NULL ? join_path(pool, own, "ptxas") : NULL;
    if (ptxas == NULL || !host_exists(ptxas)) {
        environment->failed = environment->failed || ptxas == NULL;
        return;
    }
    if (find_program(pool, "ptxas") != NULL) {
        prepend_list(environment, "PATH", own);
    }
    char *triton = exec_site_find(pool, sites, package, 1);
    if (triton != NULL) {
        triton[strlen(triton) - strlen(package[0]) - 1] = '\0';
        exec_environment_add(environment, "KILN_TRITON", triton);
    }
    add_triton_ptxas(environment, "TRITON_PTXAS_PATH", "ptxas", "KILN_TRITON_PTXAS");
    add_triton_ptxas(environment, "TRITON_PTXAS_BLACKWELL_PATH", "ptxas-blackwell",
                     "KILN_TRITON_PTXAS_BLACKWELL");
}

/* OpenCL's loaders open layers one after another, and a later one stands above an earlier one. A
 * loader that is not there does not read the list. */
#define OPENCL_LAYER "libkiln-opencl.so"

static void add_opencl_layer(exec_environment *environment)
{
    const char *layer =
        join_path(environment->pool, environment->libraries, "opencl/1/" OPENCL_LAYER);
    if (layer == NULL || host_exists(layer)) {
        environment->opencl_layer = layer;
        exec_environment_append(environment, "OPENCL_LAYERS", layer);
    }
}

/* `list` without its elements that are files of this name. NULL: out of memory. */
static const char *remove_from_list(cli_pool *pool, const char *list, const char *name)
{
    const char *rest = "";
    while (rest != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        char *element = pool_text(pool, list, length);
        if (element == NULL || strcmp(host_name_of(element), name) != 0) {
            rest = join_lists(pool, rest, element);
        }
        list += length + (list[length] == ':');
    }
    return rest;
}

bool exec_environment_leave_layer(cli_pool *pool)
{
    const char *list = getenv("OPENCL_LAYERS");
    if (list == NULL || strstr(list, OPENCL_LAYER) == NULL) {
        return true;
    }
    const char *rest = remove_from_list(pool, list, OPENCL_LAYER);
    if (rest == NULL) {
        return false;
    }
    /* A loader may take an empty list for a layer without a name. */
    return (*rest != '\0' ? setenv("OPENCL_LAYERS", rest, 1) : unsetenv("OPENCL_LAYERS")) == 0;
}

/* The Vulkan loader looks for explicit layers in VK_LAYER_PATH alone, if that is set; else in
 * VK_ADD_LAYER_PATH and its own directories. Loaders before 1.3.207 do not know the second one, and
 * go on without the layer. */
static void add_vulkan_layer(exec_environment *environment)
{
    cli_pool *pool = environment->pool;
    const char *directory = join_path(pool, environment->libraries, "vulkan/1");
    const char *manifest =
        directory != NULL ? join_path(pool, directory, "VkLayer_kiln_cache.json") : NULL;
    if (manifest != NULL && !host_exists(manifest)) {
        return;
    }
    environment->failed = environment->failed || manifest == NULL;
    environment->vulkan_layer = directory;
    if (get_list("VK_LAYER_PATH")[0] != '\0') {
        exec_environment_append(environment, "VK_LAYER_PATH", directory);
    } else {
        exec_environment_append(environment, "VK_ADD_LAYER_PATH", directory);
    }
    exec_environment_append(environment, "VK_INSTANCE_LAYERS", "VK_LAYER_KILN_cache");
}

kiln_status exec_environment_make(cli_pool *pool, const char *program, exec_environment *out,
                                  kiln_diag *diag)
{
    *out = (exec_environment){.pool = pool};
    out->program = program != NULL ? find_program(pool, program) : NULL;
    out->libraries = find_libraries(pool, diag);
    if (out->libraries == NULL) {
        return KILN_E_UNAVAILABLE;
    }
    const exec_sites sites = exec_sites_list(pool, out->program);
    add_fronts(out, &sites);
    add_ptxas(out, &sites);
    add_opencl_layer(out);
    add_vulkan_layer(out);
    return out->failed ? diag_no_memory(diag, "kiln exec") : KILN_OK;
}

bool exec_environment_apply(const exec_environment *environment)
{
    bool good = !environment->failed;
    for (size_t i = 0; good && i < environment->count; i++) {
        good = setenv(environment->settings[i].name, environment->settings[i].value, 1) == 0;
    }
    return good;
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
