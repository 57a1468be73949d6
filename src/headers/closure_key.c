/* What a closure says in a key, and which files and places it names. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "headers/closure_state.h"
#include "headers/twins.h"
#include "key/recipe.h"
#include "sys/file.h"

/* --- names of files in the code --------------------------------------------------------------- */

/* The code names files even where no text asks for it. */
static bool options_name(const closure *c)
{
    return (c->request.effects & (KILN_OPTION_NAMES | KILN_OPTION_NAMES_GIVEN)) != 0;
}

bool kn_closure_names_matter(const kn_closure *view)
{
    const closure *c = (const closure *)view;
    return options_name(c) || c->has_names || (c->has_includes && c->list.names_seen);
}

bool kn_closure_source_names(const kn_closure *view)
{
    return ((const closure *)view)->has_names;
}

bool kn_closure_asks_for(const kn_closure *view, const char *name)
{
    const kn_header_list *list = &((const closure *)view)->list;
    bool asks = false;
    for (size_t i = 0; i < list->header_count && !asks; i++) {
        asks = strcmp(kn_header_list_name(list, list->headers[i].written), name) == 0;
    }
    for (size_t i = 0; i < list->absent_count && !asks; i++) {
        asks = kn_text_ends(kn_header_list_name(list, list->absent[i].name), name);
    }
    return asks;
}

/* A directory as the compiler spells it, or, where code has names without directories, which other
 * directory it lies in: of two that both fit, the compiler takes one off. */
static void append_dir(const closure *c, size_t index, kn_strbuf *line)
{
    const kiln_source *source = c->request.source;
    const char *dir = source->include_dirs[index];
    if (!c->request.rules->names_relative) {
        kn_strbuf_append_text(line, dir);
        return;
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        const size_t length = strlen(source->include_dirs[i]);
        if (i != index && strncmp(dir, source->include_dirs[i], length) == 0 &&
            (dir[length] == '/' || dir[length] == '\0')) {
            kn_strbuf_printf(line, "%zu%s ", i, dir + length);
        }
    }
}

static void add_dirs(const closure *c, kiln_recipe *recipe, kn_strbuf *line)
{
    for (size_t i = 0; i < c->request.source->include_dir_count; i++) {
        kn_strbuf_clear(line);
        append_dir(c, i, line);
        kn_recipe_add_strbuf(recipe, "name.dir", line);
    }
    for (size_t i = 0; i < c->request.system_dir_count; i++) {
        kn_recipe_add_string(recipe, "name.system", c->system_dirs[i]);
    }
}

/* What __FILE__ and its like say in each text, and line information of each. */
static void add_names(const closure *c, kiln_recipe *recipe)
{
    const char *name = c->request.source->name;
    const bool names_given = (c->request.effects & KILN_OPTION_NAMES_GIVEN) != 0;
    kn_strbuf line;
    kn_strbuf_init(&line, 0);
    if (name != NULL) {
        kn_strbuf_append_text(&line, names_given ? name : kn_path_name(name));
    }
    kn_recipe_add_strbuf(recipe, "name", &line);
    for (size_t i = 0; i < c->list.header_count; i++) {
        const kn_place *place = &c->list.headers[i].place;
        kn_strbuf_clear(&line);
        kn_strbuf_printf(&line, "%d %u %s", (int)place->base, place->index,
                         kn_header_list_name(&c->list, place->name));
        kn_recipe_add_strbuf(recipe, "name.header", &line);
    }
    if (c->list.header_count > 0 || options_name(c)) {
        add_dirs(c, recipe, &line);
    }
    kn_strbuf_deinit(&line);
    if (options_name(c) && !c->request.rules->names_relative && !names_given) {
        char *current = kn_path_resolve(".");
        if (current != NULL) {
            kn_recipe_add_string(recipe, "name.current", current);
        } else {
            kn_recipe_fail(recipe);
        }
        free(current);
    }
}

/* --- using ------------------------------------------------------------------------------------ */

kiln_status kn_closure_add_to(const kn_closure *view, kiln_recipe *recipe, kiln_diag *diag)
{
    const closure *c = (const closure *)view;
    if (view->bypass) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "making a key", "%s", view->reason);
    }
    if (kn_closure_names_matter(view)) {
        add_names(c, recipe);
    }
    if (!c->has_includes) {
        return kiln_recipe_status(recipe, diag);
    }
    kn_strbuf line;
    kn_strbuf_init(&line, 0);
    for (size_t i = 0; i < c->list.header_count; i++) {
        const kn_header_list_header *row = &c->list.headers[i];
        if (row->place.base == KN_PLACE_SYSTEM) {
            continue; /* a toolkit's hundreds are in the graph's digest, taken once */
        }
        char hex[2 * sizeof row->digest + 1];
        kn_hex_encode(row->digest, sizeof row->digest, hex);
        kn_strbuf_clear(&line);
        kn_strbuf_append_text(&line, kn_header_list_name(&c->list, row->written));
        kn_strbuf_append_char(&line, ' ');
        kn_strbuf_append(&line, hex, sizeof hex - 1);
        kn_recipe_add_strbuf(recipe, "header", &line);
    }
    kn_strbuf_deinit(&line);
    kn_twins_add_to(&c->path, &c->list, recipe);
    kiln_recipe_add_bytes(recipe, "includes", c->list.graph, sizeof c->list.graph);
    return kiln_recipe_status(recipe, diag);
}

static kiln_status visit_place(const closure *c, const kn_place *place, const kn_stamp *stamp,
                               kn_closure_place_fn *visit, void *user)
{
    char *path = NULL;
    if (!kn_place_is_on_disk(place->base)) {
        return KILN_OK;
    }
    kiln_status status =
        kn_include_path_of(&c->path, place, kn_header_list_name(&c->list, place->name), &path);
    if (status == KILN_OK) {
        status = visit(user, path, stamp);
    }
    free(path);
    return status;
}

/* `settled`: one that is too new for its times to tell a change is KILN_MISS. */
static kiln_status visit_places(const closure *c, bool settled, kn_closure_place_fn *visit,
                                void *user)
{
    const kn_header_list *list = &c->list;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        const kn_header_list_header *row = &list->headers[i];
        const bool is_young = row->place.base != KN_PLACE_MEMORY &&
                              !kn_stamp_holds(&row->stamp, &row->stamp, list->recorded_ns);
        status =
            settled && is_young ? KILN_MISS : visit_place(c, &row->place, &row->stamp, visit, user);
    }
    for (size_t i = 0; i < list->absent_count && status == KILN_OK; i++) {
        status = visit_place(c, &list->absent[i], NULL, visit, user);
    }
    return status;
}

kiln_status kn_closure_places(const kn_closure *view, kn_closure_place_fn *visit, void *user)
{
    const closure *c = (const closure *)view;
    return view->bypass || !c->has_includes ? KILN_OK : visit_places(c, true, visit, user);
}

kiln_status kn_closure_watch(const kn_closure *view, kn_closure_place_fn *visit, void *user)
{
    const closure *c = (const closure *)view;
    return c->has_path ? visit_places(c, false, visit, user) : KILN_OK;
}

kiln_status kn_closure_files(const kn_closure *view, kn_closure_file_fn *visit, void *user)
{
    const closure *c = (const closure *)view;
    const kn_header_list *list = &c->list;
    kiln_status status = KILN_OK;
    if (!c->has_path || view->bypass || view->assumed) {
        return KILN_OK;
    }
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        const kn_header_list_header *row = &list->headers[i];
        const char *name = kn_header_list_name(list, row->place.name);
        char *path = NULL;
        if (row->place.base == KN_PLACE_MEMORY) {
            continue;
        }
        status = kn_include_path_of(&c->path, &row->place, name, &path);
        if (status == KILN_OK) {
            const kn_closure_file file = {.path = path,
                                          .digest = row->digest,
                                          .size = row->stamp.size,
                                          .system = row->place.base == KN_PLACE_SYSTEM};
            status = visit(user, &file);
        }
        free(path);
    }
    return status;
}
