/* Loads a shared object that exists only as bytes. The bytes go to an anonymous file (memfd), so
 * that no directory has to allow execution; where that is forbidden, to a file with a random name
 * that is unlinked at once. A place that does not let code be mapped is distinguished from an
 * object that the loader refuses by mapping one page of it first. */
#include "sys/dylib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/unstable/probe.h"

#include "base/diag.h"
#include "base/text.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/paths.h"
#include "sys/random.h"

#define PLACE_PATH_SIZE 4096

typedef struct place {
    int handle;
    char path[PLACE_PATH_SIZE];
    bool is_file; /* to be unlinked */
} place;

static bool write_all(int handle, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(handle, data, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        size -= (size_t)written;
    }
    return true;
}

static bool allows_execution(int handle)
{
    void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, handle, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    (void)munmap(page, 1);
    return true;
}

static void place_close(place *p)
{
    if (p->is_file) {
        (void)unlink(p->path);
    }
    if (p->handle >= 0) {
        (void)close(p->handle);
    }
    *p = (place){.handle = -1};
}

#if defined(__linux__)
#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

/* The loader takes two objects of one name for one object, and descriptor numbers are used again:
 * each load writes its path in a way of its own, one bit of a counter for each "./" or ".//". */
static void unique_path(place *p)
{
    static atomic_uint counter;
    unsigned bits = atomic_fetch_add(&counter, 1u);
    char steps[32 * 3 + 1];
    size_t length = 0;
    for (int i = 0; i < 32; i++) {
        const char *step = (bits >> i & 1u) != 0 ? ".//" : "./";
        const size_t size = strlen(step);
        memcpy(steps + length, step, size);
        length += size;
    }
    steps[length] = '\0';
    kn_text_putf(p->path, sizeof(p->path), "/proc/self/fd/%s%d", steps, p->handle);
}

static bool place_memory(place *p)
{
    p->handle = memfd_create("kiln", MFD_CLOEXEC | MFD_EXEC);
    if (p->handle < 0 && errno == EINVAL) { /* a kernel that does not know MFD_EXEC yet */
        p->handle = memfd_create("kiln", MFD_CLOEXEC);
    }
    if (p->handle < 0) {
        return false;
    }
    unique_path(p);
    return access(p->path, R_OK) == 0; /* /proc may be missing */
}
#else
static bool place_memory(place *p)
{
    (void)p;
    return false;
}
#endif

static bool place_file(place *p, const char *dir)
{
    if (dir == NULL || dir[0] != '/') {
        return false;
    }
    for (int i = 0; i < 8; i++) {
        kn_text_putf(p->path, sizeof(p->path), "%s/kiln-%016llx.so", dir,
                     (unsigned long long)kn_random_u64());
        p->handle = open(p->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (p->handle >= 0) {
            (void)fchmod(p->handle, 0600); /* a umask may have taken the owner's bits */
            p->is_file = true;
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

/* What kn_dylib_open said, without the path that means nothing to the user. */
static kiln_status refuse_place(const place *p, const kiln_diag *said, kiln_diag *diag)
{
    const size_t length = strlen(p->path);
    const char *words = said->why;
    for (const char *at = words; (at = strstr(at, p->path)) != NULL;) {
        at += length;
        words = at;
    }
    words += strspn(words, ":, ");
    return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading an object", "%s",
                         kn_text_starts(words, "but ") ? words + strlen("but ") : words);
}

/* True when the object was loaded or refused in this place; false: try another. */
static bool load_from(place *p, const void *data, size_t size, kn_dylib **out_lib,
                      kiln_status *out_status, kiln_diag *diag)
{
    if (!write_all(p->handle, data, size) || !allows_execution(p->handle)) {
        return false;
    }
    const char *const names[] = {p->path, NULL};
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    kiln_diag said = KILN_DIAG_INIT;
    *out_status = kn_dylib_open(names, out_lib, &outcome, &said);
    if (*out_status == KILN_E_UNAVAILABLE) {
        *out_status = refuse_place(p, &said, diag);
    } else if (*out_status != KILN_OK) {
        kn_diag_move(diag, &said);
    }
    kiln_diag_clear(&said);
    return true;
}

kiln_status kn_dylib_open_memory(const void *data, size_t size, const char *const *dirs,
                                 kn_dylib **out_lib, kiln_diag *diag)
{
    char *temporary = NULL;
    place p = {.handle = -1};
    kiln_status status = KILN_OK;
    bool settled = false;

    *out_lib = NULL;
    if (size == 0) {
        return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "loading an object", "it is empty");
    }
    if (!kn_file_may_reach(size)) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, errno, "cannot load", "an object");
    }
    if (dirs == NULL) {
        settled = place_memory(&p) && load_from(&p, data, size, out_lib, &status, diag);
        place_close(&p);
        temporary = kn_paths_temporary();
    }
    const char *const usual[] = {temporary != NULL ? temporary : "/tmp", "/dev/shm", "/var/tmp",
                                 NULL};
    const char *const *list = dirs != NULL ? dirs : usual;
    for (size_t i = 0; !settled && list[i] != NULL; i++) {
        settled = place_file(&p, list[i]) && load_from(&p, data, size, out_lib, &status, diag);
        place_close(&p);
    }
    free(temporary);
    if (settled) {
        return status;
    }
    return kiln_diag_set(
        diag, KILN_E_UNAVAILABLE, "set TMPDIR to a directory that is not mounted noexec",
        "loading an object",
        "cannot map executable memory: memfd and all temporary directories are noexec");
}
