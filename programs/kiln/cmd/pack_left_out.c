/* An entry is left out of a pack if it is one of kiln's notes, whose stages begin with "kiln.", or
 * if it cannot be read. */
#include "cmd/pack_left_out.h"

#include <string.h>

#include <kiln/unstable/admin.h>

#include "cli/pool.h"

/* The stage of a recipe, which is one of its first lines: stage text "opencl.binary". */
static kiln_status copy_stage(void *user, const kiln_entry_info *info)
{
    static const char field[] = "\nstage text \"";
    char *stage = user;
    const char *at = info->recipe != NULL ? strstr(info->recipe, field) : NULL;
    if (at != NULL) {
        at += sizeof(field) - 1;
        const size_t length = strcspn(at, "\"\n");
        if (length < 64) {
            memcpy(stage, at, length);
            stage[length] = '\0';
        }
    }
    return KILN_OK;
}

bool pack_left_out(kiln_cache *cache, const cli_listing *listing, left_out_list *out_list)
{
    left_out *items = pool_array(listing->pool, listing->count + 1, sizeof(*items));
    *out_list = (left_out_list){items, 0};
    for (size_t i = 0; items != NULL && i < listing->count; i++) {
        kiln_key key;
        char stage[64] = "";
        const char *text = listing->entries[i].key;
        if (kiln_key_parse(text, &key, NULL) != KILN_OK) {
            continue;
        }
        const kiln_status status = kiln_cache_inspect(cache, &key, copy_stage, stage, NULL);
        left_out one = {text, "", NULL};
        if (status != KILN_OK) {
            one.why =
                status == KILN_MISS ? "has been removed meanwhile" : "is damaged: run kiln verify";
        } else if (strncmp(stage, "kiln.", 5) == 0) {
            one.stage = pool_text(listing->pool, stage, strlen(stage));
            one.why = "is a note that kiln makes again on each machine";
        }
        if (one.stage == NULL) {
            return false;
        }
        if (one.why != NULL) {
            items[out_list->count++] = one;
        }
    }
    return items != NULL;
}
