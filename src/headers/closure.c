/* See closure.h. Here a header list is found, checked against what is there now, and kept; finding
 * headers again is closure_walk.c's. */
#include "headers/closure.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "headers/closure_walk.h"
#include "headers/header_list.h"
#include "headers/header_list_check.h"
#include "headers/include_path.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/thread.h"

static const char following[] = "following includes"; /* what fails without memory */

/* Rows of a header list from which on a thread of its own takes less time than it saves. */
#define ASSUMED_ROWS 100u

typedef struct closure {
    kn_closure view; /* first */
    kn_closure_request request;
    const char **system_dirs; /* request.system_dirs: the caller's list may be short-lived */
    kn_include_path path;
    bool has_path;
    bool has_includes;
    bool has_names; /* the source or an option mentions the name of its file */
    kn_header_list list;
    kiln_blob *blob;     /* whose bytes the header list borrows; NULL: it was found again */
    kiln_recipe *recipe; /* the header list's; NULL: it is not kept */
    kiln_recipe *shared; /* that of the list which other machines can use; NULL likewise */
    bool anew;           /* the headers were found by a walk: the shared list is new as well */
    kn_thread *looker;   /* checks the header list while the caller goes on; NULL: nobody does */
    kiln_status looked;  /* what it found */
} closure;

/* --- lists in the cache ----------------------------------------------------------------------- */

/* A list is kept twice. "kiln.manifest" has the stamps of this machine's files and stays here;
 * "headers" has none, travels in packs and remotes, and spares a machine that has no list of its
 * own the walk: the headers are read and compared, not scanned. */

/* The recipe of a list: everything but headers, and the shape of the search. */
static kiln_status make_recipe(const closure *c, const char *stage, kiln_recipe **out_recipe,
                               kiln_diag *diag)
{
    const kiln_recipe *first = c->request.first;
    kiln_key key = kiln_recipe_key(first);
    char key_text[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&key, key_text);
    kn_strbuf shape;
    kn_strbuf_init(&shape, 0);
    kn_include_path_describe(&c->path, &shape);
    kiln_recipe *recipe = NULL;
    kiln_status status = kiln_recipe_create(stage, KN_MANIFEST_VERSION, &recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(recipe, kn_recipe_target(first), diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_text(recipe, "first", key_text, strlen(key_text), diag);
    }
    if (status == KILN_OK) {
        status = kn_strbuf_ok(&shape)
                     ? kiln_recipe_add_text(recipe, "search", shape.data, shape.length, diag)
                     : kn_no_memory(diag, following);
    }
    kn_strbuf_deinit(&shape);
    if (status != KILN_OK) {
        kiln_recipe_destroy(recipe);
        return status;
    }
    *out_recipe = recipe;
    return KILN_OK;
}

static kiln_status make_recipes(closure *c, kiln_diag *diag)
{
    if (c->request.cache == NULL || !kn_recipe_ok(c->request.first)) {
        return KILN_OK;
    }
    kiln_status status = make_recipe(c, "kiln.manifest", &c->recipe, diag);
    return status == KILN_OK ? make_recipe(c, "headers", &c->shared, diag) : status;
}

static bool get_list(const closure *c, kiln_blob **out_blob)
{
    kiln_cache *cache = c->request.cache;
    kiln_origin origin;
    kiln_key key = kiln_recipe_key(c->recipe);
    if (kn_cache_get_note(cache, &key, kn_recipe_target(c->recipe), out_blob) == KILN_OK) {
        return true;
    }
    key = kiln_recipe_key(c->shared);
    return kn_cache_glance(cache, &key, kn_recipe_target(c->shared), true, out_blob, &origin) ==
           KILN_OK;
}

static kiln_status load_list(closure *c)
{
    kiln_blob *blob = NULL;
    if (c->recipe == NULL || !get_list(c, &blob)) {
        return KILN_MISS;
    }
    kn_header_list_deinit(&c->list);
    c->blob = blob;
    kiln_status status =
        kn_header_list_parse(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), &c->list);
    return status == KILN_E_CORRUPT ? KILN_MISS : status;
}

bool kn_closure_shared_key(const kn_closure *view, kiln_key *out_key)
{
    const closure *c = (const closure *)view;
    if (c->shared == NULL) {
        return false;
    }
    *out_key = kiln_recipe_key(c->shared);
    return true;
}

/* Stores the header list as it is, or as one that other machines can use. */
static void save_list(const closure *c, bool shared)
{
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_header_list_write(&c->list, !shared, &bytes);
    kiln_blob *blob = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kn_strbuf_ok(&bytes)
                             ? kiln_blob_create(bytes.data, bytes.length, NULL, 0, &blob, &diag)
                             : kn_no_memory(&diag, following);
    if (status == KILN_OK) {
        status = shared ? kn_cache_put_below(c->request.cache, c->shared, blob, &diag)
                        : kiln_cache_put(c->request.cache, c->recipe, blob, 0, &diag);
        kiln_blob_release(blob);
    }
    if (status != KILN_OK) {
        kn_log_diag(KILN_LOG_WARN, "storing a list of headers", &diag);
    }
    kiln_diag_clear(&diag);
    kn_strbuf_deinit(&bytes);
}

void kn_closure_save(kn_closure *view)
{
    closure *c = (closure *)view;
    if (view->assumed || !view->save_pays) {
        return;
    }
    view->save_pays = false;
    save_list(c, false);
    if (c->anew) {
        save_list(c, true);
    }
}

/* Whether all that the header list says is so now. With `refresh`, what spares the next start
 * reading is taken up, to be saved. */
static kiln_status check_list(closure *c, bool refresh)
{
    bool pays = false;
    kiln_status status = kn_header_list_check(&c->path, &c->list, refresh, &pays);
    c->view.save_pays = c->view.save_pays || (pays && c->recipe != NULL);
    return status;
}

/* --- looking meanwhile ------------------------------------------------------------------------ */

static void look_main(void *user)
{
    closure *c = (closure *)user;
    c->looked = check_list(c, true);
}

/* Whether a thread has begun to check the header list. It has the path and the stamps of the header
 * list for itself until it is joined; digests and names stay as they are. */
static bool look_meanwhile(closure *c)
{
    const kn_header_list *list = &c->list;
    if (!c->request.assume || list->header_count + list->absent_count < ASSUMED_ROWS) {
        return false;
    }
    for (size_t i = 0; i < list->absent_count; i++) {
        if (list->absent[i].base == KN_PLACE_SHIPS) {
            return false; /* the caller's function is for the caller's thread */
        }
    }
    return kn_thread_start(look_main, c, &c->looker, NULL) == KILN_OK;
}

static void count_lookup(closure *c)
{
    c->view.headers = c->list.header_count;
    c->view.files_read = c->path.read;
    c->view.files_statted = c->path.statted;
}

kiln_status kn_closure_settle(kn_closure *view)
{
    closure *c = (closure *)view;
    if (c->looker == NULL) {
        return KILN_OK;
    }
    kn_thread_join(c->looker);
    c->looker = NULL;
    view->assumed = false;
    view->from_list = c->looked == KILN_OK;
    count_lookup(c);
    return c->looked;
}

/* --- finding ---------------------------------------------------------------------------------- */

static bool is_text(kiln_language language)
{
    switch (language) {
    case KILN_LANG_BUILTIN:
    case KILN_LANG_SPIRV:
    case KILN_LANG_PTX:
    case KILN_LANG_CUBIN:
    case KILN_LANG_FATBIN:
        return false;
    default:
        return true;
    }
}

static kiln_status find_anew(closure *c)
{
    kn_header_list_deinit(&c->list);
    c->anew = true;
    c->list.recorded_ns = kn_clock_wall();
    kiln_status status = kn_closure_walk(&c->path, &c->list, c->view.reason, sizeof c->view.reason);
    if (status == KILN_OK) {
        (void)kn_header_list_group(&c->list); /* without directories a check takes longer */
    }
    c->view.save_pays = status == KILN_OK && c->view.reason[0] == '\0' && c->recipe != NULL;
    return status;
}

/* Whether there is any directory to look into. Where there is none, following the includes takes
 * less time than a header list does. */
static bool looks_on_disk(const kn_closure_request *request)
{
    return request->folder != NULL || request->source->include_dir_count > 0 ||
           request->system_dir_count > 0;
}

static kiln_status find_closure(closure *c, kiln_diag *diag)
{
    kn_closure *view = &c->view;
    const kiln_source *source = c->request.source;
    if (!is_text(source->language)) {
        return KILN_OK;
    }
    kiln_status status = kn_closure_glance(source, &c->has_includes, &c->has_names, view->reason,
                                           sizeof view->reason);
    if (status != KILN_OK || view->reason[0] != '\0' || !c->has_includes) {
        return status == KILN_E_NOMEM ? kn_no_memory(diag, following) : status;
    }
    status = kn_include_path_init(&c->path, &c->request);
    if (status != KILN_OK) {
        return kn_no_memory(diag, following);
    }
    c->has_path = true;
    status = looks_on_disk(&c->request) ? make_recipes(c, diag) : KILN_OK;
    if (status != KILN_OK) {
        return status;
    }
    status = load_list(c);
    view->assumed = status == KILN_OK && look_meanwhile(c);
    if (view->assumed) {
        return KILN_OK;
    }
    if (status == KILN_OK) {
        status = check_list(c, true);
        view->from_list = status == KILN_OK;
    }
    if (status == KILN_MISS) {
        status = find_anew(c);
    }
    count_lookup(c);
    return status == KILN_E_NOMEM ? kn_no_memory(diag, following) : status;
}

static kiln_status check_request(const kn_closure_request *request, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *why = NULL;
    if (source == NULL) {
        why = "there is no source";
    } else if (source->length > 0 && source->text == NULL) {
        why = "the source has a length and no text";
    } else if (request->cache != NULL && request->first == NULL) {
        why = "a cache needs the recipe of everything but headers";
    }
    for (size_t i = 0; why == NULL && i < source->include_dir_count; i++) {
        why = source->include_dirs[i] == NULL ? "an include dir is NULL" : NULL;
    }
    for (size_t i = 0; why == NULL && i < request->system_dir_count; i++) {
        why = request->system_dirs[i] == NULL ? "a system dir is NULL" : NULL;
    }
    return why == NULL ? KILN_OK
                       : kiln_diag_set(diag, KILN_E_INVALID, NULL, "following includes", "%s", why);
}

static bool copy_dirs(closure *c)
{
    size_t count = c->request.system_dir_count;
    if (count > 0) {
        c->system_dirs = calloc(count, sizeof *c->system_dirs);
        if (c->system_dirs == NULL) {
            return false;
        }
        memcpy(c->system_dirs, c->request.system_dirs, count * sizeof *c->system_dirs);
        c->request.system_dirs = c->system_dirs;
    }
    return true;
}

kiln_status kn_closure_find(const kn_closure_request *request, kn_closure **out_closure,
                            kiln_diag *diag)
{
    *out_closure = NULL;
    kiln_status status = check_request(request, diag);
    if (status != KILN_OK) {
        return status;
    }
    closure *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return kn_no_memory(diag, following);
    }
    c->request = *request;
    kn_header_list_init(&c->list);
    status = copy_dirs(c) ? find_closure(c, diag) : kn_no_memory(diag, following);
    c->request.first = NULL;
    if (status != KILN_OK) {
        kn_closure_destroy(&c->view);
        return status;
    }
    c->view.bypass = c->view.reason[0] != '\0';
    *out_closure = &c->view;
    return KILN_OK;
}

void kn_closure_destroy(kn_closure *view)
{
    closure *c = (closure *)view;
    if (c == NULL) {
        return;
    }
    (void)kn_closure_settle(view);
    kiln_recipe_destroy(c->shared);
    kiln_recipe_destroy(c->recipe);
    kn_header_list_deinit(&c->list);
    kiln_blob_release(c->blob);
    if (c->has_path) {
        kn_include_path_deinit(&c->path);
    }
    free(c->system_dirs);
    free(c);
}

/* --- names of files in the code --------------------------------------------------------------- */

bool kn_closure_names_matter(const kn_closure *view)
{
    const closure *c = (const closure *)view;
    return c->request.names || c->has_names || (c->has_includes && c->list.names_seen);
}

bool kn_closure_source_names(const kn_closure *view)
{
    return ((const closure *)view)->has_names;
}

/* A directory as the compiler spells it, or, where code has names without directories, which other
 * directory it lies in: of two that both fit, the compiler takes one off. */
static void append_dir(const closure *c, size_t index, kn_strbuf *line)
{
    const kiln_source *source = c->request.source;
    const char *dir = source->include_dirs[index];
    if (!c->request.names_relative) {
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

static kiln_status add_line(kiln_recipe *recipe, const char *field, const kn_strbuf *line,
                            kiln_diag *diag)
{
    return kn_strbuf_ok(line)
               ? kiln_recipe_add_text(recipe, field, kn_strbuf_text(line), line->length, diag)
               : kn_no_memory(diag, following);
}

static kiln_status add_dirs(const closure *c, kiln_recipe *recipe, kn_strbuf *line, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < c->request.source->include_dir_count && status == KILN_OK; i++) {
        kn_strbuf_clear(line);
        append_dir(c, i, line);
        status = add_line(recipe, "name.dir", line, diag);
    }
    for (size_t i = 0; i < c->request.system_dir_count && status == KILN_OK; i++) {
        kn_strbuf_clear(line);
        kn_strbuf_append_text(line, c->system_dirs[i]);
        status = add_line(recipe, "name.system", line, diag);
    }
    return status;
}

/* What __FILE__ and its like say in each text, and line information of each. */
static kiln_status add_names(const closure *c, kiln_recipe *recipe, kiln_diag *diag)
{
    const char *name = c->request.source->name;
    kn_strbuf line;
    kn_strbuf_init(&line, 0);
    if (name != NULL) {
        kn_strbuf_append_text(&line, c->request.names_given ? name : kn_path_name(name));
    }
    kiln_status status = add_line(recipe, "name", &line, diag);
    for (size_t i = 0; i < c->list.header_count && status == KILN_OK; i++) {
        const kn_place *place = &c->list.headers[i].place;
        kn_strbuf_clear(&line);
        kn_strbuf_printf(&line, "%d %u %s", (int)place->base, place->index,
                         kn_header_list_name(&c->list, place->name));
        status = add_line(recipe, "name.header", &line, diag);
    }
    if (status == KILN_OK && (c->list.header_count > 0 || c->request.names)) {
        status = add_dirs(c, recipe, &line, diag);
    }
    if (status == KILN_OK && c->request.names && !c->request.names_relative &&
        !c->request.names_given) {
        char *current = kn_path_resolve(".");
        status = current != NULL
                     ? kiln_recipe_add_text(recipe, "name.current", current, strlen(current), diag)
                     : kn_no_memory(diag, following);
        free(current);
    }
    kn_strbuf_deinit(&line);
    return status;
}

/* --- using ------------------------------------------------------------------------------------ */

kiln_status kn_closure_add_to(const kn_closure *view, kiln_recipe *recipe, kiln_diag *diag)
{
    const closure *c = (const closure *)view;
    if (view->bypass) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "making a key", "%s", view->reason);
    }
    kiln_status status = kn_closure_names_matter(view) ? add_names(c, recipe, diag) : KILN_OK;
    if (!c->has_includes || status != KILN_OK) {
        return status;
    }
    kn_strbuf line;
    kn_strbuf_init(&line, 0);
    for (size_t i = 0; i < c->list.header_count && status == KILN_OK; i++) {
        const kn_header_list_header *row = &c->list.headers[i];
        if (row->place.base == KN_PLACE_SYSTEM) {
            continue; /* a toolkit's hundreds are in the graph's digest, taken once */
        }
        char hex[2 * sizeof row->digest + 1];
        kn_hex_encode(row->digest, sizeof row->digest, hex);
        kn_strbuf_clear(&line);
        kn_strbuf_printf(&line, "%s %s", kn_header_list_name(&c->list, row->written), hex);
        status = kn_strbuf_ok(&line)
                     ? kiln_recipe_add_text(recipe, "header", line.data, line.length, diag)
                     : kn_no_memory(diag, following);
    }
    kn_strbuf_deinit(&line);
    if (status == KILN_OK) {
        status =
            kiln_recipe_add_bytes(recipe, "includes", c->list.graph, sizeof c->list.graph, diag);
    }
    return status;
}

static kiln_status visit_place(const closure *c, const kn_place *place, const kn_stamp *stamp,
                               kn_closure_place_fn *visit, void *user)
{
    char *path = NULL;
    if (place->base == KN_PLACE_MEMORY || place->base == KN_PLACE_SHIPS) {
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

kiln_status kn_closure_places(const kn_closure *view, kn_closure_place_fn *visit, void *user)
{
    const closure *c = (const closure *)view;
    const kn_header_list *list = &c->list;
    kiln_status status = KILN_OK;
    if (view->bypass || !c->has_includes) {
        return KILN_OK;
    }
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        const kn_header_list_header *row = &list->headers[i];
        const bool settled = row->place.base == KN_PLACE_MEMORY ||
                             kn_stamp_holds(&row->stamp, &row->stamp, list->recorded_ns);
        status = settled ? visit_place(c, &row->place, &row->stamp, visit, user) : KILN_MISS;
    }
    for (size_t i = 0; i < list->absent_count && status == KILN_OK; i++) {
        status = visit_place(c, &list->absent[i], NULL, visit, user);
    }
    return status;
}

kiln_status kn_closure_watch(const kn_closure *view, kn_closure_place_fn *visit, void *user)
{
    const closure *c = (const closure *)view;
    const kn_header_list *list = &c->list;
    kiln_status status = KILN_OK;
    if (!c->has_path) {
        return KILN_OK;
    }
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        const kn_header_list_header *row = &list->headers[i];
        status = visit_place(c, &row->place, &row->stamp, visit, user);
    }
    for (size_t i = 0; i < list->absent_count && status == KILN_OK; i++) {
        status = visit_place(c, &list->absent[i], NULL, visit, user);
    }
    return status;
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

bool kn_closure_still_true(kn_closure *view)
{
    closure *c = (closure *)view;
    bool still = !view->bypass && (!c->has_includes || check_list(c, false) == KILN_OK);
    view->save_pays = view->save_pays && still;
    return still;
}
