/* kiln itself, and what one would write by hand in its place: a file a key. */
#include "bench/rivals.h"

#include <fcntl.h>
#include <kiln/cache.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- kiln ------------------------------------------------------------------------------------- */

static kiln_recipe *recipe_of(uint32_t key)
{
    kiln_recipe *recipe = NULL;
    if (kiln_recipe_create("bench", 1, &recipe, NULL) == KILN_OK) {
        kiln_recipe_add_u64(recipe, "n", key);
    }
    return recipe;
}

/* The keys are at hand, as they are in a program: their digests are not part of a hit. */
typedef struct kiln_rival {
    kiln_cache *cache;
    kiln_key keys[1024];
} kiln_rival;

static void *kiln_open(const char *root, bool durable)
{
    kiln_cache_options options;
    kiln_rival *self = calloc(1, sizeof(*self));
    if (self == NULL || kiln_cache_options_init(&options, NULL) != KILN_OK) {
        free(self);
        return NULL;
    }
    options.root = root;
    (void)durable;                /* as users have it */
    options.memory_max_bytes = 1; /* nothing stays in memory: every hit is one on disk */
    if (kiln_cache_create(&options, &self->cache, NULL) != KILN_OK) {
        free(self);
        return NULL;
    }
    for (uint32_t i = 0; i < 1024; i++) {
        kiln_recipe *recipe = recipe_of(i);
        self->keys[i] = kiln_recipe_key(recipe);
        kiln_recipe_destroy(recipe);
    }
    return self;
}

static bool kiln_put(void *self, uint32_t key, const void *data, size_t size)
{
    const kiln_rival *kiln = self;
    kiln_recipe *recipe = recipe_of(key);
    kiln_blob *blob = NULL;
    bool good = kiln_blob_create(data, size, NULL, 0, &blob, NULL) == KILN_OK &&
                kiln_cache_put(kiln->cache, recipe, blob, 1, NULL) == KILN_OK;
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return good;
}

static size_t kiln_get(void *self, uint32_t key, void *data, size_t room)
{
    const kiln_rival *kiln = self;
    kiln_blob *blob = NULL;
    (void)data; /* a blob is the caller's: nothing is copied */
    if (kiln_cache_get(kiln->cache, &kiln->keys[key % 1024], &blob, NULL, NULL) != KILN_OK) {
        return 0;
    }
    const size_t size = kiln_blob_size(blob);
    kiln_blob_release(blob);
    return size <= room ? size : 0;
}

static void kiln_close(void *self)
{
    kiln_rival *kiln = self;
    kiln_cache_destroy(kiln->cache);
    free(kiln);
}

const rival_ops rival_kiln = {"kiln", kiln_open, kiln_put, kiln_get, kiln_close};

/* --- files ------------------------------------------------------------------------------------ */

typedef struct files {
    char root[512];
    bool durable;
} files;

static void *files_open(const char *root, bool durable)
{
    files *self = calloc(1, sizeof(*self));
    if (self != NULL) {
        char path[600];
        (void)snprintf(self->root, sizeof(self->root), "%s", root);
        self->durable = durable;
        (void)snprintf(path, sizeof(path), "%s/v1", root);
        (void)mkdir(path, 0700);
        (void)snprintf(path, sizeof(path), "%s/v1/any", root);
        (void)mkdir(path, 0700);
    }
    return self;
}

/* As deep and as long as kiln's own. */
static void place_of(const files *f, uint32_t key, char path[700])
{
    (void)snprintf(path, 700, "%s/v1/any/%02x/%062x.kiln", f->root, (unsigned)key * 37 % 256,
                   (unsigned)key);
}

static bool files_put(void *self, uint32_t key, const void *data, size_t size)
{
    const files *f = self;
    char temporary[600];
    char path[700];
    (void)snprintf(temporary, sizeof(temporary), "%s/temporary", f->root);
    place_of(f, key, path);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = write(fd, data, size) == (ssize_t)size;
    good = good && (!f->durable || fdatasync(fd) == 0);
    good = close(fd) == 0 && good;
    if (good && rename(temporary, path) == 0) {
        return true;
    }
    *strrchr(path, '/') = '\0'; /* the first one in its directory */
    (void)mkdir(path, 0700);
    place_of(f, key, path);
    return good && rename(temporary, path) == 0;
}

static size_t files_get(void *self, uint32_t key, void *data, size_t room)
{
    const files *f = self;
    struct stat facts;
    char path[700];
    place_of(f, key, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    size_t size = 0;
    if (fstat(fd, &facts) == 0 && (size_t)facts.st_size <= room) {
        const ssize_t got = read(fd, data, (size_t)facts.st_size);
        size = got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    return size;
}

const rival_ops rival_files = {"files", files_open, files_put, files_get, free};

const rival_ops *const rivals[RIVALS] = {&rival_kiln, &rival_files, &rival_lmdb, &rival_sqlite};
