/* Which libraries a program of the compiler's loads: the system's loader says so. */
#include <string.h>

#include "backends/cpu/toolchain.h"
#include "base/text.h"
#include "sys/process.h"

const char kn_cpu_null_device[] = "/dev/null";

#define ASK_LIMIT_NS ((uint64_t)10 * 1000000000u)

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

/* Printed by the system's loader: "name => path (address)". */
bool kn_cpu_libraries_add(cpu_toolchain *toolchain, const char *path, const char *folder)
{
    const char *const argv[] = {path, NULL};
    const char *const environment[] = {"LC_ALL=C", "LANGUAGE=C", "LD_TRACE_LOADED_OBJECTS=1", NULL};
    const kn_process_request request = {
        .argv = argv, .environment = environment, .folder = folder, .limit_ns = ASK_LIMIT_NS};
    kn_process_result result = {0};
    bool ok = true;
    if (kn_process_run(&request, &result, NULL) != KILN_OK) {
        return false;
    }
    char *text = result.out;
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
    kn_process_result_deinit(&result);
    return ok;
}
