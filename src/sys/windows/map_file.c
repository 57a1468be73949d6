/* Maps one file. This file must not know what is in it. */
#include "sys/map_file.h"

#include <string.h>

#include "sys/fail.h"
#include "sys/windows/access.h"
#include "sys/windows/facts.h"
#include "sys/windows/wide.h"

static kiln_status map_handle(HANDLE file, const char *path, kn_map_file *out_map, kiln_diag *diag)
{
    kn_file_facts facts;
    if (!kn_file_take_facts(file, &facts)) {
        return kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot look at", path);
    }
    if (facts.kind != KN_FILE_REGULAR) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a regular file");
    }
    if (facts.size > SIZE_MAX / 2) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is larger than memory can be");
    }
    char who[128];
    kn_access access = kn_access_of(file, who);
    if (access == KN_ACCESS_OTHERS_WRITE || access == KN_ACCESS_UNPROTECTED) {
        facts.mode = 0622;
    }
    if (facts.size > 0) {
        HANDLE section = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
        if (section != NULL) {
            out_map->data = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (size_t)facts.size);
        }
        int error = (int)GetLastError();
        if (section != NULL) {
            (void)CloseHandle(section); /* the view keeps it */
        }
        if (out_map->data == NULL) {
            return kn_fail(diag, KILN_E_IO, error, "cannot map", path);
        }
    }
    out_map->size = (size_t)facts.size;
    out_map->facts = facts;
    return KILN_OK;
}

kiln_status kn_map_file_open(const char *path, kn_map_file *out_map, kiln_diag *diag)
{
    memset(out_map, 0, sizeof *out_map);
    HANDLE file =
        kn_open(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, KN_RETRY_READ_MS);
    if (file == INVALID_HANDLE_VALUE) {
        return kn_fail_or_miss(diag, (int)GetLastError(), "cannot open", path);
    }
    kiln_status status = map_handle(file, path, out_map, diag);
    (void)CloseHandle(file); /* the view keeps the file */
    return status;
}

void kn_map_file_close(kn_map_file *map)
{
    if (map->data != NULL) {
        (void)UnmapViewOfFile(map->data);
    }
    memset(map, 0, sizeof *map);
}
