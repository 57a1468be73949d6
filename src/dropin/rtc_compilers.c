#include "dropin/rtc_compilers.h"

#include <stdlib.h>

#include "store/cache/cache.h"
#include "sys/thread.h"

enum { KINDS = 4 }; /* of backends that compile so: two today */

typedef struct compiler_list {
    kn_cache_companion companion; /* first */
    kn_mutex mutex;
    kn_driver *drivers[KINDS]; /* guarded by that; in no order, some NULL */
} compiler_list;

void kn_rtc_driver_destroy(kn_driver *driver)
{
    if (driver != NULL) {
        kn_driver_close(driver);
        free(driver);
    }
}

static void end_compilers(kn_cache_companion *companion, kiln_cache *cache)
{
    compiler_list *list = (compiler_list *)(void *)companion;
    (void)cache;
    for (size_t i = 0; i < KINDS; i++) {
        kn_rtc_driver_destroy(list->drivers[i]);
    }
    kn_mutex_deinit(&list->mutex);
    free(list);
}

static compiler_list *find_compilers(kiln_cache *cache)
{
    return (compiler_list *)(void *)kn_cache_companion_of(cache, KN_COMPANION_COMPILERS);
}

static compiler_list *find_or_create_compilers(kiln_cache *cache)
{
    compiler_list *there = find_compilers(cache);
    if (there != NULL) {
        return there;
    }
    compiler_list *list = (compiler_list *)calloc(1, sizeof(*list));
    if (list == NULL) {
        return NULL;
    }
    kn_mutex_init(&list->mutex);
    list->companion.end = end_compilers;
    there = (compiler_list *)(void *)kn_cache_companion_set(cache, KN_COMPANION_COMPILERS,
                                                            &list->companion);
    if (there != list) {
        kn_mutex_deinit(&list->mutex);
        free(list);
    }
    return there;
}

/* Puts `driver` (NULL: none) where one of `backend` is, or where there is room. What has to be
 * closed is returned: the one that was there, or `driver` itself. */
static kn_driver *exchange_compiler(compiler_list *list, const kiln_backend *backend,
                                    kn_driver *driver)
{
    kn_driver **place = NULL;
    kn_mutex_lock(&list->mutex);
    for (size_t i = 0; i < KINDS; i++) {
        kn_driver **slot = &list->drivers[i];
        if (*slot != NULL && (*slot)->in.backend == backend) {
            place = slot;
            break;
        }
        place = *slot == NULL && place == NULL ? slot : place;
    }
    kn_driver *before = driver;
    if (place != NULL) {
        before = *place;
        *place = driver;
    }
    kn_mutex_unlock(&list->mutex);
    return before;
}

void kn_rtc_compilers_keep(kiln_cache *cache, kn_driver *driver)
{
    compiler_list *list = find_or_create_compilers(cache);
    kn_rtc_driver_destroy(list != NULL ? exchange_compiler(list, driver->in.backend, driver)
                                       : driver);
}

bool kn_rtc_compilers_drop(kiln_cache *cache, const kiln_backend *backend)
{
    compiler_list *list = find_compilers(cache);
    kn_driver *driver = list != NULL ? exchange_compiler(list, backend, NULL) : NULL;
    kn_rtc_driver_destroy(driver);
    return driver != NULL;
}
