/* See enter.h. The core lies two directories above this library: LIBEXEC/nvrtc/13/libnvrtc.so.13
 * and LIBEXEC/libkiln-interpose.so. */
#include "enter.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "find.h"
#include "interpose/room.h"

typedef struct open_call {
    const char *path;
    void *library;
} open_call;

static void open_apart(void *user)
{
    open_call *call = (open_call *)user;
    call->library = dlopen(call->path, RTLD_NOW | RTLD_LOCAL);
}

void *kn_enter_library(const char *path)
{
    open_call call = {.path = path};
    open_apart(&call);
    if (call.library == NULL && kn_room_is_short()) {
        kn_room_run(open_apart, &call);
    }
    return call.library;
}

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
    void *core = kn_enter_library(path);
    return core != NULL ? dlsym(core, function) : NULL;
}
