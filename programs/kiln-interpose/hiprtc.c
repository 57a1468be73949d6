/* libhiprtc.so.5 to .7 of kiln, and libkiln-hiprtc.so.5 and .6, which stand before the hipRTC that
 * is in HIP's runtime (libamdhip64.so, up to ROCm 6): hipRTC's functions, each of which goes to the
 * core that answers from the cache, or to the real library. See nvrtc.c. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "apis/hip/shim/hiprtc_api.h"
#include "enter.h"
#include "find.h"
#include "interpose/uncancelled.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_LIBRARY 11 /* HIPRTC_ERROR_INTERNAL_ERROR */

static struct {
    pthread_once_t chosen;
    pthread_mutex_t lock;
    bool opened;
    const void *_Atomic caller;
    char path[KN_FIND_PATH];
    kn_hiprtc_table real;
    kn_hiprtc_real about;
    const kn_hiprtc_table *table;
} front = {.chosen = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the real library ------------------------------------------------------------------------- */

static void bind_hiprtc_symbol(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof(symbol));
}

static void bind_hiprtc(void *library)
{
#define X(name, parameters, arguments) bind_hiprtc_symbol(library, #name, &front.real.name);
#include "apis/hip/shim/hiprtc_calls.def"
#undef X
    bind_hiprtc_symbol(library, "hiprtcGetErrorString", &front.real.hiprtcGetErrorString);
}

/* By its absolute path, so that its name does not find this library. The one call of its own that
 * hipRTC makes through the table of all libraries, hiprtcGetErrorString, comes here and is
 * answered. */
static const kn_hiprtc_table *open_real_hiprtc(void)
{
    pthread_mutex_lock(&front.lock);
    if (!front.opened && front.path[0] != '\0') {
        void *library = kn_enter_library(front.path);
        if (library != NULL) {
            bind_hiprtc(library);
            front.opened = true;
        }
    }
    const kn_hiprtc_table *table = front.opened ? &front.real : NULL;
    pthread_mutex_unlock(&front.lock);
    return table;
}

/* --- the core --------------------------------------------------------------------------------- */

static kn_hiprtc_place find_place(const kn_library *library)
{
    return library == &kn_libraries[KN_LIBRARY_hip] ? KN_HIPRTC_INSIDE : KN_HIPRTC_APART;
}

static void choose_hiprtc_table(void)
{
    union {
        void *object;
        kn_interpose_hiprtc_fn *function;
    } entry = {NULL};
    if (!kn_find_library(&kn_libraries[KN_SHIM], KN_SHIM_MAJOR, atomic_load(&front.caller),
                         front.path, sizeof(front.path))) {
        front.path[0] = '\0';
        return;
    }
    front.about = (kn_hiprtc_real){front.path, find_place(&kn_libraries[KN_SHIM]), open_real_hiprtc,
                                   KN_SHIM_MAJOR};
    entry.object = kn_enter_core(KN_INTERPOSE_HIPRTC);
    front.table = entry.object != NULL ? entry.function(&front.about) : NULL;
    if (front.table == NULL) {
        front.table = open_real_hiprtc();
    }
}

static const kn_hiprtc_table *use_hiprtc_table(const void *caller)
{
    kn_enter_caller(&front.caller, caller);
    pthread_once(&front.chosen, choose_hiprtc_table);
    return front.table;
}

/* --- what is exported ------------------------------------------------------------------------- */

#define X(name, parameters, arguments)                                                             \
    EXPORT hiprtcResult name parameters;                                                           \
    hiprtcResult name parameters                                                                   \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        const kn_hiprtc_table *table = use_hiprtc_table(__builtin_return_address(0));              \
        return table != NULL && table->name != NULL ? table->name arguments : NO_LIBRARY;          \
    }
#include "apis/hip/shim/hiprtc_calls.def"
#undef X

EXPORT const char *hiprtcGetErrorString(hiprtcResult result);
const char *hiprtcGetErrorString(hiprtcResult result)
{
    KN_UNCANCELLED;
    const kn_hiprtc_table *table = use_hiprtc_table(__builtin_return_address(0));
    return table != NULL ? table->hiprtcGetErrorString(result) : "HIPRTC_ERROR_INTERNAL_ERROR";
}
