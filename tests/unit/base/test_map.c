/* The hash map, against a plain table that says what it should hold. */
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/failalloc.h"
#include "support/suite.h"

static int values[2000];

static size_t name_of(int i, char *name)
{
    return (size_t)snprintf(name, 32, "key-%d", i);
}

KT_TEST(an_empty_map_finds_nothing)
{
    kn_map map;
    size_t cursor = 0;
    const void *key;
    size_t key_size;
    void *value;
    kn_map_init(&map);
    assert_null(kn_map_find(&map, "a", 1));
    assert_null(kn_map_remove(&map, "a", 1));
    assert_false(kn_map_next(&map, &cursor, &key, &key_size, &value));
    kn_map_deinit(&map);
}

KT_TEST(keys_are_copied_bytes)
{
    kn_map map;
    char key[] = "a\0b";
    kn_map_init(&map);
    assert_true(kn_map_put(&map, key, 3, &values[0], NULL));
    assert_true(kn_map_put(&map, key, 1, &values[1], NULL));
    assert_true(kn_map_put(&map, "", 0, &values[2], NULL));
    memset(key, 'x', 3);
    assert_ptr_equal(kn_map_find(&map, "a\0b", 3), &values[0]);
    assert_ptr_equal(kn_map_find(&map, "a", 1), &values[1]);
    assert_ptr_equal(kn_map_find(&map, NULL, 0), &values[2]);
    assert_null(kn_map_find(&map, "a\0", 2));
    assert_int_equal(map.count, 3);
    kn_map_deinit(&map);
}

KT_TEST(put_replaces_and_gives_the_old_value)
{
    kn_map map;
    void *old = &values[9];
    kn_map_init(&map);
    assert_true(kn_map_put(&map, "k", 1, &values[0], &old));
    assert_null(old);
    assert_true(kn_map_put(&map, "k", 1, &values[1], &old));
    assert_ptr_equal(old, &values[0]);
    assert_int_equal(map.count, 1);
    assert_ptr_equal(kn_map_remove(&map, "k", 1), &values[1]);
    assert_null(kn_map_find(&map, "k", 1));
    assert_int_equal(map.count, 0);
    kn_map_deinit(&map);
}

KT_TEST(it_agrees_with_a_plain_table)
{
    enum { KEYS = 2000, STEPS = 60000 };
    bool present[KEYS] = {false};
    size_t live = 0;
    unsigned random = 12345;
    kn_map map;
    char name[32];
    kn_map_init(&map);
    for (int step = 0; step < STEPS; step++) {
        random = random * 1103515245u + 12345u;
        int i = (int)(random >> 8) % KEYS;
        size_t size = name_of(i, name);
        assert_ptr_equal(kn_map_find(&map, name, size), present[i] ? &values[i] : NULL);
        /* Grows in the first half, is mostly emptied in the second. */
        bool put = step < STEPS / 2 ? (random >> 4) % 4 != 0 : (random >> 4) % 8 == 0;
        if (put) {
            assert_true(kn_map_put(&map, name, size, &values[i], NULL));
            live += present[i] ? 0 : 1;
        } else {
            assert_ptr_equal(kn_map_remove(&map, name, size), present[i] ? &values[i] : NULL);
            live -= present[i] ? 1 : 0;
        }
        present[i] = put;
        assert_int_equal(map.count, live);
    }
    assert_true(map.used <= map.capacity - map.capacity / 4);

    size_t cursor = 0;
    size_t visited = 0;
    const void *key;
    size_t key_size;
    void *value;
    while (kn_map_next(&map, &cursor, &key, &key_size, &value)) {
        size_t i = (size_t)((int *)value - values);
        assert_true(present[i]);
        present[i] = false; /* each once */
        assert_int_equal(key_size, name_of((int)i, name));
        assert_memory_equal(key, name, key_size);
        assert_ptr_equal(kn_map_remove(&map, name, key_size), value);
        visited++;
    }
    assert_int_equal(visited, live);
    assert_int_equal(map.count, 0);
    kn_map_deinit(&map);
}

KT_TEST(deleted_places_do_not_fill_the_table)
{
    kn_map map;
    char name[32];
    kn_map_init(&map);
    for (int i = 0; i < 100000; i++) {
        size_t size = name_of(i, name);
        assert_true(kn_map_put(&map, name, size, &values[0], NULL));
        assert_ptr_equal(kn_map_remove(&map, name, size), &values[0]);
    }
    assert_true(map.capacity <= 64);
    kn_map_deinit(&map);
}

static bool fill(void *user)
{
    kn_map map;
    char name[32];
    bool all = true;
    (void)user;
    kn_map_init(&map);
    for (int i = 0; i < 50; i++) {
        size_t size = name_of(i, name);
        size_t before = map.count;
        bool put = kn_map_put(&map, name, size, &values[i], NULL);
        assert_int_equal(map.count, put ? before + 1 : before);
        assert_ptr_equal(kn_map_find(&map, name, size), put ? &values[i] : NULL);
        all = all && put;
    }
    kn_map_deinit(&map);
    return all;
}

KT_TEST(want_of_memory_leaves_it_unchanged)
{
    assert_true(kt_failalloc_each(fill, NULL) > 50);
}

KT_MAIN(NULL, NULL)
