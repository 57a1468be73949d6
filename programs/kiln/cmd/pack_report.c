/* Texts and keys are stable: scripts read them. */
#include "cmd/pack_report.h"

#include <inttypes.h>

#include "cli/out.h"

static exit_code exit_of_printed(const cmd_context *context, bool good)
{
    return good ? EXIT_FINE : cmd_no_memory(context);
}

static void set_copied(json_t **root, const kiln_pack_copied *copied)
{
    out_json_set(root, "added", out_json_u64(copied->added));
    out_json_set(root, "present", out_json_u64(copied->present));
    out_json_set(root, "skipped", out_json_u64(copied->skipped));
}

static void set_info(json_t **root, const char *path, const kiln_pack_info *info)
{
    out_json_set(root, "pack", out_json_text(path));
    out_json_set(root, "entries", out_json_u64(info->entries));
    out_json_set(root, "bytes", out_json_u64(info->file_bytes));
    out_json_set(root, "dictionary_bytes", out_json_u64(info->dictionary_bytes));
    out_json_set(root, "created_ns", json_integer(info->created_ns));
    out_json_set(root, "kiln_version", out_json_text(info->kiln_version));
}

/* The first of them by name: the rest are of the same kinds. */
static void print_left_out(const left_out_list *list)
{
    enum { NAMED = 12 };
    for (size_t i = 0; i < list->count && i < NAMED; i++) {
        const left_out *one = &list->items[i];
        out_print(stdout, "  left out: %.16s%s%s %s\n", one->key, *one->stage != '\0' ? ", " : "",
                  one->stage, one->why);
    }
    if (list->count > NAMED) {
        (void)printf("  left out: %zu more (--json lists them)\n", list->count - NAMED);
    }
}

static json_t *left_out_json(const left_out_list *list)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *row = json_object();
        out_json_set(&row, "key", out_json_text(list->items[i].key));
        out_json_set(&row, "stage", out_json_text(list->items[i].stage));
        out_json_set(&row, "why", out_json_text(list->items[i].why));
        out_json_append(&rows, row);
    }
    return rows;
}

exit_code pack_tell_written(const cmd_context *context, const char *path,
                            const kiln_pack_info *info, const kiln_pack_copied *copied,
                            const left_out_list *list, bool json)
{
    if (json) {
        json_t *root = json_object();
        set_info(&root, path, info);
        out_json_set(&root, "payload_bytes", out_json_u64(info->payload_bytes));
        set_copied(&root, copied);
        out_json_set(&root, "left_out", left_out_json(list));
        return exit_of_printed(context, out_json(stdout, root));
    }
    const char *bytes = out_bytes(context->pool, info->file_bytes);
    const char *payload = out_bytes(context->pool, info->payload_bytes);
    if (bytes == NULL || payload == NULL) {
        return cmd_no_memory(context);
    }
    out_print(stdout, "%s: %" PRIu64 " %s, %s (binaries alone: %s)\n", path, info->entries,
              info->entries == 1 ? "entry" : "entries", bytes, payload);
    (void)printf("%" PRIu64 " added, %" PRIu64 " there already, %" PRIu64 " left out\n",
                 copied->added, copied->present, copied->skipped);
    print_left_out(list);
    return EXIT_FINE;
}

exit_code pack_tell_extracted(const cmd_context *context, const kiln_pack_copied *copied, bool json)
{
    if (json) {
        json_t *root = json_object();
        set_copied(&root, copied);
        return exit_of_printed(context, out_json(stdout, root));
    }
    (void)printf("%" PRIu64 " added, %" PRIu64 " there already, %" PRIu64 " left out\n",
                 copied->added, copied->present, copied->skipped);
    return EXIT_FINE;
}

/* --- list ------------------------------------------------------------------------------------- */

typedef struct list_visit {
    const cmd_context *context;
    bool full;
    out_table *table; /* NULL: JSON */
    json_t *rows;
} list_visit;

static kiln_status list_row(const list_visit *visit, const kiln_entry_info *info, const char *key)
{
    cli_pool *pool = visit->context->pool;
    const char *cells[] = {pool_format(pool, "%.*s", visit->full ? 64 : 16, key),
                           out_clean(pool, info->target),
                           out_bytes(pool, info->payload_size),
                           out_bytes(pool, info->stored_size),
                           out_ms(pool, info->compile_ns),
                           info->kiln_version};
    out_table_add(visit->table, cells);
    return KILN_OK;
}

static kiln_status list_one(void *user, const kiln_entry_info *info)
{
    list_visit *visit = user;
    char key[KILN_KEY_TEXT_SIZE];
    kiln_key_format(&info->key, key);
    if (visit->table != NULL) {
        return list_row(visit, info, key);
    }
    json_t *row = json_object();
    out_json_set(&row, "key", out_json_text(key));
    out_json_set(&row, "target", out_json_text(info->target));
    out_json_set(&row, "payload_bytes", out_json_u64(info->payload_size));
    out_json_set(&row, "stored_bytes", out_json_u64(info->stored_size));
    out_json_set(&row, "facts_bytes", out_json_u64(info->facts_size));
    out_json_set(&row, "created_ns", json_integer(info->created_ns));
    out_json_set(&row, "compile_ms", out_json_ms(info->compile_ns));
    out_json_set(&row, "kiln_version", out_json_text(info->kiln_version));
    out_json_set(&row, "recipe", out_json_text(info->recipe));
    out_json_append(&visit->rows, row);
    return KILN_OK;
}

static bool print_list(const list_visit *visit, const char *path, const kiln_pack_info *info)
{
    if (visit->table == NULL) {
        json_t *root = json_object();
        set_info(&root, path, info);
        out_json_set(&root, "count", out_json_u64(info->entries));
        out_json_set(&root, "entries", visit->rows); /* in the number's place */
        return out_json(stdout, root);
    }
    const char *bytes = out_bytes(visit->context->pool, info->file_bytes);
    const char *dictionary = out_bytes(visit->context->pool, info->dictionary_bytes);
    if (bytes == NULL || dictionary == NULL ||
        (visit->table->first != NULL && !out_table_print(visit->table, stdout))) {
        return false;
    }
    (void)printf("%" PRIu64 " %s, %s, %s of it dictionary\n", info->entries,
                 info->entries == 1 ? "entry" : "entries", bytes, dictionary);
    return true;
}

exit_code pack_tell_list(const cmd_context *context, const char *path, kiln_pack *pack,
                         const char *target, bool full, bool json)
{
    kiln_diag diag = KILN_DIAG_INIT;
    out_table table = out_table_make(context->pool, "key|target|>binary|>size|>compile ms|kiln");
    list_visit visit = {context, full, json ? NULL : &table, json ? json_array() : NULL};
    if (kiln_pack_walk(pack, target, list_one, &visit, &diag) != KILN_OK) {
        json_decref(visit.rows);
        return cmd_fail_as(context, EXIT_DAMAGE, &diag);
    }
    return exit_of_printed(context, print_list(&visit, path, kiln_pack_get_info(pack)));
}
