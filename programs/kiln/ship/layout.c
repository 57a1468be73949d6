/* Blobs by their digests, and JSON that names them. */
#include "ship/layout.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/binding.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/out.h"
#include "ship/scratch.h"

#define BLOB_MOST ((size_t)4 << 30)
#define JSON_MOST ((size_t)4 << 20)

static const char manifest_type[] = "application/vnd.oci.image.manifest.v1+json";
static const char config_type[] = "application/vnd.oci.image.config.v1+json";
static const char layer_type[] = "application/vnd.oci.image.layer.v1.tar";
/* Annotations, which have the version of all this. */
static const char *const marks[] = {
    [LAYOUT_PACKS] = "dev.kiln.pack", [LAYOUT_RECORDING] = "dev.kiln.recording"};
static const char *const nouns[] = {[LAYOUT_PACKS] = "pack", [LAYOUT_RECORDING] = "recording"};
static const char target_mark[] = "dev.kiln.target";

#if defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#define ARCHITECTURE "amd64"
#endif

/* --- blobs ------------------------------------------------------------------------------------ */

/* A recipe has the SHA-256 of each field of bytes in its text: the library needs no other way to
 * give one away. */
static kiln_status digest_blob(const void *data, size_t size, char out_text[LAYOUT_DIGEST],
                               kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    kiln_status status = kiln_recipe_create("oci.blob", 1, &recipe, diag);
    if (status == KILN_OK) {
        kiln_recipe_add_bytes(recipe, "content", data, size);
        status = kiln_recipe_status(recipe, diag);
    }
    const char *text = status == KILN_OK ? strstr(kiln_recipe_text(recipe), "\ncontent ") : NULL;
    const char *digest = text != NULL ? strrchr(text, ' ') : NULL;
    if (status == KILN_OK && (digest == NULL || strspn(digest + 1, "0123456789abcdef") != 64)) {
        status = kiln_diag_set(diag, KILN_E_INTERNAL, NULL, "sha256", "a recipe has no digest");
    }
    if (status == KILN_OK) {
        (void)snprintf(out_text, LAYOUT_DIGEST, "sha256:%.64s", digest + 1);
    }
    kiln_recipe_destroy(recipe);
    return status;
}

static kiln_status store_blob(const ship_layout *layout, const void *data, size_t size,
                              char out_digest[LAYOUT_DIGEST], kiln_diag *diag)
{
    kiln_status status = digest_blob(data, size, out_digest, diag);
    if (status != KILN_OK) {
        return status;
    }
    const char *path =
        pool_format(layout->pool, "%s/blobs/sha256/%s", layout->path, out_digest + 7);
    return path != NULL ? host_write_file(path, data, size, diag) : diag_no_memory(diag, "a blob");
}

/* Reads the blob of a descriptor, and checks its digest. */
static kiln_status read_blob(const ship_layout *layout, const json_t *descriptor, const char *what,
                             size_t most, char **out_data, size_t *out_size, kiln_diag *diag)
{
    const char *digest = json_string_value(json_object_get(descriptor, "digest"));
    char found[LAYOUT_DIGEST];
    *out_data = NULL;
    if (digest == NULL || strlen(digest) != LAYOUT_DIGEST - 1 ||
        strncmp(digest, "sha256:", 7) != 0 || strspn(digest + 7, "0123456789abcdef") != 64) {
        return kiln_diag_set(diag, KILN_E_CORRUPT, NULL, what, "names a blob without a SHA-256");
    }
    const char *path = pool_format(layout->pool, "%s/blobs/sha256/%s", layout->path, digest + 7);
    if (path == NULL) {
        return diag_no_memory(diag, what);
    }
    kiln_status status = host_read_file(path, most, out_data, out_size, diag);
    status = status == KILN_OK ? digest_blob(*out_data, *out_size, found, diag) : status;
    if (status == KILN_OK && strcmp(found, digest) != 0) {
        status = kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", what,
                               "is damaged: a digest does not match");
    }
    if (status != KILN_OK) {
        free(*out_data);
        *out_data = NULL;
    }
    return status;
}

static json_t *describe_blob(const char *type, const char *digest, size_t size)
{
    json_t *row = json_object();
    out_json_set(&row, "mediaType", out_json_text(type));
    out_json_set(&row, "digest", out_json_text(digest));
    out_json_set(&row, "size", out_json_u64(size));
    return row;
}

/* Writes JSON as a blob, or as a file (`name` not NULL), and frees it. */
static kiln_status write_json(const ship_layout *layout, json_t *root, const char *name,
                              char out_digest[LAYOUT_DIGEST], size_t *out_size, kiln_diag *diag)
{
    char *text = root != NULL ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    if (text == NULL) {
        return diag_no_memory(diag, "making an image");
    }
    kiln_status status;
    *out_size = strlen(text);
    if (name == NULL) {
        status = store_blob(layout, text, *out_size, out_digest, diag);
    } else {
        const char *path = pool_format(layout->pool, "%s/%s", layout->path, name);
        status = path != NULL ? host_write_file(path, text, *out_size, diag)
                              : diag_no_memory(diag, name);
    }
    free(text);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

kiln_status layout_begin(ship_layout *layout, layout_kind kind, const char *path, cli_pool *pool,
                         kiln_diag *diag)
{
    const char *blobs = pool_format(pool, "%s/blobs", path);
    const char *digests = pool_format(pool, "%s/blobs/sha256", path);
    *layout = (ship_layout){
        .pool = pool, .kind = kind, .path = path, .layers = json_array(), .diffs = json_array()};
    if (blobs == NULL || digests == NULL || layout->layers == NULL || layout->diffs == NULL) {
        return diag_no_memory(diag, "making an image");
    }
    kiln_status status = scratch_add(blobs, diag);
    return status == KILN_OK ? scratch_add(digests, diag) : status;
}

kiln_status layout_add(ship_layout *layout, const char *target, const void *data, size_t size,
                       kiln_diag *diag)
{
    char digest[LAYOUT_DIGEST];
    kiln_status status = store_blob(layout, data, size, digest, diag);
    if (status == KILN_OK) {
        json_t *row = describe_blob(layer_type, digest, size);
        json_t *notes = json_object();
        out_json_set(&notes, target_mark, out_json_text(target));
        out_json_set(&row, "annotations", notes);
        out_json_append(&layout->layers, row);
        out_json_append(&layout->diffs, out_json_text(digest));
    }
    return status;
}

static json_t *make_config(ship_layout *layout)
{
    json_t *root = json_object();
    json_t *files = json_object();
    out_json_set(&files, "type", out_json_text("layers"));
    out_json_set(&files, "diff_ids", layout->diffs);
    layout->diffs = NULL;
    out_json_set(&root, "architecture", out_json_text(ARCHITECTURE));
    out_json_set(&root, "os", out_json_text("linux"));
    out_json_set(&root, "config", json_object());
    out_json_set(&root, "rootfs", files);
    return root;
}

static json_t *make_manifest(ship_layout *layout, json_t *config)
{
    json_t *root = json_object();
    json_t *notes = json_object();
    out_json_set(&notes, marks[layout->kind], out_json_text("1"));
    out_json_set(&root, "schemaVersion", out_json_u64(2));
    out_json_set(&root, "mediaType", out_json_text(manifest_type));
    out_json_set(&root, "config", config);
    out_json_set(&root, "layers", layout->layers);
    layout->layers = NULL;
    out_json_set(&root, "annotations", notes);
    return root;
}

kiln_status layout_finish(ship_layout *layout, kiln_diag *diag)
{
    char digest[LAYOUT_DIGEST];
    size_t size = 0;
    kiln_status status = write_json(layout, make_config(layout), NULL, digest, &size, diag);
    if (status == KILN_OK) {
        json_t *config = describe_blob(config_type, digest, size);
        status = write_json(layout, make_manifest(layout, config), NULL, digest, &size, diag);
    }
    if (status == KILN_OK) {
        json_t *root = json_object();
        json_t *list = json_array();
        json_t *row = describe_blob(manifest_type, digest, size);
        memcpy(layout->digest, digest, sizeof(layout->digest));
        json_t *notes = json_object();
        out_json_set(&notes, "org.opencontainers.image.ref.name", out_json_text("kiln"));
        out_json_set(&row, "annotations", notes);
        out_json_append(&list, row);
        out_json_set(&root, "schemaVersion", out_json_u64(2));
        out_json_set(&root, "manifests", list);
        status = write_json(layout, root, "index.json", digest, &size, diag);
    }
    if (status == KILN_OK) {
        json_t *root = json_object();
        out_json_set(&root, "imageLayoutVersion", out_json_text("1.0.0"));
        status = write_json(layout, root, "oci-layout", digest, &size, diag);
    }
    return status;
}

void layout_deinit(ship_layout *layout)
{
    json_decref(layout->layers);
    json_decref(layout->diffs);
    layout->layers = NULL;
    layout->diffs = NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

static kiln_status refuse_image(const ship_layout *layout, const char *what, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, "give what `kiln push oci://` pushed", what,
                         "is not a %s of kiln", nouns[layout->kind]);
}

/* The other kind is a matter of how it is asked for. */
static kiln_status refuse_kind(const ship_layout *layout, const json_t *notes, const char *what,
                               kiln_diag *diag)
{
    const layout_kind other = layout->kind == LAYOUT_PACKS ? LAYOUT_RECORDING : LAYOUT_PACKS;
    if (json_object_get(notes, marks[other]) == NULL) {
        return refuse_image(layout, what, diag);
    }
    return kiln_diag_set(diag, KILN_E_INVALID,
                         other == LAYOUT_RECORDING ? "name a directory for it after the place"
                                                   : "name no directory; --pack FILE writes one",
                         what, "is a %s of kiln", nouns[other]);
}

static json_t *load_index(const ship_layout *layout)
{
    char *text = NULL;
    size_t size = 0;
    const char *path = pool_format(layout->pool, "%s/index.json", layout->path);
    json_t *root = NULL;
    if (path != NULL && host_read_file(path, JSON_MOST, &text, &size, NULL) == KILN_OK) {
        root = json_loadb(text, size, 0, NULL);
    }
    free(text);
    return root;
}

kiln_status layout_open(ship_layout *layout, layout_kind kind, const char *path, const char *what,
                        cli_pool *pool, kiln_diag *diag)
{
    char *text = NULL;
    size_t size = 0;
    *layout = (ship_layout){.pool = pool, .kind = kind, .path = path};
    json_t *index = load_index(layout);
    const json_t *first = json_array_get(json_object_get(index, "manifests"), 0);
    kiln_status status = first == NULL
                             ? refuse_image(layout, what, diag)
                             : read_blob(layout, first, what, JSON_MOST, &text, &size, diag);
    json_t *root = status == KILN_OK ? json_loadb(text, size, 0, NULL) : NULL;
    const json_t *notes = json_object_get(root, "annotations");
    const char *version = json_string_value(json_object_get(notes, marks[kind]));
    json_t *layers = json_object_get(root, "layers");
    if (status == KILN_OK && (version == NULL || json_array_size(layers) == 0)) {
        status = refuse_kind(layout, notes, what, diag);
    } else if (status == KILN_OK && strcmp(version, "1") != 0) {
        status =
            kiln_diag_set(diag, KILN_E_UNSUPPORTED, "take a newer kiln", what,
                          "is a %s in a form (%.20s) that a newer kiln made", nouns[kind], version);
    }
    if (status == KILN_OK) {
        layout->layers = json_incref(layers);
    }
    free(text);
    json_decref(root);
    json_decref(index);
    return status;
}

size_t layout_count(const ship_layout *layout)
{
    return json_array_size(layout->layers);
}

kiln_status layout_read(const ship_layout *layout, size_t index, const char *what,
                        const char **out_target, char **out_data, size_t *out_size, kiln_diag *diag)
{
    const json_t *row = json_array_get(layout->layers, index);
    const char *type = json_string_value(json_object_get(row, "mediaType"));
    *out_target =
        json_string_value(json_object_get(json_object_get(row, "annotations"), target_mark));
    if (type == NULL || strcmp(type, layer_type) != 0 || *out_target == NULL) {
        *out_data = NULL;
        return refuse_image(layout, what, diag);
    }
    return read_blob(layout, row, what, BLOB_MOST, out_data, out_size, diag);
}
