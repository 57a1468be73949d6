/* Reading a whole file; see file.h and file_read.h. The same on every system. */
#include "sys/file_read.h"

#include <stdlib.h>

#include "base/checked.h"
#include "sys/fail.h"

#define CACHE_LINE 64u

static bool make_room(kn_room *to, uint64_t file_size)
{
    size_t total = 0;
    const size_t slack = to->before > 0 ? to->before + CACHE_LINE : 0;
    if (file_size > SIZE_MAX / 2 || !kn_add_size((size_t)file_size, slack + 1, &total)) {
        return false;
    }
    to->memory = malloc(total);
    if (to->memory != NULL && to->before > 0) {
        const uintptr_t start = (uintptr_t)to->memory + to->before;
        to->at = to->before + (size_t)(-start & (CACHE_LINE - 1));
    }
    return to->memory != NULL;
}

/* With a look at the first bytes of a large file. */
static kiln_status read_gated(kn_handle handle, const char *path, kn_room *to, size_t size,
                              kiln_diag *diag)
{
    char *data = to->memory + to->at;
    const size_t head = to->gate != NULL && size > KN_FILE_LARGE ? to->gate->size : 0;
    kiln_status status = kn_file_read_some(handle, path, data, head, &to->size, diag);
    if (status != KILN_OK || to->size != head) {
        return status;
    }
    if (head > 0 && !to->gate->is_worth(data, size)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it does not begin as it must");
    }
    size_t rest = 0;
    status = kn_file_read_some(handle, path, data + head, size - head, &rest, diag);
    to->size += rest;
    return status;
}

kiln_status kn_file_read_handle(kn_handle handle, const kn_file_facts *facts, const char *path,
                                size_t limit, kn_room *to, kiln_diag *diag)
{
    if (facts->kind != KN_FILE_REGULAR) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path,
                             facts->kind == KN_FILE_LINK ? "it is a link"
                                                         : "it is not a regular file");
    }
    if (facts->size > limit) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path,
                             "it has %llu bytes, more than the %zu that are allowed",
                             (unsigned long long)facts->size, limit);
    }
    if (!make_room(to, facts->size)) {
        return kn_fail_nomem(diag, "cannot read", path);
    }
    kiln_status status = read_gated(handle, path, to, (size_t)facts->size, diag);
    if (status != KILN_OK) {
        free(to->memory);
        *to = (kn_room){.before = to->before};
        return status;
    }
    to->memory[to->at + to->size] = '\0';
    return KILN_OK;
}

static kiln_status read_file(const kn_held_dir *dir, const char *path, size_t limit, bool nofollow,
                             kn_room *to, kn_file_facts *out_facts, kiln_diag *diag)
{
    kn_file_facts facts = {0};
    kiln_status status = kn_file_read_room(dir, path, limit, nofollow, to, &facts, diag);
    if (out_facts != NULL) {
        *out_facts = status == KILN_OK ? facts : (kn_file_facts){0};
    }
    return status;
}

kiln_status kn_file_read(const char *path, size_t limit, bool nofollow, void **out_data,
                         size_t *out_size, kn_file_facts *out_facts, kiln_diag *diag)
{
    kn_room to = {.before = 0};
    kiln_status status = read_file(NULL, path, limit, nofollow, &to, out_facts, diag);
    *out_data = to.memory;
    *out_size = to.size;
    return status;
}

kiln_status kn_file_read_behind(const kn_held_dir *dir, const char *path, size_t limit,
                                const kn_file_gate *gate, size_t before, void **out_memory,
                                size_t *out_at, size_t *out_size, kn_file_facts *out_facts,
                                kiln_diag *diag)
{
    kn_room to = {.before = before, .gate = gate};
    kiln_status status = read_file(dir, path, limit, true, &to, out_facts, diag);
    *out_memory = to.memory;
    *out_at = to.at;
    *out_size = to.size;
    return status;
}
