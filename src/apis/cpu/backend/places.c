/* Where a compiler looks for its programs and specs, and does not find them: what appears there
 * later is another compiler. This file must not know what is asked of whom. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"
#include "sys/env.h"

/* collect2 looks for three linkers, gcc for the rest; as and ld may be found by $PATH in the end.
 */
static const char *const programs[] = {"cc1", "collect2", "as", "real-ld", "collect-ld", "ld"};
static const char *const specs[] = {"specs"};
/* clang 16 and later; those with a triple in front are found by the one that clang names. */
static const char *const configuration[] = {"clang.cfg"};

enum { PLACES_MAX = CPU_DIR_LIMIT, NAMES_MAX = 8 };

typedef struct places {
    cpu_toolchain *toolchain;
    const char *const *names;
    size_t name_count;
    bool found[NAMES_MAX]; /* in a directory before this one: nobody looks further */
    char *seen[PLACES_MAX];
    size_t seen_count;
} places;

static void places_init(places *p, cpu_toolchain *toolchain, const char *const *names, size_t count)
{
    *p = (places){.toolchain = toolchain, .names = names, .name_count = count};
}

static void places_deinit(places *p)
{
    for (size_t i = 0; i < p->seen_count; i++) {
        free(p->seen[i]);
    }
}

bool kn_cpu_toolchain_miss(cpu_toolchain *toolchain, const char *path)
{
    for (size_t i = 0; i < toolchain->absent_count; i++) {
        if (strcmp(toolchain->absent[i], path) == 0) {
            return true;
        }
    }
    return kn_cpu_list_add(toolchain->absent, &toolchain->absent_count, CPU_ABSENT_LIMIT, path);
}

/* The first part of a path that is not there is what is missing; several directories share it. */
static bool miss_dir(places *p, char *dir)
{
    kn_file_facts facts;
    for (char *at = dir + 1;; at++) {
        const char c = *at;
        if (c != '/' && c != '\0') {
            continue;
        }
        *at = '\0';
        const bool missing = kn_file_stat(dir, true, &facts, NULL) != KILN_OK;
        const bool ok = !missing || kn_cpu_toolchain_miss(p->toolchain, dir);
        *at = c;
        if (missing || c == '\0') {
            return ok;
        }
    }
}

static bool miss_names(places *p, const char *dir)
{
    bool ok = true;
    for (size_t i = 0; i < p->name_count && ok; i++) {
        kn_file_facts facts;
        char *path = p->found[i] ? NULL : kn_path_join(dir, p->names[i]);
        ok = p->found[i] || path != NULL;
        if (path != NULL && kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
            p->found[i] = true;
        } else if (path != NULL) {
            ok = kn_cpu_toolchain_miss(p->toolchain, path);
        }
        free(path);
    }
    return ok;
}

/* Takes `resolved`. */
static bool is_new_dir(places *p, char *resolved)
{
    for (size_t i = 0; i < p->seen_count; i++) {
        if (strcmp(p->seen[i], resolved) == 0) {
            free(resolved);
            return false;
        }
    }
    if (p->seen_count == PLACES_MAX) {
        free(resolved);
        return true; /* looked at again */
    }
    p->seen[p->seen_count++] = resolved;
    return true;
}

static bool watch_dir(places *p, const char *given, size_t length)
{
    char *dir = kn_text_copy_n(given, length);
    char *resolved = dir != NULL ? kn_path_resolve(dir) : NULL;
    bool ok = dir != NULL;
    if (ok && resolved == NULL) {
        ok = !kn_path_is_absolute(dir) || miss_dir(p, dir);
    } else if (ok) {
        char *at = kn_text_copy(resolved);
        ok = at != NULL && (!is_new_dir(p, resolved) || miss_names(p, at));
        free(at);
    }
    free(dir);
    return ok;
}

static bool watch_list(places *p, const char *list)
{
    bool ok = true;
    while (ok && list != NULL && *list != '\0') {
        const size_t length = strcspn(list, KN_PATH_LIST_SEPARATOR);
        ok = length == 0 || watch_dir(p, list, length);
        list += length + (list[length] != '\0');
    }
    return ok;
}

bool kn_cpu_places_watch(cpu_toolchain *toolchain, char *text)
{
    static const char programs_at[] = "programs: =", libraries_at[] = "libraries: =";
    places tools, others;
    char *line = NULL;
    places_init(&tools, toolchain, programs, sizeof(programs) / sizeof(programs[0]));
    places_init(&others, toolchain, specs, sizeof(specs) / sizeof(specs[0]));
    /* clang looks there first, and does not say so. */
    bool ok = watch_list(&tools, kn_env_get("COMPILER_PATH"));
    while (ok && (line = kn_cpu_next_line(&text)) != NULL) {
        if (kn_text_starts(line, programs_at)) {
            ok = watch_list(&tools, line + sizeof(programs_at) - 1);
        } else if (kn_text_starts(line, libraries_at)) {
            ok = watch_list(&others, line + sizeof(libraries_at) - 1);
        }
    }
    places_deinit(&others);
    places_deinit(&tools);
    return ok;
}

bool kn_cpu_places_watch_driver(cpu_toolchain *toolchain, const char *driver)
{
    places p;
    char *resolved = kn_path_resolve(driver);
    char *dir = resolved != NULL ? kn_path_dir(resolved) : NULL;
    places_init(&p, toolchain, configuration, sizeof(configuration) / sizeof(configuration[0]));
    const bool ok = dir != NULL && watch_dir(&p, dir, strlen(dir)) && watch_list(&p, "/etc/clang");
    places_deinit(&p);
    free(dir);
    free(resolved);
    return ok;
}
