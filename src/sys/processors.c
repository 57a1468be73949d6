/* How many processors this process may use: its affinity, bounded by the quota of its control group
 * and of those above it. A container that may use two of 64 processors must not start 64 compiles.
 * Anything that cannot be read counts as no limit. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/processor.h"
#include "sys/thread.h"

#define MAX_PROCESSORS 65536
#define MAX_CGROUP_PATH 4096

/* Reads the start of a small kernel file, whose size is not known beforehand. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t got = 0;
    ssize_t n = 1;
    while (got < size - 1 && n > 0) {
        n = read(fd, text + got, size - 1 - got);
        got += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    text[got] = '\0';
    return n >= 0;
}

static uint32_t whole_processors(uint64_t quota, uint64_t period)
{
    if (period == 0 || quota == 0 || quota / period >= MAX_PROCESSORS) {
        return UINT32_MAX;
    }
    return (uint32_t)((quota + period - 1) / period);
}

/* Version 2: "max 100000" or "150000 100000". */
static uint32_t quota_v2(const char *dir)
{
    char path[MAX_CGROUP_PATH + 64];
    char text[128];
    kn_text_putf(path, sizeof path, "%s/cpu.max", dir);
    if (!read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9') {
        return UINT32_MAX;
    }
    char *rest;
    uint64_t quota = strtoull(text, &rest, 10);
    return whole_processors(quota, strtoull(rest, NULL, 10));
}

/* Version 1: two files; a quota of -1 is none. */
static uint32_t quota_v1(const char *dir)
{
    char path[MAX_CGROUP_PATH + 64];
    char quota[64];
    char period[64];
    kn_text_putf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!read_text(path, quota, sizeof quota) || quota[0] == '-') {
        return UINT32_MAX;
    }
    kn_text_putf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (!read_text(path, period, sizeof period)) {
        return UINT32_MAX;
    }
    return whole_processors(strtoull(quota, NULL, 10), strtoull(period, NULL, 10));
}

/* The least quota of the group `group` of the hierarchy at `mount`, and of all groups above it. */
static uint32_t least_quota(uint32_t (*quota)(const char *dir), const char *mount,
                            const char *group)
{
    char dir[MAX_CGROUP_PATH];
    uint32_t least = UINT32_MAX;
    size_t mount_length = strlen(mount);

    /* The root is the mount itself, which the walk ends with in any case. */
    kn_text_putf(dir, sizeof dir, "%s%s", mount, strcmp(group, "/") != 0 ? group : "");
    for (;;) {
        uint32_t here = quota(dir);
        least = here < least ? here : least;
        char *end = strrchr(dir, '/');
        if (end == NULL || (size_t)(end - dir) < mount_length) {
            return least;
        }
        *end = '\0';
    }
}

/* True if `list` ("cpu,cpuacct") names the controller "cpu". */
static bool lists_cpu(const char *list)
{
    const char *p = list;
    while (p != NULL) {
        if (strncmp(p, "cpu", 3) == 0 && (p[3] == '\0' || p[3] == ',')) {
            return true;
        }
        p = strchr(p, ',');
        p = p != NULL ? p + 1 : NULL;
    }
    return false;
}

/* One line of /proc/self/cgroup: "0::/group" (version 2) or "4:cpu,cpuacct:/group" (version 1). */
static uint32_t quota_of_line(char *line, const char *mount)
{
    char v1_mount[MAX_CGROUP_PATH];
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL) {
        return UINT32_MAX;
    }
    *controllers++ = '\0';
    *group++ = '\0';
    if (controllers[0] == '\0') {
        return least_quota(quota_v2, mount, group);
    }
    if (!lists_cpu(controllers)) {
        return UINT32_MAX;
    }
    kn_text_putf(v1_mount, sizeof v1_mount, "%s/%s", mount, controllers);
    uint32_t by_list = least_quota(quota_v1, v1_mount, group);
    if (strcmp(controllers, "cpu") == 0) {
        return by_list;
    }
    kn_text_putf(v1_mount, sizeof v1_mount, "%s/cpu", mount);
    uint32_t by_name = least_quota(quota_v1, v1_mount, group);
    return by_list < by_name ? by_list : by_name;
}

uint32_t kn_thread_quota(const char *groups_file, const char *mount)
{
    char text[8192];
    char *save = NULL;
    uint32_t least = UINT32_MAX;

    if (!read_text(groups_file, text, sizeof text)) {
        return UINT32_MAX;
    }
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        uint32_t quota = quota_of_line(line, mount);
        least = quota < least ? quota : least;
    }
    return least;
}

/* 0 if unknown. The mask grows until it holds all the processors the kernel knows. */
static uint32_t processors_by_affinity(void)
{
    for (int count = 1024; count <= MAX_PROCESSORS; count *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)count);
        if (set == NULL) {
            return 0;
        }
        size_t size = CPU_ALLOC_SIZE((size_t)count);
        int result = sched_getaffinity(0, size, set);
        int error = errno;
        int processors = result == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (result == 0 || error != EINVAL) {
            return (uint32_t)processors;
        }
    }
    return 0;
}

uint32_t kn_thread_processors(void)
{
    uint32_t processors = processors_by_affinity();
    if (processors == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        processors = online > 0 ? (uint32_t)online : 1;
    }
    uint32_t quota = kn_thread_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota < processors ? quota : processors;
}

uint64_t kn_memory_limit(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    const uint64_t all = kn_processor_memory();
    uint64_t least = all != 0 ? all : UINT64_MAX;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char text[64];
        if (read_text(files[i], text, sizeof text) && text[0] >= '0' && text[0] <= '9') {
            const uint64_t limit = strtoull(text, NULL, 10);
            least = limit != 0 && limit < least ? limit : least;
        }
    }
    return least;
}
