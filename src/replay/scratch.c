/* Writing out the headers of recorded programs. */
#include "replay/scratch.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/publish.h"
#include "sys/random.h"

static const char writing[] = "writing a recording's headers";

/* --- paths ------------------------------------------------------------------------------------ */

static bool is_separator(char c)
{
    return c == '/' || c == '\\';
}

/* Takes the last part away again, but nothing of the tree's own path. */
static void drop_part(kn_strbuf *path, size_t tree)
{
    while (path->length > tree && path->data[path->length - 1] != '/') {
        path->length--;
    }
    if (path->length > tree) {
        path->length--;
    }
    if (path->data != NULL) {
        path->data[path->length] = '\0';
    }
}

/* "a/./b/../c" becomes "TREE/a/c". A drive's colon is left out. */
static void append_parts(kn_strbuf *path, size_t tree, const char *from)
{
    while (*from != '\0' && kn_strbuf_ok(path)) {
        size_t length = 0;
        while (from[length] != '\0' && !is_separator(from[length])) {
            length++;
        }
        if (length == 2 && from[0] == '.' && from[1] == '.') {
            drop_part(path, tree);
        } else if (length > 0 && !(length == 1 && from[0] == '.')) {
            const bool drive = from[length - 1] == ':';
            kn_strbuf_append_char(path, '/');
            kn_strbuf_append(path, from, length - (drive ? 1 : 0));
        }
        from += length + (from[length] != '\0');
    }
}

char *kn_scratch_path(const char *tree, const char *dir, const char *path)
{
    kn_strbuf out;
    kn_strbuf_init(&out, 0);
    kn_strbuf_append_text(&out, tree);
    const size_t length = out.length;
    if (!kn_path_is_absolute(path)) {
        append_parts(&out, length, dir);
    }
    append_parts(&out, length, path);
    if (out.length == 0) {
        kn_strbuf_append_char(&out, '/');
    }
    return kn_strbuf_detach(&out, NULL);
}

bool kn_scratch_has_below(const kn_recorded *program, const char *tree, const char *directory)
{
    const size_t length = strlen(directory);
    bool has = false;
    for (size_t i = 0; !has && i < program->file_count; i++) {
        char *path = program->files[i].system
                         ? NULL
                         : kn_scratch_path(tree, program->dir, program->files[i].path);
        has = path != NULL && strncmp(path, directory, length) == 0 && path[length] == '/';
        free(path);
    }
    return has;
}

/* --- removing --------------------------------------------------------------------------------- */

static void remove_tree(const char *path);

static kiln_status remove_name(void *user, const char *name) // NOLINT(misc-no-recursion)
{
    char *path = kn_path_join((const char *)user, name);
    if (path != NULL) {
        remove_tree(path);
    }
    free(path);
    return KILN_OK;
}

/* Only what was written here is in it, and it is a few levels deep. */
static void remove_tree(const char *path) // NOLINT(misc-no-recursion)
{
    kn_file_facts facts;
    if (kn_file_stat(path, false, &facts, NULL) != KILN_OK) {
        return;
    }
    if (facts.kind == KN_FILE_DIR) {
        kn_ignore(kn_file_list(path, remove_name, (void *)(uintptr_t)path, NULL));
        kn_ignore(kn_file_remove_dir(path));
    } else {
        kn_ignore(kn_file_remove(path, NULL));
    }
}

/* --- writing ---------------------------------------------------------------------------------- */

void kn_scratch_init(kn_scratch *scratch)
{
    scratch->root = NULL;
    scratch->parent = NULL;
    kn_map_init(&scratch->here);
    kn_mutex_init(&scratch->lock);
}

/* Nobody else's directory: its name is made up here, and it is new. */
static kiln_status make_root(kn_scratch *scratch, kiln_diag *diag)
{
    char *base = scratch->parent != NULL ? kn_text_copy(scratch->parent) : kn_paths_temporary();
    kn_strbuf path;
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "%s/kiln-replay-%016llx", base != NULL ? base : "",
                     (unsigned long long)kn_random_u64());
    char *root = kn_strbuf_detach(&path, NULL);
    kiln_status status = base != NULL && root != NULL ? kn_file_make_new_dir(root, diag)
                                                      : kn_no_memory(diag, writing);
    if (status == KILN_OK) {
        scratch->root = root;
    } else {
        free(root);
    }
    free(base);
    return status;
}

/* The name of a tree: what is in it, and where. */
static bool name_tree(const kn_recorded *program, char name[2 * KN_DIGEST_SIZE + 1])
{
    kn_digest digest;
    uint8_t bytes[KN_DIGEST_SIZE];
    if (!kn_digest_init(&digest)) {
        return false;
    }
    kn_digest_begin(&digest);
    kn_digest_update(&digest, program->dir, strlen(program->dir) + 1);
    for (size_t i = 0; i < program->file_count; i++) {
        const kn_recorded_file *file = &program->files[i];
        kn_digest_update(&digest, file->path, strlen(file->path) + 1);
        kn_digest_update(&digest, file->content.digest, sizeof(file->content.digest));
        kn_digest_update(&digest, &file->system, sizeof(file->system));
    }
    const bool done = kn_digest_finish(&digest, bytes);
    kn_digest_deinit(&digest);
    kn_hex_encode(bytes, sizeof bytes, name);
    name[32] = '\0'; /* paths are long enough */
    return done;
}

static kiln_status write_file(const char *recording, const char *tree, const kn_recorded *program,
                              const kn_recorded_file *file, kiln_diag *diag)
{
    kn_publish publish;
    char *text = NULL;
    char *path = kn_scratch_path(tree, program->dir, file->path);
    kiln_status status = path != NULL ? kn_object_get(recording, &file->content, &text, diag)
                                      : kn_no_memory(diag, writing);
    if (status == KILN_OK) {
        status = kn_publish_begin_unnamed(&publish, tree, path, diag);
    }
    if (status == KILN_OK) {
        kn_publish_write(&publish, text, (size_t)file->content.size);
        status = kn_publish_commit(&publish, false, diag);
    }
    free(text);
    free(path);
    return status;
}

/* A file that names "inc/../a.h" needs the directory `inc`, too. */
static kiln_status make_dirs(const char *tree, const kn_recorded *program, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i <= program->include_dir_count; i++) {
        char *path = kn_scratch_path(tree, program->dir, i > 0 ? program->include_dirs[i - 1] : "");
        status = path != NULL ? kn_file_make_dir(path, diag) : kn_no_memory(diag, writing);
        free(path);
    }
    return status;
}

/* All, or nothing: what is there is taken for whole. */
static kiln_status write_files(const char *recording, const char *tree, const kn_recorded *program,
                               kiln_diag *diag)
{
    kiln_status status = kn_file_make_dir(tree, diag);
    for (size_t i = 0; status == KILN_OK && i < program->file_count; i++) {
        if (!program->files[i].system) {
            status = write_file(recording, tree, program, &program->files[i], diag);
        }
    }
    if (status != KILN_OK) {
        remove_tree(tree);
    }
    return status;
}

/* --- looking ---------------------------------------------------------------------------------- */

static bool read_and_compare(const char *path, const kn_object *content)
{
    kn_file_facts facts;
    uint8_t digest[KN_DIGEST_SIZE];
    void *bytes = NULL;
    size_t size = 0;
    bool same =
        kn_file_stat(path, true, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_REGULAR &&
        facts.size == content->size &&
        kn_file_read(path, (size_t)content->size, false, &bytes, &size, NULL, NULL) == KILN_OK;
    same = same && size == content->size && kn_digest_of(bytes, size, digest) &&
           memcmp(digest, content->digest, sizeof(digest)) == 0;
    free(bytes);
    return same;
}

/* Programs share most of their headers: each is read once. */
static bool has_file(kn_scratch *scratch, const kn_recorded *program, const kn_recorded_file *file)
{
    static char yes, no;
    kn_strbuf key;
    char *path = kn_scratch_path("", program->dir, file->path);
    if (path == NULL) {
        return false;
    }
    kn_strbuf_init(&key, 0);
    kn_strbuf_append(&key, (const char *)file->content.digest, sizeof(file->content.digest));
    kn_strbuf_append_text(&key, path);
    const void *known =
        kn_strbuf_ok(&key) ? kn_map_find(&scratch->here, key.data, key.length) : &no;
    if (known == NULL) {
        known = read_and_compare(path, &file->content) ? &yes : &no;
        (void)kn_map_put(&scratch->here, key.data, key.length, (void *)(uintptr_t)known, NULL);
    }
    kn_strbuf_deinit(&key);
    free(path);
    return known == &yes;
}

/* Whether the program could be compiled where it was: with all of its files, in its directory. */
static bool has_files(kn_scratch *scratch, const kn_recorded *program)
{
    kn_file_facts facts;
    size_t found = 0;
    if (program->dir[0] != '\0' &&
        (kn_file_stat(program->dir, true, &facts, NULL) != KILN_OK || facts.kind != KN_FILE_DIR)) {
        return false;
    }
    for (size_t i = 0; i < program->file_count; i++) {
        if (!program->files[i].system) {
            if (!has_file(scratch, program, &program->files[i])) {
                return false;
            }
            found++;
        }
    }
    return found > 0;
}

/* --- filling ---------------------------------------------------------------------------------- */

kiln_status kn_scratch_fill(kn_scratch *scratch, const char *recording, const kn_recorded *program,
                            char **out_tree, kiln_diag *diag)
{
    char name[2 * KN_DIGEST_SIZE + 1];
    kn_file_facts facts;
    kiln_status status = KILN_OK;
    *out_tree = NULL;
    kn_mutex_lock(&scratch->lock);
    if (has_files(scratch, program)) {
        kn_mutex_unlock(&scratch->lock);
        *out_tree = kn_text_copy("");
        return *out_tree != NULL ? KILN_OK : kn_no_memory(diag, writing);
    }
    if (scratch->root == NULL) {
        status = make_root(scratch, diag);
    }
    if (status == KILN_OK && !name_tree(program, name)) {
        status = kn_no_memory(diag, writing);
    }
    char *tree = status == KILN_OK ? kn_path_join(scratch->root, name) : NULL;
    if (status == KILN_OK && tree == NULL) {
        status = kn_no_memory(diag, writing);
    }
    if (status == KILN_OK && kn_file_stat(tree, false, &facts, NULL) != KILN_OK) {
        status = write_files(recording, tree, program, diag);
    }
    if (status == KILN_OK) {
        status = make_dirs(tree, program, diag);
    }
    kn_mutex_unlock(&scratch->lock);
    if (status == KILN_OK) {
        *out_tree = tree;
    } else {
        free(tree);
    }
    return status;
}

void kn_scratch_deinit(kn_scratch *scratch)
{
    if (scratch->root != NULL) {
        remove_tree(scratch->root);
    }
    free(scratch->root);
    scratch->root = NULL;
    kn_map_deinit(&scratch->here);
    kn_mutex_deinit(&scratch->lock);
}
