/* What a recording's directory has goes up as it is: texts are packed already. POSIX. */
#include "ship/ship_recording.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kiln/unstable/recording.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "ship/client.h"
#include "ship/layout.h"
#include "ship/scratch.h"
#include "ship/seal.h"
#include "ship/tar.h"

#define FILE_MOST ((size_t)128 << 20)

enum { DIGITS = 64 };

static const char marker[] = "kiln-recording";
static const char archive[] = "recording.tar";
static const char *const kinds[] = {"objects", "programs", "uses"};

/* "objects/ab/ab12..." or the marker, and nothing that leads elsewhere. */
static bool is_member(const char *name)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t length = strlen(kinds[i]);
        const char *digits = name + length + 4;
        if (strncmp(name, kinds[i], length) == 0 && name[length] == '/' &&
            strspn(name + length + 1, hex) == 2 && name[length + 3] == '/' &&
            strspn(digits, hex) == DIGITS && digits[DIGITS] == '\0' &&
            strncmp(digits, name + length + 1, 2) == 0) {
            return true;
        }
    }
    return strcmp(name, marker) == 0;
}

/* --- up --------------------------------------------------------------------------------------- */

typedef struct gathered {
    cli_pool *pool;
    const char *root;
    tar_file *files; /* their data is malloc'ed */
    size_t count, capacity;
} gathered;

static kiln_status gather_file(gathered *g, const char *name, kiln_diag *diag)
{
    char *data = NULL;
    size_t size = 0;
    if (g->count == g->capacity) {
        const size_t capacity = g->capacity == 0 ? 256 : 2 * g->capacity;
        tar_file *grown = realloc(g->files, capacity * sizeof(*grown));
        if (grown == NULL) {
            return diag_no_memory(diag, g->root);
        }
        g->files = grown;
        g->capacity = capacity;
    }
    const char *path = pool_format(g->pool, "%s/%s", g->root, name);
    kiln_status status = path != NULL ? host_read_file(path, FILE_MOST, &data, &size, diag)
                                      : diag_no_memory(diag, g->root);
    if (status == KILN_OK) {
        g->files[g->count++] = (tar_file){name, data, size};
    }
    return status;
}

/* One of the 256 directories of a kind, in order of names: equal recordings are equal images. */
static kiln_status gather_directory(gathered *g, const char *kind, unsigned number, kiln_diag *diag)
{
    struct dirent **rows = NULL;
    kiln_status status = KILN_OK;
    const char *path = pool_format(g->pool, "%s/%s/%02x", g->root, kind, number);
    const int count = path != NULL ? scandir(path, &rows, NULL, alphasort) : -1;
    if (count < 0) {
        return path == NULL ? diag_no_memory(diag, g->root)
               : errno == ENOENT
                   ? KILN_OK
                   : kiln_diag_set(diag, KILN_E_IO, NULL, path, "%s", strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        const char *name = pool_format(g->pool, "%s/%02x/%s", kind, number, rows[i]->d_name);
        if (status == KILN_OK && name == NULL) {
            status = diag_no_memory(diag, g->root);
        } else if (status == KILN_OK && is_member(name)) {
            status = gather_file(g, name, diag);
        }
        free(rows[i]);
    }
    free(rows);
    return status;
}

static kiln_status gather_recording(gathered *g, kiln_diag *diag)
{
    kiln_status status = gather_file(g, marker, diag);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (unsigned number = 0; status == KILN_OK && number < 256; number++) {
            status = gather_directory(g, kinds[i], number, diag);
        }
    }
    return status;
}

static void drop_gathered(gathered *g)
{
    for (size_t i = 0; i < g->count; i++) {
        free((void *)(uintptr_t)g->files[i].data);
    }
    free(g->files);
}

static kiln_status add_recording(ship_layout *layout, gathered *g, ship_result *result,
                                 kiln_diag *diag)
{
    void *inner = NULL, *layer = NULL;
    size_t inner_size = 0, layer_size = 0;
    kiln_status status = gather_recording(g, diag);
    status = status == KILN_OK ? tar_make(g->files, g->count, &inner, &inner_size, diag) : status;
    const tar_file file = {archive, inner, inner_size};
    if (status == KILN_OK) {
        status = seal_make(g->pool, &file, &layer, &layer_size, &result->is_signed, diag);
    }
    if (status == KILN_OK) {
        status = layout_add(layout, "recording", layer, layer_size, diag);
        result->bytes = inner_size;
        result->layers = 1;
    }
    free(layer);
    free(inner);
    return status;
}

/* Whether it is one, and how many uses it has. */
static kiln_status count_uses(const char *path, uint64_t *out_count, kiln_diag *diag)
{
    const char *what = "";
    kiln_recording *recording = NULL;
    kiln_status status = kiln_recording_open(path, &recording, diag);
    if (status == KILN_OK && kiln_recording_damage(recording, &what) > 0) {
        status = kiln_diag_set(diag, KILN_E_CORRUPT, "remove what is damaged, or record it again",
                               path, "%s", what);
    }
    *out_count = status == KILN_OK ? kiln_recording_count(recording) : 0;
    kiln_recording_close(recording);
    return status;
}

kiln_status ship_push_recording(const cmd_context *context, const char *place, const char *path,
                                ship_result *out_result, kiln_diag *diag)
{
    cli_pool *pool = context->pool;
    client_place to;
    ship_layout layout = {.pool = pool};
    gathered g = {.pool = pool, .root = path};
    const char *scratch = NULL, *image = NULL;
    memset(out_result, 0, sizeof(*out_result));
    kiln_status status = client_parse(place, &to, diag);
    status = status == KILN_OK ? count_uses(path, &out_result->entries, diag) : status;
    status = status == KILN_OK ? scratch_make(pool, &scratch, diag) : status;
    if (status == KILN_OK) {
        image = pool_format(pool, "%s/image", scratch);
        status = image != NULL ? scratch_add(image, diag) : diag_no_memory(diag, place);
    }
    if (status == KILN_OK) {
        status = layout_begin(&layout, LAYOUT_RECORDING, image, pool, diag);
    }
    status = status == KILN_OK ? add_recording(&layout, &g, out_result, diag) : status;
    status = status == KILN_OK ? layout_finish(&layout, diag) : status;
    status = status == KILN_OK ? client_upload(image, &to, pool, diag) : status;
    memcpy(out_result->digest, layout.digest, sizeof(out_result->digest));
    drop_gathered(&g);
    layout_deinit(&layout);
    scratch_remove(scratch);
    return status;
}

/* --- down ------------------------------------------------------------------------------------- */

static kiln_status make_parents(cli_pool *pool, const char *root, const char *name, kiln_diag *diag)
{
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        const char *path = pool_format(pool, "%s/%.*s", root, (int)(slash - name), name);
        if (path == NULL) {
            return diag_no_memory(diag, root);
        }
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            return kiln_diag_set(diag, KILN_E_IO, NULL, path, "%s", strerror(errno));
        }
    }
    return KILN_OK;
}

static kiln_status unpack_recording(cli_pool *pool, const tar_file *inner, const char *place,
                                    const char *root, kiln_diag *diag)
{
    size_t at = 0;
    tar_file file;
    kiln_status status = KILN_OK;
    while (status == KILN_OK &&
           (status = tar_next(inner->data, inner->size, &at, &file)) == KILN_OK) {
        const char *path = pool_format(pool, "%s/%s", root, file.name);
        if (!is_member(file.name)) {
            return kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", place,
                                 "has a file that no recording has");
        }
        if (path == NULL) {
            return diag_no_memory(diag, place);
        }
        status = make_parents(pool, root, file.name, diag);
        status = status == KILN_OK ? host_write_file(path, file.data, file.size, diag) : status;
        if (status == KILN_OK && chmod(path, 0600) != 0) {
            status = kiln_diag_set(diag, KILN_E_IO, NULL, path, "%s", strerror(errno));
        }
    }
    return status == KILN_MISS        ? KILN_OK
           : status == KILN_E_CORRUPT ? kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", place,
                                                      "its archive is damaged")
                                      : status;
}

/* Under another name until it is whole. */
static kiln_status place_recording(cli_pool *pool, const tar_file *inner, const char *place,
                                   const char *path, uint64_t *out_uses, kiln_diag *diag)
{
    char *part = pool_format(pool, "%s.part-XXXXXX", path);
    if (part == NULL) {
        return diag_no_memory(diag, place);
    }
    if (mkdtemp(part) == NULL) {
        return kiln_diag_set(diag, KILN_E_IO, NULL, path, "%s", strerror(errno));
    }
    kiln_status status = unpack_recording(pool, inner, place, part, diag);
    status = status == KILN_OK ? count_uses(part, out_uses, diag) : status;
    if (status == KILN_OK && rename(part, path) != 0) {
        status = kiln_diag_set(diag, KILN_E_IO, NULL, path, "%s", strerror(errno));
    }
    if (status != KILN_OK) {
        scratch_remove(part);
    }
    return status;
}

static kiln_status take_recording(const cmd_context *context, const ship_layout *layout,
                                  const char *place, const char *path, bool unsigned_too,
                                  ship_result *result, kiln_diag *diag)
{
    const char *target = NULL;
    char *data = NULL;
    size_t size = 0;
    tar_file inner;
    kiln_status status = layout_read(layout, 0, place, &target, &data, &size, diag);
    if (status == KILN_OK) {
        status = seal_open(place, data, size, unsigned_too, &inner, &result->is_signed, diag);
    }
    if (status == KILN_OK) {
        result->bytes = inner.size;
        result->layers = 1;
        status = place_recording(context->pool, &inner, place, path, &result->entries, diag);
    }
    free(data);
    return status;
}

kiln_status ship_pull_recording(const cmd_context *context, const char *place, const char *path,
                                bool unsigned_too, ship_result *out_result, kiln_diag *diag)
{
    cli_pool *pool = context->pool;
    client_place from;
    ship_layout layout = {.pool = pool};
    const char *scratch = NULL, *image = NULL;
    memset(out_result, 0, sizeof(*out_result));
    kiln_status status = client_parse(place, &from, diag);
    if (status == KILN_OK && host_exists(path)) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "name a new directory", path,
                               "it is there already");
    }
    status = status == KILN_OK ? scratch_make(pool, &scratch, diag) : status;
    if (status == KILN_OK) {
        image = pool_format(pool, "%s/image", scratch);
        status = image != NULL ? scratch_add(image, diag) : diag_no_memory(diag, place);
    }
    status = status == KILN_OK ? client_download(&from, image, pool, diag) : status;
    if (status == KILN_OK) {
        status = layout_open(&layout, LAYOUT_RECORDING, image, place, pool, diag);
    }
    if (status == KILN_OK) {
        status = take_recording(context, &layout, place, path, unsigned_too, out_result, diag);
    }
    layout_deinit(&layout);
    scratch_remove(scratch);
    return status;
}
