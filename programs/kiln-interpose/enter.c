/* See enter.h. The core lies two directories above this library: LIBEXEC/nvrtc/13/libnvrtc.so.13
 * and LIBEXEC/libkiln-interpose.so. */
#include "enter.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"

static bool is_disabled(void)
{
    const char *value = getenv("KILN_DISABLE");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

void *kn_enter_core(const char *function)
{
    char path[KN_FIND_PATH];
    if (is_disabled() || !kn_find_core(KN_INTERPOSE_CORE, path, sizeof(path))) {
        return NULL;
    }
    void *core = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return core != NULL ? dlsym(core, function) : NULL;
}

void kn_enter_caller(const void *_Atomic *first, const void *caller)
{
    const void *none = NULL;
    if (atomic_load_explicit(first, memory_order_relaxed) == NULL) {
        (void)atomic_compare_exchange_strong(first, &none, caller);
    }
}
