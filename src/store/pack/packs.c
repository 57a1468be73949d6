/* Looks through packs in their order. This file must not know what else a cache has. */
#include "store/pack/packs.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "sys/file.h"

static kiln_status open_one_pack(kn_packs *packs, const char *path)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = KILN_E_INVALID;
    if (packs->count == KN_PACKS_MAX) {
        (void)kiln_diag_set(&diag, status, NULL, path, "more than %d packs", KN_PACKS_MAX);
    } else if (!kn_path_is_absolute(path)) {
        (void)kiln_diag_set(&diag, status, "give absolute paths", path, "it is a relative path");
    } else {
        status = kiln_pack_open(path, &packs->packs[packs->count], &diag);
    }
    if (status == KILN_OK) {
        packs->count++;
    } else if (status != KILN_E_NOMEM) {
        kn_log_once(KILN_LOG_WARN, "continuing without the pack %s: %s", path,
                    diag.why[0] != '\0' ? diag.why : kiln_status_text(status));
        status = KILN_OK;
    }
    kiln_diag_clear(&diag);
    return status;
}

kiln_status kn_packs_open(const char *list, kn_packs **out_packs, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_packs = NULL;
    if (list == NULL || list[0] == '\0') {
        return KILN_OK;
    }
    kn_packs *packs = calloc(1, sizeof *packs);
    if (packs == NULL) {
        return kn_no_memory(diag, "opening packs");
    }
    while (status == KILN_OK && *list != '\0') {
        size_t length = strcspn(list, KN_PATH_LIST_SEPARATOR);
        if (length > 0) {
            char *path = kn_text_copy_n(list, length);
            status = path != NULL ? open_one_pack(packs, path) : KILN_E_NOMEM;
            free(path);
        }
        list += length + (list[length] != '\0');
    }
    if (status != KILN_OK || packs->count == 0) {
        kn_packs_close(packs);
        return status == KILN_OK ? KILN_OK
                                 : kiln_diag_set(diag, status, NULL, "opening packs", NULL);
    }
    *out_packs = packs;
    return KILN_OK;
}

void kn_packs_close(kn_packs *packs)
{
    for (size_t i = 0; packs != NULL && i < packs->count; i++) {
        kn_pack_release(packs->packs[i]);
    }
    free(packs);
}

bool kn_packs_contain(const kn_packs *packs, const kiln_key *key)
{
    kn_span record;
    bool found = false;
    for (size_t i = 0; packs != NULL && !found && i < packs->count; i++) {
        found = kn_pack_find(packs->packs[i], key, &record, NULL) == KILN_OK;
    }
    return found;
}

/* A damaged entry is passed over; a later pack may have a good one. */
static kiln_status packs_get(void *self, const kiln_key *key, const char *target,
                             kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_packs *packs = self;
    kiln_status result = KILN_MISS;
    (void)target;
    for (size_t i = 0; i < packs->count; i++) {
        kiln_status status = kiln_pack_get(packs->packs[i], key, out_blob, diag);
        if (status == KILN_OK || status == KILN_E_NOMEM) {
            return status;
        }
        if (status != KILN_MISS) {
            kn_log_once(KILN_LOG_WARN, "a damaged entry was skipped in the pack %s",
                        packs->packs[i]->path);
            result = KILN_E_CORRUPT;
        }
    }
    return result;
}

static void packs_close(void *self)
{
    kn_packs_close(self);
}

const kn_tier_ops kn_packs_ops = {
    .name = "pack",
    .origin = KILN_ORIGIN_PACK,
    .caps = KN_TIER_STAYS,
    .get = packs_get,
    .close = packs_close,
};
