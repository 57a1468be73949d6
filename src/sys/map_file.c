/* Maps one file. This file must not know what is in it. */
#include "sys/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/facts.h"
#include "sys/fail.h"

static kiln_status map_descriptor(int fd, const char *path, kn_map_file *out_map, kiln_diag *diag)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        return kn_fail(diag, KILN_E_IO, errno, "cannot look at", path);
    }
    if (!S_ISREG(facts.st_mode)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is not a regular file");
    }
    if ((uintmax_t)facts.st_size > SIZE_MAX / 2) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, path, "it is larger than memory can be");
    }
    void *data = NULL;
    if (facts.st_size > 0) {
        data = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) {
            return kn_fail(diag, KILN_E_IO, errno, "cannot map", path);
        }
    }
    out_map->data = data;
    out_map->size = (size_t)facts.st_size;
    kn_file_take_facts(&facts, &out_map->facts);
    return KILN_OK;
}

kiln_status kn_map_file_open(const char *path, kn_map_file *out_map, kiln_diag *diag)
{
    memset(out_map, 0, sizeof *out_map);
    int fd;
    do {
        /* O_NONBLOCK: a planted FIFO must not hang the open. */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? KILN_MISS
                   : kn_fail(diag, KILN_E_IO, errno, "cannot open", path);
    }
    kiln_status status = map_descriptor(fd, path, out_map, diag);
    (void)close(fd); /* the mapping keeps the file */
    return status;
}

void kn_map_file_close(kn_map_file *map)
{
    if (map->data != NULL) {
        (void)munmap((void *)(uintptr_t)map->data, map->size);
    }
    memset(map, 0, sizeof *map);
}
