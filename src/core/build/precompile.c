/* See precompile.h. The directory is <root>/pch, next to the entries; the backend bounds and sweeps
 * it.
 */
#include "core/build/precompile.h"

#include <stdlib.h>
#include <string.h>

#include "base/stages.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "store/cache/cache.h"
#include "sys/file.h"

/* --- the leading directives ------------------------------------------------------------------- */

/* Past a comment at `at`, or `at` itself. */
static size_t skip_comment(const char *text, size_t length, size_t at)
{
    if (at + 1 >= length || text[at] != '/') {
        return at;
    }
    if (text[at + 1] == '/') {
        while (at < length && text[at] != '\n') {
            at += text[at] == '\\' && at + 1 < length ? 2 : 1;
        }
        return at;
    }
    if (text[at + 1] != '*') {
        return at;
    }
    for (at += 2; at + 1 < length; at++) {
        if (text[at] == '*' && text[at + 1] == '/') {
            return at + 2;
        }
    }
    return length;
}

/* Past a directive's line, its continued lines and the comments that begin on it. */
static size_t skip_directive(const char *text, size_t length, size_t at)
{
    while (at < length && text[at] != '\n') {
        size_t past = skip_comment(text, length, at);
        if (past != at) {
            at = past;
        } else {
            at += text[at] == '\\' && at + 1 < length ? 2 : 1;
        }
    }
    return at;
}

/* Bytes of a C-like text before its first token that is not a directive's. */
static size_t measure_directives(const char *text, size_t length)
{
    size_t at = 0;
    size_t end = 0; /* after the last whole directive */
    while (at < length) {
        if (strchr(" \t\r\n\v\f", text[at]) != NULL && text[at] != '\0') {
            at++;
        } else if (text[at] == '#') {
            at = skip_directive(text, length, at);
            at += at < length;
            end = at < length ? at : length;
        } else {
            size_t past = skip_comment(text, length, at);
            if (past == at) {
                break;
            }
            at = past;
        }
    }
    return end;
}

/* --- what it is made of ----------------------------------------------------------------------- */

static kiln_status add_file(void *user, const char *path, const kn_stamp *stamp)
{
    kn_precompile *precompile = user;
    size_t *count = &precompile->view.file_count;
    if (*count == precompile->capacity) {
        size_t wanted = *count == 0 ? 256 : *count * 2;
        kiln_precompile_file *grown =
            realloc(precompile->files, wanted * sizeof(*precompile->files));
        if (grown == NULL) {
            return KILN_E_NOMEM;
        }
        precompile->files = grown;
        precompile->capacity = wanted;
    }
    kiln_precompile_file file = {.path = kn_text_copy(path), .size = UINT64_MAX};
    if (file.path == NULL) {
        return KILN_E_NOMEM;
    }
    if (stamp != NULL) {
        file.size = stamp->size;
        file.mtime_ns = stamp->mtime_ns;
        file.ctime_ns = stamp->ctime_ns;
        file.inode = stamp->inode;
        precompile->view.header_count++;
        precompile->view.header_bytes += stamp->size;
    }
    precompile->files[(*count)++] = file;
    return KILN_OK;
}

/* The digest of all that decides what the headers compile to. */
static kiln_status find_name(const kn_build *build, const kn_stage_run *run,
                             const kiln_stage *stage, size_t leading, char name[KILN_KEY_TEXT_SIZE])
{
    kiln_source begin = build->source.source;
    kiln_recipe *recipe = NULL;
    begin.length = leading;
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_precompile), &recipe, NULL);
    if (status == KILN_OK) {
        kiln_recipe_set_target(recipe, build->target->name);
        kn_source_add_to(&begin, recipe);
        status = kn_target_add_to(build->driver, stage, build->target, recipe, NULL);
    }
    if (status == KILN_OK) {
        status = kn_closure_add_to(run->closure, recipe, NULL);
    }
    if (status == KILN_OK) {
        kiln_key key = kiln_recipe_key(recipe);
        kiln_key_format(&key, name);
    }
    kiln_recipe_destroy(recipe);
    return status;
}

static bool is_wanted(const kn_build *build, const kn_stage_run *run, const kiln_stage *stage)
{
    return kn_instance_can(&build->driver->in, KILN_CAP_PRECOMPILE) && stage->takes_source &&
           run->closure != NULL && !run->closure->bypass && run->closure->headers > 0 &&
           build->source.source.header_count == 0 && build->cache != NULL &&
           kiln_cache_root(build->cache)[0] != '\0' && kn_cache_writes(build->cache);
}

void kn_precompile_init(kn_precompile *precompile, const kn_build *build, const kn_stage_run *run,
                        const kiln_stage *stage)
{
    memset(precompile, 0, sizeof(*precompile));
    if (!is_wanted(build, run, stage)) {
        return;
    }
    char name[KILN_KEY_TEXT_SIZE];
    const kiln_source *source = &build->source.source;
    size_t leading = measure_directives(source->text, source->length);
    if (leading == 0 || kn_closure_places(run->closure, add_file, precompile) != KILN_OK ||
        find_name(build, run, stage, leading, name) != KILN_OK) {
        return;
    }
    char *dir = kn_path_join(kiln_cache_root(build->cache), "pch");
    if (dir != NULL && kn_file_make_dir(dir, NULL) == KILN_OK) {
        precompile->path = kn_path_join(dir, name);
    }
    free(dir);
    precompile->view.path = precompile->path;
    precompile->view.leading = leading;
    precompile->view.files = precompile->files;
}

void kn_precompile_deinit(kn_precompile *precompile)
{
    for (size_t i = 0; i < precompile->view.file_count; i++) {
        free((void *)(uintptr_t)precompile->files[i].path);
    }
    free(precompile->files);
    free(precompile->path);
    memset(precompile, 0, sizeof(*precompile));
}
