/* What the tests of the store share: recipes, compiles that count themselves, caches in a
 * directory.
 */
#ifndef KILN_TESTS_STORE_SUPPORT_H
#define KILN_TESTS_STORE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"
#include "kiln/unstable/counters.h"
#include "support/counters.h"
#include "support/tmpdir.h"

static inline kiln_recipe *ks_recipe(const char *text)
{
    kiln_recipe *recipe = NULL;
    assert_int_equal(kiln_recipe_create("test", 1, &recipe, NULL), KILN_OK);
    kiln_recipe_set_target(recipe, "test-target");
    kiln_recipe_add_text(recipe, "text", text, strlen(text));
    return recipe;
}

static inline kiln_key ks_key(const char *text)
{
    kiln_recipe *recipe = ks_recipe(text);
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    return key;
}

static inline kiln_blob *ks_blob(const char *text)
{
    kiln_blob *blob = NULL;
    assert_int_equal(kiln_blob_create(text, strlen(text), "facts", 5, &blob, NULL), KILN_OK);
    return blob;
}

/* Options that a test may change before it opens a cache with them. */
static inline kiln_cache_options ks_options(const char *root)
{
    kiln_cache_options options;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    options.no_fsync = true;
    return options;
}

static inline kiln_cache *ks_open(const kiln_cache_options *options)
{
    kiln_cache *cache = NULL;
    assert_int_equal(kiln_cache_create(options, &cache, NULL), KILN_OK);
    return cache;
}

static inline kiln_cache *ks_cache_with(const char *root, uint32_t flags)
{
    kiln_cache_options options = ks_options(root);
    options.flags = flags;
    return ks_open(&options);
}

static inline kiln_cache *ks_cache(const char *root)
{
    return ks_cache_with(root, 0);
}

/* A compile whose output is its own text, and which counts itself. */
typedef struct ks_compile {
    const char *text;
    _Atomic int runs;
    kiln_status fail; /* KILN_OK: succeed */
} ks_compile;

static inline kiln_status ks_compile_run(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    ks_compile *compile = user;
    atomic_fetch_add(&compile->runs, 1);
    if (compile->fail != KILN_OK) {
        (void)kiln_diag_set(diag, compile->fail, "mend it", "compiling", "it is broken");
        kiln_diag_set_log(diag, "line 1: broken", 14);
        return compile->fail;
    }
    return kiln_blob_create(compile->text, strlen(compile->text), "facts", 5, out_blob, diag);
}

/* Gets or compiles `name`, checks the bytes, and returns where they came from. */
static inline kiln_origin ks_get(kiln_cache *cache, const char *name, ks_compile *compile)
{
    kiln_recipe *recipe = ks_recipe(name);
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    compile->text = name;
    assert_int_equal(
        kiln_cache_get_or_compile(cache, recipe, ks_compile_run, compile, &blob, &origin, NULL),
        KILN_OK);
    assert_int_equal(kiln_blob_size(blob), strlen(name));
    assert_memory_equal(kiln_blob_data(blob), name, strlen(name));
    assert_int_equal(kiln_blob_facts_size(blob), 5);
    assert_memory_equal(kiln_blob_facts(blob), "facts", 5);
    assert_true(kiln_blob_compile_ns(blob) > 0);
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return origin;
}

static inline kt_counters ks_own(kiln_cache *cache)
{
    kt_counters stats;
    kt_counters_own(cache, &stats);
    return stats;
}

/* The path of the only entry below a root. */
typedef struct ks_only {
    char *root;
    char path[1024];
    int count;
} ks_only;

static inline kiln_status ks_only_visit(void *user, const kiln_entry_info *info)
{
    ks_only *only = user;
    char hex[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&info->key, hex);
    only->count++;
    (void)snprintf(only->path, sizeof only->path, "%s/v1/%s/%.2s/%s.kiln", only->root, info->target,
                   hex, hex + 2);
    return KILN_OK;
}

static inline char *ks_only_entry(kiln_cache *cache)
{
    ks_only only = {.root = (char *)(uintptr_t)kiln_cache_root(cache)};
    assert_int_equal(kiln_cache_walk(cache, NULL, ks_only_visit, &only, NULL), KILN_OK);
    assert_int_equal(only.count, 1);
    assert_true(kt_file_exists(only.path));
    return strdup(only.path);
}

#endif
