/* The precompiled header: found, or made by a process of its own next to this one, which nobody
 * waits for. Its name is a digest of all it is made of, so one that is there is right; it is put
 * there only if every file it was made of is still the one that the digest was taken from. */
#include "request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum {
    KEEP = 4,            /* headers kept in the directory, of about 100 to 200 MB each */
    MAKING_S = 120,      /* then the process that makes one is taken for dead, and exits */
    NEARLY_MS = 400,     /* one that is being made for so long is worth waiting for ... */
    WAIT_MS = 400,       /* ... so long */
    SPARE_PROCESSORS = 4 /* with fewer, it is made after the compile that is waited for */
};

static int64_t age_ms(const struct stat *facts)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec - facts->st_mtim.tv_sec) * 1000 +
           (now.tv_nsec - facts->st_mtim.tv_nsec) / 1000000;
}

/* Addresses differ between kernels: each has its own. FNV-1a of its release. */
static unsigned kernel_number(void)
{
    struct utsname name;
    unsigned hash = 2166136261U;
    if (uname(&name) == 0) {
        for (const char *p = name.release; *p != '\0'; p++) {
            hash = (hash ^ (unsigned char)*p) * 16777619U;
        }
    }
    return hash;
}

/* --- is it still made of what the digest says ------------------------------------------------- */

static int64_t ns_of_time(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static bool file_holds(const char *body)
{
    uint64_t expected[4];
    struct stat facts;
    memcpy(expected, body, sizeof(expected));
    const bool there = stat(body + sizeof(expected), &facts) == 0 && S_ISREG(facts.st_mode);
    if (expected[0] == UINT64_MAX) {
        return !there;
    }
    return there && (uint64_t)facts.st_size == expected[0] &&
           (uint64_t)ns_of_time(facts.st_mtim) == expected[1] &&
           (uint64_t)ns_of_time(facts.st_ctim) == expected[2] && facts.st_ino == expected[3];
}

static bool all_hold(const request *asked)
{
    for (size_t i = 0; i < asked->file_count; i++) {
        if (!file_holds(asked->files[i])) {
            return false;
        }
    }
    return true;
}

/* --- making ----------------------------------------------------------------------------------- */

typedef struct kept_header {
    char name[256];
    int64_t age;
} kept_header;

/* Adds a header to the newest KEEP; the oldest of one too many is removed. */
static void keep_newest(int dir, kept_header *kept, int *count, const char *entry, int64_t age)
{
    kept_header header = {.age = age};
    (void)snprintf(header.name, sizeof(header.name), "%s", entry);
    if (*count < KEEP) {
        kept[(*count)++] = header;
        return;
    }
    int oldest = 0;
    for (int i = 1; i < KEEP; i++) {
        oldest = kept[i].age > kept[oldest].age ? i : oldest;
    }
    if (kept[oldest].age > age) {
        (void)unlinkat(dir, kept[oldest].name, 0);
        kept[oldest] = header;
    } else {
        (void)unlinkat(dir, header.name, 0);
    }
}

/* Removes all but the newest KEEP headers, and what dead makers left. */
static void sweep_headers(const char *path)
{
    char dir[4096];
    kept_header kept[KEEP];
    int count = 0;
    (void)snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = '\0';
    DIR *list = opendir(dir);
    const struct dirent *entry = NULL;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        struct stat facts;
        const char *ending = strrchr(entry->d_name, '.');
        if (strspn(entry->d_name, "0123456789abcdef") < 64 || ending == NULL || /* not ours */
            fstatat(dirfd(list), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (strcmp(ending, ".pch") != 0) {
            if (age_ms(&facts) > (strcmp(ending, ".no") == 0 ? 7 * 86400 : MAKING_S) * 1000LL) {
                (void)unlinkat(dirfd(list), entry->d_name, 0);
            }
            continue;
        }
        keep_newest(dirfd(list), kept, &count, entry->d_name, age_ms(&facts));
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

static void touch_file(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        (void)close(file);
    }
}

/* In the process of its own. `making` is its claim, `wait_on` ends when the compile is answered. */
static void make_header(request *asked, const char *path, const char *making, int wait_on)
{
    char temporary[4200];
    char never[4200];
    char byte;
    bool refused = false;
    (void)setsid();
    (void)alarm(MAKING_S);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; null >= 0 && i < 3; i++) {
        (void)dup2(null, i);
    }
    if (wait_on >= 0) {
        (void)!read(wait_on, &byte, 1);
        (void)close(wait_on);
    }
    (void)!nice(5);
    (void)snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", path, (long)getpid());
    (void)snprintf(never, sizeof(never), "%s.no", path);
    asked->source[asked->leading] = '\0';
    if (!compile(asked, PCH_CREATE, temporary, false, &refused)) {
        touch_file(never); /* it would fail every time */
    } else if (all_hold(asked)) {
        (void)chmod(temporary, 0600);
        (void)rename(temporary, path);
        sweep_headers(path);
    }
    (void)unlink(temporary);
    (void)unlink(making);
}

static int count_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Starts the process that makes the header, as nobody's child. */
static void start_maker(request *asked, const char *path, const char *making)
{
    int ends[2] = {-1, -1};
    if (count_processors() < SPARE_PROCESSORS && pipe2(ends, O_CLOEXEC) != 0) {
        (void)unlink(making);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        if (ends[1] >= 0) {
            (void)close(ends[1]);
        }
        make_header(asked, path, making, ends[0]);
        _exit(0);
    }
    if (child < 0) {
        (void)unlink(making);
    }
    if (ends[0] >= 0) {
        (void)close(ends[0]); /* the other end is closed by this process's end */
    }
}

/* True when the header is there after all. */
static bool wait_for(const char *path, const char *making)
{
    struct stat facts;
    const struct timespec step = {0, 10000000};
    if (stat(making, &facts) != 0) {
        return access(path, R_OK) == 0;
    }
    if (age_ms(&facts) > MAKING_S * 1000LL) {
        (void)unlink(making);
        return false;
    }
    if (age_ms(&facts) < NEARLY_MS) {
        return false;
    }
    for (int waited = 0; waited < WAIT_MS; waited += 10) {
        if (access(path, R_OK) == 0) {
            return true;
        }
        (void)nanosleep(&step, NULL);
    }
    return false;
}

pch_use precompile(request *asked, char *path)
{
    char making[4200];
    char never[4200];
    int length = snprintf(path, 4096, "%s-%08x.pch", asked->pch, kernel_number());
    if (length <= 0 || length >= 4000) {
        return PCH_NONE;
    }
    if (access(path, R_OK) == 0) {
        (void)utimensat(AT_FDCWD, path, NULL, 0);
        return PCH_USE;
    }
    (void)snprintf(making, sizeof(making), "%s.making", path);
    (void)snprintf(never, sizeof(never), "%s.no", path);
    if (access(never, F_OK) == 0) {
        return PCH_NONE;
    }
    int claim = open(making, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (claim >= 0) {
        (void)close(claim);
        start_maker(asked, path, making);
        return PCH_NONE;
    }
    return errno == EEXIST && wait_for(path, making) ? PCH_USE : PCH_NONE;
}
