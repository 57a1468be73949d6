/* Loads that did not end, without a driver that crashes: a process begins one and is gone. */
#ifndef KILN_TESTS_UNENDED_H
#define KILN_TESTS_UNENDED_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/cache/cache.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

static inline kiln_status kt_take_key(void *user, const kiln_entry_info *info)
{
    *(kiln_key *)user = info->key;
    return KILN_OK;
}

/* Of the only entry on disk that is not a note of kiln's own. */
static inline void kt_end_in_load(const char *root, const char *target)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_key key = {{0}};
    kn_load load;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const bool good = kiln_cache_create(&options, &cache, NULL) == KILN_OK &&
                          kiln_cache_walk(cache, target, kt_take_key, &key, NULL) == KILN_OK &&
                          kn_cache_load_begin(cache, &key, "a test", &load) && load.cell != 0;
        _exit(good ? 3 : 4);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

/* Whether there is an entry on disk: one that is barred stays. */
static inline bool kt_has_entry(const char *root, const char *target)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_key key = {{0}};
    bool there = false;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = root;
    assert_int_equal(kiln_cache_create(&options, &cache, NULL), KILN_OK);
    assert_int_equal(kiln_cache_walk(cache, target, kt_take_key, &key, NULL), KILN_OK);
    kiln_cache_contains(cache, &key, 1, &there);
    kiln_cache_destroy(cache);
    return there;
}

/* Whether a process is in a load now. */
static inline bool kt_is_in_load(const char *root)
{
    size_t size = 0;
    bool found = false;
    char *path = kt_path(root, "loads");
    char *bytes = kt_file_read(path, &size);
    for (size_t i = 0; bytes != NULL && i < size && i < 2048; i++) {
        found = found || (i % 16 >= 8 && bytes[i] != 0); /* the keys of the cells */
    }
    free(bytes);
    free(path);
    return found;
}

#endif
