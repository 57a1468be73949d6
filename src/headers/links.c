/* See links.h. */
#include "headers/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sys/file.h"

typedef struct link_search {
    const kn_include_path *path;
    const kn_header_list *list;
    int64_t since_ns;
    kn_map seen; /* paths of directories */
    bool changed;
} link_search;

static void look_at_link(link_search *s, const char *name)
{
    kn_file_facts facts;
    s->changed = s->changed || (kn_file_stat(name, false, &facts, NULL) == KILN_OK &&
                                facts.kind == KN_FILE_LINK && facts.ctime_ns >= s->since_ns);
}

/* The directories of a path, the last first: one that has been seen ends it. */
static void look_at_folders(link_search *s, char *name)
{
    for (char *slash = strrchr(name, '/'); slash != NULL && slash != name && !s->changed;
         slash = strrchr(name, '/')) {
        *slash = '\0';
        const size_t length = (size_t)(slash - name);
        if (kn_map_find(&s->seen, name, length) != NULL) {
            return;
        }
        look_at_link(s, name);
        s->changed = s->changed || !kn_map_put(&s->seen, name, length, s, NULL);
    }
}

static void look_at_links_of(link_search *s, const kn_place *place, bool is_there)
{
    char *name = NULL;
    if (s->changed || place->base == KN_PLACE_MEMORY || place->base == KN_PLACE_SHIPS) {
        return;
    }
    const kiln_status status =
        kn_include_path_of(s->path, place, kn_header_list_name(s->list, place->name), &name);
    s->changed = status == KILN_E_NOMEM;
    if (name != NULL && is_there) {
        look_at_link(s, name);
    }
    if (name != NULL) {
        look_at_folders(s, name);
    }
    free(name);
}

bool kn_links_changed(const kn_include_path *path, const kn_header_list *list, int64_t since_ns)
{
    link_search s = {.path = path, .list = list, .since_ns = since_ns};
    kn_map_init(&s.seen);
    for (size_t i = 0; i < list->header_count; i++) {
        look_at_links_of(&s, &list->headers[i].place, true);
    }
    for (size_t i = 0; i < list->absent_count; i++) {
        look_at_links_of(&s, &list->absent[i], false);
    }
    kn_map_deinit(&s.seen);
    return s.changed;
}
