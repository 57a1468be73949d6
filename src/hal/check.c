/* Looks a backend's tables over before anything is called through them: every required operation is
 * there, and every operation that a capability bit promises. Names what is missing. */
#include "hal/registry.h"

#include <stddef.h>
#include <string.h>

typedef struct op_row {
    const char *name;
    size_t offset;
    uint32_t cap; /* 0: required */
} op_row;

#define COMPILER(op, cap)                                                                          \
    {                                                                                              \
        "compiler." #op, offsetof(kiln_compiler_ops, op), cap                                      \
    }
#define DEVICE(op, cap)                                                                            \
    {                                                                                              \
        "device." #op, offsetof(kiln_device_ops, op), cap                                          \
    }

static const op_row compiler_rows[] = {
    COMPILER(stages, 0),
    COMPILER(target_of_device, 0),
    COMPILER(target_parse, KILN_CAP_COMPILE_OFFLINE),
    COMPILER(target_destroy, 0),
    COMPILER(identify, 0),
    COMPILER(system_include_dir, 0),
    COMPILER(ships_header, 0),
    COMPILER(uncacheable_option, 0),
    COMPILER(compile, 0),
    COMPILER(include_rules, 0),
};

static const op_row device_rows[] = {
    DEVICE(device_info, 0),
    DEVICE(device_open, 0),
    DEVICE(device_close, 0),
    DEVICE(buffer_create, 0),
    DEVICE(buffer_destroy, 0),
    DEVICE(program_load, 0),
    DEVICE(program_unload, 0),
    DEVICE(program_grew, KILN_CAP_CAPTURE),
    DEVICE(program_capture, KILN_CAP_CAPTURE),
    DEVICE(program_entry, KILN_CAP_REFLECT),
    DEVICE(program_params, KILN_CAP_REFLECT),
    DEVICE(queue_create, 0),
    DEVICE(queue_destroy, 0),
    DEVICE(queue_write, 0),
    DEVICE(queue_read, 0),
    DEVICE(queue_fill, KILN_CAP_FILL),
    DEVICE(queue_copy, KILN_CAP_COPY),
    DEVICE(queue_launch, 0),
    DEVICE(queue_finish, 0),
    DEVICE(queue_wait, KILN_CAP_QUEUE_WAIT),
    DEVICE(event_done, 0),
    DEVICE(event_wait, 0),
    DEVICE(event_elapsed, 0),
    DEVICE(event_destroy, 0),
    DEVICE(buffer_wrap, KILN_CAP_NATIVE_MEMORY),
    DEVICE(buffer_address, KILN_CAP_NATIVE_MEMORY),
    DEVICE(queue_wrap, KILN_CAP_NATIVE_QUEUE),
    DEVICE(queue_native, KILN_CAP_NATIVE_QUEUE),
    DEVICE(queue_mark, KILN_CAP_NATIVE_QUEUE),
};

static kiln_status check_ops(const char *backend, const void *table, const op_row *rows,
                             size_t count, uint32_t caps, kiln_diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t op = 0; /* its bytes: the types of the pointers differ */
        if (rows[i].cap != 0 && (caps & rows[i].cap) == 0) {
            continue;
        }
        memcpy(&op, (const char *)table + rows[i].offset, sizeof(op));
        if (op == 0) {
            return kiln_diag_set(diag, KILN_E_INVALID, "fill it in, or clear the capability bit",
                                 "registering a backend", "%s lacks %s, which %s", backend,
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

static kiln_status check_device_table(const kiln_backend *backend, kiln_diag *diag)
{
    if (backend->device == NULL) {
        return KILN_OK;
    }
    kiln_status status = check_table(backend->name, "device", backend->device->abi,
                                     backend->device->size, sizeof(kiln_device_ops), diag);
    return status == KILN_OK
               ? check_ops(backend->name, backend->device, device_rows,
                           sizeof(device_rows) / sizeof(device_rows[0]), backend->caps, diag)
               : status;
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
        status = check_ops(name, backend->compiler, compiler_rows,
                           sizeof(compiler_rows) / sizeof(compiler_rows[0]), backend->caps, diag);
    }
    return status == KILN_OK ? check_device_table(backend, diag) : status;
}
