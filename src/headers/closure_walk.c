/* See closure_walk.h. Each place is looked at once, each file read and scanned once. An inner
 * status of KILN_E_UNSUPPORTED means that `reason` is set and the walk is over. */
#include "headers/closure_walk.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/text.h"
#include "headers/computed.h"
#include "headers/include_scan.h"
#include "headers/scan_record.h"
#include "sys/file.h"

#define NAMES_BOUND ((size_t)8 << 20)
#define EDGES_BOUND ((size_t)64 << 20)

/* Ends the list of files that an include reaches, and stands there for a toolchain's header. */
#define EDGE_END 0xFFFFFFFFu
#define EDGE_SHIPS 0xFFFFFFFEu

/* A file reached. Ordinals count from 1 (0 is the source); row ordinal - 1 of the header list. */
typedef struct node {
    uint32_t ordinal;
    uint32_t depth;
    uint64_t device, inode;
    const struct node *alias; /* the same file by a longer way: not scanned again */
} node;

typedef struct walk {
    kn_include_path *path;
    const kiln_source *source;
    kn_header_list *list;
    node **nodes;
    size_t node_count, node_capacity;
    kn_map places; /* place -> node, or &absent */
    kn_map normal; /* place with ".." resolved -> first node */
    node absent;
    kn_strbuf edges;
    kn_strbuf key, normal_key, scratch;
    size_t bytes;
    kn_pieces own;         /* of the source */
    kn_scan_reader reader; /* of headers */
    kn_walk_facts *facts;
    kn_computed computed;
    kn_computed_include *at; /* being followed */
    const node *from;        /* whose text is being scanned; NULL: the source */
    size_t targets;          /* of the include at hand */
    char *reason;
    size_t reason_size;
} walk;

/* Of the text at hand, which is a header's. */
static kn_header_list_header *row_of(const walk *w)
{
    return &w->list->headers[w->from->ordinal - 1];
}

static const char *text_name(const walk *w)
{
    if (w->from != NULL) {
        return kn_header_list_name(w->list, row_of(w)->written);
    }
    return w->source->name != NULL ? kn_path_name(w->source->name) : "source";
}

static kiln_status refuse_walk(walk *w, const char *format, ...) KILN_PRINTF(2, 3);
static kiln_status refuse_walk(walk *w, const char *format, ...)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    va_list args;
    va_start(args, format);
    kn_strbuf_vprintf(&text, format, args);
    va_end(args);
    kn_text_putf(w->reason, w->reason_size, "%s%s", text_name(w),
                 kn_strbuf_ok(&text) ? kn_strbuf_text(&text) : ": cannot be followed");
    kn_strbuf_deinit(&text);
    return KILN_E_UNSUPPORTED;
}

/* --- places ----------------------------------------------------------------------------------- */

static bool has_room(const walk *w)
{
    return w->list->absent_count + w->node_count < KN_CLOSURE_MAX_PLACES &&
           w->node_count < KN_CLOSURE_MAX_FILES && w->list->names.length < NAMES_BOUND;
}

static bool add_node_row(walk *w, kn_place place, const char *name, kn_span written,
                         const kn_stamp *stamp)
{
    /* The stamp for one who watches: a walk that is refused may end before the file is read. */
    kn_header_list_header row = {
        .place = place, .written_length = (uint32_t)written.length, .stamp = *stamp};
    kn_span full = kn_span_of(name, place.name_length);
    if (!kn_header_list_add_name(w->list, full, &row.place.name)) {
        return false;
    }
    row.written = row.place.name;
    if (!kn_span_equal(full, written) && !kn_header_list_add_name(w->list, written, &row.written)) {
        return false;
    }
    return kn_header_list_add_header(w->list, &row);
}

static bool push_node(walk *w, node *added)
{
    if (w->node_count == w->node_capacity) {
        size_t wanted = w->node_capacity == 0 ? 32 : w->node_capacity * 2;
        node **grown = realloc(w->nodes, wanted * sizeof(node *));
        if (grown == NULL) {
            return false;
        }
        w->nodes = grown;
        w->node_capacity = wanted;
    }
    w->nodes[w->node_count++] = added;
    return true;
}

/* A file by "a/../a/x.h" is the file by "a/x.h" if the system says so too; without this a header
 * that includes itself through its directory's name would be found again every time. */
static bool find_alias(walk *w, node *added, kn_place place, const char *name)
{
    if (place.base == KN_PLACE_MEMORY) {
        return true;
    }
    kn_place_key_start(&w->normal_key, place.base, place.index);
    kn_place_key_append_normal(&w->normal_key, name);
    if (!kn_strbuf_ok(&w->normal_key)) {
        return false;
    }
    const node *first = kn_map_find(&w->normal, w->normal_key.data, w->normal_key.length);
    if (first == NULL) {
        return kn_map_put(&w->normal, w->normal_key.data, w->normal_key.length, added, NULL);
    }
    if (first->device == added->device && first->inode == added->inode) {
        added->alias = first;
    }
    return true;
}

/* w->key is the place's key and holds its name. */
static kiln_status add_node(walk *w, kn_place place, const char *name, kn_span written,
                            const kn_include_file *file, node **out_node)
{
    uint32_t depth = w->from != NULL ? w->from->depth + 1 : 1;
    if (depth > KN_CLOSURE_MAX_DEPTH) {
        return refuse_walk(w, ": includes nested more than %u deep", KN_CLOSURE_MAX_DEPTH);
    }
    node *added = calloc(1, sizeof *added);
    if (added == NULL) {
        return KILN_E_NOMEM;
    }
    *added =
        (node){(uint32_t)w->node_count + 1, depth, file->stamp.device, file->stamp.inode, NULL};
    if (!push_node(w, added)) {
        free(added);
        return KILN_E_NOMEM;
    }
    if (!add_node_row(w, place, name, written, &file->stamp) ||
        !find_alias(w, added, place, name) ||
        !kn_map_put(&w->places, w->key.data, w->key.length, added, NULL)) {
        return KILN_E_NOMEM;
    }
    *out_node = added;
    return KILN_OK;
}

static kiln_status add_absent(walk *w, kn_place place, const char *name)
{
    if (!kn_header_list_add_name(w->list, kn_span_of(name, place.name_length), &place.name) ||
        !kn_header_list_add_absent(w->list, &place) ||
        !kn_map_put(&w->places, w->key.data, w->key.length, &w->absent, NULL)) {
        return KILN_E_NOMEM;
    }
    return KILN_OK;
}

/* What is at a place; *out_node is NULL if nothing. */
static kiln_status look_in_place(walk *w, kn_place_base base, size_t index, kn_span name,
                                 kn_span written, node **out_node)
{
    *out_node = NULL;
    kn_place_key_start(&w->key, base, (uint32_t)index);
    size_t head = w->key.length;
    kn_strbuf_append(&w->key, name.data, name.length);
    if (!kn_strbuf_ok(&w->key)) {
        return KILN_E_NOMEM;
    }
    if (name.length >= KN_CLOSURE_MAX_NAME) {
        return refuse_walk(w, ": a header's name is too long");
    }
    node *known = kn_map_find(&w->places, w->key.data, w->key.length);
    if (known != NULL) {
        *out_node = known != &w->absent || base == KN_PLACE_SHIPS ? known : NULL;
        return KILN_OK;
    }
    if (!has_room(w)) {
        return refuse_walk(w, ": too many headers");
    }
    kn_place place = {.base = base, .index = (uint32_t)index, .name_length = (uint32_t)name.length};
    const char *text = w->key.data + head;
    kn_include_file file;
    kiln_status status = kn_include_path_look(w->path, NULL, &place, text, &file);
    if (base == KN_PLACE_SHIPS) {
        /* Written down where it matters: that the toolchain has it. */
        *out_node = status == KILN_OK ? &w->absent : NULL;
        return status == KILN_OK ? add_absent(w, place, text) : KILN_OK;
    }
    if (status == KILN_MISS) {
        return add_absent(w, place, text);
    }
    if (status == KILN_OK) {
        return add_node(w, place, text, written, &file, out_node);
    }
    return status == KILN_E_NOMEM
               ? status
               : refuse_walk(w, ": %.*s cannot be looked at", (int)written.length, written.data);
}

/* --- one include ------------------------------------------------------------------------------ */

static void append_u32(kn_strbuf *out, uint32_t value)
{
    unsigned char bytes[4];
    kn_put_u32(bytes, value);
    kn_strbuf_append(out, bytes, sizeof bytes);
}

/* Looks at one place and notes what is found as reached by the include at hand. */
static kiln_status try_place(walk *w, kn_place_base base, size_t index, kn_span name,
                             const kn_scan_event *include)
{
    node *found;
    kiln_status status = look_in_place(w, base, index, name, include->text, &found);
    if (status == KILN_OK && found != NULL && !(include->next && found == w->from)) {
        append_u32(&w->edges, found->ordinal);
        w->targets++;
    }
    return status;
}

static kiln_status try_memory(walk *w, const kn_scan_event *include)
{
    return w->source->header_count > 0 ? try_place(w, KN_PLACE_MEMORY, 0, include->text, include)
                                       : KILN_OK;
}

static bool in_memory(const walk *w)
{
    return w->from != NULL && row_of(w)->place.base == KN_PLACE_MEMORY;
}

/* Tries "<start><directory of the text at hand><name>". */
static kiln_status try_in_dir(walk *w, kn_place_base base, size_t index, const char *start,
                              const kn_scan_event *include)
{
    const kn_header_list_header *row = row_of(w);
    const char *name = kn_header_list_name(w->list, row->place.name);
    kn_strbuf_clear(&w->scratch);
    kn_strbuf_append_text(&w->scratch, start);
    kn_strbuf_append(&w->scratch, name, (size_t)(kn_path_name(name) - name));
    kn_strbuf_append(&w->scratch, include->text.data, include->text.length);
    if (!kn_strbuf_ok(&w->scratch)) {
        return KILN_E_NOMEM;
    }
    return try_place(w, base, index, kn_span_of(w->scratch.data, w->scratch.length), include);
}

/* The directory of the text at hand. One in memory has none; yet compilers that take its name for a
 * path look below the current directory (NVRTC does). */
static kiln_status try_beside(walk *w, const kn_scan_event *include)
{
    if (w->from == NULL) {
        return w->path->request->dir != NULL ? try_place(w, KN_PLACE_DIR, 0, include->text, include)
                                             : KILN_OK;
    }
    const kn_place place = row_of(w)->place;
    kiln_status status = try_in_dir(w, place.base, place.index, "", include);
    if (status == KILN_OK && place.base == KN_PLACE_MEMORY) {
        const char *name = kn_header_list_name(w->list, place.name);
        status =
            try_in_dir(w, KN_PLACE_ABSOLUTE, 0, kn_path_is_absolute(name) ? "" : "./", include);
    }
    return status;
}

/* The search path; its first match, or every one. */
static kiln_status try_dirs(walk *w, const kn_scan_event *include, bool all)
{
    const size_t before = w->targets;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < w->source->include_dir_count && status == KILN_OK; i++) {
        if (!w->path->skipped[i] && (all || w->targets == before)) {
            status = try_place(w, KN_PLACE_INCLUDE, i, include->text, include);
        }
    }
    size_t system_dir_count = w->path->request->system_dir_count;
    for (size_t i = 0; i < system_dir_count && status == KILN_OK; i++) {
        if (all || w->targets == before) {
            status = try_place(w, KN_PLACE_SYSTEM, i, include->text, include);
        }
    }
    return status;
}

static kiln_status try_all(walk *w, const kn_scan_event *include)
{
    kiln_status status = try_memory(w, include);
    const bool exact = w->targets > 0;
    if (status == KILN_OK && kn_path_is_absolute(include->text.data)) {
        return try_place(w, KN_PLACE_ABSOLUTE, 0, include->text, include);
    }
    const bool beside = (w->path->request->effects & KILN_OPTION_NOT_BESIDE) == 0 || in_memory(w);
    if (status == KILN_OK && include->quoted && !include->next && beside) {
        status = try_beside(w, include);
    }
    /* What is next to one in memory is found by some compilers before the search path, by some
     * after it, by some never. */
    if (status == KILN_OK && (include->next || w->targets == 0 || (in_memory(w) && !exact))) {
        status = try_dirs(w, include, include->next);
    }
    return status;
}

static kiln_status accept_unfound(walk *w, const kn_scan_event *include)
{
    node *ships;
    kiln_status status = look_in_place(w, KN_PLACE_SHIPS, 0, include->text, include->text, &ships);
    if (status != KILN_OK) {
        return status;
    }
    if (ships != NULL) {
        append_u32(&w->edges, EDGE_SHIPS);
        w->targets++;
        return KILN_OK;
    }
    if (include->probe || w->path->request->rules->complete ||
        kn_path_is_absolute(include->text.data)) {
        return KILN_OK;
    }
    return refuse_walk(
        w, ": %.*s is not in an include directory and not known to ship with the compiler",
        (int)include->text.length, include->text.data);
}

static kiln_status visit_include(walk *w, const kn_scan_event *include)
{
    w->targets = 0;
    append_u32(&w->edges, w->from != NULL ? w->from->ordinal : 0);
    append_u32(&w->edges, (uint32_t)include->text.length);
    kn_strbuf_append(&w->edges, include->text.data, include->text.length);
    kiln_status status = try_all(w, include);
    if (status == KILN_OK && w->targets == 0) {
        status = accept_unfound(w, include);
    }
    append_u32(&w->edges, EDGE_END);
    if (status == KILN_OK && !kn_strbuf_ok(&w->edges)) {
        return refuse_walk(w, ": too many includes");
    }
    return status;
}

/* --- the walk --------------------------------------------------------------------------------- */

static kiln_status take_event(void *user, const kn_scan_event *event)
{
    walk *w = user;
    switch (event->kind) {
    case KN_SCAN_INCLUDE:
        return visit_include(w, event);
    case KN_SCAN_COMPUTED: {
        const kn_computed_include include = {.from = w->from,
                                             .line = event->line,
                                             .trusted = w->from != NULL &&
                                                        row_of(w)->place.base == KN_PLACE_SYSTEM,
                                             .next = event->next,
                                             .probe = event->probe};
        return kn_computed_add(&w->computed, &include, event->text);
    }
    case KN_SCAN_DEFINE:
        return kn_macros_define(&w->computed.macros, event->text, event->rest);
    case KN_SCAN_UNDEFINE:
        return kn_macros_undefine(&w->computed.macros, event->text);
    }
    return KILN_OK;
}

/* One name that a computed include may stand for. */
static kiln_status visit_computed(void *user, kn_span name, bool quoted)
{
    walk *w = user;
    const kn_scan_event include = {
        .text = name, .quoted = quoted, .next = w->at->next, .probe = w->at->probe};
    kiln_status status = visit_include(w, &include);
    /* Where all that is searched is known, one that is not there is keyed as missing. */
    w->at->found = w->at->found || w->targets > 0 || w->path->request->rules->complete;
    return status;
}

/* Follows those that have not been evaluated with all the definitions that are known now. */
static kiln_status follow_computed(walk *w, bool *out_any)
{
    kn_macros *macros = &w->computed.macros;
    const size_t generation = macros->generation + 1;
    kiln_status status = KILN_OK;
    for (w->at = w->computed.first; w->at != NULL && status == KILN_OK; w->at = w->at->following) {
        if (w->at->generation == generation) {
            continue;
        }
        *out_any = true;
        w->at->generation = generation;
        w->from = w->at->from;
        status = kn_macros_names(macros, kn_span_of(w->at->text, w->at->length), w->at->trusted,
                                 visit_computed, w, &w->at->doubt);
    }
    return status;
}

/* With every text scanned: whether each computed include is known, and nothing is in pieces. */
static kiln_status settle_walk(walk *w)
{
    char why[200];
    kn_pieces all = w->facts->pieces;
    kn_pieces_merge(&all, &w->own);
    const char *pieces = kn_closure_settle_pieces(w->source, &all, &w->list->names_seen);
    if (pieces != NULL) {
        w->from = NULL;
        return refuse_walk(w, ": %s", pieces);
    }
    for (const kn_computed_include *at = w->computed.first; at != NULL; at = at->following) {
        if (kn_computed_explain(at, why, sizeof why)) {
            w->from = at->from;
            return refuse_walk(w, ":%s", why);
        }
    }
    return KILN_OK;
}

static kiln_status take_scan(walk *w, kiln_status status, const kn_scan_stop *stop)
{
    w->list->names_seen = w->list->names_seen || stop->names;
    w->list->imports_seen = w->list->imports_seen || stop->imports;
    if (w->from != NULL) {
        row_of(w)->is_once = stop->once;
        w->facts->names = w->facts->names || stop->names;
    }
    return status == KILN_OK && stop->why != NULL
               ? refuse_walk(w, ":%zu: %s", stop->line, stop->why)
               : status;
}

static kiln_status scan_own_text(walk *w)
{
    kn_scan_stop stop;
    const kn_span text = kn_span_of(w->source->text, w->source->length);
    kn_scan_reader reader = w->reader;
    reader.pieces = &w->own;
    const kiln_status status =
        kn_include_scan(text, kn_closure_raw_strings(w->source), &reader, &stop);
    return take_scan(w, status, &stop);
}

static kiln_status read_header(walk *w, kn_header_list_header *row)
{
    kn_include_file file;
    kn_scan_stop stop;
    kn_scan_record *record = NULL;
    kiln_status status = kn_include_path_read(w->path, &row->place,
                                              kn_header_list_name(w->list, row->place.name), &file);
    if (status != KILN_OK) {
        return status == KILN_E_NOMEM
                   ? status
                   : refuse_walk(w, ": cannot be read, or is larger than %zu MiB",
                                 KN_CLOSURE_MAX_FILE_SIZE >> 20);
    }
    row->stamp = file.stamp;
    memcpy(row->digest, file.digest, 32);
    w->bytes += file.text.length;
    status = kn_scan_record_make(file.text, kn_closure_raw_strings(w->source), &w->reader, &stop,
                                 &record);
    status = take_scan(w, status, &stop);
    kn_header_memo_put_scan(w->path->request->memo, &file.stamp, file.read_ns, file.digest, record);
    kn_include_file_deinit(&file);
    return status;
}

static kiln_status expand_node(walk *w, const node *at)
{
    kn_header_list_header *row = &w->list->headers[at->ordinal - 1];
    const kn_scan_record *record = NULL;
    if (at->alias != NULL) {
        row->is_alias = true;
        row->stamp = w->list->headers[at->alias->ordinal - 1].stamp;
        memcpy(row->digest, w->list->headers[at->alias->ordinal - 1].digest, 32);
        return KILN_OK;
    }
    w->from = at;
    if (row->place.base == KN_PLACE_MEMORY ||
        !kn_header_memo_find_scan(w->path->request->memo, &row->stamp,
                                  kn_closure_raw_strings(w->source), row->digest, &record)) {
        return read_header(w, row);
    }
    w->bytes += record->text_length;
    return take_scan(w, kn_scan_record_replay(record, &w->reader), &record->stop);
}

/* Scans everything reached; computed includes again and again, until none has anything new. */
static kiln_status expand_all(walk *w)
{
    kiln_status status = KILN_OK;
    size_t done = 0;
    bool more = true;
    while (more && status == KILN_OK) {
        for (; done < w->node_count && status == KILN_OK; done++) {
            status = expand_node(w, w->nodes[done]);
            if (status == KILN_OK && w->bytes > KN_CLOSURE_MAX_BYTES) {
                status = refuse_walk(w, ": too many bytes of headers");
            }
        }
        more = false;
        if (status == KILN_OK) {
            status = follow_computed(w, &more);
        }
    }
    return status == KILN_OK ? settle_walk(w) : status;
}

static kiln_status visit_implied(walk *w)
{
    const kn_closure_request *request = w->path->request;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < request->implied_count && status == KILN_OK; i++) {
        const kn_scan_event include = {.text = kn_span_of_text(request->implied[i]), .probe = true};
        status = visit_include(w, &include);
    }
    return status;
}

kiln_status kn_closure_walk(kn_include_path *path, kn_header_list *list, kn_walk_facts *facts,
                            char *reason, size_t reason_size)
{
    const kiln_source *source = path->request->source;
    walk w = {.path = path,
              .source = source,
              .list = list,
              .facts = facts,
              .reason = reason,
              .reason_size = reason_size};
    *facts = (kn_walk_facts){.names = false};
    kn_map_init(&w.places);
    kn_map_init(&w.normal);
    kn_strbuf_init(&w.edges, EDGES_BOUND);
    kn_strbuf_init(&w.key, 0);
    kn_strbuf_init(&w.normal_key, 0);
    kn_strbuf_init(&w.scratch, 0);
    kn_computed_init(&w.computed);
    w.reader = (kn_scan_reader){take_event, &w, true, true, &facts->pieces};
    kiln_status status = kn_macros_give(&w.computed.macros, source);
    if (status == KILN_OK) {
        status = scan_own_text(&w);
    }
    if (status == KILN_OK) {
        status = visit_implied(&w);
    }
    if (status == KILN_OK) {
        status = expand_all(&w);
    }
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        if (list->headers[i].place.base == KN_PLACE_SYSTEM) {
            kn_strbuf_append(&w.edges, list->headers[i].digest, 32);
        }
    }
    if (status == KILN_OK &&
        !kn_digest_bytes(&path->digest, kn_strbuf_text(&w.edges), w.edges.length, list->graph)) {
        status = KILN_E_NOMEM;
    }
    facts->computed = w.computed.first != NULL;
    for (size_t i = 0; i < w.node_count; i++) {
        free(w.nodes[i]);
    }
    free(w.nodes);
    kn_computed_deinit(&w.computed);
    kn_strbuf_deinit(&w.scratch);
    kn_strbuf_deinit(&w.normal_key);
    kn_strbuf_deinit(&w.key);
    kn_strbuf_deinit(&w.edges);
    kn_map_deinit(&w.normal);
    kn_map_deinit(&w.places);
    return status == KILN_E_UNSUPPORTED ? KILN_OK : status;
}
