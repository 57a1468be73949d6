/* Temporary directories for tests under Windows; see tmpdir.h. By kiln's own calls, which the tests
 * of src/sys look into before anything else leans on them. */
#include "support/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"

#define MAX_FILE ((size_t)64 << 20)

static void fail(const char *what, const char *path)
{
    (void)fprintf(stderr, "tmpdir: %s: %s\n", what, path);
    abort();
}

char *kt_tmpdir_create(void)
{
    char name[48];
    char *base = kn_paths_temporary();
    (void)snprintf(name, sizeof name, "kiln-test-%016llx", (unsigned long long)kn_random_u64());
    char *path = kt_path(base != NULL ? base : "C:", name);
    if (kn_file_make_dir(path, NULL) != KILN_OK) {
        fail("make folder", path);
    }
    free(base);
    return path;
}

typedef struct walk {
    const char *dir;
    size_t count;
    bool removing;
} walk;

static void walk_dir(walk *w);

static kiln_status visit(void *user, const char *name)
{
    walk *w = user;
    kn_file_facts facts;
    char *path = kt_at(w->dir, name);
    if (kn_file_stat(path, false, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_DIR) {
        walk inner = {.dir = path, .removing = w->removing};
        walk_dir(&inner);
        w->count += inner.count;
    } else {
        w->count++;
        if (w->removing) {
            (void)kn_file_remove(path, NULL);
        }
    }
    return KILN_OK;
}

static void walk_dir(walk *w)
{
    (void)kn_file_list(w->dir, visit, w, NULL);
    if (w->removing) {
        (void)kn_file_remove_dir(w->dir);
    }
}

void kt_tmpdir_remove(char *path)
{
    walk w = {.dir = path, .removing = true};
    walk_dir(&w);
    free(path);
}

int kt_tmpdir_setup(void **state)
{
    *state = kt_tmpdir_create();
    return 0;
}

int kt_tmpdir_teardown(void **state)
{
    kt_tmpdir_remove(*state);
    return 0;
}

void kt_file_write(const char *path, const void *data, size_t size)
{
    kn_file *file = NULL;
    (void)kn_file_remove(path, NULL);
    if (kn_file_open(path, true, &file, NULL) != KILN_OK ||
        kn_file_write_at(file, 0, data, size) != KILN_OK) {
        fail("write", path);
    }
    kn_file_close(file);
}

char *kt_file_read(const char *path, size_t *out_size)
{
    void *data = NULL;
    size_t size = 0;
    if (kn_file_read(path, MAX_FILE, false, &data, &size, NULL, NULL) != KILN_OK) {
        return NULL;
    }
    if (out_size != NULL) {
        *out_size = size;
    }
    return data;
}

bool kt_file_exists(const char *path)
{
    kn_file_facts facts;
    return kn_file_stat(path, false, &facts, NULL) == KILN_OK;
}

size_t kt_file_count(const char *dir)
{
    walk w = {.dir = dir};
    walk_dir(&w);
    return w.count;
}
