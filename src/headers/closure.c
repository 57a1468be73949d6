/* See closure.h. Here a header list is found, checked against what is there now, and kept; finding
 * headers again is closure_walk.c's, what a list says in a key closure_key.c's. */
#include "headers/closure.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/stages.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "headers/closure_state.h"
#include "headers/closure_walk.h"
#include "headers/header_list.h"
#include "headers/header_list_check.h"
#include "headers/include_path.h"
#include "headers/links.h"
#include "headers/twins.h"
#include "headers/walk_shape.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/thread.h"

/* Rows of a header list from which on a thread of its own takes less time than it saves. */
#define ASSUMED_ROWS 100u

/* Headers of a packed list from which on a list of this machine pays: writing one takes as long as
 * reading a hundred headers, and reading it as long as reading one. */
#define PACKED_HEADERS 16u

/* --- lists in the cache ----------------------------------------------------------------------- */

/* A list is kept twice. "kiln.manifest" has the stamps of this machine's files and stays here;
 * "headers" has none, travels in packs and remotes, and spares a machine that has no list of its
 * own the walk: the headers are read and compared, not scanned. */

/* The recipe of a list: everything but headers, and the shape of the search. */
static kiln_status make_list_recipe(const closure *c, const char *stage, kiln_recipe **out_recipe,
                                    kiln_diag *diag)
{
    char key_text[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&c->first, key_text);
    kn_strbuf shape;
    kn_strbuf_init(&shape, 0);
    kn_include_path_describe(&c->path, &shape);
    kiln_status status = kiln_recipe_create(stage, KN_MANIFEST_VERSION, out_recipe, diag);
    if (status == KILN_OK) {
        kiln_recipe_set_target(*out_recipe, c->target);
        kn_recipe_add_string(*out_recipe, "first", key_text);
        kn_recipe_add_strbuf(*out_recipe, "search", &shape);
        status = kn_recipe_end(out_recipe, diag);
    }
    kn_strbuf_deinit(&shape);
    return status;
}

static void keep_list(closure *c)
{
    const kiln_recipe *first = c->request.first;
    c->is_kept = c->request.cache != NULL && kiln_recipe_status(first, NULL) == KILN_OK;
    if (c->is_kept) {
        c->first = kiln_recipe_key(first);
        kn_text_put(c->target, sizeof c->target, kn_recipe_target(first));
    }
}

/* The recipe of the list of this machine, or of the one for all; most starts need one of them. */
static kiln_status need_list_recipe(closure *c, bool shared, kiln_diag *diag)
{
    kiln_recipe **recipe = shared ? &c->shared : &c->recipe;
    return *recipe != NULL ? KILN_OK
                           : make_list_recipe(c, shared ? kn_stage_headers : kn_stage_kiln_manifest,
                                              recipe, diag);
}

static kiln_status get_list(closure *c, kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_origin origin;
    kiln_status status = need_list_recipe(c, false, diag);
    if (status == KILN_OK) {
        const kiln_key key = kiln_recipe_key(c->recipe);
        status = kn_cache_get_note(c->request.cache, &key, c->target, out_blob);
    }
    if (status == KILN_MISS) {
        status = need_list_recipe(c, true, diag);
        if (status == KILN_OK) {
            const kiln_key key = kiln_recipe_key(c->shared);
            status = kn_cache_glance(c->request.cache, &key, c->target, true, out_blob, &origin);
            c->packed = status == KILN_OK && origin == KILN_ORIGIN_PACK;
        }
    }
    return status;
}

/* Reads a list of whose bytes the closure takes hold. */
static kiln_status take_list(closure *c, kiln_blob *blob)
{
    kiln_blob_release(c->blob);
    kn_header_list_deinit(&c->list);
    c->blob = blob;
    kiln_status status =
        kn_header_list_parse(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), &c->list);
    return status == KILN_E_CORRUPT ? KILN_MISS : status;
}

static kiln_status load_list(closure *c, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = c->is_kept ? get_list(c, &blob, diag) : KILN_MISS;
    return status == KILN_OK ? take_list(c, blob) : status;
}

bool kn_closure_shared_key(kn_closure *view, kiln_key *out_key)
{
    closure *c = (closure *)view;
    if (!c->is_kept || need_list_recipe(c, true, NULL) != KILN_OK) {
        return false;
    }
    *out_key = kiln_recipe_key(c->shared);
    return true;
}

/* Stores the header list as it is, or as one that other machines can use. */
static void save_list(closure *c, bool shared)
{
    kn_strbuf bytes;
    kn_strbuf_init(&bytes, 0);
    kn_header_list_write(&c->list, !shared, &bytes);
    kiln_blob *blob = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kn_strbuf_ok(&bytes) ? need_list_recipe(c, shared, &diag)
                                              : kn_no_memory(&diag, KN_FOLLOWING);
    if (status == KILN_OK) {
        status = kiln_blob_create(bytes.data, bytes.length, NULL, 0, &blob, &diag);
    }
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

/* Whether all that the header list says is so now. What spares the next start reading is taken up,
 * to be saved. */
static kiln_status check_list(closure *c, kn_list_look look)
{
    bool pays = false;
    kiln_status status = kn_header_list_check(&c->path, &c->list, look, &pays);
    pays = pays && c->is_kept && (!c->packed || c->list.header_count >= PACKED_HEADERS);
    c->view.save_pays = c->view.save_pays || pays;
    return status;
}

/* --- looking meanwhile ------------------------------------------------------------------------ */

static void look_main(void *user)
{
    closure *c = (closure *)user;
    c->looked = check_list(c, KN_LOOK_CONTENT);
}

static bool is_long(const closure *c)
{
    return kn_header_list_places(&c->list) >= ASSUMED_ROWS;
}

/* Whether a thread has begun to check the header list. It has the path and the stamps of the header
 * list for itself until it is joined; digests and names stay as they are. */
static bool look_meanwhile(closure *c)
{
    const kn_header_list *list = &c->list;
    if (!c->request.assume || !is_long(c)) {
        return false;
    }
    for (size_t i = 0; i < list->absent_count; i++) {
        if (list->absent[i].base == KN_PLACE_SHIPS) {
            return false; /* the caller's function is for the caller's thread */
        }
    }
    c->path.teaches = false; /* it would take the thread longer than the next source gains */
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

/* --- packs ------------------------------------------------------------------------------------ */

/* A pack has the list without a stamp, and reading it there costs no system call where this
 * machine's own list costs four. It will do where the process knows what all its headers are: many
 * sources share theirs. Then no list of this machine is read or written. */
static bool find_in_packs(closure *c)
{
    kiln_blob *blob = NULL;
    c->path.teaches = c->is_kept && c->request.memo != NULL && kn_cache_has_packs(c->request.cache);
    if (!c->path.teaches || kn_header_memo_is_empty(c->request.memo) ||
        need_list_recipe(c, true, NULL) != KILN_OK) {
        return false;
    }
    const kiln_key key = kiln_recipe_key(c->shared);
    if (kn_cache_glance_packs(c->request.cache, &key, &blob) != KILN_OK ||
        take_list(c, blob) != KILN_OK || is_long(c)) {
        return false;
    }
    const bool known = check_list(c, KN_LOOK_KNOWN) == KILN_OK;
    c->view.save_pays = false;
    return known;
}

/* --- finding ---------------------------------------------------------------------------------- */

static kiln_status walk_anew(closure *c, const kn_walk_shape *shape)
{
    kn_walk_facts facts;
    kn_header_list_deinit(&c->list);
    c->list.recorded_ns = kn_clock_wall();
    kiln_status status =
        kn_closure_walk(&c->path, &c->list, &facts, c->view.reason, sizeof c->view.reason);
    if (status == KILN_OK) {
        status = kn_twins_find(&c->list);
    }
    if (status == KILN_OK) {
        (void)kn_header_list_group(&c->list); /* without directories a check takes longer */
    }
    if (status == KILN_OK && c->view.reason[0] == '\0') {
        kn_header_memo_put_walk(c->request.memo, shape, &facts, &c->list);
    }
    return status;
}

/* The list of an earlier source of this process that has the same includes. */
static kiln_status take_walk(closure *c, const kn_walk_shape *shape)
{
    kiln_blob *blob = NULL;
    bool names = false;
    if (!kn_header_memo_find_walk(c->request.memo, shape, c->request.source, &blob, &names)) {
        return KILN_MISS;
    }
    kiln_status status = take_list(c, blob);
    if (status == KILN_OK) {
        status = check_list(c, KN_LOOK_UNTOUCHED);
        c->list.names_seen = names;
    }
    return status;
}

static kiln_status find_anew(closure *c)
{
    kn_walk_shape shape;
    kn_walk_shape_make(&c->path, &shape);
    kiln_status status = take_walk(c, &shape);
    c->view.from_walk = status == KILN_OK;
    if (status == KILN_MISS) {
        status = walk_anew(c, &shape);
    }
    kn_walk_shape_deinit(&shape);
    c->anew = true;
    c->view.save_pays = status == KILN_OK && c->view.reason[0] == '\0' && c->is_kept;
    return status;
}

/* Whether there is any directory to look into. Where there is none, following the includes takes
 * less time than a header list does. */
static bool looks_on_disk(const kn_closure_request *request)
{
    return request->dir != NULL || request->source->include_dir_count > 0 ||
           request->system_dir_count > 0;
}

/* A list that is kept under the recipe of one source was written after its text had been scanned:
 * the text names files, and nothing in it stops the scan. So lists are asked first, where the text
 * has the look of one that includes something. */
static bool asks_lists_first(const closure *c)
{
    return c->request.list_vouches && c->request.cache != NULL && looks_on_disk(&c->request) &&
           kn_closure_may_include(c->request.source);
}

static kiln_status scan_source(closure *c)
{
    kn_closure *view = &c->view;
    bool names = false;
    view->source_scanned = true;
    kiln_status status = kn_closure_glance(c->request.source, &c->has_includes, &names,
                                           view->reason, sizeof view->reason);
    c->has_names = c->has_names || names;
    return status;
}

static bool has_headers(const closure *c)
{
    return c->view.reason[0] == '\0' && c->has_includes;
}

/* A list that holds, or is taken as true; KILN_MISS: there is none. */
static kiln_status find_list(closure *c, kiln_diag *diag)
{
    kn_closure *view = &c->view;
    kiln_status status = kn_include_path_init(&c->path, &c->request);
    if (status != KILN_OK) {
        return status;
    }
    c->has_path = true;
    if (looks_on_disk(&c->request)) {
        keep_list(c);
    }
    if (find_in_packs(c)) {
        view->from_list = true;
        return KILN_OK;
    }
    status = load_list(c, diag);
    view->assumed = status == KILN_OK && look_meanwhile(c);
    if (status == KILN_OK && !view->assumed) {
        status = check_list(c, KN_LOOK_CONTENT);
        view->from_list = status == KILN_OK;
    }
    return status;
}

/* The text has it that there is nothing to follow, whatever a list says. */
static kiln_status drop_list(closure *c)
{
    kiln_status status = kn_closure_settle(&c->view);
    kn_header_list_deinit(&c->list);
    c->view.from_list = c->view.save_pays = c->is_kept = false;
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

/* A list says of all its texts together whether one mentions the name of its file: then the source
 * is scanned as well, to know of its own. */
static kiln_status follow_includes(closure *c, kiln_diag *diag)
{
    kn_closure *view = &c->view;
    const bool ahead = asks_lists_first(c);
    kiln_status status = ahead ? KILN_OK : scan_source(c);
    c->has_includes = c->has_includes || ahead;
    if (status != KILN_OK || !has_headers(c)) {
        return status;
    }
    status = find_list(c, diag);
    if (ahead && (status == KILN_MISS || (status == KILN_OK && c->list.names_seen))) {
        const kiln_status scanned = scan_source(c);
        if (scanned != KILN_OK || !has_headers(c)) {
            status = drop_list(c);
            return scanned != KILN_OK ? scanned : status;
        }
    }
    status = status == KILN_MISS ? find_anew(c) : status;
    if (!view->assumed) {
        count_lookup(c);
    }
    return status;
}

static kiln_status find_closure(closure *c, kiln_diag *diag)
{
    kn_closure *view = &c->view;
    const kiln_source *source = c->request.source;
    if (kn_closure_form(source->language) == KN_FORM_CODE) {
        return KILN_OK;
    }
    kn_closure_glance_options(source, &c->has_names, view->reason, sizeof view->reason);
    kiln_status status = view->reason[0] == '\0' ? follow_includes(c, diag) : KILN_OK;
    return status == KILN_E_NOMEM ? kn_no_memory(diag, KN_FOLLOWING) : status;
}

static kiln_status check_request(const kn_closure_request *request, kiln_diag *diag)
{
    const kiln_source *source = request->source;
    const char *why = NULL;
    if (source == NULL) {
        why = "there is no source";
    } else if (request->rules == NULL) {
        why = "there are no include rules";
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
                       : kiln_diag_set(diag, KILN_E_INVALID, NULL, KN_FOLLOWING, "%s", why);
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
        return kn_no_memory(diag, KN_FOLLOWING);
    }
    c->request = *request;
    c->began_ns = kn_clock_wall_roughly();
    kn_header_list_init(&c->list);
    status = copy_dirs(c) ? find_closure(c, diag) : kn_no_memory(diag, KN_FOLLOWING);
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

bool kn_closure_still_true(kn_closure *view)
{
    closure *c = (closure *)view;
    c->path.links_since = c->began_ns;
    const bool still =
        !view->bypass && (!c->has_includes || (check_list(c, KN_LOOK_UNTOUCHED) == KILN_OK &&
                                               !kn_links_changed(&c->path, &c->list, c->began_ns)));
    view->save_pays = view->save_pays && still;
    return still;
}
