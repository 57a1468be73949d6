/* What nvrtc.c and hiprtc.c have alike: a library in the place of one with NVRTC's calls. Each call
 * goes to the core that answers from the cache, or to the real library if the core is unavailable
 * or KILN_DISABLE is set. The library is preloaded into every process of a program, so it links
 * libc alone and does nothing before the first call.
 *
 * The includer defines
 *   rtc_table, rtc_real, rtc_entry_fn   the types of its nvrtc_api.h
 *   RTC_CALLS            the file with a row X(name, parameters, arguments) for each function
 *   RTC_ENTRY            the core's function
 *   RTC_ERROR_STRING     the name of nvrtcGetErrorString
 *   RTC_UNKNOWN          its text where there is no library */
#ifndef KILN_INTERPOSE_RTC_H
#define KILN_INTERPOSE_RTC_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "enter.h"
#include "find.h"
#include "interpose/uncancelled.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    pthread_once_t chosen;
    pthread_mutex_t lock;
    void *library; /* NULL: not opened yet */
    const void *_Atomic caller;
    char path[KN_FIND_PATH];
    rtc_table real;
    rtc_real about;
    const rtc_table *table;
} front = {.chosen = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static int lacks_function(void)
{
    return 11; /* NVRTC_ERROR_INTERNAL_ERROR, HIPRTC_ERROR_INTERNAL_ERROR */
}

/* --- the real library ------------------------------------------------------------------------- */

static void bind_symbol(const char *name, void *member)
{
    void *symbol = dlsym(front.library, name);
    memcpy(member, &symbol, sizeof(symbol));
}

#define STRING_OF_(name) #name
#define STRING_OF(name) STRING_OF_(name)

/* Opened by its absolute path, so that its name does not find this library. NVIDIA links NVRTC with
 * -Bsymbolic, so its calls of its own functions stay in it. RTLD_DEEPBIND would do so, too, and
 * separate its malloc(3) from the one that the program preloads. The one call of its own that
 * hipRTC makes through the table of all libraries, hiprtcGetErrorString, comes here and is
 * answered. */
static const rtc_table *open_real(void)
{
    pthread_mutex_lock(&front.lock);
    if (front.library == NULL && front.path[0] != '\0') {
        if (front.table != NULL && front.table->note_loading != NULL) {
            front.table->note_loading();
        }
        front.library = kn_enter_library(front.path);
        if (front.library != NULL) {
#define X(name, parameters, arguments) bind_symbol(#name, &front.real.name);
#include RTC_CALLS
#undef X
            bind_symbol(STRING_OF(RTC_ERROR_STRING), &front.real.RTC_ERROR_STRING);
        }
    }
    const rtc_table *table = front.library != NULL ? &front.real : NULL;
    pthread_mutex_unlock(&front.lock);
    return table;
}

/* --- the core --------------------------------------------------------------------------------- */

static void choose_table(void)
{
    union {
        void *object;
        rtc_entry_fn *function;
    } entry = {NULL};
    if (!kn_find_library(&kn_libraries[KN_SHIM], KN_SHIM_MAJOR, atomic_load(&front.caller),
                         front.path, sizeof(front.path))) {
        front.path[0] = '\0';
        return;
    }
    front.about = (rtc_real){front.path, KN_SHIM_MAJOR, open_real};
    entry.object = kn_enter_core(RTC_ENTRY);
    front.table = entry.object != NULL ? entry.function(&front.about) : NULL;
    if (front.table == NULL) {
        front.table = open_real();
    }
}

static const rtc_table *use_table(const void *caller)
{
    kn_enter_caller(&front.caller, caller);
    pthread_once(&front.chosen, choose_table);
    return front.table;
}

/* --- what is exported ------------------------------------------------------------------------- */

#define X(name, parameters, arguments)                                                             \
    EXPORT int name parameters;                                                                    \
    int name parameters                                                                            \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        const rtc_table *table = use_table(__builtin_return_address(0));                           \
        return table != NULL && table->name != NULL ? table->name arguments : lacks_function();    \
    }
#include RTC_CALLS
#undef X

EXPORT const char *RTC_ERROR_STRING(int result);
const char *RTC_ERROR_STRING(int result)
{
    KN_UNCANCELLED;
    const rtc_table *table = use_table(__builtin_return_address(0));
    return table != NULL ? table->RTC_ERROR_STRING(result) : RTC_UNKNOWN;
}

#endif
