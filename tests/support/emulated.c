/* Preloaded into programs under QEMU: a program of the emulated machine that they start runs under
 * QEMU, too, where the kernel knows nothing of such programs. EMULATED_BY and EMULATED_ROOT say
 * how. They are not called KILN_*: tests clear what is. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 1024 };

/* Whether it is a program for the machine that this file was compiled for. */
static int is_foreign(const char *path)
{
    Elf64_Ehdr self;
    Elf64_Ehdr other;
    int a = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int b = open(path, O_RDONLY | O_CLOEXEC);
    int same = a >= 0 && b >= 0 && access(path, X_OK) == 0 &&
               read(a, &self, sizeof self) == (ssize_t)sizeof self &&
               read(b, &other, sizeof other) == (ssize_t)sizeof other &&
               memcmp(other.e_ident, ELFMAG, SELFMAG) == 0 && other.e_machine == self.e_machine;
    if (a >= 0) {
        (void)close(a);
    }
    if (b >= 0) {
        (void)close(b);
    }
    return same && getenv("EMULATED_BY") != NULL && getenv("EMULATED_ROOT") != NULL;
}

/* QEMU's own arguments before the program's. */
static char **with_emulator(const char *path, char *const argv[], char *into[MAX_WORDS])
{
    size_t used = 0;
    into[used++] = getenv("EMULATED_BY");
    into[used++] = (char *)"-L";
    into[used++] = getenv("EMULATED_ROOT");
    into[used++] = (char *)"-0";
    into[used++] = argv[0];
    into[used++] = (char *)path;
    for (size_t i = 1; argv[0] != NULL && argv[i] != NULL && used < MAX_WORDS - 1; i++) {
        into[used++] = argv[i];
    }
    into[used] = NULL;
    return into;
}

/* The machine's own programs cannot load what is preloaded here, and would say so. */
static char **without_preload(char *const envp[], char *into[MAX_WORDS])
{
    size_t used = 0;
    for (size_t i = 0; envp != NULL && envp[i] != NULL && used < MAX_WORDS - 1; i++) {
        if (strncmp(envp[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0) {
            into[used++] = envp[i];
        }
    }
    into[used] = NULL;
    return into;
}

typedef int exec_call(const char *, char *const[], char *const[]);
typedef int spawn_call(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);

static void *find_next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        (void)fprintf(stderr, "emulated: %s: %s\n", name, dlerror());
        abort();
    }
    return found;
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    char *all[MAX_WORDS];
    exec_call *next = NULL;
    *(void **)&next = find_next("execve");
    return is_foreign(path) ? next(getenv("EMULATED_BY"), with_emulator(path, argv, all), envp)
                            : next(path, argv, without_preload(envp, all));
}

int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

/* By PATH only the machine's own programs are found. */
int execvp(const char *file, char *const argv[])
{
    char *all[MAX_WORDS];
    int (*next)(const char *, char *const[], char *const[]) = NULL;
    *(void **)&next = find_next("execvpe");
    return strchr(file, '/') != NULL ? execve(file, argv, environ)
                                     : next(file, argv, without_preload(environ, all));
}

/* QEMU makes a fork of the library's vfork: what the child says of a program that is not there does
 * not reach its parent. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    char *all[MAX_WORDS];
    spawn_call *next = NULL;
    *(void **)&next = find_next("posix_spawn");
    if (access(path, X_OK) != 0) {
        return errno;
    }
    return is_foreign(path)
               ? next(pid, getenv("EMULATED_BY"), actions, attributes,
                      with_emulator(path, argv, all), envp)
               : next(pid, path, actions, attributes, argv, without_preload(envp, all));
}
