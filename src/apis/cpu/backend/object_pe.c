/* Objects on Windows are DLLs: what gcc and clang make there, and the system's own loader takes.
 * This file must not know compilers or devices. */
#include <string.h>

#include "apis/cpu/backend/object.h"
#include "apis/cpu/backend/pe.h"
#include "base/text.h"

enum { MACHINE_X86_64 = 0x8664, MACHINE_AARCH64 = 0xaa64, FLAG_DLL = 0x2000 };

/* Nothing of the compiler's own libraries is needed to load it, and no time of day is in it. */
const char *const kn_cpu_object_flags[] = {"-shared", "-static-libgcc", "-pipe",
                                           "-Wl,--no-insert-timestamp", NULL};

/* gcc's answer may name it in another way, and what is started there is a program. */
const bool kn_cpu_object_names_driver = false;

/* gcc for Windows spills 32-byte vectors to a stack that it keeps aligned to 16 bytes (its bug
 * 54412): the assembler makes every move one that does not ask for more. clang aligns the stack. */
const char *kn_cpu_object_flag_for(const char *version)
{
    return kn_text_starts(version, "gcc ") ? "-Wa,-muse-unaligned-vector-move" : NULL;
}

bool kn_cpu_object_check(const void *data, size_t size, kn_architecture architecture,
                         const char **out_why)
{
    const unsigned machine = architecture == KN_ARCH_AARCH64 ? MACHINE_AARCH64 : MACHINE_X86_64;
    const char *why = NULL;
    kn_pe pe;
    if (size == 0 || data == NULL) {
        why = "it is empty";
    } else if (!kn_pe_read(&pe, data, size)) {
        why = "it is not a whole 64-bit DLL";
    } else if ((pe.flags & FLAG_DLL) == 0) {
        why = "it is a program, not a DLL";
    } else if (pe.machine != machine) {
        why = "it is for another machine";
    }
    *out_why = why;
    return why == NULL;
}

const char *kn_cpu_object_kernel(const void *data, size_t size, size_t index)
{
    const size_t prefix = strlen(CPU_KERNEL_PREFIX);
    const char *name = NULL;
    kn_pe pe;
    if (!kn_pe_read(&pe, data, size)) {
        return NULL;
    }
    for (uint32_t i = 0; (name = kn_pe_export(&pe, i)) != NULL; i++) {
        if (strncmp(name, CPU_KERNEL_PREFIX, prefix) == 0 && index-- == 0) {
            return name + prefix;
        }
    }
    return NULL;
}

/* There is none: a program is identified by its bytes, and loads libraries if it is one of
 * Windows'. */
bool kn_cpu_object_build_id(const char *path, char *id, size_t id_size, bool *out_dynamic)
{
    (void)id;
    (void)id_size;
    *out_dynamic = kn_cpu_object_begins(path, "MZ");
    return false;
}
