/* Small files that others must keep away from; see guarded.h. The access list says it, and is given
 * with the file's first moment: a handle that was opened earlier keeps its rights. */
#include "sys/guarded.h"

#include <stdbool.h>
#include <stdlib.h>
#include <windows.h>

#include "sys/fail.h"
#include "sys/file_read.h"
#include "sys/windows/access.h"
#include "sys/windows/facts.h"
#include "sys/windows/wide.h"

static kn_exposure exposure_of(HANDLE handle)
{
    char who[128];
    switch (kn_access_of_secret(handle, who)) {
    case KN_ACCESS_OWN:
        return KN_EXPOSED_TO_NOBODY;
    case KN_ACCESS_OTHERS_READ:
        return KN_EXPOSED_TO_READERS;
    default:
        return KN_EXPOSED_TO_WRITERS; /* its owner, or everybody, or nobody knows */
    }
}

kiln_status kn_guarded_read(const char *path, size_t limit, void **out_data, size_t *out_size,
                            kn_exposure *out_exposure, kiln_diag *diag)
{
    *out_data = NULL;
    *out_size = 0;
    *out_exposure = KN_EXPOSED_TO_WRITERS;
    HANDLE handle =
        kn_open(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail_or_miss(diag, (int)GetLastError(), "cannot open", path);
    }
    kn_file_facts facts;
    kn_room to = {.before = 0};
    kiln_status status =
        kn_file_take_facts(handle, &facts)
            ? kn_file_read_handle(handle, &facts, path, limit, &to, diag)
            : kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot look at", path);
    *out_data = to.memory;
    *out_size = to.size;
    if (status == KILN_OK) {
        *out_exposure = exposure_of(handle);
    }
    (void)CloseHandle(handle);
    return status;
}

/* Opens a new file that nobody else can open until it is complete; INVALID_HANDLE_VALUE, and the
 * last error. */
static HANDLE open_new(const char *path)
{
    SECURITY_ATTRIBUTES attributes;
    wchar_t *wide = kn_wide_path(path);
    HANDLE handle = INVALID_HANDLE_VALUE;
    if (wide != NULL && kn_access_make_private(&attributes)) {
        handle = CreateFileW(wide, GENERIC_WRITE, 0, &attributes, CREATE_NEW, FILE_ATTRIBUTE_NORMAL,
                             NULL);
        DWORD error = GetLastError();
        (void)LocalFree(attributes.lpSecurityDescriptor);
        SetLastError(error);
    }
    free(wide);
    return handle;
}

kiln_status kn_guarded_make(const char *path, const void *data, size_t size, kiln_diag *diag)
{
    DWORD written = 0;
    HANDLE handle = open_new(path);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_fail(diag, KILN_E_IO, (int)GetLastError(), "cannot make", path);
    }
    bool good = WriteFile(handle, data, (DWORD)size, &written, NULL) != 0 && written == size &&
                FlushFileBuffers(handle) != 0;
    DWORD error = GetLastError();
    good = CloseHandle(handle) != 0 && good;
    if (!good) {
        (void)kn_file_remove(path, NULL); /* half a key is of no use */
        return kn_fail(diag, KILN_E_IO, (int)error, "cannot write", path);
    }
    return KILN_OK;
}
