/* Must not know how a program is built: only how its binary is read and stored. */
#include "dropin/opencl_kept.h"

#include <stdlib.h>
#include <string.h>

#include "backends/opencl/status.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/text.h"
#include "store/cache/cache.h"

#define RELEASED_MAX 256 /* programs that nobody else holds and that wait for the end */

typedef struct kept_program {
    struct kept_program *next;
    kn_opencl_site site; /* its api is the list's */
    cl_program program;  /* retained */
    kiln_recipe *recipe;
    kiln_key key;
    char *text, *options;
    uint64_t compile_ns;
    bool unread; /* the cache has nothing of it */
    bool busy;   /* a capture works on it */
} kept_program;

typedef struct kept_list {
    kn_cache_companion companion; /* first */
    kn_mutex mutex;               /* programs, and their flags */
    kn_mutex reading;             /* one capture at a time */
    kn_dylib *lib;
    kn_opencl_api api;
    kept_program *programs;
} kept_list;

bool kn_opencl_reads_later(const kn_opencl_request *request)
{
    return request->unit.is_pocl && kn_cache_stores(request->cache);
}

static void destroy_program(kept_list *list, kept_program *kept)
{
    if (kept->program != NULL) {
        (void)list->api.clReleaseProgram(kept->program);
    }
    kiln_recipe_destroy(kept->recipe);
    free(kept->options);
    free(kept->text);
    free(kept);
}

/* --- storing ------------------------------------------------------------------------------------
 */

/* Reads what PoCL has of the program now, and stores it. Slow: PoCL may compile all kernels. */
static kiln_status store_binary(kiln_cache *cache, const kept_program *kept, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kiln_blob *blob = NULL;
    kiln_status status = kn_opencl_read_binary(&kept->site, kept->program, &data, &size, diag);
    if (status == KILN_OK && !kn_pocl_binary_is_sound(data, size)) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "capturing an OpenCL program",
                               "PoCL gives %zu bytes that are not a binary", size);
    }
    if (status == KILN_OK) {
        status = kiln_blob_create(data, size, NULL, 0, &blob, diag);
    }
    if (status == KILN_OK) {
        status = kiln_cache_put(cache, kept->recipe, blob, kept->compile_ns, diag);
    }
    kiln_blob_release(blob);
    free(data);
    return status;
}

static void mark_stored(kept_list *list, const kiln_key *key)
{
    kn_mutex_lock(&list->mutex);
    for (kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        if (memcmp(&kept->key, key, sizeof(*key)) == 0) {
            kept->unread = false;
        }
    }
    kn_mutex_unlock(&list->mutex);
}

static bool has_few_kernels(const kept_list *list, cl_program program)
{
    size_t count = 0;
    return list->api.clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof(count), &count,
                                      NULL) != CL_SUCCESS ||
           count <= KN_OPENCL_READ_AT_END;
}

/* The cache goes, and nobody builds or captures any more. */
static void end_list(kn_cache_companion *companion, kiln_cache *cache)
{
    kept_list *list = (kept_list *)(void *)companion;
    size_t left = 0;
    for (kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
        kiln_diag diag = KILN_DIAG_INIT;
        if (kept->unread && !has_few_kernels(list, kept->program)) {
            left++;
        } else if (kept->unread) {
            mark_stored(list, &kept->key); /* one that fails is not tried again */
            if (store_binary(cache, kept, &diag) != KILN_OK) {
                kn_log_diag(KILN_LOG_INFO, "reading an OpenCL binary at the end", &diag);
            }
        }
        kiln_diag_clear(&diag);
    }
    if (left > 0) {
        kn_log(KILN_LOG_INFO,
               "%zu OpenCL programs of more than %d kernels are left out of the cache: PoCL would "
               "compile all kernels first (kiln_opencl_capture_program stores one)",
               left, KN_OPENCL_READ_AT_END);
    }
    while (list->programs != NULL) {
        kept_program *kept = list->programs;
        list->programs = kept->next;
        destroy_program(list, kept);
    }
    kn_dylib_retire(list->lib);
    kn_mutex_deinit(&list->reading);
    kn_mutex_deinit(&list->mutex);
    free(list);
}

/* --- the list -----------------------------------------------------------------------------------
 */

static kept_list *find_list(kiln_cache *cache)
{
    return (kept_list *)(void *)kn_cache_companion_of(cache);
}

static kept_list *create_list(kiln_cache *cache)
{
    char path[512];
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kept_list *list = calloc(1, sizeof(*list));
    if (list == NULL || kn_opencl_library_open(&list->lib, &list->api, path, sizeof(path), &outcome,
                                               NULL) != KILN_OK) {
        free(list);
        return NULL;
    }
    kn_mutex_init(&list->mutex);
    kn_mutex_init(&list->reading);
    list->companion.end = end_list;
    kept_list *there = (kept_list *)(void *)kn_cache_companion_set(cache, &list->companion);
    if (there != list) {
        kn_dylib_retire(list->lib);
        kn_mutex_deinit(&list->reading);
        kn_mutex_deinit(&list->mutex);
        free(list);
    }
    return there;
}

/* With the mutex held: of the programs that nobody else holds, drops those that the cache has, and
 * the oldest where there are too many. */
static void drop_released(kept_list *list)
{
    kept_program **at = &list->programs;
    size_t released = 0;
    while (*at != NULL) {
        kept_program *kept = *at;
        cl_uint references = 0;
        const bool known =
            list->api.clGetProgramInfo(kept->program, CL_PROGRAM_REFERENCE_COUNT,
                                       sizeof(references), &references, NULL) == CL_SUCCESS;
        released += known && references == 1;
        if (known && references == 1 && !kept->busy && (!kept->unread || released > RELEASED_MAX)) {
            *at = kept->next;
            destroy_program(list, kept);
        } else {
            at = &kept->next;
        }
    }
}

static kept_program *create_program(kept_list *list, kn_opencl_request *request, cl_program program)
{
    kept_program *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    kept->site = (kn_opencl_site){&list->api, request->site.context, request->site.device};
    kept->text = kn_text_copy(request->text);
    kept->options = kn_text_copy(request->options);
    if (kept->text == NULL || kept->options == NULL ||
        list->api.clRetainProgram(program) != CL_SUCCESS) {
        destroy_program(list, kept);
        return NULL;
    }
    kept->program = program;
    kept->recipe = request->recipe;
    request->recipe = NULL;
    kept->key = kiln_recipe_key(kept->recipe);
    return kept;
}

void kn_opencl_kept_add(kn_opencl_request *request, cl_program program, bool unread,
                        uint64_t compile_ns)
{
    kept_list *list = find_list(request->cache);
    list = list != NULL ? list : create_list(request->cache);
    kept_program *kept = list != NULL ? create_program(list, request, program) : NULL;
    if (kept == NULL) {
        return;
    }
    kept->unread = unread;
    kept->compile_ns = compile_ns;
    kn_mutex_lock(&list->mutex);
    drop_released(list);
    kept->next = list->programs;
    list->programs = kept;
    kn_mutex_unlock(&list->mutex);
}

bool kn_opencl_kept_waits(kiln_cache *cache, const kiln_key *key)
{
    kept_list *list = find_list(cache);
    bool waits = false;
    if (list != NULL) {
        kn_mutex_lock(&list->mutex);
        for (const kept_program *kept = list->programs; kept != NULL; kept = kept->next) {
            waits = waits || (kept->unread && memcmp(&kept->key, key, sizeof(*key)) == 0);
        }
        kn_mutex_unlock(&list->mutex);
    }
    return waits;
}

void kn_opencl_kept_stored(kiln_cache *cache, const kiln_key *key)
{
    kept_list *list = find_list(cache);
    if (list != NULL) {
        mark_stored(list, key);
    }
}

/* --- capture ------------------------------------------------------------------------------------
 */

/* The program's record, which stays until it is left; NULL if it is not kept. */
static kept_program *enter_program(kept_list *list, cl_program program)
{
    kn_mutex_lock(&list->mutex);
    kept_program *kept = list->programs;
    while (kept != NULL && kept->program != program) {
        kept = kept->next;
    }
    if (kept != NULL) {
        kept->busy = true;
    }
    kn_mutex_unlock(&list->mutex);
    return kept;
}

kiln_status kn_opencl_kept_capture(kiln_cache *cache, cl_program program, kiln_diag *diag)
{
    kept_list *list = find_list(cache);
    kiln_status status = KILN_MISS;
    if (list == NULL) {
        return status;
    }
    kn_mutex_lock(&list->reading);
    kept_program *kept = enter_program(list, program);
    if (kept != NULL && kept->unread) {
        status = store_binary(cache, kept, diag);
        if (status == KILN_OK) {
            mark_stored(list, &kept->key);
        }
    } else if (kept != NULL) {
        status = kiln_opencl_capture(cache, kept->site.context, kept->site.device, kept->text,
                                     kept->options, diag);
    }
    if (kept != NULL) {
        kn_mutex_lock(&list->mutex);
        kept->busy = false;
        kn_mutex_unlock(&list->mutex);
    }
    kn_mutex_unlock(&list->reading);
    return status;
}
