/* libnvJitLink.so.12 and libnvJitLink.so.13 of kiln: nvJitLink's functions under the names of all
 * releases, each of which goes to the core that answers from the cache, or to the real library if
 * the core is unavailable or KILN_DISABLE is set. See nvrtc.c. */
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

/* See open_real in nvrtc.c. */
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

#define CALL_REAL(release, function, ...)                                                          \
    do {                                                                                           \
        const kn_jitlink_calls *calls_ = open_real_link(release);                                  \
        return calls_ != NULL && calls_->function != NULL ? calls_->function(__VA_ARGS__)          \
                                                          : NO_LIBRARY;                            \
    } while (0)

static nvJitLinkResult plain_create(unsigned release, nvJitLinkHandle *handle, uint32_t count,
                                    const char *const *options)
{
    CALL_REAL(release, create, handle, count, options);
}

static nvJitLinkResult plain_destroy(unsigned release, nvJitLinkHandle *handle)
{
    CALL_REAL(release, destroy, handle);
}

static nvJitLinkResult plain_add_data(unsigned release, nvJitLinkHandle handle, int type,
                                      const void *data, size_t size, const char *name)
{
    CALL_REAL(release, add_data, handle, type, data, size, name);
}

static nvJitLinkResult plain_add_file(unsigned release, nvJitLinkHandle handle, int type,
                                      const char *file)
{
    CALL_REAL(release, add_file, handle, type, file);
}

static nvJitLinkResult plain_complete(unsigned release, nvJitLinkHandle handle)
{
    CALL_REAL(release, complete, handle);
}

static nvJitLinkResult plain_size(unsigned release, unsigned output, nvJitLinkHandle handle,
                                  size_t *size)
{
    CALL_REAL(release, size[output], handle, size);
}

static nvJitLinkResult plain_bytes(unsigned release, unsigned output, nvJitLinkHandle handle,
                                   void *bytes)
{
    CALL_REAL(release, bytes[output], handle, bytes);
}

static nvJitLinkResult plain_version(unsigned *major, unsigned *minor)
{
    CALL_REAL(KN_JITLINK_PLAIN, version, major, minor);
}

static const kn_jitlink_table plain = {plain_create,   plain_destroy,  plain_add_data,
                                       plain_add_file, plain_complete, plain_size,
                                       plain_bytes,    plain_version};

/* --- the core --------------------------------------------------------------------------------- */

static const kn_jitlink_table *open_link_core(void)
{
    union {
        void *object;
        kn_interpose_jitlink_fn *function;
    } entry = {kn_enter_core(KN_INTERPOSE_JITLINK)};
    return entry.object != NULL ? entry.function(&front.about) : NULL;
}

static void choose_link_table(void)
{
    front.table = &plain;
    if (!kn_find_library(&kn_libraries[KN_SHIM], KN_SHIM_MAJOR, atomic_load(&front.caller),
                         front.path, sizeof(front.path))) {
        front.path[0] = '\0';
        return;
    }
    front.about = (kn_jitlink_real){front.path, KN_SHIM_MAJOR, open_real_link};
    const kn_jitlink_table *core = open_link_core();
    front.table = core != NULL ? core : &plain;
}

static const kn_jitlink_table *use_link_table(const void *caller)
{
    kn_enter_caller(&front.caller, caller);
    pthread_once(&front.chosen, choose_link_table);
    return front.table;
}

#define HERE use_link_table(__builtin_return_address(0))

/* --- what is exported ------------------------------------------------------------------------- */

#define OUTPUT(release, prefix, suffix, output)                                                    \
    EXPORT nvJitLinkResult prefix##Get##output##Size##suffix(nvJitLinkHandle handle,               \
                                                             size_t *size);                        \
    nvJitLinkResult prefix##Get##output##Size##suffix(nvJitLinkHandle handle, size_t *size)        \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->size(release, KN_JITLINK_##output, handle, size);                             \
    }                                                                                              \
    EXPORT nvJitLinkResult prefix##Get##output##suffix(nvJitLinkHandle handle, void *bytes);       \
    nvJitLinkResult prefix##Get##output##suffix(nvJitLinkHandle handle, void *bytes)               \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->bytes(release, KN_JITLINK_##output, handle, bytes);                           \
    }

#define RELEASE(release, prefix, suffix)                                                           \
    EXPORT nvJitLinkResult prefix##Create##suffix(nvJitLinkHandle *handle, uint32_t count,         \
                                                  const char *const *options);                     \
    nvJitLinkResult prefix##Create##suffix(nvJitLinkHandle *handle, uint32_t count,                \
                                           const char *const *options)                             \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->create(release, handle, count, options);                                      \
    }                                                                                              \
    EXPORT nvJitLinkResult prefix##Destroy##suffix(nvJitLinkHandle *handle);                       \
    nvJitLinkResult prefix##Destroy##suffix(nvJitLinkHandle *handle)                               \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->destroy(release, handle);                                                     \
    }                                                                                              \
    EXPORT nvJitLinkResult prefix##AddData##suffix(                                                \
        nvJitLinkHandle handle, int type, const void *data, size_t size, const char *name);        \
    nvJitLinkResult prefix##AddData##suffix(nvJitLinkHandle handle, int type, const void *data,    \
                                            size_t size, const char *name)                         \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->add_data(release, handle, type, data, size, name);                            \
    }                                                                                              \
    EXPORT nvJitLinkResult prefix##AddFile##suffix(nvJitLinkHandle handle, int type,               \
                                                   const char *file);                              \
    nvJitLinkResult prefix##AddFile##suffix(nvJitLinkHandle handle, int type, const char *file)    \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->add_file(release, handle, type, file);                                        \
    }                                                                                              \
    EXPORT nvJitLinkResult prefix##Complete##suffix(nvJitLinkHandle handle);                       \
    nvJitLinkResult prefix##Complete##suffix(nvJitLinkHandle handle)                               \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        return HERE->complete(release, handle);                                                    \
    }                                                                                              \
    OUTPUT(release, prefix, suffix, LinkedCubin)                                                   \
    OUTPUT(release, prefix, suffix, LinkedPtx)                                                     \
    OUTPUT(release, prefix, suffix, ErrorLog)                                                      \
    OUTPUT(release, prefix, suffix, InfoLog)                                                       \
    OUTPUT(release, prefix, suffix, LinkedLTOIR)

#define X(release) RELEASE(KN_JITLINK_##release, __nvJitLink, _##release)
KN_JITLINK_RELEASES(X)
#undef X
RELEASE(KN_JITLINK_PLAIN, nvJitLink, )

EXPORT nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor);
nvJitLinkResult nvJitLinkVersion(unsigned *major, unsigned *minor)
{
    KN_UNCANCELLED;
    return HERE->version(major, minor);
}

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
