/* Blobs: immutable bytes with a reference count. This file must not know where they come from. */
#include "store/format/blob.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"

/* In front of the bytes of a blob that is made in their memory. */
#define ROOM ((KN_BLOB_ROOM + KN_BLOB_ALIGN - 1) / KN_BLOB_ALIGN * KN_BLOB_ALIGN)

bool kn_blob_padded(size_t size, size_t *out_padded)
{
    size_t raised = 0;
    if (!kn_add_size(size, KN_BLOB_ALIGN - 1, &raised)) {
        return false;
    }
    *out_padded = raised & ~(size_t)(KN_BLOB_ALIGN - 1);
    return true;
}

static void make_blob(kiln_blob *blob, const char *data, size_t size, size_t facts_size)
{
    size_t padded = 0;
    (void)kn_blob_padded(size, &padded); /* it did not wrap where the bytes were laid out */
    *blob = (kiln_blob){.data = data, .size = size, .facts = data + padded};
    blob->facts_size = facts_size;
    atomic_init(&blob->references, 1);
}

kiln_status kn_blob_adopt(void *memory, size_t memory_size, size_t offset, size_t size,
                          size_t facts_size, kiln_blob **out_blob, kiln_diag *diag)
{
    *out_blob = NULL;
    kiln_blob *blob = malloc(sizeof *blob); /* not calloc, which costs a hit twice as much */
    if (blob == NULL) {
        return kn_no_memory(diag, "making a blob");
    }
    make_blob(blob, (const char *)memory + offset, size, facts_size);
    blob->memory = memory;
    blob->memory_size = memory_size;
    *out_blob = blob;
    return KILN_OK;
}

kiln_blob *kn_blob_adopt_in(void *memory, size_t memory_size, size_t offset, size_t size,
                            size_t facts_size)
{
    kiln_blob *blob = memory;
    make_blob(blob, (const char *)memory + offset, size, facts_size);
    blob->memory_size = memory_size - sizeof *blob;
    return blob;
}

kiln_status kiln_blob_create(const void *data, size_t size, const void *facts, size_t facts_size,
                             kiln_blob **out_blob, kiln_diag *diag)
{
    *out_blob = NULL;
    size_t padded = 0, facts_padded = 0, total = 0;
    bool fits = kn_blob_padded(size, &padded) && kn_blob_padded(facts_size, &facts_padded) &&
                kn_add_size(padded, facts_padded, &total) && kn_add_size(total, ROOM, &total);
    char *memory = fits ? malloc(total) : NULL;
    if (memory == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "making a blob", "no memory for %zu bytes",
                             size);
    }
    char *at = memory + ROOM;
    if (size > 0) {
        memcpy(at, data, size);
    }
    memset(at + size, 0, padded - size);
    if (facts_size > 0) {
        memcpy(at + padded, facts, facts_size);
    }
    memset(at + padded + facts_size, 0, facts_padded - facts_size);
    *out_blob = kn_blob_adopt_in(memory, total, ROOM, size, facts_size);
    return KILN_OK;
}

kiln_blob *kiln_blob_retain(kiln_blob *blob)
{
    if (blob != NULL) {
        atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
    }
    return blob;
}

void kiln_blob_release(kiln_blob *blob)
{
    if (blob != NULL &&
        atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1) {
        if (blob->owner != NULL) {
            blob->give_back(blob->owner);
        }
        free(blob->memory);
        free(blob);
    }
}

const void *kiln_blob_data(const kiln_blob *blob)
{
    return blob->data;
}

size_t kiln_blob_size(const kiln_blob *blob)
{
    return blob->size;
}

const void *kiln_blob_facts(const kiln_blob *blob)
{
    return blob->facts;
}

size_t kiln_blob_facts_size(const kiln_blob *blob)
{
    return blob->facts_size;
}

uint64_t kiln_blob_compile_ns(const kiln_blob *blob)
{
    return atomic_load_explicit(&blob->compile_ns, memory_order_relaxed);
}

kn_span kn_blob_body(const kiln_blob *blob)
{
    /* Both parts were laid out by kn_blob_adopt's callers, so that neither sum can wrap. */
    size_t facts_padded = 0;
    (void)kn_blob_padded(blob->facts_size, &facts_padded);
    return kn_span_of(blob->data, (size_t)(blob->facts - blob->data) + facts_padded);
}

kn_span kn_blob_whole(const kiln_blob *blob)
{
    return kn_span_of(blob->data, kn_blob_body(blob).length + blob->recipe.length);
}

size_t kn_blob_weight(const kiln_blob *blob)
{
    return blob->memory_size + sizeof *blob;
}
