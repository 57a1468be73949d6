/* See include_path.h. */
#include "headers/include_path.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/file.h"

/* What a directory is, however it is spelt; inode 0 if it is unknown. */
static kn_file_facts dir_facts(const char *dir)
{
    kn_file_facts facts = {0};
    if (kn_file_stat(dir, true, &facts, NULL) != KILN_OK) {
        facts.inode = 0;
    }
    return facts;
}

static kiln_status find_skipped(kn_include_path *path)
{
    const kn_closure_request *request = path->request;
    const kiln_source *source = request->source;
    if (request->rules->dirs_in_order || request->system_dir_count == 0 ||
        source->include_dir_count == 0) {
        return KILN_OK;
    }
    kn_file_facts *system = calloc(request->system_dir_count, sizeof *system);
    if (system == NULL) {
        return KILN_E_NOMEM;
    }
    for (size_t j = 0; j < request->system_dir_count; j++) {
        system[j] = dir_facts(request->system_dirs[j]);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        kn_file_facts facts = dir_facts(source->include_dirs[i]);
        for (size_t j = 0; j < request->system_dir_count; j++) {
            bool same = facts.inode != 0 && facts.inode == system[j].inode &&
                        facts.device == system[j].device;
            path->skipped[i] = path->skipped[i] || same ||
                               strcmp(source->include_dirs[i], request->system_dirs[j]) == 0;
        }
    }
    free(system);
    return KILN_OK;
}

kiln_status kn_include_path_init(kn_include_path *path, const kn_closure_request *request)
{
    *path = (kn_include_path){.request = request};
    kn_strbuf_init(&path->scratch, 0);
    kn_strbuf_init(&path->gone, 0);
    path->skipped = calloc(request->source->include_dir_count + 1, sizeof *path->skipped);
    if (path->skipped == NULL || !kn_digest_init(&path->digest)) {
        free(path->skipped);
        path->skipped = NULL;
        return KILN_E_NOMEM;
    }
    kiln_status status = find_skipped(path);
    if (status != KILN_OK) {
        kn_include_path_deinit(path);
    }
    return status;
}

void kn_include_path_deinit(kn_include_path *path)
{
    if (path->skipped != NULL) {
        free(path->skipped);
        kn_strbuf_deinit(&path->scratch);
        kn_strbuf_deinit(&path->gone);
        kn_digest_deinit(&path->digest);
        path->skipped = NULL;
    }
}

static void describe_flag(kn_strbuf *out, const char *name, bool flag)
{
    kn_strbuf_append_text(out, name);
    kn_strbuf_append_text(out, flag ? ":1 " : ":0 ");
}

void kn_include_path_describe(const kn_include_path *path, kn_strbuf *out)
{
    const kn_closure_request *request = path->request;
    describe_flag(out, "memory", request->source->header_count > 0);
    describe_flag(out, "folder", request->dir != NULL);
    describe_flag(out, "beside", (request->effects & KILN_OPTION_NOT_BESIDE) == 0);
    describe_flag(out, "complete", request->rules->complete);
    kn_strbuf_append_text(out, "system:");
    kn_strbuf_append_u64(out, request->system_dir_count);
    kn_strbuf_append_text(out, " dirs:");
    for (size_t i = 0; i < request->source->include_dir_count; i++) {
        kn_strbuf_append_char(out, path->skipped[i] ? '-' : '+');
    }
}

/* The header in memory of exactly this name, or NULL. */
static const kiln_header *find_in_memory(const kn_include_path *path, kn_span name)
{
    const kiln_source *source = path->request->source;
    for (size_t i = 0; i < source->header_count; i++) {
        const kiln_header *header = &source->headers[i];
        if (header->name != NULL && kn_span_equal(kn_span_of_text(header->name), name)) {
            return header;
        }
    }
    return NULL;
}

/* The dir that places of this base are in; NULL if the request has none. */
static const char *dir_of(const kn_closure_request *request, kn_place_base base, uint32_t index)
{
    const char *dir = NULL;
    if (base == KN_PLACE_DIR) {
        dir = request->dir;
    } else if (base == KN_PLACE_INCLUDE && index < request->source->include_dir_count) {
        dir = request->source->include_dirs[index];
    } else if (base == KN_PLACE_SYSTEM && index < request->system_dir_count) {
        dir = request->system_dirs[index];
    }
    return dir == NULL || dir[0] != '\0' ? dir : ".";
}

kiln_status kn_include_path_of(const kn_include_path *path, const kn_place *place, const char *name,
                               char **out_path)
{
    const char *dir = dir_of(path->request, place->base, place->index);
    *out_path = NULL;
    if (place->base == KN_PLACE_ABSOLUTE) {
        *out_path = kn_text_copy(name);
    } else if (dir == NULL) {
        return KILN_MISS;
    } else {
        *out_path = kn_path_join(dir, name);
    }
    return *out_path != NULL ? KILN_OK : KILN_E_NOMEM;
}

static kiln_status take_header(const kn_file_facts *facts, kn_include_file *out_file)
{
    if (facts->kind != KN_FILE_REGULAR) {
        return facts->kind == KN_FILE_DIR ? KILN_MISS : KILN_E_IO;
    }
    out_file->stamp = kn_stamp_of(facts);
    return KILN_OK;
}

static kiln_status stat_name(kn_include_path *path, const kn_dir *dir, const char *name,
                             bool follow, kn_file_facts *out_facts)
{
    path->statted++;
    return dir != NULL ? kn_dir_stat(dir, name, follow, out_facts)
                       : kn_file_stat(name, follow, out_facts, NULL);
}

/* The file that a name leads to. Hardly any is a link, and then one look says all. */
static kiln_status look_behind(kn_include_path *path, const kn_dir *dir, const char *name,
                               kn_file_facts *out_facts)
{
    if (path->links_since != 0) {
        const kiln_status status = stat_name(path, dir, name, false, out_facts);
        if (status != KILN_OK || out_facts->kind != KN_FILE_LINK) {
            return status;
        }
        if (out_facts->ctime_ns >= path->links_since) {
            return KILN_MISS;
        }
    }
    return stat_name(path, dir, name, true, out_facts);
}

kiln_status kn_include_path_look(kn_include_path *path, const kn_dir *dir, const kn_place *place,
                                 const char *name, kn_include_file *out_file)
{
    kn_file_facts facts;
    kiln_status status = KILN_OK;
    char *at = NULL;
    *out_file = (kn_include_file){0};
    if (place->base == KN_PLACE_MEMORY) {
        return find_in_memory(path, kn_span_of_text(name)) != NULL ? KILN_OK : KILN_MISS;
    }
    if (place->base == KN_PLACE_SHIPS) {
        bool (*ships)(void *, const char *) = path->request->ships_header;
        return ships != NULL && ships(path->request->user, name) ? KILN_OK : KILN_MISS;
    }
    if (dir == NULL) {
        status = kn_include_path_of(path, place, name, &at);
    }
    if (status == KILN_OK) {
        status = look_behind(path, dir, dir != NULL ? name : at, &facts);
    }
    free(at);
    return status == KILN_OK ? take_header(&facts, out_file) : status;
}

kiln_status kn_include_path_open(kn_include_path *path, const kn_header_list *list,
                                 const kn_header_list_directory *row, kn_dir *out_dir)
{
    kn_strbuf *at = &path->scratch;
    const char *dir = dir_of(path->request, row->base, row->index);
    if (dir == NULL && row->base != KN_PLACE_ABSOLUTE) {
        return KILN_MISS;
    }
    kn_strbuf_clear(at);
    if (row->base != KN_PLACE_ABSOLUTE) {
        kn_strbuf_append_text(at, dir);
        kn_strbuf_append_char(at, '/');
    }
    kn_strbuf_append(at, kn_header_list_name(list, row->name), row->length);
    if (!kn_strbuf_ok(at)) {
        return KILN_E_NOMEM;
    }
    if (at->length > 0 && at->length == path->gone.length &&
        memcmp(at->data, path->gone.data, at->length) == 0) {
        return KILN_MISS;
    }
    kiln_status status = kn_dir_open(kn_strbuf_text(at), out_dir);
    if (status == KILN_MISS) {
        path->statted++;
        const kn_strbuf before = path->gone;
        path->gone = path->scratch;
        path->scratch = before;
    }
    return status;
}

void kn_include_path_forget(kn_include_path *path)
{
    kn_strbuf_clear(&path->gone);
}

static kiln_status read_file(kn_include_path *path, const kn_place *place, const char *name,
                             kn_include_file *file)
{
    char *at;
    kiln_status status = kn_include_path_of(path, place, name, &at);
    if (status != KILN_OK) {
        return status;
    }
    kn_file_facts facts = {0};
    size_t size = 0;
    status = kn_file_read(at, KN_CLOSURE_MAX_FILE_SIZE, false, &file->owned, &size, &facts, NULL);
    path->read++;
    free(at);
    if (status != KILN_OK) {
        return status;
    }
    file->text = kn_span_of(file->owned, size);
    file->stamp = kn_stamp_of(&facts);
    return KILN_OK;
}

kiln_status kn_include_path_read(kn_include_path *path, const kn_place *place, const char *name,
                                 kn_include_file *out_file)
{
    *out_file = (kn_include_file){.read_ns = kn_clock_wall()};
    if (place->base == KN_PLACE_MEMORY) {
        const kiln_header *header = find_in_memory(path, kn_span_of_text(name));
        if (header == NULL) {
            return KILN_MISS;
        }
        out_file->text = kn_span_of(header->text, header->text != NULL ? header->length : 0);
    } else {
        kiln_status status = read_file(path, place, name, out_file);
        if (status != KILN_OK) {
            return status;
        }
    }
    if (!kn_digest_bytes(&path->digest, out_file->text.data, out_file->text.length,
                         out_file->digest)) {
        kn_include_file_deinit(out_file);
        return KILN_E_NOMEM;
    }
    return KILN_OK;
}

void kn_include_file_deinit(kn_include_file *file)
{
    free(file->owned);
    *file = (kn_include_file){0};
}
