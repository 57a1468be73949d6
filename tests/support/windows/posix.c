/* POSIX for tests; see posix.h. */
#include "support/windows/posix.h"

#include <windows.h>

#include <aclapi.h>

#include "support/cmocka.h"
#include "sys/file.h"
#include "sys/windows/wide.h"

#define EPOCH_1970 INT64_C(116444736000000000) /* in steps of 100 ns since 1601 */

int setenv(const char *name, const char *value, int replace)
{
    (void)replace; /* every test means it */
    wchar_t *wide_name = kn_wide(name);
    wchar_t *wide_value = value != NULL ? kn_wide(value) : NULL;
    int result = wide_name != NULL && (value == NULL || wide_value != NULL) ? 0 : -1;
    if (result == 0) {
        /* The C library's call sets the system's, too; but it takes "" for unsetting. */
        result = _wputenv_s(wide_name, wide_value != NULL ? wide_value : L"");
        (void)SetEnvironmentVariableW(wide_name, wide_value);
    }
    free(wide_value);
    free(wide_name);
    return result;
}

int unsetenv(const char *name)
{
    return setenv(name, NULL, 1);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return _aligned_malloc(size, alignment);
}

int kt_stat(const char *path, struct kt_stat *out_facts)
{
    kn_file_facts facts;
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return -1;
    }
    *out_facts = (struct kt_stat){
        .st_mode = facts.kind == KN_FILE_DIR ? S_IFDIR : S_IFREG,
        .st_size = (int64_t)facts.size,
        .st_mtim = {.tv_sec = (time_t)(facts.mtime_ns / 1000000000),
                    .tv_nsec = (long)(facts.mtime_ns % 1000000000)},
    };
    return 0;
}

int kt_mkdir(const char *path, unsigned mode)
{
    wchar_t *wide = kn_wide_path(path);
    int result = wide != NULL && CreateDirectoryW(wide, NULL) != 0 ? 0 : -1;
    free(wide);
    return result;
}

int kt_unlink(const char *path)
{
    return kn_file_remove(path, NULL) == KILN_OK ? 0 : -1;
}

int kt_open(const char *path, int flags)
{
    HANDLE handle = kn_open(path, GENERIC_READ, OPEN_EXISTING, 0, KN_RETRY_READ_MS);
    return handle != INVALID_HANDLE_VALUE ? _open_osfhandle((intptr_t)handle, flags | _O_BINARY)
                                          : -1;
}

int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    HANDLE handle = kn_open(path, FILE_WRITE_ATTRIBUTES, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS,
                            KN_RETRY_READ_MS);
    if (handle == INVALID_HANDLE_VALUE) {
        return -1;
    }
    uint64_t steps =
        (uint64_t)(times[1].tv_sec * INT64_C(10000000) + times[1].tv_nsec / 100 + EPOCH_1970);
    FILETIME when = {.dwLowDateTime = (DWORD)steps, .dwHighDateTime = (DWORD)(steps >> 32)};
    int result = SetFileTime(handle, NULL, NULL, &when) != 0 ? 0 : -1;
    (void)CloseHandle(handle);
    return result;
}

/* ---- what Windows has not, or not so ---- */

/* Of all modes, that all may read. */
int kt_chmod(const char *path, int mode)
{
    BYTE everybody[SECURITY_MAX_SID_SIZE];
    DWORD size = sizeof everybody;
    PACL list = NULL;
    EXPLICIT_ACCESSW entry = {.grfAccessPermissions = GENERIC_READ,
                              .grfAccessMode = GRANT_ACCESS,
                              .grfInheritance = NO_INHERITANCE};
    if (mode != 0644) {
        skip();
        return -1;
    }
    wchar_t *wide = kn_wide_path(path);
    entry.Trustee.TrusteeForm = TRUSTEE_IS_SID;
    entry.Trustee.ptstrName = (wchar_t *)(void *)everybody;
    bool good = wide != NULL && CreateWellKnownSid(WinWorldSid, NULL, everybody, &size) != 0 &&
                SetEntriesInAclW(1, &entry, NULL, &list) == ERROR_SUCCESS &&
                SetNamedSecurityInfoW(wide, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL,
                                      list, NULL) == ERROR_SUCCESS;
    (void)LocalFree(list);
    free(wide);
    return good ? 0 : -1;
}

int kt_system(const char *command)
{
    skip();
    return -1;
}

int symlink(const char *target, const char *path)
{
    skip();
    return -1;
}

int chown(const char *path, int user, int group)
{
    skip();
    return -1;
}

pid_t fork(void)
{
    skip();
    return -1;
}

pid_t waitpid(pid_t pid, int *status, int flags)
{
    *status = 0;
    return -1;
}

unsigned geteuid(void)
{
    return 0;
}

int setresuid(int real, int effective, int saved)
{
    return -1;
}
