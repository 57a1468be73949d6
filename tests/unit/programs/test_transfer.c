/* What kiln push and kiln pull remember: each key once, in order, and as many as a cache may hold.
 */
#include "cmd/transfer_command.h"

#include <string.h>

#include "support/cmocka.h"

/* The i-th key; those of `alike` differ behind their first bytes alone. */
static kiln_key key_of(uint64_t i, bool alike)
{
    kiln_key key;
    const uint64_t mixed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
    memset(&key, 0, sizeof(key));
    memcpy(key.bytes + (alike ? 16 : 0), &mixed, sizeof(mixed));
    return key;
}

static void check(size_t count, bool alike)
{
    cli_pool pool = POOL_INIT;
    const cmd_context context = {.pool = &pool};
    cli_transfer t = {.context = &context};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < count; i++) {
            const kiln_key key = key_of(i, alike);
            assert_int_equal(transfer_add(&t, &key, NULL), KILN_OK);
        }
        assert_int_equal(t.count, count);
    }
    for (size_t i = 0; i < count; i++) {
        const kiln_key key = key_of(i, alike);
        assert_memory_equal(&t.keys[i], &key, sizeof(key));
    }
    pool_deinit(&pool);
}

/* With a look at each key before it, this took minutes. */
static void a_large_cache_takes_no_longer_a_key(void **state)
{
    check(300000, false);
}

static void keys_that_begin_alike_are_kept_apart(void **state)
{
    check(700, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_cache_takes_no_longer_a_key),
        cmocka_unit_test(keys_that_begin_alike_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
