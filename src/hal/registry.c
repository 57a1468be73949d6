/* The list of backends. Entries are added under a spin flag and never removed, so reading takes no
 * lock: a reader sees a count, and everything below it is finished. */
#include "hal/registry.h"

#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define REGISTRY_MAX 32

static struct {
    atomic_flag busy;
    atomic_size_t count;
    const kiln_backend *backends[REGISTRY_MAX];
    void *keep[REGISTRY_MAX];
} registry = {.busy = ATOMIC_FLAG_INIT};

const kiln_backend *kn_registry_at(size_t index)
{
    size_t count = atomic_load_explicit(&registry.count, memory_order_acquire);
    return index < count ? registry.backends[index] : NULL;
}

const kiln_backend *kn_registry_find(const char *name)
{
    const kiln_backend *backend = NULL;
    for (size_t i = 0; (backend = kn_registry_at(i)) != NULL; i++) {
        if (strcmp(backend->name, name) == 0) {
            return backend;
        }
    }
    return NULL;
}

kiln_status kn_registry_refuse(const char *what, const char *name, kiln_diag *diag)
{
    char names[256] = "";
    const char *nearest = NULL;
    size_t distance = strlen(name) / 3 + 2; /* as far as is near */
    const kiln_backend *backend = NULL;
    for (size_t i = 0; (backend = kn_registry_at(i)) != NULL; i++) {
        const size_t used = strlen(names);
        if ((backend->caps & KILN_CAP_ON_REQUEST) == 0) {
            kn_text_putf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
                         backend->name);
        }
        if (kn_text_distance(name, backend->name) < distance) {
            nearest = backend->name;
            distance = kn_text_distance(name, nearest);
        }
    }
    char fix[384] = "";
    if (nearest != NULL) {
        kn_text_putf(fix, sizeof(fix), "did you mean %s? ", nearest);
    }
    const size_t used = strlen(fix);
    kn_text_putf(fix + used, sizeof(fix) - used, "the backends are %s%s",
                 names[0] != '\0' ? names : "none",
                 nearest == NULL ? "; `kiln devices` lists their devices" : "");
    return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "there is no backend \"%.60s\"", name);
}

kiln_status kn_registry_add(const kiln_backend *backend, void *keep, kiln_diag *diag)
{
    kiln_status status = kn_backend_check(backend, diag);
    if (status != KILN_OK) {
        return status;
    }
    while (atomic_flag_test_and_set_explicit(&registry.busy, memory_order_acquire)) {
        /* Held for a few loads and stores, at start only. */
    }
    size_t count = atomic_load_explicit(&registry.count, memory_order_relaxed);
    const kiln_backend *taken = kn_registry_find(backend->name);
    if (taken == NULL && count < REGISTRY_MAX) {
        registry.backends[count] = backend;
        registry.keep[count] = keep;
        atomic_store_explicit(&registry.count, count + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&registry.busy, memory_order_release);
    if (taken == backend) {
        return KILN_OK;
    }
    if (taken != NULL) {
        return kiln_diag_set(diag, KILN_E_BUSY, "give it a name of its own",
                             "registering a backend", "there is one called %s already",
                             backend->name);
    }
    if (count >= REGISTRY_MAX) {
        return kiln_diag_set(diag, KILN_E_BUSY, "register fewer", "registering a backend",
                             "there is no room for more than %d", REGISTRY_MAX);
    }
    return KILN_OK;
}

void kn_registry_add_builtin(const kiln_backend *const *list)
{
    for (; *list != NULL; list++) {
        kiln_diag diag = KILN_DIAG_INIT;
        if (kn_registry_find((*list)->name) == NULL &&
            kn_registry_add(*list, NULL, &diag) != KILN_OK) {
            kn_log_diag(KILN_LOG_ERROR, "built-in backend", &diag);
        }
        kiln_diag_clear(&diag);
    }
}

kiln_status kiln_backend_register(const kiln_backend *backend, kiln_diag *diag)
{
    return kn_registry_add(backend, NULL, diag);
}
