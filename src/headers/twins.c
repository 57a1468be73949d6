/* See twins.h. */
#include "headers/twins.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "key/recipe.h"
#include "sys/file.h"

#define SECOND_NS INT64_C(1000000000)

kiln_status kn_twins_find(kn_header_list *list)
{
    kn_map seen;
    kiln_status status = KILN_OK;
    kn_map_init(&seen);
    list->twins_seen = false;
    for (size_t i = 0; i < list->header_count && status == KILN_OK && !list->twins_seen; i++) {
        kn_header_list_header *row = &list->headers[i];
        if (!kn_place_is_on_disk(row->place.base) || row->is_alias ||
            !(row->is_once || list->imports_seen)) {
            continue;
        }
        list->twins_seen = kn_map_find(&seen, row->digest, sizeof row->digest) != NULL;
        if (!kn_map_put(&seen, row->digest, sizeof row->digest, row, NULL)) {
            status = KILN_E_NOMEM;
        }
    }
    kn_map_deinit(&seen);
    return status;
}

/* What a row's file is now; of kind KN_FILE_OTHER where that cannot be known. */
static kiln_status look_at_row(const kn_include_path *path, const kn_header_list *list, size_t i,
                               kn_file_facts *out_facts)
{
    const kn_header_list_header *row = &list->headers[i];
    char *name = NULL;
    kiln_status status =
        kn_include_path_of(path, &row->place, kn_header_list_name(list, row->place.name), &name);
    if (status != KILN_OK || kn_file_stat(name, true, out_facts, NULL) != KILN_OK) {
        *out_facts = (kn_file_facts){.kind = KN_FILE_OTHER};
    }
    free(name);
    return status == KILN_E_NOMEM ? status : KILN_OK;
}

static bool is_same_file(const kn_file_facts *a, const kn_file_facts *b)
{
    return a->kind == KN_FILE_REGULAR && b->kind == KN_FILE_REGULAR && a->inode == b->inode &&
           a->device == b->device;
}

static bool has_same_time(const kn_file_facts *a, const kn_file_facts *b)
{
    return a->kind == KN_FILE_REGULAR && b->kind == KN_FILE_REGULAR &&
           a->mtime_ns / SECOND_NS == b->mtime_ns / SECOND_NS;
}

/* A twin: its row, the first row that is the same file, and the first with the same time. A row
 * that is neither names itself. */
static void append_twin(const kn_header_list *list, const kn_file_facts *facts, size_t first,
                        size_t i, bool times, kn_strbuf *line)
{
    size_t same = i, timed = i;
    for (size_t j = i; j-- > first;) {
        if (memcmp(list->headers[j].digest, list->headers[i].digest,
                   sizeof list->headers[i].digest) == 0) {
            same = is_same_file(&facts[j], &facts[i]) ? j : same;
            timed = has_same_time(&facts[j], &facts[i]) ? j : timed;
        }
    }
    kn_strbuf_printf(line, "%zu=%zu", i, same);
    if (times) {
        kn_strbuf_printf(line, "~%zu", timed);
    }
    kn_strbuf_append_char(line, ' ');
}

/* Each row from the second of its kind on. */
static kiln_status describe_twins(const kn_include_path *path, const kn_header_list *list,
                                  kn_file_facts *facts, kn_strbuf *line)
{
    const bool times = path->request->source->language == KILN_LANG_C;
    kn_map seen;
    kiln_status status = KILN_OK;
    kn_map_init(&seen);
    for (size_t i = 0; i < list->header_count && status == KILN_OK; i++) {
        kn_header_list_header *row = &list->headers[i];
        const kn_header_list_header *first =
            kn_place_is_on_disk(row->place.base)
                ? kn_map_find(&seen, row->digest, sizeof row->digest)
                : NULL;
        if (first == NULL) {
            if (kn_place_is_on_disk(row->place.base) &&
                !kn_map_put(&seen, row->digest, sizeof row->digest, row, NULL)) {
                status = KILN_E_NOMEM;
            }
            continue;
        }
        const size_t at = (size_t)(first - list->headers);
        status = facts[at].inode == 0 ? look_at_row(path, list, at, &facts[at]) : KILN_OK;
        if (status == KILN_OK) {
            status = look_at_row(path, list, i, &facts[i]);
        }
        append_twin(list, facts, at, i, times, line);
    }
    kn_map_deinit(&seen);
    return status;
}

void kn_twins_add_to(const kn_include_path *path, const kn_header_list *list, kiln_recipe *recipe)
{
    kn_strbuf line;
    if (!list->twins_seen) {
        return;
    }
    kn_strbuf_init(&line, 0);
    kn_file_facts *facts = calloc(list->header_count, sizeof *facts);
    if (facts != NULL && describe_twins(path, list, facts, &line) == KILN_OK) {
        kn_recipe_add_strbuf(recipe, "twins", &line);
    } else {
        kn_recipe_fail(recipe);
    }
    free(facts);
    kn_strbuf_deinit(&line);
}
