/* See kept.h. */
#include "apis/vulkan/layer/kept.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/map.h"
#include "base/stages.h"
#include "base/text.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "sys/clock.h"
#include "sys/fork.h"
#include "sys/fpstate.h"
#include "sys/thread.h"

#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)
/* How long an exit waits for a save: a second. */
enum { EXIT_WAITS = 1000 };
/* The first save comes a second after the first pipeline, each next one after twice the time, and a
 * save takes no more than a twentieth of it. */
#define FIRST_PAUSE SECOND
#define LONGEST_PAUSE (60 * SECOND)
#define SHARE 20
#define NAME_LENGTH 400

/* The largest that is kept: it is written whole. And how much caches of the program's get of it,
 * after the first one. */
#define KEPT_LIMIT ((size_t)256 << 20)
#define GIVEN_LIMIT ((uint64_t)256 << 20)

struct kn_layer_kept {
    kn_vulkan_site *site;
    char name[NAME_LENGTH];
    kn_fork_guard guard;
    kn_mutex mutex; /* guards what follows */
    kn_cond changed;
    kiln_recipe *recipe; /* NULL: nothing is kept */
    bool opened;
    bool tried;            /* to have a cache to make pipelines with */
    bool stored;           /* the store had something */
    VkPipelineCache cache; /* what pipelines are made with; the driver synchronises it */
    bool handed_out;       /* a cache of the program's got what is kept */
    bool read;             /* the program has read one: it saves them */
    bool seeded;           /* a cache of the program's has something that it did not put there */
    kn_map adopted;        /* a cache of the program's: how many pipelines since it was gathered */
    uint64_t used;         /* pipelines since the device was made */
    uint64_t unsaved;      /* and since the last save */
    kn_thread *saver;
    bool stops;
    kn_mutex gathering;       /* guards what follows; comes before `mutex` */
    VkPipelineCache gathered; /* what is stored, and what the program's own caches held */
    uint64_t given;           /* bytes that caches of the program's got */
};

/* --- opening ---------------------------------------------------------------------------------- */

/* A program is known by the name of its file and by what it tells drivers of itself. Neither path
 * nor version: a container that lies elsewhere, or the next release, makes most of the same
 * pipelines, and a driver looks for each in what it is given. */
static void name_program(kn_layer_kept *kept, const kn_vk_layer_device_info *info)
{
    kn_text_putf(kept->name, sizeof(kept->name), "%.128s, %.128s, %.128s", info->program,
                 info->application, info->engine);
}

kn_layer_kept *kn_layer_kept_create(kn_vulkan_site *site, const kn_vk_layer_device_info *info)
{
    kn_layer_kept *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    kept->site = site;
    kn_fork_guard_init(&kept->guard);
    kn_mutex_init(&kept->mutex);
    kn_mutex_init(&kept->gathering);
    kn_cond_init(&kept->changed);
    kn_map_init(&kept->adopted);
    name_program(kept, info);
    return kept;
}

/* With the mutex held. False: nothing is kept. */
static bool open_kept(kn_layer_kept *kept)
{
    if (!kept->opened) {
        kept->opened = true;
        if (kn_vulkan_recipe(kept->site, KN_STAGE_AT(vulkan_layer_kept), &kept->recipe, NULL) ==
            KILN_OK) {
            kn_recipe_add_string(kept->recipe, "program", kept->name);
            kn_ignore(kn_recipe_end(&kept->recipe, NULL)); /* NULL if it failed */
        }
    }
    return kept->recipe != NULL;
}

VkPipelineCache kn_layer_kept_cache(kn_layer_kept *kept)
{
    if (!kn_fp_is_default()) {
        return VK_NULL_HANDLE; /* no key has it: what is kept was made in another state */
    }
    kn_mutex_lock(&kept->mutex);
    if (!kept->tried && open_kept(kept)) {
        bool stored = false;
        kn_ignore(kn_vulkan_open_stored(kept->site, kept->recipe, &kept->cache, &stored, NULL));
        kept->stored = kept->stored || stored;
    }
    kept->tried = true;
    const VkPipelineCache cache = kept->cache;
    kn_mutex_unlock(&kept->mutex);
    return cache;
}

/* --- saving ----------------------------------------------------------------------------------- */

/* How many bytes it holds; 0 where it is but a header. */
static size_t size_of_data(const kn_layer_kept *kept, VkPipelineCache cache)
{
    size_t size = 0;
    return cache != VK_NULL_HANDLE &&
                   kept->site->get_data(kept->site->device, cache, &size, NULL) == VK_SUCCESS &&
                   kn_vulkan_is_filled(size)
               ? size
               : 0;
}

/* What was gathered, in an object that nobody else changes; VK_NULL_HANDLE where that is nothing.
 */
static VkPipelineCache copy_gathered(kn_layer_kept *kept)
{
    const kn_vulkan_site *site = kept->site;
    VkPipelineCache copy = VK_NULL_HANDLE;
    kn_mutex_lock(&kept->gathering);
    if (size_of_data(kept, kept->gathered) > 0 &&
        kn_vulkan_make_cache(site, NULL, 0, &copy, NULL) == KILN_OK &&
        site->merge(site->device, copy, 1, &kept->gathered) != VK_SUCCESS) {
        site->destroy_cache(site->device, copy, NULL);
        copy = VK_NULL_HANDLE;
    }
    kn_mutex_unlock(&kept->gathering);
    return copy;
}

/* By the thread, or when that has finished. */
static void save_kept(kn_layer_kept *kept)
{
    VkPipelineCache caches[2];
    uint32_t count = 0;
    kn_mutex_lock(&kept->mutex);
    const bool due = kept->unsaved > 0 && kept->recipe != NULL;
    const VkPipelineCache own = kept->cache;
    kept->unsaved = 0;
    kn_mutex_unlock(&kept->mutex);
    if (!due || !kn_cache_stores(kept->site->cache)) {
        return;
    }
    const VkPipelineCache gathered = copy_gathered(kept);
    if (size_of_data(kept, own) > 0) {
        caches[count++] = own;
    }
    if (gathered != VK_NULL_HANDLE) {
        caches[count++] = gathered;
    }
    if (count > 0) {
        kiln_diag diag = KILN_DIAG_INIT;
        if (kn_vulkan_save(kept->site, kept->recipe, kept->name, caches, count, KEPT_LIMIT,
                           &diag) != KILN_OK) {
            kn_log_diag(KILN_LOG_WARN, "saving a pipeline cache", &diag);
        }
        kiln_diag_clear(&diag);
    }
    kept->site->destroy_cache(kept->site->device, gathered, NULL);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Savers that are at work, and that none may begin any more. */
static _Atomic uint32_t savers_at_work;
static _Atomic bool savers_halted;

/* The process exits: what a thread is asking a driver now is let finish, for a moment, before the
 * driver is torn down. Given to atexit() after the driver was loaded, and so run before its end. */
static void halt_savers(void)
{
    atomic_store(&savers_halted, true);
    for (int i = 0; i < EXIT_WAITS && atomic_load(&savers_at_work) > 0; i++) {
        kn_clock_sleep(MILLISECOND);
    }
}

static void save_unless_halted(kn_layer_kept *kept)
{
    (void)atomic_fetch_add(&savers_at_work, 1);
    if (!atomic_load(&savers_halted)) {
        save_kept(kept);
    }
    (void)atomic_fetch_sub(&savers_at_work, 1);
}

static void run_saver(void *user)
{
    kn_layer_kept *kept = (kn_layer_kept *)user;
    uint64_t pause = FIRST_PAUSE;
    kn_mutex_lock(&kept->mutex);
    while (!kept->stops) {
        if (kept->unsaved == 0) {
            kn_cond_wait(&kept->changed, &kept->mutex);
            continue;
        }
        const uint64_t due = kn_clock_now() + pause;
        while (!kept->stops && kn_cond_wait_until(&kept->changed, &kept->mutex, due)) {
        }
        if (kept->stops) {
            break;
        }
        kn_mutex_unlock(&kept->mutex);
        const uint64_t start = kn_clock_now();
        save_unless_halted(kept);
        const uint64_t took = kn_clock_now() - start;
        pause = pause * 2 < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
        pause = pause > took * SHARE ? pause : took * SHARE;
        kn_mutex_lock(&kept->mutex);
    }
    kn_mutex_unlock(&kept->mutex);
}

/* With the mutex held: so much more is to be saved. */
static void add_unsaved(kn_layer_kept *kept, uint64_t count)
{
    if (count == 0) {
        return;
    }
    kept->used += count;
    kept->unsaved += count;
    if (kept->saver == NULL && !kept->stops) {
        static _Atomic bool listed;
        if (!atomic_exchange(&listed, true)) {
            (void)atexit(halt_savers); /* where it fails nobody waits */
        }
        /* Without a thread it is saved at the end. */
        kn_ignore(kn_thread_start(run_saver, kept, &kept->saver, NULL));
    } else if (kept->unsaved == count) {
        kn_cond_signal(&kept->changed);
    }
}

void kn_layer_kept_used(kn_layer_kept *kept, uint32_t count)
{
    kn_mutex_lock(&kept->mutex);
    add_unsaved(kept, count);
    kn_mutex_unlock(&kept->mutex);
}

/* --- the program's own ------------------------------------------------------------------------ */

/* In the place of the number: pipelines were made with it in another floating-point state, and what
 * it holds is not taken over. */
#define MIXED ((uint64_t)UINTPTR_MAX - 1)

/* The map holds numbers: one more than how many. */
static void *box_count(uint64_t count)
{
    return (void *)(uintptr_t)(count + 1);
}

static uint64_t count_in(const void *box)
{
    return (uint64_t)(uintptr_t)box - 1;
}

/* With `gathering` held. */
static void open_gathered(kn_layer_kept *kept)
{
    bool loaded = false;
    if (kept->gathered == VK_NULL_HANDLE) {
        kn_ignore(kn_vulkan_open_stored(kept->site, kept->recipe, &kept->gathered, &loaded, NULL));
    }
    kn_mutex_lock(&kept->mutex);
    kept->stored = kept->stored || loaded;
    kn_mutex_unlock(&kept->mutex);
}

void kn_layer_kept_adopt(kn_layer_kept *kept, VkPipelineCache cache)
{
    if (!kn_fp_is_default()) {
        return; /* what is made with it may be made in this state, too */
    }
    kn_mutex_lock(&kept->mutex);
    const bool first = !kept->handed_out, gives = first || !kept->read;
    kept->handed_out = true;
    (void)kn_map_put(&kept->adopted, &cache, sizeof(cache), box_count(0), NULL);
    const bool opens = gives && open_kept(kept);
    kn_mutex_unlock(&kept->mutex);
    if (!opens) {
        return;
    }
    kn_mutex_lock(&kept->gathering);
    open_gathered(kept);
    const size_t size = size_of_data(kept, kept->gathered);
    if (size > 0 && (first || kept->given + size <= GIVEN_LIMIT)) {
        kept->given += size;
        /* What cannot be merged is not there. */
        (void)kept->site->merge(kept->site->device, cache, 1, &kept->gathered);
        kn_mutex_lock(&kept->mutex);
        kept->seeded = true;
        kn_mutex_unlock(&kept->mutex);
    }
    kn_mutex_unlock(&kept->gathering);
}

VkPipelineCache kn_layer_kept_adopted_used(kn_layer_kept *kept, VkPipelineCache cache,
                                           uint32_t count)
{
    const bool plain = kn_fp_is_default();
    kn_mutex_lock(&kept->mutex);
    const void *box = kn_map_find(&kept->adopted, &cache, sizeof(cache));
    const bool apart = box != NULL && !plain && kept->seeded;
    if (box != NULL && !plain) {
        (void)kn_map_put(&kept->adopted, &cache, sizeof(cache), box_count(MIXED), NULL);
    } else if (box != NULL && count_in(box) != MIXED) {
        (void)kn_map_put(&kept->adopted, &cache, sizeof(cache), box_count(count_in(box) + count),
                         NULL);
    }
    kn_mutex_unlock(&kept->mutex);
    return apart ? VK_NULL_HANDLE : cache;
}

void kn_layer_kept_gather(kn_layer_kept *kept, VkPipelineCache cache, bool goes)
{
    if (kn_fork_noticed(&kept->guard)) {
        return;
    }
    kn_mutex_lock(&kept->mutex);
    const void *box = kn_map_find(&kept->adopted, &cache, sizeof(cache));
    const bool mixed = box != NULL && count_in(box) == MIXED;
    const uint64_t count = box != NULL && !mixed ? count_in(box) : 0;
    if (box != NULL && goes) {
        (void)kn_map_remove(&kept->adopted, &cache, sizeof(cache));
    } else if (count > 0) {
        (void)kn_map_put(&kept->adopted, &cache, sizeof(cache), box_count(0), NULL);
    }
    kept->read = kept->read || (box != NULL && !goes);
    const bool keeps = count > 0 && open_kept(kept);
    kn_mutex_unlock(&kept->mutex);
    if (!keeps) {
        return;
    }
    kn_mutex_lock(&kept->gathering);
    open_gathered(kept);
    const bool merged =
        kept->gathered != VK_NULL_HANDLE &&
        kept->site->merge(kept->site->device, kept->gathered, 1, &cache) == VK_SUCCESS;
    kn_mutex_unlock(&kept->gathering);
    kn_mutex_lock(&kept->mutex);
    add_unsaved(kept, merged ? count : 0);
    kn_mutex_unlock(&kept->mutex);
}

/* --- the end ---------------------------------------------------------------------------------- */

void kn_layer_kept_destroy(kn_layer_kept *kept)
{
    if (kept == NULL || kn_fork_noticed(&kept->guard)) {
        return; /* a child has neither the thread nor the driver */
    }
    kn_mutex_lock(&kept->mutex);
    kept->stops = true;
    kn_cond_broadcast(&kept->changed);
    kn_thread *saver = kept->saver;
    kn_mutex_unlock(&kept->mutex);
    if (saver != NULL) {
        kn_thread_join(saver);
    }
    save_kept(kept);
    if (kept->used > 0) {
        char text[NAME_LENGTH + 64];
        kn_text_putf(text, sizeof(text), "%llu pipelines of %s", (unsigned long long)kept->used,
                     kept->name);
        kn_session_report(&(kn_session_event){
            .what = "vulkan",
            .name = text,
            .origin = kiln_origin_name(kept->stored ? KILN_ORIGIN_DISK : KILN_ORIGIN_COMPILED)});
    }
    kept->site->destroy_cache(kept->site->device, kept->cache, NULL);
    kept->site->destroy_cache(kept->site->device, kept->gathered, NULL);
    kiln_recipe_destroy(kept->recipe);
    kn_map_deinit(&kept->adopted);
    kn_cond_deinit(&kept->changed);
    kn_mutex_deinit(&kept->gathering);
    kn_mutex_deinit(&kept->mutex);
    kn_fork_guard_deinit(&kept->guard);
    free(kept);
}
