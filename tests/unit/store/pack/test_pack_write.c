/* Writing packs in trouble: want of memory, and a cache that has packs and no disk. */
#include "unit/store/support.h"

#include "kiln/unstable/pack.h"

#include "support/failalloc.h"
#include "support/suite.h"

static void assert_packed(const char *path, const char *const *names, size_t count)
{
    kiln_pack *pack = NULL;
    assert_int_equal(kiln_pack_open(path, &pack, NULL), KILN_OK);
    for (size_t i = 0; i < count; i++) {
        kiln_recipe *recipe = ks_recipe(names[i]);
        const kiln_key key = kiln_recipe_key(recipe);
        kiln_blob *blob = NULL;
        assert_int_equal(kiln_pack_get(pack, &key, &blob, NULL), KILN_OK);
        assert_memory_equal(kiln_blob_data(blob), names[i], strlen(names[i]));
        kiln_blob_release(blob);
        kiln_recipe_destroy(recipe);
    }
    kiln_pack_close(pack);
}

/* What was refused for lack of memory is not there, and can be added again. */
KT_TEST_IN_DIR(an_entry_that_could_not_be_added_can_be_added_later)
{
    static const char *const names[] = {"first", "second"};
    char *path = kt_at(*state, "a.kpack");
    for (int raw = 0; raw < 2; raw++) {
        const kiln_pack_writer_options options = {.struct_size = sizeof options, .raw = raw != 0};
        bool fired = true;
        for (uint64_t n = 1; fired; n++) {
            kiln_pack_writer *writer = NULL;
            assert_int_equal(kiln_pack_writer_create(path, &options, &writer, NULL), KILN_OK);
            for (size_t i = 0; i < 2; i++) {
                kiln_recipe *recipe = ks_recipe(names[i]);
                kiln_blob *blob = ks_blob(names[i]);
                bool added = false;
                kt_failalloc_arm(n, false);
                kiln_status status = kiln_pack_writer_add_blob(writer, recipe, blob, &added, NULL);
                fired = kt_failalloc_fired();
                kt_failalloc_disarm();
                if (status == KILN_E_NOMEM) {
                    assert_false(added);
                    status = kiln_pack_writer_add_blob(writer, recipe, blob, &added, NULL);
                }
                assert_int_equal(status, KILN_OK);
                assert_true(added);
                kiln_blob_release(blob);
                kiln_recipe_destroy(recipe);
            }
            assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
            kiln_pack_writer_destroy(writer);
            assert_packed(path, names, 2);
        }
    }
}

KT_TEST_IN_DIR(a_pack_can_be_made_of_packs_without_a_disk)
{
    static const char *const names[] = {"x"};
    char *root = kt_at(*state, "root"), *first = kt_at(*state, "1.kpack"),
         *second = kt_at(*state, "2.kpack");
    ks_compile compile = {0};
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    kiln_cache_options options;
    kiln_cache *cache = ks_cache(root);
    (void)ks_get(cache, "x", &compile);
    assert_int_equal(kiln_pack_writer_create(first, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, NULL, NULL, &copied, NULL),
                     KILN_OK);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);

    kiln_recipe *recipe = ks_recipe("x");
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_diag diag = KILN_DIAG_INIT;
    bool added = false;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.flags = KILN_CACHE_NO_DISK;
    options.packs = first;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_create(second, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add(writer, cache, &key, &added, &diag), KILN_OK);
    assert_true(added);
    assert_int_equal(kiln_pack_writer_finish(writer, NULL, NULL), KILN_OK);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
    assert_packed(second, names, 1);
    kiln_diag_clear(&diag);
    kiln_recipe_destroy(recipe);
}

typedef struct order {
    kiln_key last;
    int visits, backwards;
} order;

static kiln_status take_order(void *user, const kiln_entry_info *info)
{
    order *o = user;
    o->backwards += o->visits > 0 && memcmp(&o->last, &info->key, sizeof info->key) >= 0;
    o->last = info->key;
    o->visits++;
    return KILN_OK;
}

/* And not as a directory happens to list them: equal entries give equal files. */
KT_TEST_IN_DIR(a_pack_takes_the_entries_of_a_cache_in_order_of_keys)
{
    enum { COUNT = 40 };
    char *root = kt_at(*state, "root"), *path = kt_at(*state, "a.kpack");
    ks_compile compile = {0};
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    order o = {.visits = 0};
    kiln_cache *cache = ks_cache(root);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "entry %d", i);
        (void)ks_get(cache, name, &compile);
    }
    assert_int_equal(kiln_pack_writer_create(path, NULL, &writer, NULL), KILN_OK);
    assert_int_equal(kiln_pack_writer_add_all(writer, cache, NULL, take_order, &o, &copied, NULL),
                     KILN_OK);
    assert_int_equal(o.visits, COUNT);
    assert_int_equal(o.backwards, 0);
    assert_int_equal(copied.added, COUNT);
    kiln_pack_writer_destroy(writer);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
