/* Namespaces: parts of a root, each with entries, limits and counters of its own. */
#include "unit/store/support.h"

#include "store/cache/cache.h"
#include "support/suite.h"
#include "sys/file.h"

static kiln_cache *open_in(const char *root, const char *name, uint64_t max_files)
{
    kiln_cache_options options = ks_options(root);
    options.name_space = name;
    options.disk_max_files = max_files;
    return ks_open(&options);
}

static kiln_origin ask_once(const char *root, const char *name, const char *text)
{
    ks_compile compile = {0};
    kiln_cache *cache = open_in(root, name, 0);
    const kiln_origin origin = ks_get(cache, text, &compile);
    kiln_cache_destroy(cache);
    return origin;
}

static uint64_t count_compiles(const char *root, const char *name)
{
    uint64_t totals[KILN_COUNTERS];
    kiln_cache *cache = open_in(root, name, 0);
    assert_int_equal(kiln_cache_get_totals(cache, totals, KILN_COUNTERS, NULL), KILN_OK);
    kiln_cache_destroy(cache);
    return totals[KILN_COUNTER_COMPILES];
}

KT_TEST_IN_DIR(a_namespace_shares_neither_entries_nor_counters)
{
    char *root = kt_at(*state, "root");
    assert_int_equal(ask_once(root, NULL, "one"), KILN_ORIGIN_COMPILED);
    assert_int_equal(ask_once(root, "a", "one"), KILN_ORIGIN_COMPILED);
    assert_int_equal(ask_once(root, "b", "two"), KILN_ORIGIN_COMPILED);
    assert_int_equal(ask_once(root, "", "one"), KILN_ORIGIN_DISK);
    assert_int_equal(ask_once(root, "a", "one"), KILN_ORIGIN_DISK);
    assert_int_equal(ask_once(root, "a", "two"), KILN_ORIGIN_COMPILED);
    assert_int_equal(count_compiles(root, NULL), 1);
    assert_int_equal(count_compiles(root, "a"), 2);
    assert_int_equal(count_compiles(root, "b"), 1);
}

KT_TEST_IN_DIR(what_removes_entries_stays_in_its_namespace)
{
    const kiln_prune_options all = {.struct_size = sizeof all, .max_bytes = 0};
    kiln_prune_result removed = {.struct_size = sizeof removed};
    char *root = kt_at(*state, "root");
    (void)ask_once(root, NULL, "one");
    (void)ask_once(root, "a", "one");
    (void)ask_once(root, "b", "one");
    kiln_cache *a = open_in(root, "a", 0);
    assert_int_equal(kiln_cache_prune(a, &all, &removed, NULL), KILN_OK);
    kiln_cache_destroy(a);
    assert_int_equal(removed.entries_removed, 1);
    assert_int_equal(ask_once(root, NULL, "one"), KILN_ORIGIN_DISK);
    assert_int_equal(ask_once(root, "a", "one"), KILN_ORIGIN_COMPILED);
    kiln_cache *whole = open_in(root, NULL, 0);
    assert_int_equal(kiln_cache_clear(whole, &removed, NULL), KILN_OK);
    kiln_cache_destroy(whole);
    assert_int_equal(removed.entries_removed, 1);
    assert_int_equal(ask_once(root, "a", "one"), KILN_ORIGIN_DISK);
    assert_int_equal(ask_once(root, "b", "one"), KILN_ORIGIN_DISK);
}

static kiln_status count_entry(void *user, const kiln_entry_info *info)
{
    (void)info;
    ++*(size_t *)user;
    return KILN_OK;
}

KT_TEST_IN_DIR(a_limit_evicts_from_its_namespace_alone)
{
    char *root = kt_at(*state, "root");
    size_t left = 0;
    (void)ask_once(root, NULL, "n1");
    (void)ask_once(root, "b", "n1");
    kiln_cache *a = open_in(root, "a", 4);
    for (char text[] = "n1"; text[1] <= '9'; text[1]++) {
        ks_compile compile = {0};
        (void)ks_get(a, text, &compile);
    }
    assert_int_equal(kiln_cache_walk(a, NULL, count_entry, &left, NULL), KILN_OK);
    assert_in_range(left, 1, 4);
    kiln_cache_destroy(a);
    assert_int_equal(ask_once(root, NULL, "n1"), KILN_ORIGIN_DISK);
    assert_int_equal(ask_once(root, "b", "n1"), KILN_ORIGIN_DISK);
}

/* A child that is given both the directory and the name is in the same namespace. */
KT_TEST_IN_DIR(the_directory_of_a_namespace_is_not_nested)
{
    char *root = kt_at(*state, "root");
    kiln_cache *cache = open_in(root, "a", 0);
    char *own = strdup(kiln_cache_root(cache));
    kiln_cache *again = open_in(own, "a", 0);
    kiln_cache *other = open_in(own, "b", 0);
    assert_string_equal(kiln_cache_root(again), own);
    assert_string_not_equal(kiln_cache_root(other), own);
    kiln_cache_destroy(other);
    kiln_cache_destroy(again);
    kiln_cache_destroy(cache);
    free(own);
}

KT_TEST_IN_DIR(a_read_only_cache_makes_no_namespace)
{
    char *root = kt_at(*state, "root");
    (void)ask_once(root, NULL, "one");
    kiln_cache_options options = ks_options(root);
    options.name_space = "a";
    options.flags = KILN_CACHE_READONLY;
    kiln_cache *cache = ks_open(&options);
    assert_string_equal(kiln_cache_root(cache), "");
    assert_non_null(strstr(kiln_cache_disk_reason(cache), "no such directory"));
    kiln_cache_destroy(cache);
}

KT_TEST_IN_DIR(names_that_are_no_directory_are_refused)
{
    static const char *const names[] = {".", "..", ".a", "a/b", "a b", "\xc3\xa4"};
    char *root = kt_at(*state, "root");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kiln_cache_options options;
        kiln_cache *cache = NULL;
        assert_int_equal(setenv("KILN_NAMESPACE", names[i], 1), 0);
        assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_E_INVALID);
        assert_int_equal(unsetenv("KILN_NAMESPACE"), 0);
        assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
        options.root = root;
        options.name_space = names[i];
        assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_E_INVALID);
    }
}

static kiln_status list_name(void *user, const char *name)
{
    strcat(strcat(user, name), " ");
    return KILN_OK;
}

KT_TEST_IN_DIR(namespaces_are_listed)
{
    char *root = kt_at(*state, "root");
    char names[64] = "";
    (void)ask_once(root, "only", "one");
    kiln_cache *cache = open_in(root, NULL, 0);
    kiln_cache *inner = open_in(root, "only", 0);
    assert_int_equal(kiln_cache_walk_namespaces(cache, list_name, names, NULL), KILN_OK);
    assert_int_equal(kiln_cache_walk_namespaces(inner, list_name, names, NULL), KILN_OK);
    assert_string_equal(names, "only ");
    kiln_cache_destroy(inner);
    kiln_cache_destroy(cache);
}

KT_MAIN(NULL, NULL)
