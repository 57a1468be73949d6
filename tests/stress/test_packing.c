/* An entry from any tier can be put into a pack at once: threads that ask for the same keys a
 * moment apart, where one compiles and stores while the others find it. */
#include "stress/crowd.h"

#include <pthread.h>

#include "kiln/unstable/pack.h"

#include "support/suite.h"
#include "sys/thread.h"

enum { THREADS = 4, KEYS = 400 };

typedef struct packing {
    crowd *c;
    kiln_cache *cache;
    kiln_pack_writer *writer;
    kn_mutex mutex; /* of the writer */
    _Atomic int missing;
} packing;

typedef struct packer {
    packing *all;
    unsigned seed;
} packer;

/* Not all in step: some find what another one is about to store. */
static void *get_and_pack(void *user)
{
    packer *p = user;
    for (int n = 0; n < KEYS; n++) {
        kiln_recipe *recipe = crowd_recipe(n);
        const kiln_key key = kiln_recipe_key(recipe);
        for (unsigned turns = (p->seed = p->seed * 1103515245u + 12345u) >> 21; turns > 0;
             turns--) {
            (void)atomic_load(&p->all->missing);
        }
        (void)crowd_get(p->all->c, p->all->cache, n);
        kn_mutex_lock(&p->all->mutex);
        if (kiln_pack_writer_add(p->all->writer, p->all->cache, &key, NULL, NULL) != KILN_OK) {
            atomic_fetch_add(&p->all->missing, 1);
        }
        kn_mutex_unlock(&p->all->mutex);
        kiln_recipe_destroy(recipe);
    }
    return NULL;
}

KT_TEST_IN_DIR(what_a_thread_has_can_be_packed_at_once)
{
    crowd *c = crowd_create(*state);
    char *path = kt_at(*state, "all.kpack");
    pthread_t threads[THREADS];
    packer packers[THREADS];
    kiln_pack_info info = {.struct_size = sizeof(info)};
    packing all = {.c = c, .cache = crowd_cache(c, 0)};
    kn_mutex_init(&all.mutex);
    assert_int_equal(kiln_pack_writer_create(path, NULL, &all.writer, NULL), KILN_OK);
    for (int i = 0; i < THREADS; i++) {
        packers[i] = (packer){&all, (unsigned)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_pack, &packers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(kiln_pack_writer_finish(all.writer, &info, NULL), KILN_OK);
    assert_int_equal(all.missing, 0);
    assert_int_equal(info.entries, KEYS);
    assert_int_equal(c->compiles, KEYS);
    assert_int_equal(c->wrong + c->failed, 0);
    kiln_pack_writer_destroy(all.writer);
    kiln_cache_destroy(all.cache);
    kn_mutex_deinit(&all.mutex);
    crowd_destroy(c);
}

KT_MAIN(NULL, NULL)
