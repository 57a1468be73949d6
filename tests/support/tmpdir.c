/* Temporary directories for tests; see tmpdir.h. */
#include "support/tmpdir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what, const char *path)
{
    perror(what);
    (void)fprintf(stderr, "tmpdir: %s: %s\n", what, path);
    abort();
}

char *kt_tmpdir_create(void)
{
    const char *base = getenv("TMPDIR");
    char *path = kt_path(base != NULL && base[0] == '/' ? base : "/tmp", "kiln-test-XXXXXX");
    if (mkdtemp(path) == NULL) {
        fail("mkdtemp", path);
    }
    return path;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties the directory behind `fd`, which it closes. */
static void empty_dir(int fd)
{
    (void)fchmod(fd, 0700);
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        fail("fdopendir", "");
        return;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (is_dots(entry->d_name)) {
            continue;
        }
        int child = openat(dirfd(dir), entry->d_name,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        if (child >= 0) {
            empty_dir(child);
        }
        (void)unlinkat(dirfd(dir), entry->d_name, child >= 0 ? AT_REMOVEDIR : 0);
    }
    (void)closedir(dir);
}

void kt_tmpdir_remove(char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        empty_dir(fd);
        (void)rmdir(path);
    }
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
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fail("fopen", path);
        return;
    }
    if (fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        fail("fwrite", path);
    }
}

char *kt_file_read(const char *path, size_t *out_size)
{
    struct stat facts;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    if (fstat(fileno(file), &facts) != 0) {
        fail("fstat", path);
    }
    size_t size = (size_t)facts.st_size;
    char *data = malloc(size + 1);
    if (data == NULL || fread(data, 1, size, file) != size) {
        fail("fread", path);
        return NULL;
    }
    data[size] = '\0';
    (void)fclose(file);
    if (out_size != NULL) {
        *out_size = size;
    }
    return data;
}

bool kt_file_exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

unsigned kt_file_lines(const char *path)
{
    unsigned count = 0;
    if (kt_file_exists(path)) {
        size_t size = 0;
        char *text = kt_file_read(path, &size);
        for (size_t i = 0; i < size; i++) {
            count += text[i] == '\n';
        }
        free(text);
    }
    return count;
}

size_t kt_file_count(const char *dir)
{
    size_t count = 0;
    DIR *list = opendir(dir);
    if (list == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        struct stat facts;
        if (is_dots(entry->d_name)) {
            continue;
        }
        if (fstatat(dirfd(list), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(facts.st_mode)) {
            char *path = kt_at(dir, entry->d_name);
            count += kt_file_count(path);
        } else {
            count++;
        }
    }
    (void)closedir(list);
    return count;
}
