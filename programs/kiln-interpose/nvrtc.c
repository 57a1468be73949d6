/* libnvrtc.so.12 and libnvrtc.so.13 of kiln: NVRTC's functions, each of which goes to the core that
 * answers from the cache, or to the real library if the core is unavailable or KILN_DISABLE is set.
 * It is preloaded into every process of a program, so it links libc alone and does nothing before
 * the first call. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "apis/cuda/shim/nvrtc_api.h"
#include "enter.h"
#include "find.h"
#include "forward.h"
#include "interpose/uncancelled.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_LIBRARY 11 /* NVRTC_ERROR_INTERNAL_ERROR */

static struct {
    pthread_once_t chosen;
    pthread_mutex_t lock;
    bool opened;
    const void *_Atomic caller;
    char path[KN_FIND_PATH];
    kn_nvrtc_table real;
    kn_forward_fn *encrypted; /* __nvrtcCPEx, which creates a program from an encrypted source */
    kn_nvrtc_real about;
    const kn_nvrtc_table *table;
} front = {.chosen = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static nvrtcResult lacks_function(void)
{
    return NO_LIBRARY;
}

/* --- the real library ------------------------------------------------------------------------- */

static void bind_symbol(void *library, const char *name, void *member)
{
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof(symbol));
}

static void bind_real(void *library)
{
#define X(first, last, name, parameters, arguments) bind_symbol(library, #name, &front.real.name);
#include "apis/cuda/shim/nvrtc_calls.def"
#undef X
    bind_symbol(library, "nvrtcGetErrorString", &front.real.nvrtcGetErrorString);
    bind_symbol(library, "__nvrtcCPEx", &front.encrypted);
}

/* Opened by its absolute path, so that its name does not find this library. NVIDIA links it with
 * -Bsymbolic, so its calls of its own functions stay in it. RTLD_DEEPBIND would do so, too, and
 * separate its malloc(3) from the one that the program preloads. */
static const kn_nvrtc_table *open_real(void)
{
    pthread_mutex_lock(&front.lock);
    if (!front.opened && front.path[0] != '\0') {
        if (front.table != NULL && front.table->note_loading != NULL) {
            front.table->note_loading();
        }
        void *library = kn_enter_library(front.path);
        if (library != NULL) {
            bind_real(library);
            front.opened = true;
        }
    }
    const kn_nvrtc_table *table = front.opened ? &front.real : NULL;
    pthread_mutex_unlock(&front.lock);
    return table;
}

/* --- the core --------------------------------------------------------------------------------- */

static const kn_nvrtc_table *open_core(void)
{
    union {
        void *object;
        kn_interpose_nvrtc_fn *function;
    } entry = {kn_enter_core(KN_INTERPOSE_NVRTC)};
    return entry.object != NULL ? entry.function(&front.about) : NULL;
}

static void choose_table(void)
{
    if (!kn_find_library(&kn_libraries[KN_SHIM], KN_SHIM_MAJOR, atomic_load(&front.caller),
                         front.path, sizeof(front.path))) {
        front.path[0] = '\0';
        return;
    }
    front.about = (kn_nvrtc_real){front.path, KN_SHIM_MAJOR, open_real};
    front.table = open_core();
    if (front.table == NULL) {
        front.table = open_real();
    }
}

static const kn_nvrtc_table *use_table(const void *caller)
{
    kn_enter_caller(&front.caller, caller);
    pthread_once(&front.chosen, choose_table);
    return front.table;
}

/* --- what is exported ------------------------------------------------------------------------- */

#define X(first, last, name, parameters, arguments)                                                \
    EXPORT nvrtcResult name parameters;                                                            \
    nvrtcResult name parameters                                                                    \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        const kn_nvrtc_table *table = use_table(__builtin_return_address(0));                      \
        return table != NULL && table->name != NULL ? table->name arguments : lacks_function();    \
    }
#include "apis/cuda/shim/nvrtc_calls.def"
#undef X

EXPORT const char *nvrtcGetErrorString(nvrtcResult result);
const char *nvrtcGetErrorString(nvrtcResult result)
{
    KN_UNCANCELLED;
    const kn_nvrtc_table *table = use_table(__builtin_return_address(0));
    return table != NULL ? table->nvrtcGetErrorString(result) : "NVRTC_ERROR_INTERNAL_ERROR";
}

kn_forward_fn *_Atomic kn_forward_real;

kn_forward_fn *kn_forward_find(const void *caller)
{
    KN_UNCANCELLED;
    const int before = errno;
    (void)use_table(caller);
    kn_forward_fn *found = open_real() != NULL ? front.encrypted : NULL;
    atomic_store(&kn_forward_real, found);
    errno = before;
    return found != NULL ? found : (kn_forward_fn *)lacks_function;
}
