/* Paths as text: joining and taking apart. Nothing here looks at the disk. On Windows both slashes
 * separate; kiln's own paths have the forward one. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "sys/file.h"

#ifdef _WIN32
static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

static bool has_drive(const char *path)
{
    return ((path[0] >= 'a' && path[0] <= 'z') || (path[0] >= 'A' && path[0] <= 'Z')) &&
           path[1] == ':';
}

/* With a drive, or of a server. "\directory" is of the current drive, whichever that is. */
bool kn_path_is_absolute(const char *path)
{
    return (has_drive(path) && is_separator(path[2])) ||
           (is_separator(path[0]) && is_separator(path[1]));
}
#else
static bool is_separator(char c)
{
    return c == '/';
}

static bool has_drive(const char *path)
{
    (void)path;
    return false;
}

bool kn_path_is_absolute(const char *path)
{
    return path[0] == '/';
}
#endif

char *kn_path_join(const char *dir, const char *name)
{
    size_t dir_length = strlen(dir);
    while (dir_length > 0 && is_separator(dir[dir_length - 1])) {
        dir_length--;
    }
    while (is_separator(name[0])) {
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

const char *kn_path_name(const char *path)
{
    const char *name = path;
    for (const char *p = path; *p != '\0'; p++) {
        name = is_separator(*p) ? p + 1 : name;
    }
    return name;
}

/* The root of a drive keeps its slash: "C:" is the current directory there. */
char *kn_path_dir(const char *path)
{
    const size_t length = (size_t)(kn_path_name(path) - path);
    if (length <= 1) {
        return kn_text_copy(length == 0 ? "." : "/");
    }
    return kn_text_copy_n(path, has_drive(path) && length == 3 ? length : length - 1);
}
