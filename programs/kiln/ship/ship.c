/* Up: a pack for each target, signed, in a layer each. Down: every layer is judged and verified
 * before anything is stored. */
#include "ship/ship.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/remote.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "ship/client.h"
#include "ship/layout.h"
#include "ship/scratch.h"
#include "ship/seal.h"

#define PACK_MOST ((size_t)4 << 30)

enum { MOST_TARGETS = 120 }; /* registries and container runtimes take 127 layers */

typedef struct shipping {
    const cmd_context *context;
    const char *place;
    const char *scratch;
    const char *layout_path;
    kiln_cache *store; /* of packs; NULL: none */
    kiln_pack *pack;   /* that is pushed, or NULL */
    ship_layout layout;
    const char *targets[MOST_TARGETS];
    size_t count;
    ship_result *result;
} shipping;

/* --- both ------------------------------------------------------------------------------------- */

/* A cache of nothing but packs (absolute paths): entries go from pack to pack with all that belongs
 * to them, so that equal entries give equal packs. */
static kiln_status open_store(shipping *s, const char *packs, kiln_diag *diag)
{
    kiln_cache_options options;
    if (packs == NULL) {
        return diag_no_memory(diag, s->place);
    }
    kiln_status status = kiln_cache_options_init(&options, diag);
    options.flags = KILN_CACHE_NO_DISK;
    options.packs = packs;
    options.remote = NULL;
    return status == KILN_OK ? kiln_cache_create(&options, &s->store, diag) : status;
}

typedef struct moving {
    kiln_pack_writer *writer;
    kiln_cache *from;
    kiln_diag *diag;
    uint64_t moved;
} moving;

static kiln_status move_entry(void *user, const kiln_entry_info *info)
{
    moving *m = user;
    bool added = false;
    kiln_status status = kiln_pack_writer_add(m->writer, m->from, &info->key, &added, m->diag);
    m->moved += added;
    return status == KILN_MISS ? KILN_E_CORRUPT : status;
}

static kiln_status begin_shipping(shipping *s, const cmd_context *context, const char *place,
                                  ship_result *result, kiln_diag *diag)
{
    *s = (shipping){.context = context, .place = place, .result = result};
    memset(result, 0, sizeof(*result));
    kiln_status status = scratch_make(context->pool, &s->scratch, diag);
    if (status == KILN_OK) {
        s->layout_path = pool_format(context->pool, "%s/image", s->scratch);
        status = s->layout_path != NULL ? scratch_add(s->layout_path, diag)
                                        : diag_no_memory(diag, place);
    }
    return status;
}

static void end_shipping(shipping *s)
{
    kiln_pack_close(s->pack);
    layout_deinit(&s->layout);
    kiln_cache_destroy(s->store);
    scratch_remove(s->scratch);
}

/* --- up --------------------------------------------------------------------------------------- */

static kiln_status note_target(void *user, const kiln_entry_info *info)
{
    shipping *s = user;
    for (size_t i = 0; i < s->count; i++) {
        if (strcmp(s->targets[i], info->target) == 0) {
            return KILN_OK;
        }
    }
    if (s->count == MOST_TARGETS) {
        return KILN_E_UNSUPPORTED;
    }
    s->targets[s->count] = pool_text(s->context->pool, info->target, strlen(info->target));
    return s->targets[s->count++] != NULL ? KILN_OK : KILN_E_NOMEM;
}

static int compare_targets_by_name(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static kiln_status find_targets(shipping *s, kiln_cache *cache, kiln_diag *diag)
{
    kiln_status status = s->pack != NULL ? kiln_pack_walk(s->pack, NULL, note_target, s, diag)
                                         : kiln_cache_walk(cache, NULL, note_target, s, diag);
    if (status == KILN_E_UNSUPPORTED) {
        return kiln_diag_set(diag, KILN_E_INVALID, "push packs of some of them", s->place,
                             "more than %d targets do not fit into one image", MOST_TARGETS);
    }
    if (status == KILN_E_NOMEM && diag->status == KILN_OK) {
        return diag_no_memory(diag, s->place);
    }
    if (s->count > 1) {
        qsort(s->targets, s->count, sizeof(s->targets[0]), compare_targets_by_name);
    }
    return status;
}

/* The layer of a pack. */
static kiln_status add_layer(shipping *s, const char *target, const char *data, size_t size,
                             kiln_diag *diag)
{
    void *layer = NULL;
    size_t layer_size = 0;
    const tar_file pack = {pool_format(s->context->pool, "%s.kpack", target), data, size};
    kiln_status status = pack.name != NULL ? seal_make(s->context->pool, &pack, &layer, &layer_size,
                                                       &s->result->is_signed, diag)
                                           : diag_no_memory(diag, s->place);
    if (status == KILN_OK) {
        status = layout_add(&s->layout, target, layer, layer_size, diag);
    }
    free(layer);
    return status;
}

static kiln_status ship_target(shipping *s, kiln_cache *cache, const char *target, kiln_diag *diag)
{
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    kiln_pack_info info = {.struct_size = sizeof(info)};
    char *data = NULL;
    size_t size = 0;
    const char *path = pool_format(s->context->pool, "%s/pack", s->scratch);
    if (path == NULL) {
        return diag_no_memory(diag, s->place);
    }
    kiln_status status = kiln_pack_writer_create(path, NULL, &writer, diag);
    if (status == KILN_OK && s->pack != NULL) {
        moving m = {writer, cache, diag, 0};
        status = kiln_pack_walk(s->pack, target, move_entry, &m, diag);
        copied.added = m.moved;
    } else if (status == KILN_OK) {
        status = kiln_pack_writer_add_all(writer, cache, target, NULL, NULL, &copied, diag);
    }
    if (status == KILN_OK && copied.added > 0) {
        status = kiln_pack_writer_finish(writer, &info, diag);
        status = status == KILN_OK ? host_read_file(path, PACK_MOST, &data, &size, diag) : status;
        status = status == KILN_OK ? add_layer(s, target, data, size, diag) : status;
        s->result->layers++;
        s->result->entries += info.entries;
        s->result->bytes += info.file_bytes;
    }
    kiln_pack_writer_destroy(writer);
    free(data);
    return status;
}

kiln_status ship_push(const cmd_context *context, const char *place, kiln_cache *cache,
                      const char *path, ship_result *out_result, kiln_diag *diag)
{
    client_place to;
    shipping s;
    kiln_status status = client_parse(place, &to, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = begin_shipping(&s, context, place, out_result, diag);
    if (status == KILN_OK && path != NULL) {
        status = kiln_pack_open(path, &s.pack, diag);
        status =
            status == KILN_OK ? open_store(&s, host_absolute(context->pool, path), diag) : status;
        cache = s.store;
    }
    status = status == KILN_OK ? find_targets(&s, cache, diag) : status;
    status = status == KILN_OK
                 ? layout_begin(&s.layout, LAYOUT_PACKS, s.layout_path, context->pool, diag)
                 : status;
    for (size_t i = 0; status == KILN_OK && i < s.count; i++) {
        console_progress(context->console, i, s.count, s.targets[i], 0);
        status = ship_target(&s, cache, s.targets[i], diag);
    }
    if (status == KILN_OK && out_result->layers == 0) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "run kiln warm, or give --pack", place,
                               "there is nothing to push: the cache is empty");
    }
    status = status == KILN_OK ? layout_finish(&s.layout, diag) : status;
    console_progress(context->console, s.count, s.count, "uploading", 0);
    status = status == KILN_OK ? client_upload(s.layout_path, &to, context->pool, diag) : status;
    console_progress_end(context->console);
    memcpy(out_result->digest, s.layout.digest, sizeof(out_result->digest));
    end_shipping(&s);
    return status;
}

/* --- down ------------------------------------------------------------------------------------- */

/* Verifies a pack whole, and takes its entries. */
static kiln_status take_pack(shipping *s, const tar_file *file, const char *path, kiln_diag *diag)
{
    kiln_pack *pack = NULL;
    kiln_verify_result found = {.struct_size = sizeof(found)};
    kiln_status status = host_write_file(path, file->data, file->size, diag);
    status = status == KILN_OK ? kiln_pack_open(path, &pack, diag) : status;
    status = status == KILN_OK ? kiln_pack_verify(pack, &found, diag) : status;
    if (status == KILN_E_CORRUPT || status == KILN_MISS ||
        (status == KILN_OK && found.entries_bad > 0)) {
        status = kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", s->place,
                               "the pack %.80s in it is damaged", file->name);
    }
    if (status == KILN_OK) {
        s->result->entries += found.entries_good;
        s->result->bytes += file->size;
        s->result->layers++;
    }
    kiln_pack_close(pack);
    return status;
}

static kiln_status take_layer(shipping *s, size_t index, bool unsigned_too, kiln_diag *diag)
{
    const char *target = NULL;
    char *data = NULL;
    size_t size = 0;
    bool is_signed = false;
    tar_file pack;
    const char *path = pool_format(s->context->pool, "%s/%zu.kpack", s->scratch, index);
    kiln_status status = path != NULL
                             ? layout_read(&s->layout, index, s->place, &target, &data, &size, diag)
                             : diag_no_memory(diag, s->place);
    if (status == KILN_OK) {
        status = seal_open(s->place, data, size, unsigned_too, &pack, &is_signed, diag);
        s->result->is_signed = s->result->is_signed && is_signed;
    }
    status = status == KILN_OK ? take_pack(s, &pack, path, diag) : status;
    free(data);
    return status;
}

typedef kiln_status part_fn(shipping *s, kiln_pack *pack, void *user, kiln_diag *diag);

static kiln_status each_part(shipping *s, part_fn *visit, void *user, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < s->result->layers; i++) {
        kiln_pack *pack = NULL;
        const char *path = pool_format(s->context->pool, "%s/%zu.kpack", s->scratch, i);
        status = path != NULL ? kiln_pack_open(path, &pack, diag) : diag_no_memory(diag, s->place);
        status = status == KILN_OK ? visit(s, pack, user, diag) : status;
        kiln_pack_close(pack);
    }
    return status;
}

static kiln_status extract_part(shipping *s, kiln_pack *pack, void *cache, kiln_diag *diag)
{
    (void)s;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    return kiln_pack_extract(pack, cache, NULL, &copied, diag);
}

static kiln_status move_part(shipping *s, kiln_pack *pack, void *writer, kiln_diag *diag)
{
    moving m = {writer, s->store, diag, 0};
    return kiln_pack_walk(pack, NULL, move_entry, &m, diag);
}

/* One pack of all of them. */
static kiln_status join_parts(shipping *s, const char *path, kiln_diag *diag)
{
    cli_pool *pool = s->context->pool;
    kiln_pack_writer *writer = NULL;
    const char *list = "";
    for (size_t i = 0; list != NULL && i < s->result->layers; i++) {
        list = pool_format(pool, "%s%s%s/%zu.kpack", list, i > 0 ? ":" : "", s->scratch, i);
    }
    kiln_status status = open_store(s, list, diag);
    status = status == KILN_OK ? kiln_pack_writer_create(path, NULL, &writer, diag) : status;
    status = status == KILN_OK ? each_part(s, move_part, writer, diag) : status;
    status = status == KILN_OK ? kiln_pack_writer_finish(writer, NULL, diag) : status;
    kiln_pack_writer_destroy(writer);
    return status;
}

kiln_status ship_pull(const cmd_context *context, const char *place, kiln_cache *cache,
                      const char *path, bool unsigned_too, ship_result *out_result, kiln_diag *diag)
{
    client_place from;
    shipping s;
    kiln_status status = client_parse(place, &from, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = begin_shipping(&s, context, place, out_result, diag);
    out_result->is_signed = true;
    status =
        status == KILN_OK ? client_download(&from, s.layout_path, context->pool, diag) : status;
    status = status == KILN_OK
                 ? layout_open(&s.layout, LAYOUT_PACKS, s.layout_path, place, context->pool, diag)
                 : status;
    for (size_t i = 0; status == KILN_OK && i < layout_count(&s.layout); i++) {
        status = take_layer(&s, i, unsigned_too, diag);
    }
    if (status == KILN_OK) {
        status =
            path != NULL ? join_parts(&s, path, diag) : each_part(&s, extract_part, cache, diag);
    }
    end_shipping(&s);
    return status;
}
