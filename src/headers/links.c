/* See links.h. */
#include "headers/links.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "sys/file.h"

typedef struct link_search {
    const kn_include_path *path;
    const kn_header_list *list;
    int64_t since_ns;
    kn_map seen; /* paths of directories: whether they are there */
    bool changed;
} link_search;

static char is_there, is_missing;

/* What a directory is; below one that is not there, none is. */
static const char *look_at_dir(link_search *s, const char *name, size_t length)
{
    const char *known = kn_map_find(&s->seen, name, length);
    if (known == NULL) {
        kn_file_facts facts;
        const kiln_status status = kn_file_stat(name, false, &facts, NULL);
        known = status == KILN_OK ? &is_there : &is_missing;
        s->changed = s->changed || (status == KILN_OK && facts.kind == KN_FILE_LINK &&
                                    facts.ctime_ns >= s->since_ns);
        s->changed =
            s->changed || !kn_map_put(&s->seen, name, length, (void *)(uintptr_t)known, NULL);
    }
    return known;
}

/* The directories of a path, the first first; what follows the last slash is none. */
static void look_at_dirs(link_search *s, char *name)
{
    const char *known = &is_there;
    for (char *slash = strchr(name, '/'); slash != NULL && known == &is_there && !s->changed;
         slash = strchr(slash + 1, '/')) {
        if (slash != name) {
            *slash = '\0';
            known = look_at_dir(s, name, (size_t)(slash - name));
            *slash = '/';
        }
    }
}

static void look_at_links_of(link_search *s, const kn_place *place, size_t length)
{
    char *name = NULL, *path = NULL;
    if (s->changed || !kn_place_is_on_disk(place->base)) {
        return;
    }
    name = kn_text_copy_n(kn_header_list_name(s->list, place->name), length);
    s->changed = name == NULL || kn_include_path_of(s->path, place, name, &path) == KILN_E_NOMEM;
    if (path != NULL) {
        look_at_dirs(s, path);
    }
    free(path);
    free(name);
}

bool kn_links_changed(const kn_include_path *path, const kn_header_list *list, int64_t since_ns)
{
    link_search s = {.path = path, .list = list, .since_ns = since_ns};
    kn_map_init(&s.seen);
    for (size_t i = 0; i < list->dir_count; i++) {
        const kn_header_list_directory *row = &list->dirs[i];
        const kn_place place = {.base = row->base, .index = row->index, .name = row->name};
        look_at_links_of(&s, &place, row->length);
    }
    for (size_t i = 0; i < kn_header_list_places(list); i++) {
        const kn_place *place = kn_header_list_place(list, i);
        if (place->dir == 0) { /* its directory is none of the list's */
            look_at_links_of(&s, place, place->name_length);
        }
    }
    kn_map_deinit(&s.seen);
    return s.changed;
}
