/* Structs that carry their own size. This file must not know what else is in them. */
#include "sized/sized.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"

static size_t size_of(const kn_sized_facts *facts, const void *given)
{
    size_t size = 0;
    memcpy(&size, (const char *)given + facts->size_at, sizeof(size));
    return size;
}

static void put_size(const kn_sized_facts *facts, void *to, size_t size)
{
    memcpy((char *)to + facts->size_at, &size, sizeof(size));
}

static kiln_status refuse_size(const kn_sized_facts *facts, size_t size, kiln_diag *diag)
{
    char fix[96] = "set struct_size to sizeof(";
    (void)strncat(fix, facts->name, sizeof(fix) - strlen(fix) - 2);
    (void)strncat(fix, ")", 2);
    return kiln_diag_set(diag, KILN_E_INVALID, fix, facts->name,
                         "its struct_size is %zu; it has %zu bytes", size, facts->size);
}

/* Whether a size can have been set by a caller of any version. */
static kiln_status check_size(const kn_sized_facts *facts, size_t size, kiln_diag *diag)
{
    return size >= facts->first && size <= facts->size + KN_SIZED_GROWTH_MAX
               ? KILN_OK
               : refuse_size(facts, size, diag);
}

/* What this library does not know may be there, as long as it says nothing. */
static kiln_status check_unknown(const kn_sized_facts *facts, const void *given, size_t size,
                                 kiln_diag *diag)
{
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = facts->size; i < size; i++) {
        if (bytes[i] != 0) {
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "update kiln, or leave the newer members zero", facts->name,
                                 "it has %zu bytes and is newer than this library, which knows %zu "
                                 "of them; the others are not zero",
                                 size, facts->size);
        }
    }
    return KILN_OK;
}

/* Copies what both know, and makes it a struct of this library. */
static kiln_status take_struct(const kn_sized_facts *facts, const void *given, void *to,
                               kiln_diag *diag)
{
    const size_t size = size_of(facts, given);
    kiln_status status = check_size(facts, size, diag);
    if (status == KILN_OK) {
        status = check_unknown(facts, given, size, diag);
    }
    if (status == KILN_OK) {
        memset(to, 0, facts->size);
        memcpy(to, given, size < facts->size ? size : facts->size);
        put_size(facts, to, facts->size);
    }
    return status;
}

const void *kn_sized_view(const kn_sized_facts *facts, const void *given, void *room,
                          kiln_diag *diag)
{
    if (size_of(facts, given) == facts->size) {
        return given;
    }
    return take_struct(facts, given, room, diag) == KILN_OK ? room : NULL;
}

kiln_status kn_sized_list(const kn_sized_facts *facts, const void *given, size_t count,
                          const void **out_list, void **out_copy, kiln_diag *diag)
{
    const char *at = (const char *)given;
    *out_copy = NULL;
    *out_list = given;
    if (count == 0) {
        return KILN_OK;
    }
    *out_list = NULL;
    if (given == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, facts->name, "a list of them is NULL");
    }
    const size_t apart = size_of(facts, given);
    kiln_status status = check_size(facts, apart, diag);
    for (size_t i = 1; status == KILN_OK && i < count; i++) {
        const size_t size = size_of(facts, at + i * apart);
        status = size == apart ? KILN_OK : refuse_size(facts, size, diag);
    }
    if (status != KILN_OK || apart == facts->size) {
        *out_list = status == KILN_OK ? given : NULL;
        return status;
    }
    char *copy = (char *)calloc(count, facts->size);
    if (copy == NULL) {
        return kn_no_memory(diag, facts->name);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status = take_struct(facts, at + i * apart, copy + i * facts->size, diag);
    }
    if (status != KILN_OK) {
        free(copy);
        return status;
    }
    *out_copy = copy;
    *out_list = copy;
    return KILN_OK;
}

kiln_status kn_sized_give(const kn_sized_facts *facts, const void *value, void *out,
                          kiln_diag *diag)
{
    const size_t size = size_of(facts, out);
    kiln_status status = check_size(facts, size, diag);
    if (status == KILN_OK) {
        kn_sized_end(facts, value, out);
    }
    return status;
}

kiln_status kn_sized_begin(const kn_sized_facts *facts, void *out, void *value, kiln_diag *diag)
{
    const size_t size = size_of(facts, out);
    kiln_status status = check_size(facts, size, diag);
    memset(value, 0, facts->size);
    put_size(facts, value, facts->size);
    if (status == KILN_OK) {
        kn_sized_end(facts, value, out);
    }
    return status;
}

void kn_sized_end(const kn_sized_facts *facts, const void *value, void *out)
{
    const size_t size = size_of(facts, out);
    memcpy(out, value, size < facts->size ? size : facts->size);
    if (size > facts->size) {
        memset((char *)out + facts->size, 0, size - facts->size);
    }
    put_size(facts, out, size);
}

kiln_status kn_sized_begin_list(const kn_sized_facts *facts, void *out, size_t count, void *values,
                                kiln_diag *diag)
{
    const size_t apart = count > 0 ? size_of(facts, out) : 0;
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        char *at = (char *)out + i * apart;
        const size_t size = size_of(facts, at);
        status = size == apart ? kn_sized_begin(facts, at, (char *)values + i * facts->size, diag)
                               : refuse_size(facts, size, diag);
    }
    return status;
}

void kn_sized_end_list(const kn_sized_facts *facts, const void *values, size_t count, void *out)
{
    const size_t apart = count > 0 ? size_of(facts, out) : 0;
    for (size_t i = 0; i < count; i++) {
        kn_sized_end(facts, (const char *)values + i * facts->size, (char *)out + i * apart);
    }
}
