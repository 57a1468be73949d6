/* Looks a backend's tables over before anything is called through them: every required operation is
 * there, and every operation that a capability bit promises. Names what is missing. */
#include "hal/registry.h"

#include <stddef.h>
#include <string.h>

typedef struct op_row {
    const char *name;
    bool of_device; /* else of the compiler's table */
    size_t offset;
    uint32_t cap; /* 0: required */
} op_row;

/* clang-format off */
static const op_row rows[] = {
#define ROW(table, cap, op) {#table "." #op, (#table)[0] == 'd', offsetof(kiln_##table##_ops, op), cap},
#define KN_OP(n, table, cap, result, op, ...) ROW(table, cap, op)
#define KN_VOID(n, table, cap, op, ...) ROW(table, cap, op)
#define KN_FACT KN_OP
#define KN_RULE(...)
#include "hal/dispatch.def"
    ROW(compiler, 0, include_rules)
};
/* clang-format on */

static kiln_status check_ops(const kiln_backend *backend, bool device, const void *table,
                             kiln_diag *diag)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uintptr_t op = 0; /* its bytes: the types of the pointers differ */
        if (rows[i].of_device != device ||
            (rows[i].cap != 0 && (backend->caps & rows[i].cap) == 0)) {
            continue;
        }
        memcpy(&op, (const char *)table + rows[i].offset, sizeof(op));
        if (op == 0) {
            return kiln_diag_set(diag, KILN_E_INVALID, "fill it in, or clear the capability bit",
                                 "registering a backend", "%s lacks %s, which %s", backend->name,
                                 rows[i].name,
                                 rows[i].cap != 0 ? "its capabilities promise" : "is required");
        }
    }
    return KILN_OK;
}

static kiln_status check_table(const char *backend, const char *table, uint32_t abi, size_t size,
                               size_t expected, kiln_diag *diag)
{
    if (abi != KILN_BACKEND_ABI || size < expected) {
        return kiln_diag_set(
            diag, KILN_E_INVALID, "build it against this kiln's headers", "registering a backend",
            "%s has a %s table of ABI %u and %zu bytes; this kiln requires ABI %u and "
            "%zu bytes",
            backend, table, (unsigned)abi, size, KILN_BACKEND_ABI, expected);
    }
    return KILN_OK;
}

static bool name_is_good(const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;
    return length > 0 && length < 32 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == length;
}

/* The part that a table has to have and has not, or NULL. */
static const char *find_missing_part(const kiln_backend *backend)
{
    const bool listing = (backend->caps & KILN_CAP_NO_DEVICES) == 0;
    return backend->summary == NULL             ? "a summary"
           : backend->open == NULL              ? "open"
           : backend->close == NULL             ? "close"
           : backend->compiler == NULL          ? "a compiler table"
           : backend->device == NULL && listing ? "a device table"
                                                : NULL;
}

kiln_status kn_backend_check(const kiln_backend *backend, kiln_diag *diag)
{
    if (backend == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "registering a backend",
                             "there is no table");
    }
    /* The ABI first: with another one the other fields may lie elsewhere. */
    kiln_status status =
        check_table("a backend", "top", backend->abi, backend->size, sizeof(kiln_backend), diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!name_is_good(backend->name)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use 1 to 31 of a-z 0-9 _ -",
                             "registering a backend", "its name is not usable");
    }
    const char *name = backend->name;
    const char *missing = find_missing_part(backend);
    if (missing != NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "fill it in", "registering a backend",
                             "%s lacks %s, which is required", name, missing);
    }
    status = check_table(name, "compiler", backend->compiler->abi, backend->compiler->size,
                         sizeof(kiln_compiler_ops), diag);
    if (status == KILN_OK) {
        status = check_ops(backend, false, backend->compiler, diag);
    }
    if (status == KILN_OK && backend->device != NULL) {
        status = check_table(name, "device", backend->device->abi, backend->device->size,
                             sizeof(kiln_device_ops), diag);
    }
    return status == KILN_OK && backend->device != NULL
               ? check_ops(backend, true, backend->device, diag)
               : status;
}
