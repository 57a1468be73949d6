/* Paths as text: joining and taking apart. Nothing here looks at the disk. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "sys/file.h"

char *kn_path_join(const char *dir, const char *name)
{
    size_t dir_length = strlen(dir);
    while (dir_length > 0 && dir[dir_length - 1] == '/') {
        dir_length--;
    }
    while (name[0] == '/') {
        name++;
    }
    size_t name_length = strlen(name);
    size_t size;
    if (!kn_add_size(dir_length, name_length, &size) || !kn_add_size(size, 2, &size)) {
        return NULL;
    }
    char *path = malloc(size);
    if (path != NULL) {
        memcpy(path, dir, dir_length);
        path[dir_length] = '/';
        memcpy(path + dir_length + 1, name, name_length + 1);
    }
    return path;
}

char *kn_path_dir(const char *path)
{
    const char *separator = strrchr(path, '/');
    if (separator == NULL) {
        return kn_text_copy(".");
    }
    return separator == path ? kn_text_copy("/") : kn_text_copy_n(path, (size_t)(separator - path));
}

const char *kn_path_name(const char *path)
{
    const char *separator = strrchr(path, '/');
    return separator != NULL ? separator + 1 : path;
}

bool kn_path_is_absolute(const char *path)
{
    return path[0] == '/';
}
