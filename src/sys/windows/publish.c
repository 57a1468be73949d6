/* Publishing a file by renaming it; see publish.h for the calling sequence.
 *
 * The file is renamed through the handle that wrote it, so that there is no moment in which it is
 * closed and not yet in place. Where the file system knows POSIX renaming, readers that have the
 * old file open do not stand in the way, and keep what they have. */
#include "sys/publish.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/random.h"
#include "sys/windows/facts.h"
#include "sys/windows/remove.h"
#include "sys/windows/wide.h"

#define MAX_TRIES 8
#define MAX_WRITE ((size_t)1 << 30)
#define NO_HANDLE (-1)
/* A temporary is closed for a moment before an older system renames it. */
#define YOUNG_NS INT64_C(60000000000)

/* Handles fit in 32 bits, so that processes of both sizes can share them: the system's promise. */
static HANDLE handle_of(const kn_publish *publish)
{
    return (HANDLE)(intptr_t)publish->handle;
}

/* Opens a new file in `tmp_dir`, which is made if it is missing. */
static kiln_status open_temporary(kn_publish *publish, const char *tmp_dir, kiln_diag *diag)
{
    DWORD error = 0;
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        free(publish->temporary);
        publish->temporary = kn_publish_name_temporary(tmp_dir);
        if (publish->temporary == NULL) {
            return kn_fail_nomem(diag, "cannot publish", publish->final_path);
        }
        HANDLE handle = kn_open(publish->temporary, GENERIC_WRITE | FILE_READ_ATTRIBUTES | DELETE,
                                CREATE_NEW, FILE_ATTRIBUTE_NORMAL, KN_RETRY_CHANGE_MS);
        if (handle != INVALID_HANDLE_VALUE) {
            publish->handle = (int)(intptr_t)handle;
            return KILN_OK;
        }
        error = GetLastError();
        if (error == ERROR_PATH_NOT_FOUND) {
            kiln_status status = kn_file_make_dir(tmp_dir, diag);
            if (status != KILN_OK) {
                return status;
            }
        } else if (error != ERROR_FILE_EXISTS && error != ERROR_ALREADY_EXISTS) {
            break;
        }
    }
    return kn_fail(diag, KILN_E_IO, (int)error, "cannot make a file in", tmp_dir);
}

static void forget_temporary(kn_publish *publish)
{
    free(publish->temporary);
    free(publish->final_path);
    *publish = (kn_publish){.handle = NO_HANDLE};
}

kiln_status kn_publish_begin(kn_publish *publish, const char *tmp_dir, const char *final_path,
                             kiln_diag *diag)
{
    *publish = (kn_publish){.handle = NO_HANDLE};
    publish->final_path = kn_text_copy(final_path);
    if (publish->final_path == NULL) {
        return kn_fail_nomem(diag, "cannot publish", final_path);
    }
    kiln_status status = open_temporary(publish, tmp_dir, diag);
    if (status != KILN_OK) {
        forget_temporary(publish);
    }
    return status;
}

/* A killed process leaves its temporary here. */
kiln_status kn_publish_begin_unnamed(kn_publish *publish, const char *tmp_dir,
                                     const char *final_path, kiln_diag *diag)
{
    return kn_publish_begin(publish, tmp_dir, final_path, diag);
}

static void set_failure(kn_publish *publish, DWORD error)
{
    if (publish->failure == KILN_OK) {
        publish->failure = error == ERROR_NOT_ENOUGH_MEMORY ? KILN_E_NOMEM : KILN_E_IO;
        publish->failure_errno = (int)error;
    }
}

void kn_publish_write(kn_publish *publish, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0 && publish->failure == KILN_OK) {
        DWORD n = 0;
        if (WriteFile(handle_of(publish), from, (DWORD)(size < MAX_WRITE ? size : MAX_WRITE), &n,
                      NULL) == 0) {
            set_failure(publish, GetLastError());
        } else if (n == 0) {
            set_failure(publish, ERROR_WRITE_FAULT);
        } else {
            from += n;
            size -= n;
        }
    }
}

void kn_publish_write_parts(kn_publish *publish, const kn_span *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kn_publish_write(publish, parts[i].data, parts[i].length);
    }
}

/* Who may read it is inherited from its directory. */
void kn_publish_share(kn_publish *publish)
{
    (void)publish;
}

void kn_publish_insist(kn_publish *publish)
{
    publish->insists = true;
}

static void close_temporary(kn_publish *publish)
{
    if (publish->handle != NO_HANDLE) {
        (void)CloseHandle(handle_of(publish));
        publish->handle = NO_HANDLE;
    }
}

static void remove_temporary(kn_publish *publish)
{
    if (publish->handle != NO_HANDLE) {
        (void)kn_remove_open(handle_of(publish)); /* left over, it is swept by its age */
        close_temporary(publish);
    } else {
        (void)kn_file_remove(publish->temporary, NULL);
    }
}

/* One attempt. 0 or the error; the handle may be closed afterwards. */
static DWORD rename_once(kn_publish *publish, const wchar_t *from, const wchar_t *to)
{
    if (publish->handle != NO_HANDLE) {
        if (kn_rename_open(handle_of(publish), to)) {
            return ERROR_SUCCESS;
        }
        if (GetLastError() != KN_RENAME_UNKNOWN) {
            return GetLastError();
        }
        close_temporary(publish); /* the older call wants it closed */
    }
    return MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING) != 0 ? ERROR_SUCCESS : GetLastError();
}

/* Another process published a newer file than ours while we waited: theirs is as good. */
static bool is_overtaken(int64_t written_ns, const char *final_path)
{
    kn_file_facts facts;
    return written_ns != 0 && kn_file_stat(final_path, true, &facts, NULL) == KILN_OK &&
           facts.kind == KN_FILE_REGULAR && facts.mtime_ns > written_ns;
}

/* The last resort where an open file cannot be replaced (no POSIX renaming, or a mapped pack): it
 * can be renamed. For a moment nothing has the name. The old file goes with its last handle, or is
 * swept by its age. */
static DWORD rename_around(kn_publish *publish, const wchar_t *from, const wchar_t *to)
{
    char name[32];
    kn_text_putf(name, sizeof name, "%016" PRIx64 ".old", kn_random_u64());
    char *dir = kn_path_dir(publish->temporary);
    char *aside = dir != NULL ? kn_path_join(dir, name) : NULL;
    wchar_t *wide = aside != NULL ? kn_wide_path(aside) : NULL;
    DWORD error = ERROR_NOT_ENOUGH_MEMORY;
    if (wide != NULL) {
        error = MoveFileExW(to, wide, 0) != 0 ? rename_once(publish, from, to) : GetLastError();
        if (error == ERROR_SUCCESS) {
            (void)kn_file_remove(aside, NULL);
        } else if (GetFileAttributesW(to) == INVALID_FILE_ATTRIBUTES) {
            (void)MoveFileExW(wide, to, 0);
        }
    }
    free(wide);
    free(aside);
    free(dir);
    return error;
}

static DWORD rename_patiently(kn_publish *publish, const wchar_t *from, const wchar_t *to)
{
    kn_retry retry = kn_retry_begin(KN_RETRY_CHANGE_MS);
    for (int made = 0;;) {
        DWORD error = rename_once(publish, from, to);
        if (error == ERROR_PATH_NOT_FOUND && made++ < MAX_TRIES) {
            error = (DWORD)kn_publish_make_dir_of(
                publish->final_path); /* never made, or evicted meanwhile */
            if (error == ERROR_SUCCESS) {
                continue;
            }
        }
        /* That the old file is open, or its removal under way, is reported as "access denied",
         * too. */
        bool in_the_way =
            error == ERROR_ACCESS_DENIED && (GetFileAttributesW(to) != INVALID_FILE_ATTRIBUTES ||
                                             GetLastError() == ERROR_ACCESS_DENIED);
        if (!kn_retry_again(&retry, in_the_way ? ERROR_SHARING_VIOLATION : error)) {
            return error;
        }
    }
}

static void move_into_place(kn_publish *publish)
{
    kn_file_facts facts = {0};
    wchar_t *from = kn_wide_path(publish->temporary);
    wchar_t *to = kn_wide_path(publish->final_path);
    DWORD error = from != NULL && to != NULL ? ERROR_SUCCESS : GetLastError();
    (void)kn_file_take_facts(handle_of(publish), &facts);
    if (error == ERROR_SUCCESS) {
        error = rename_patiently(publish, from, to);
    }
    if (error != ERROR_SUCCESS && !publish->insists &&
        is_overtaken(facts.mtime_ns, publish->final_path)) {
        remove_temporary(publish);
        error = ERROR_SUCCESS;
    } else if (error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ||
               error == ERROR_USER_MAPPED_FILE) {
        error = rename_around(publish, from, to);
    }
    if (error != ERROR_SUCCESS) {
        set_failure(publish, error);
    }
    free(to);
    free(from);
}

void kn_publish_start_writing(const kn_publish *publish)
{
    (void)publish;
}

kiln_status kn_publish_commit(kn_publish *publish, bool sync, kiln_diag *diag)
{
    kiln_status status = KILN_OK;

    if (sync && publish->failure == KILN_OK && FlushFileBuffers(handle_of(publish)) == 0) {
        set_failure(publish, GetLastError());
    }
    if (publish->failure == KILN_OK) {
        move_into_place(publish);
    }
    if (publish->failure != KILN_OK) {
        remove_temporary(publish);
        status = kn_fail(diag, publish->failure, publish->failure_errno, "cannot publish",
                         publish->final_path);
    }
    close_temporary(publish);
    forget_temporary(publish);
    return status;
}

void kn_publish_abort(kn_publish *publish)
{
    if (publish->handle != NO_HANDLE) {
        remove_temporary(publish);
    }
    forget_temporary(publish);
}

/* A writer has it open, and an opening that shares nothing fails then. */
kiln_status kn_publish_reclaim(const char *path)
{
    kn_file_facts facts;
    wchar_t *wide = kn_wide_path(path);
    if (wide == NULL) {
        return KILN_E_NOMEM;
    }
    HANDLE handle = CreateFileW(wide, DELETE | FILE_READ_ATTRIBUTES, 0, NULL, OPEN_EXISTING,
                                FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    const DWORD error = GetLastError();
    free(wide);
    if (handle == INVALID_HANDLE_VALUE) {
        return kn_means_missing(error)                                            ? KILN_MISS
               : error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED ? KILN_E_BUSY
                                                                                  : KILN_E_IO;
    }
    kiln_status status = KILN_E_BUSY;
    if (kn_file_take_facts(handle, &facts) && kn_clock_wall() - facts.mtime_ns > YOUNG_NS) {
        status = kn_remove_open(handle) ? KILN_OK : KILN_E_IO;
    }
    (void)CloseHandle(handle);
    return status;
}
