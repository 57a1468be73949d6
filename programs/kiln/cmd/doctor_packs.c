/* A pack that cannot be used costs compiles and no error: this is where it is looked for. */
#include "cmd/doctor_packs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/host.h"
#include "cli/out.h"

static bool examine_pack(doctor_pack *one, cli_pool *pool)
{
    kiln_pack *pack = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    if (!host_is_absolute(one->path)) {
        one->trouble = "the path is not absolute: it is left out";
        return true;
    }
    const kiln_status status = kiln_pack_open(one->path, &pack, &diag);
    if (status == KILN_OK) {
        one->entries = kiln_pack_get_info(pack)->entries;
        one->bytes = kiln_pack_get_info(pack)->file_bytes;
        kiln_pack_close(pack);
    } else if (status == KILN_MISS) {
        one->trouble = "there is no such file";
    } else {
        one->trouble = pool_text(pool, diag.why, strlen(diag.why));
    }
    kiln_diag_clear(&diag);
    return status == KILN_OK || one->trouble != NULL;
}

bool doctor_packs_examine(const char *list, cli_pool *pool, doctor_packs *out_packs)
{
    size_t room = 1;
    *out_packs = (doctor_packs){NULL, 0};
    for (const char *at = list; at != NULL && *at != '\0'; at++) {
        room += *at == host_list_separator;
    }
    out_packs->items = pool_array(pool, room, sizeof(*out_packs->items));
    if (out_packs->items == NULL) {
        return false;
    }
    for (const char *at = list; at != NULL && *at != '\0';) {
        const char *end = strchr(at, host_list_separator);
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        doctor_pack *one = &out_packs->items[out_packs->count];
        *one = (doctor_pack){.path = pool_text(pool, at, length)};
        if (one->path == NULL || (length > 0 && !examine_pack(one, pool))) {
            return false;
        }
        out_packs->count += length > 0;
        at += length + (end != NULL);
    }
    return true;
}

bool doctor_packs_print(const doctor_packs *packs, cli_pool *pool)
{
    if (packs->count > 0) {
        (void)puts("\nPacks");
    }
    for (size_t i = 0; i < packs->count; i++) {
        const doctor_pack *one = &packs->items[i];
        const char *bytes = out_bytes(pool, one->bytes);
        if (bytes == NULL) {
            return false;
        }
        if (one->trouble != NULL) {
            out_print(stdout, "  unusable  %s: %s\n", one->path, one->trouble);
        } else {
            out_print(stdout, "  in use    %s: %" PRIu64 " %s, %s\n", one->path, one->entries,
                      one->entries == 1 ? "entry" : "entries", bytes);
        }
    }
    return true;
}

json_t *doctor_packs_json(const doctor_packs *packs)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < packs->count; i++) {
        const doctor_pack *one = &packs->items[i];
        json_t *row = json_object();
        out_json_set(&row, "path", out_json_text(one->path));
        out_json_set(&row, "usable", json_boolean(one->trouble == NULL));
        out_json_set(&row, "why", out_json_text(one->trouble != NULL ? one->trouble : ""));
        out_json_set(&row, "entries", out_json_u64(one->entries));
        out_json_set(&row, "bytes", out_json_u64(one->bytes));
        out_json_append(&rows, row);
    }
    return rows;
}
