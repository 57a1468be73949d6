/* libnvJitLink.so.12 and libnvJitLink.so.13 of kiln: nvJitLink's functions under the names of all
 * releases, each of which goes to the core that answers from the cache, or to the real library if
 * the core is unavailable or KILN_DISABLE is set. See rtc.h. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/shim/jitlink_api.h"
#include "enter.h"
#include "find.h"
#include "forward.h"
#include "interpose/uncancelled.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_LIBRARY 6 /* NVJITLINK_ERROR_INTERNAL */

static struct {
    pthread_once_t chosen;
    pthread_mutex_t lock;
    bool tried;
    void *library;
    const void *_Atomic caller;
    char path[KN_FIND_PATH];
    kn_jitlink_calls real[KN_JITLINK_RELEASE_COUNT];
    kn_forward_fn *undocumented; /* __nvJitLinkAPI */
    kn_jitlink_real about;
    const kn_jitlink_table *table;
} front = {.chosen = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the real library ------------------------------------------------------------------------- */

static void bind_link_symbol(const char *name, const char *suffix, void *member)
{
    char symbol[64];
    snprintf(symbol, sizeof(symbol), "%s%s%s", suffix[0] != '\0' ? "__" : "", name, suffix);
    void *found = dlsym(front.library, symbol);
    memcpy(member, &found, sizeof(found));
}

static void bind_release(kn_jitlink_calls *calls, const char *suffix)
{
    bind_link_symbol("nvJitLinkCreate", suffix, &calls->create);
    bind_link_symbol("nvJitLinkDestroy", suffix, &calls->destroy);
    bind_link_symbol("nvJitLinkAddData", suffix, &calls->add_data);
    bind_link_symbol("nvJitLinkAddFile", suffix, &calls->add_file);
    bind_link_symbol("nvJitLinkComplete", suffix, &calls->complete);
#define X(name)                                                                                    \
    bind_link_symbol("nvJitLinkGet" #name "Size", suffix, &calls->size[KN_JITLINK_##name]);        \
    bind_link_symbol("nvJitLinkGet" #name, suffix, &calls->bytes[KN_JITLINK_##name]);
    KN_JITLINK_OUTPUTS(X)
#undef X
}

/* See open_real in rtc.h. */
static void open_library(void)
{
    front.library = kn_enter_library(front.path);
    if (front.library == NULL) {
        return;
    }
    bind_release(&front.real[KN_JITLINK_PLAIN], "");
#define X(release) bind_release(&front.real[KN_JITLINK_##release], "_" #release);
    KN_JITLINK_RELEASES(X)
#undef X
    bind_link_symbol("nvJitLinkVersion", "", &front.real[KN_JITLINK_PLAIN].version);
    void *found = dlsym(front.library, "__nvJitLinkAPI");
    memcpy(&front.undocumented, &found, sizeof(found));
}

static const kn_jitlink_calls *open_real_link(unsigned release)
{
    pthread_mutex_lock(&front.lock);
    if (!front.tried && front.path[0] != '\0') {
        open_library();
    }
    front.tried = true;
    pthread_mutex_unlock(&front.lock);
    return front.library != NULL ? &front.real[release] : NULL;
}

/* --- without the core ------------------------------------------------------------------------- */

#define PLAIN(name, parameters, release, function, arguments)                                      \
    static nvJitLinkResult plain_##name parameters                                                 \
    {                                                                                              \
        const kn_jitlink_calls *calls = open_real_link(release);                                   \
        return calls != NULL && calls->function != NULL ? calls->function arguments : NO_LIBRARY;  \
    }
PLAIN(create,
      (unsigned release, nvJitLinkHandle *handle, uint32_t count, const char *const *options),
      release, create, (handle, count, options))
PLAIN(destroy, (unsigned release, nvJitLinkHandle *handle), release, destroy, (handle))
PLAIN(add_data,
      (unsigned release, nvJitLinkHandle handle, int type, const void *data, size_t size,
       const char *name),
      release, add_data, (handle, type, data, size, name))
PLAIN(add_file, (unsigned release, nvJitLinkHandle handle, int type, const char *file), release,
      add_file, (handle, type, file))
PLAIN(complete, (unsigned release, nvJitLinkHandle handle), release, complete, (handle))
PLAIN(size, (unsigned release, unsigned output, nvJitLinkHandle handle, size_t *size), release,
      size[output], (handle, size))
PLAIN(bytes, (unsigned release, unsigned output, nvJitLinkHandle handle, void *bytes), release,
      bytes[output], (handle, bytes))
PLAIN(version, (unsigned *major, unsigned *minor), KN_JITLINK_PLAIN, version, (major, minor))

static const kn_jitlink_table plain = {plain_create,   plain_destroy,  plain_add_data,
                                       plain_add_file, plain_complete, plain_size,
                                       plain_bytes,    plain_version};

/* --- the core --------------------------------------------------------------------------------- */

static void choose_link_table(void)
{
    union {
        void *object;
        kn_interpose_jitlink_fn *function;
    } entry = {NULL};
    front.table = &plain;
    if (!kn_find_library(&kn_libraries[KN_SHIM], KN_SHIM_MAJOR, atomic_load(&front.caller),
                         front.path, sizeof(front.path))) {
        front.path[0] = '\0';
        return;
    }
    front.about = (kn_jitlink_real){front.path, KN_SHIM_MAJOR, open_real_link};
    entry.object = kn_enter_core(KN_INTERPOSE_JITLINK);
    const kn_jitlink_table *core = entry.object != NULL ? entry.function(&front.about) : NULL;
    front.table = core != NULL ? core : &plain;
}

static const kn_jitlink_table *use_link_table(const void *caller)
{
    kn_enter_caller(&front.caller, caller);
    pthread_once(&front.chosen, choose_link_table);
    return front.table;
}

/* --- what is exported ------------------------------------------------------------------------- */

#define EXPORTED(name, parameters, call)                                                           \
    EXPORT nvJitLinkResult name parameters;                                                        \
    nvJitLinkResult name parameters                                                                \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return use_link_table(__builtin_return_address(0))->call;                                  \
    }

#define OUTPUT(release, prefix, suffix, output)                                                    \
    EXPORTED(prefix##Get##output##Size##suffix, (nvJitLinkHandle handle, size_t * size),           \
             size(release, KN_JITLINK_##output, handle, size))                                     \
    EXPORTED(prefix##Get##output##suffix, (nvJitLinkHandle handle, void *bytes),                   \
             bytes(release, KN_JITLINK_##output, handle, bytes))

#define RELEASE(release, prefix, suffix)                                                           \
    EXPORTED(prefix##Create##suffix,                                                               \
             (nvJitLinkHandle * handle, uint32_t count, const char *const *options),               \
             create(release, handle, count, options))                                              \
    EXPORTED(prefix##Destroy##suffix, (nvJitLinkHandle * handle), destroy(release, handle))        \
    EXPORTED(prefix##AddData##suffix,                                                              \
             (nvJitLinkHandle handle, int type, const void *data, size_t size, const char *name),  \
             add_data(release, handle, type, data, size, name))                                    \
    EXPORTED(prefix##AddFile##suffix, (nvJitLinkHandle handle, int type, const char *file),        \
             add_file(release, handle, type, file))                                                \
    EXPORTED(prefix##Complete##suffix, (nvJitLinkHandle handle), complete(release, handle))        \
    OUTPUT(release, prefix, suffix, LinkedCubin)                                                   \
    OUTPUT(release, prefix, suffix, LinkedPtx)                                                     \
    OUTPUT(release, prefix, suffix, ErrorLog)                                                      \
    OUTPUT(release, prefix, suffix, InfoLog)                                                       \
    OUTPUT(release, prefix, suffix, LinkedLTOIR)

#define X(release) RELEASE(KN_JITLINK_##release, __nvJitLink, _##release)
KN_JITLINK_RELEASES(X)
#undef X
RELEASE(KN_JITLINK_PLAIN, nvJitLink, )

EXPORTED(nvJitLinkVersion, (unsigned *major, unsigned *minor), version(major, minor))

static long lacks_link_function(void)
{
    return NO_LIBRARY;
}

kn_forward_fn *_Atomic kn_forward_real;

kn_forward_fn *kn_forward_find(const void *caller)
{
    KN_UNCANCELLED;
    const int before = errno;
    (void)use_link_table(caller);
    kn_forward_fn *found = open_real_link(KN_JITLINK_PLAIN) != NULL ? front.undocumented : NULL;
    atomic_store(&kn_forward_real, found);
    errno = before;
    return found != NULL ? found : (kn_forward_fn *)lacks_link_function;
}
