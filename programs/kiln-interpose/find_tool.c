/* See find_tool.h. */
#include "find_tool.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "find.h"

#define LIBTRITON "/triton/_C/libtriton.so"

typedef struct tool_search {
    const char *name; /* ptxas, ptxas-blackwell */
    struct stat self;
    char path[PATH_MAX];
} tool_search;

/* --- one place -------------------------------------------------------------------------------- */

/* False for this program itself and for a ptxas of another kiln: its build id says nothing of the
 * ptxas that it would call. */
static bool try_program(tool_search *s)
{
    struct stat facts;
    return stat(s->path, &facts) == 0 && S_ISREG(facts.st_mode) && access(s->path, X_OK) == 0 &&
           (facts.st_dev != s->self.st_dev || facts.st_ino != s->self.st_ino) &&
           !kn_find_is_shim(s->path);
}

static bool try_below(tool_search *s, const char *directory, size_t length, const char *below)
{
    const int written =
        snprintf(s->path, sizeof(s->path), "%.*s%s/%s", (int)length, directory, below, s->name);
    return length > 0 && length < sizeof(s->path) && written > 0 &&
           (size_t)written < sizeof(s->path) && try_program(s);
}

static bool try_variable(tool_search *s, const char *variable)
{
    const char *value = getenv(variable);
    if (value == NULL || value[0] != '/' || strlen(value) >= sizeof(s->path)) {
        return false;
    }
    memcpy(s->path, value, strlen(value) + 1);
    return try_program(s);
}

static bool try_path(tool_search *s)
{
    const char *list = getenv("PATH");
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        if (try_below(s, list, length, "")) {
            return true;
        }
        list += length + (list[length] != '\0');
    }
    return false;
}

/* --- Triton's package ------------------------------------------------------------------------- */

/* The directory of packages that the parent has its Triton from, by what it has mapped. */
static bool find_site_of_parent(char *out, size_t size)
{
    char name[64];
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    (void)snprintf(name, sizeof(name), "/proc/%ld/maps", (long)getppid());
    FILE *maps = fopen(name, "re");
    while (maps != NULL && !found && getline(&line, &room, maps) > 0) {
        char *end = strstr(line, LIBTRITON);
        const char *start = end != NULL ? strchr(line, '/') : NULL;
        if (start != NULL && start < end && (size_t)(end - start) < size) {
            memcpy(out, start, (size_t)(end - start));
            out[end - start] = '\0';
            found = true;
        }
    }
    free(line);
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

static bool find_site(char *out, size_t size)
{
    if (find_site_of_parent(out, size)) {
        return true;
    }
    const char *named = getenv("KILN_TRITON");
    if (named == NULL || named[0] != '/' || strlen(named) >= size) {
        return false;
    }
    memcpy(out, named, strlen(named) + 1);
    return true;
}

/* Inductor names PyTorch's own ptxas to Triton where it has one and nobody else named any; this
 * variable is set in each process in which it compiles. */
static bool is_inductor(const tool_search *s)
{
    return strcmp(s->name, "ptxas") == 0 && getenv("TORCHINDUCTOR_CACHE_DIR") != NULL;
}

static bool find_for_triton(tool_search *s)
{
    char site[PATH_MAX];
    if (try_variable(s, strcmp(s->name, "ptxas") == 0 ? "KILN_TRITON_PTXAS"
                                                      : "KILN_TRITON_PTXAS_BLACKWELL")) {
        return true;
    }
    return find_site(site, sizeof(site)) &&
           ((is_inductor(s) && try_below(s, site, strlen(site), "/torch/bin")) ||
            try_below(s, site, strlen(site), "/triton/backends/nvidia/bin"));
}

char *kn_tool_find(const char *self)
{
    static const char role[] = "/triton";
    const char *slash = strrchr(self, '/');
    tool_search s = {.name = slash != NULL ? slash + 1 : self};
    const size_t length = slash != NULL ? (size_t)(slash - self) : 0;
    const bool for_triton = length >= sizeof(role) - 1 &&
                            memcmp(slash - (sizeof(role) - 1), role, sizeof(role) - 1) == 0;
    if (stat("/proc/self/exe", &s.self) != 0) {
        return NULL;
    }
    const bool found =
        for_triton ? find_for_triton(&s) : try_variable(&s, "KILN_PTXAS") || try_path(&s);
    return found ? strdup(s.path) : NULL;
}
