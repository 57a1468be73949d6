/* Which libraries a program of the compiler's loads, on Windows: those that it names and that are
 * found as the system would, next to the program, next to the driver, or in PATH. What is found in
 * none of them is the system's, which does not make code. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apis/cpu/backend/pe.h"
#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/paths.h"

const char kn_cpu_null_device[] = "NUL";

enum { PROGRAM_LIMIT = 1 << 30 };

static bool is_regular_file(const char *path)
{
    kn_file_facts facts;
    return path != NULL && kn_file_stat(path, true, &facts, NULL) == KILN_OK &&
           facts.kind == KN_FILE_REGULAR;
}

/* malloc'ed; NULL: not there. */
static char *find_next_to(const char *program, const char *name)
{
    char *dir = kn_path_dir(program);
    char *path = dir != NULL ? kn_path_join(dir, name) : NULL;
    free(dir);
    if (!is_regular_file(path)) {
        free(path);
        return NULL;
    }
    return path;
}

static char *find_library(const cpu_toolchain *toolchain, const char *program, const char *name)
{
    char *found = find_next_to(program, name);
    if (found == NULL && toolchain->tool_count > 0) {
        found = find_next_to(toolchain->tools[0].path, name);
    }
    const char *list = found == NULL ? kn_env_get("PATH") : NULL;
    while (found == NULL && list != NULL && *list != '\0') {
        const size_t length = strcspn(list, KN_PATH_LIST_SEPARATOR);
        char *dir = kn_text_copy_n(list, length);
        char *path = dir != NULL && kn_path_is_absolute(dir) ? kn_path_join(dir, name) : NULL;
        free(dir);
        if (is_regular_file(path)) {
            return path;
        }
        free(path);
        list += length + (list[length] != '\0' ? 1 : 0);
    }
    return found;
}

/* In the directory of that name, which is in every PATH. */
static bool lies_in_system32(const char *path)
{
    static const char name[] = "system32";
    char *dir = kn_path_dir(path);
    const char *last = dir != NULL ? kn_path_name(dir) : "";
    const bool is_it = strcasecmp(last, name) == 0;
    free(dir);
    return is_it;
}

bool kn_cpu_libraries_add(cpu_toolchain *toolchain, const char *path, const char *dir, bool *lost)
{
    void *data = NULL;
    size_t size = 0;
    const char *name = NULL;
    bool ok = true;
    kn_pe pe;
    if (kn_file_read(path, PROGRAM_LIMIT, false, &data, &size, NULL, NULL) != KILN_OK) {
        return false;
    }
    const bool is_pe = kn_pe_read(&pe, data, size);
    for (uint32_t i = 0; ok && is_pe && (name = kn_pe_import(&pe, i)) != NULL; i++) {
        const size_t before = toolchain->tool_count;
        bool dynamic = false;
        char *library = strpbrk(name, "/\\") == NULL ? find_library(toolchain, path, name) : NULL;
        if (library != NULL && !lies_in_system32(library)) {
            ok = kn_cpu_toolchain_add(toolchain, name, library, false, &dynamic) &&
                 (toolchain->tool_count == before || !dynamic ||
                  kn_cpu_libraries_add(toolchain, library, dir, lost));
        }
        free(library);
    }
    free(data);
    return ok;
}

bool kn_cpu_libraries_question(const char *path, cpu_ask *out_ask)
{
    (void)path;
    *out_ask = (cpu_ask){.argv = {NULL}};
    return false;
}

bool kn_cpu_libraries_take(cpu_toolchain *toolchain, cpu_ask *ask)
{
    (void)toolchain;
    (void)ask;
    return true;
}
