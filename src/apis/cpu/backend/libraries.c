/* Which libraries a program of the compiler's loads: the system's loader says so. */
#include <string.h>

#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"

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

bool kn_cpu_libraries_question(const char *path, cpu_ask *out_ask)
{
    *out_ask = (cpu_ask){.argv = {path, NULL}, .variable = "LD_TRACE_LOADED_OBJECTS=1"};
    return true;
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

bool kn_cpu_libraries_add(cpu_toolchain *toolchain, const char *path, const char *dir, bool *lost)
{
    cpu_ask ask;
    (void)kn_cpu_libraries_question(path, &ask);
    kn_cpu_ask_together(dir, &ask, 1);
    *lost = *lost || ask.result.lost;
    const bool ok = kn_cpu_libraries_take(toolchain, &ask);
    kn_cpu_asks_deinit(&ask, 1);
    return ok;
}
