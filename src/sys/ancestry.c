/* Who a process descends from, by /proc. This file must not know who asks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "sys/process.h"

/* The start of a file of /proc, which is read in one piece; 0: there is none. */
static size_t read_start(const char *path, char *text, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, text, room) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return got > 0 ? (size_t)got : 0;
}

/* 0: not known. "12 (name) S 11 ...": a name may have parentheses in it. */
static uint32_t find_parent(uint32_t process)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)process);
    text[read_start(path, text, sizeof text - 1)] = '\0';
    const char *after = strrchr(text, ')');
    return after != NULL && strlen(after) > 4 ? (uint32_t)strtoul(after + 4, NULL, 10) : 0;
}

size_t kn_process_ancestry(uint32_t *out_ids, size_t room)
{
    size_t count = 0;
    uint32_t process = kn_process_id();
    while (count < room && process != 0) {
        out_ids[count] = process;
        count++;
        process = count == 1 ? (uint32_t)getppid() : find_parent(process);
    }
    return count;
}

uint64_t kn_process_space(void)
{
    struct {
        uint64_t device, inode;
        char boot[40]; /* a number of 36 letters */
    } of;
    struct stat facts;
    memset(&of, 0, sizeof of);
    if (read_start("/proc/sys/kernel/random/boot_id", of.boot, sizeof of.boot) == 0 ||
        stat("/proc/self/ns/pid", &facts) != 0) {
        return 0;
    }
    of.device = (uint64_t)facts.st_dev;
    of.inode = (uint64_t)facts.st_ino;
    return kn_map_hash(&of, sizeof of);
}
