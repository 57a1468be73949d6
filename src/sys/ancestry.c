/* Who a process descends from, and whether it runs, by /proc. This file must not know who asks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* What proc(5) says of a process' first thread. */
typedef struct process_stat {
    char state;
    uint64_t parent, threads, start; /* fields 4, 20, 22 */
} process_stat;

/* False: not known. "12 (name) S 11 ...": a name may have parentheses in it. */
static bool read_stat(const char *path, process_stat *out)
{
    char text[512];
    uint64_t fields[23] = {0};
    text[read_start(path, text, sizeof text - 1)] = '\0';
    char *after = strrchr(text, ')');
    if (after == NULL || strlen(after) < 4) {
        return false;
    }
    char *next = after + 3;
    for (size_t i = 4; i < sizeof fields / sizeof *fields; i++) {
        fields[i] = strtoull(next, &next, 10);
    }
    *out = (process_stat){
        .state = after[2], .parent = fields[4], .threads = fields[20], .start = fields[22]};
    return *next == ' ';
}

static bool read_stat_of(uint32_t process, process_stat *out)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%u/task/%u/stat", (unsigned)process,
                   (unsigned)process);
    return read_stat(path, out);
}

/* 0: not known. */
static uint32_t find_parent(uint32_t process)
{
    process_stat stat;
    return read_stat_of(process, &stat) ? (uint32_t)stat.parent : 0;
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

uint64_t kn_process_clock(void)
{
    struct stat facts;
    return stat("/proc/self/ns/time", &facts) == 0 ? (uint64_t)facts.st_ino : 0;
}

/* Linux' largest number of a process has so many bits. */
#define NUMBERS (UINT32_C(1) << 22)

static uint32_t make_tag(uint32_t process, uint64_t start)
{
    return (uint32_t)(start * NUMBERS) | process % NUMBERS;
}

uint32_t kn_process_tag(void)
{
    char path[64];
    process_stat own;
    /* There only if /proc is mounted for this pid namespace. Not /proc/self/stat: QEMU's user mode
     * makes that one up. */
    (void)snprintf(path, sizeof path, "/proc/self/task/%u/stat", (unsigned)kn_process_id());
    return read_stat(path, &own) ? make_tag(kn_process_id(), own.start) : 0;
}

static bool is_stopped(char state)
{
    return strchr("TtXx", state) != NULL;
}

/* By one of the threads that are left when the first has ended. */
static bool are_others_stopped(uint32_t process)
{
    char path[64];
    process_stat stat;
    bool found = false, stopped = false;
    (void)snprintf(path, sizeof path, "/proc/%u/task", (unsigned)process);
    DIR *list = opendir(path);
    const struct dirent *row = list != NULL ? readdir(list) : NULL;
    for (; row != NULL && !found; row = readdir(list)) {
        const unsigned thread = (unsigned)strtoul(row->d_name, NULL, 10); /* 0 of "." and ".." */
        (void)snprintf(path, sizeof path, "/proc/%u/task/%u/stat", (unsigned)process, thread);
        found = thread != 0 && thread != process && read_stat(path, &stat);
        stopped = found && is_stopped(stat.state);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return stopped;
}

bool kn_process_is_halted(uint32_t tag)
{
    process_stat stat;
    const uint32_t process = tag % NUMBERS;
    if (!read_stat_of(process, &stat)) {
        /* It may be hidden (hidepid). */
        return kill((pid_t)process, 0) != 0 && errno == ESRCH;
    }
    if (make_tag(process, stat.start) != tag) {
        return true; /* another one has its number */
    }
    return is_stopped(stat.state) ||
           (stat.state == 'Z' && (stat.threads <= 1 || are_others_stopped(process)));
}
