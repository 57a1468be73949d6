/* See seal.h. */
#include "ship/seal.h"

#include <string.h>

#include <kiln/unstable/remote.h>

#include "cli/diag.h"

kiln_status seal_make(cli_pool *pool, const tar_file *file, void **out_layer, size_t *out_size,
                      bool *out_signed, kiln_diag *diag)
{
    char signature[KILN_PACK_SIGNATURE_SIZE];
    const char *name = pool_format(pool, "%s.sig", file->name);
    if (name == NULL) {
        return diag_no_memory(diag, file->name);
    }
    kiln_status status = kiln_pack_sign(file->data, file->size, signature, diag);
    *out_signed = status == KILN_OK;
    if (status == KILN_OK || status == KILN_MISS) {
        const tar_file files[] = {*file, {name, signature, *out_signed ? strlen(signature) : 0}};
        status = tar_make(files, *out_signed ? 2 : 1, out_layer, out_size, diag);
    }
    return status;
}

static kiln_status refuse_seal(const char *place, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", place,
                         "a layer of it does not hold a pack and its signature");
}

static kiln_status split_layer(const char *place, const char *layer, size_t size,
                               tar_file *out_file, tar_file *out_signature, kiln_diag *diag)
{
    size_t at = 0;
    tar_file none;
    *out_signature = (tar_file){"", "", 0};
    kiln_status status = tar_next(layer, size, &at, out_file);
    if (status != KILN_OK) {
        return refuse_seal(place, diag);
    }
    status = tar_next(layer, size, &at, out_signature);
    if (status == KILN_MISS) {
        return KILN_OK;
    }
    const size_t length = strlen(out_file->name);
    if (status != KILN_OK || strncmp(out_signature->name, out_file->name, length) != 0 ||
        strcmp(out_signature->name + length, ".sig") != 0 ||
        tar_next(layer, size, &at, &none) != KILN_MISS) {
        return refuse_seal(place, diag);
    }
    return KILN_OK;
}

kiln_status seal_open(const char *place, const char *layer, size_t size, bool unsigned_too,
                      tar_file *out_file, bool *out_signed, kiln_diag *diag)
{
    tar_file signature;
    *out_signed = false;
    kiln_status status = split_layer(place, layer, size, out_file, &signature, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kiln_pack_judge(place, out_file->data, out_file->size, signature.data, signature.size,
                             diag);
    *out_signed = status == KILN_OK;
    if (status != KILN_MISS || unsigned_too) {
        return status == KILN_MISS ? KILN_OK : status;
    }
    return kiln_diag_set(diag, KILN_E_REJECTED, "set KILN_TRUSTED_KEYS, or give --unsigned", place,
                         "is refused: no key is set to judge its signature by");
}
