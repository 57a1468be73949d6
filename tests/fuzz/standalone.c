/* Runs a fuzz target over files and directories given as arguments, with any compiler, so that
 * every input that once found something is an ordinary test for ever. */
#include <dirent.h>
#include <stdio.h>

#include "fuzz/fuzz.h"

enum { INPUT_MAX = 1 << 24 };

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    if (!file || !data) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        free(data);
        if (file) {
            (void)fclose(file);
        }
        return 1;
    }
    size_t size = fread(data, 1, INPUT_MAX, file);
    (void)fclose(file);
    /* An exact copy, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(size ? size : 1);
    if (exact) {
        memcpy(exact, data, size);
        (void)LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    return exact ? 0 : 1;
}

static int replay(const char *path, size_t *count)
{
    DIR *dir = opendir(path);
    if (!dir) {
        (*count)++;
        return replay_file(path);
    }
    int bad = 0;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char child[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
        (*count)++;
        bad |= replay_file(child);
    }
    (void)closedir(dir);
    return bad;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    int bad = LLVMFuzzerTestOneInput((const uint8_t *)"", 0) != 0;
    for (int i = 1; i < argc; i++) {
        bad |= replay(argv[i], &count);
    }
    (void)printf("%zu inputs replayed\n", count);
    return bad;
}
