/* Which libraries a program of the compiler's loads: the system's loader says so, where the program
 * needs more than the C library. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/object.h"
#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"
#include "sys/paths.h"

const char kn_cpu_null_device[] = "/dev/null";

/* libc's own libraries do not make code. */
static bool is_system_library(const char *name)
{
    static const char *const names[] = {"libc.so",  "libm.so",  "libpthread.so", "libdl.so",
                                        "librt.so", "ld-linux", "linux-vdso",    "ld64"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (kn_text_starts(name, names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_system(void *user, const char *name)
{
    (void)user;
    return is_system_library(name);
}

bool kn_cpu_libraries_question(const char *path, cpu_ask *out_ask)
{
    kn_file *file = NULL;
    char *resolved = kn_path_resolve(path); /* compilers are links, often */
    *out_ask = (cpu_ask){.argv = {path, NULL}, .variable = "LD_TRACE_LOADED_OBJECTS=1"};
    /* Many need the C library alone, which the file says. */
    const bool nothing = resolved != NULL &&
                         kn_file_open(resolved, false, &file, NULL) == KILN_OK &&
                         kn_cpu_object_each_needed(file, is_system, NULL);
    kn_file_close(file);
    free(resolved);
    return !nothing;
}

/* Printed by the system's loader: "name => path (address)". */
bool kn_cpu_libraries_take(cpu_toolchain *toolchain, cpu_ask *ask)
{
    bool ok = ask->status == KILN_OK;
    char *text = ask->result.out;
    char *line = NULL;
    while (ok && (line = kn_cpu_next_line(&text)) != NULL) {
        char *library = strstr(line, "=> /");
        char *end = library != NULL ? strstr(library, " (") : NULL;
        bool dynamic = false;
        if (end == NULL) {
            continue;
        }
        *end = '\0';
        library += 3;
        const char *name = kn_path_name(library);
        ok = is_system_library(name) ||
             kn_cpu_toolchain_add(toolchain, name, library, false, &dynamic);
    }
    return ok;
}

bool kn_cpu_libraries_add(cpu_toolchain *toolchain, const char *path, const char *dir)
{
    cpu_ask ask;
    if (!kn_cpu_libraries_question(path, &ask)) {
        return true;
    }
    kn_cpu_ask_together(dir, &ask, 1);
    const bool ok = kn_cpu_libraries_take(toolchain, &ask);
    kn_cpu_asks_deinit(&ask, 1);
    return ok;
}
