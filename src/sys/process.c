/* Running a child process with bounded time and output; see process.h.
 *
 * Input is handed over as an unnamed file, so that nothing has to be written while the child runs
 * and no SIGPIPE can come of it. The end of the child is seen through a pidfd where the kernel has
 * them, else by asking a hundred times a second. */
#include "sys/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/facts.h"
#include "sys/fail.h"
#include "sys/paths.h"
#include "sys/umask.h"

#define DEFAULT_OUTPUT ((size_t)1 << 20)
#define GRACE_NS UINT64_C(1000000000)
#define TICK_MS 10
/* Blocks taken in one go: a child that never stops writing must not hide its limit. */
#define MAX_BLOCKS 64

typedef enum phase {
    PHASE_RUNNING,
    PHASE_KILLED, /* the limit has passed, the group was killed */
    PHASE_ENDED,  /* waited for */
    PHASE_LOST,   /* another waiter took the status, or the child is stuck */
} phase;

typedef struct child {
    pid_t pid;
    int pidfd;
    int input;      /* what becomes the child's 0 */
    int reading[2]; /* our ends of its 1 and 2; -1 after their end */
    int writing[2]; /* its ends */
    kn_strbuf output[2];
    uint64_t deadline_ns; /* 0: none */
    phase phase;
    int wait_status;
    bool timed_out;
} child;

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* ---- preparing ---- */

/* Descriptors 0 to 2 are targets of the child's dup2: what is below 3 moves up. */
static int move_up(int fd)
{
    if (fd < 0 || fd > 2) {
        return fd;
    }
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    (void)close(fd);
    errno = error;
    return moved;
}

static int unnamed_file(void)
{
    int fd = memfd_create("kiln-input", MFD_CLOEXEC);
    if (fd < 0) { /* forbidden, or not there */
        char *dir = kn_paths_temporary();
        fd = dir != NULL ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
        free(dir);
    }
    return fd;
}

static int open_input(const kn_process_request *request)
{
    if (request->input == NULL) {
        return move_up(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    int fd = move_up(unnamed_file());
    const char *from = request->input;
    size_t left = request->input_size;
    if (!kn_file_may_reach(left)) {
        close_fd(&fd);
    }
    while (fd >= 0 && left > 0) {
        ssize_t n = write(fd, from, left);
        if (n > 0) {
            from += n;
            left -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            close_fd(&fd);
        }
    }
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) != 0) {
        close_fd(&fd);
    }
    return fd;
}

static bool open_pipe(int *out_reading, int *out_writing)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    *out_reading = move_up(ends[0]);
    *out_writing = move_up(ends[1]);
    return *out_reading >= 0 && *out_writing >= 0 && fcntl(*out_reading, F_SETFL, O_NONBLOCK) == 0;
}

static bool same_name(const char *a, const char *b)
{
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

static bool is_variable_replaced(const char *entry, const char *const *extra)
{
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        if (same_name(extra[i], entry)) {
            return true;
        }
    }
    return false;
}

/* The parent's environment with `extra` over it; only the array is malloc'ed. */
static char **merge_environment(const char *const *extra)
{
    size_t count = 1;
    for (size_t i = 0; environ != NULL && environ[i] != NULL; i++) {
        count++;
    }
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        count++;
    }
    char **merged = calloc(count, sizeof *merged);
    size_t used = 0;
    if (merged == NULL) {
        return NULL;
    }
    for (size_t i = 0; environ != NULL && environ[i] != NULL && used < count - 1; i++) {
        if (!is_variable_replaced(environ[i], extra)) {
            merged[used++] = environ[i];
        }
    }
    for (size_t i = 0; extra != NULL && extra[i] != NULL && used < count - 1; i++) {
        merged[used++] = (char *)(uintptr_t)extra[i]; /* posix_spawn's type; it changes nothing */
    }
    return merged;
}

/* ---- starting ---- */

/* What another library opened without O_CLOEXEC is not for the child: GPU devices, sockets. */
static int add_closes(posix_spawn_file_actions_t *actions)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    return posix_spawn_file_actions_addclosefrom_np(actions, 3);
#else /* those that are open now; closing one that no longer is does no harm */
    int error = 0;
    DIR *list = opendir("/proc/self/fd");
    const struct dirent *row = list != NULL ? readdir(list) : NULL;
    for (; row != NULL && error == 0; row = readdir(list)) {
        const int number = (int)strtol(row->d_name, NULL, 10); /* 0 of "." and ".." */
        if (number > STDERR_FILENO && number != dirfd(list)) {
            error = posix_spawn_file_actions_addclose(actions, number);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return error;
#endif
}

static int set_actions(posix_spawn_file_actions_t *actions, const child *c, const char *dir)
{
    int error = posix_spawn_file_actions_adddup2(actions, c->input, STDIN_FILENO);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(actions, c->writing[0], STDOUT_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(actions, c->writing[1], STDERR_FILENO);
    }
    if (error == 0 && dir != NULL) {
        error = posix_spawn_file_actions_addchdir_np(actions, dir);
    }
    return error == 0 ? add_closes(actions) : error;
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) {
        error = posix_spawnattr_setpgroup(attributes, 0);
    }
    if (error == 0) {
        error = posix_spawnattr_setsigmask(attributes, &none);
    }
    if (error == 0) {
        error = posix_spawnattr_setsigdefault(attributes, &all);
    }
    return error;
}

typedef struct spawn_call {
    pid_t *pid;
    const char *path;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    const char *const *argv;
    char **environment;
    int error;
} spawn_call;

static void spawn_once(void *user)
{
    spawn_call *call = user;
    call->error = posix_spawn(call->pid, call->path, call->actions, call->attributes,
                              (char *const *)(uintptr_t)call->argv, call->environment);
}

/* A compiler could not read the files that it makes under some umasks. */
static int run_spawn(spawn_call *call)
{
    if (kn_umask_takes_owners()) {
        kn_umask_run_private(spawn_once, call);
    } else {
        spawn_once(call);
    }
    return call->error;
}

/* 0 or errno. */
static int spawn_child(child *c, const kn_process_request *request, char **environment)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = set_actions(&actions, c, request->dir);
        if (error == 0) {
            error = set_attributes(&attributes);
        }
        if (error == 0) {
            spawn_call call = {&c->pid,       request->argv[0], &actions, &attributes,
                               request->argv, environment,      0};
            error = run_spawn(&call);
        }
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* ---- watching ---- */

/* Takes what has come through one pipe. What is over the limit is read and dropped, so that the
 * child never waits for us. */
static void drain_output(child *c, int which)
{
    char block[16384];
    for (int blocks = 0; blocks < MAX_BLOCKS && c->reading[which] >= 0; blocks++) {
        ssize_t n = read(c->reading[which], block, sizeof block);
        if (n > 0) {
            kn_strbuf *output = &c->output[which];
            size_t room = output->limit - output->length;
            kn_strbuf_append(output, block, (size_t)n < room ? (size_t)n : room);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            close_fd(&c->reading[which]);
        }
    }
}

static void check_ended(child *c)
{
    pid_t pid;
    do {
        pid = waitpid(c->pid, &c->wait_status, WNOHANG);
    } while (pid < 0 && errno == EINTR);
    if (pid == c->pid) {
        c->phase = PHASE_ENDED;
    } else if (pid < 0) {
        c->phase = PHASE_LOST;
    }
}

static void check_deadline(child *c)
{
    if (c->deadline_ns == 0 || kn_clock_now() < c->deadline_ns) {
        return;
    }
    if (c->phase == PHASE_RUNNING) {
        c->timed_out = true;
        c->phase = PHASE_KILLED;
        c->deadline_ns += GRACE_NS;
        /* The child is not waited for yet, so its number cannot be another group's. */
        (void)kill(-c->pid, SIGKILL);
    } else {
        c->phase = PHASE_LOST;
    }
}

static int wait_ms(const child *c)
{
    uint64_t now = kn_clock_now();
    uint64_t left = c->deadline_ns == 0    ? UINT64_MAX
                    : c->deadline_ns > now ? (c->deadline_ns - now + 999999) / 1000000
                                           : 0;
    if (c->pidfd < 0 && left > TICK_MS) {
        return TICK_MS;
    }
    return left == UINT64_MAX ? -1 : left > 60000 ? 60000 : (int)left;
}

static void watch_child(child *c)
{
    while (c->phase == PHASE_RUNNING || c->phase == PHASE_KILLED) {
        struct pollfd fds[3] = {{.fd = c->reading[0], .events = POLLIN},
                                {.fd = c->reading[1], .events = POLLIN},
                                {.fd = c->pidfd, .events = POLLIN}};
        (void)poll(fds, 3, wait_ms(c)); /* an error is as good as a tick */
        drain_output(c, 0);
        drain_output(c, 1);
        check_ended(c);
        if (c->phase == PHASE_RUNNING || c->phase == PHASE_KILLED) {
            check_deadline(c);
        }
    }
    /* Its last words. A descendant that lives on may hold the pipes: nobody waits for that one. */
    drain_output(c, 0);
    drain_output(c, 1);
}

/* ---- the whole ---- */

static kiln_status give_result(child *c, kn_process_result *out, const char *program,
                               kiln_diag *diag)
{
    out->lost = c->phase == PHASE_LOST && !c->timed_out;
    if (out->lost) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "do not ignore SIGCHLD, nor wait for children that are not yours",
                             program, "its exit status was taken by another part of this program");
    }
    if (!kn_strbuf_ok(&c->output[0]) || !kn_strbuf_ok(&c->output[1])) {
        return kn_fail_nomem(diag, "cannot keep the output of", program);
    }
    out->timed_out = c->timed_out;
    if (c->phase == PHASE_ENDED && WIFEXITED(c->wait_status)) {
        out->exit_code = WEXITSTATUS(c->wait_status);
    } else if (c->phase == PHASE_ENDED && WIFSIGNALED(c->wait_status)) {
        out->signal = WTERMSIG(c->wait_status);
    }
    if (c->output[0].length > 0) {
        out->out = kn_strbuf_detach(&c->output[0], &out->out_size);
    }
    if (c->output[1].length > 0) {
        out->err = kn_strbuf_detach(&c->output[1], &out->err_size);
    }
    return KILN_OK;
}

static kiln_status start_child(child *c, const kn_process_request *request, kiln_diag *diag)
{
    c->input = open_input(request);
    if (c->input < 0 && request->input == NULL) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, errno, "cannot open", "/dev/null");
    }
    if (c->input < 0 || !open_pipe(&c->reading[0], &c->writing[0]) ||
        !open_pipe(&c->reading[1], &c->writing[1])) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, errno, "cannot start", request->argv[0]);
    }
    char **environment = merge_environment(request->environment);
    if (environment == NULL) {
        return kn_fail_nomem(diag, "cannot start", request->argv[0]);
    }
    int error = spawn_child(c, request, environment);
    free(environment);
    if (error != 0) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, error, "cannot start", request->argv[0]);
    }
    uint64_t now = kn_clock_now();
    if (request->limit_ns != 0 && request->limit_ns < UINT64_MAX - GRACE_NS - now) {
        c->deadline_ns = now + request->limit_ns;
    }
    return KILN_OK;
}

kiln_status kn_process_run(const kn_process_request *request, kn_process_result *out_result,
                           kiln_diag *diag)
{
    child c = {.pid = -1, .pidfd = -1, .input = -1, .reading = {-1, -1}, .writing = {-1, -1}};
    size_t limit = request->output_limit != 0 ? request->output_limit : DEFAULT_OUTPUT;

    *out_result = (kn_process_result){.exit_code = -1};
    kn_strbuf_init(&c.output[0], limit);
    kn_strbuf_init(&c.output[1], limit);

    kiln_status status = start_child(&c, request, diag);
    close_fd(&c.input);
    close_fd(&c.writing[0]);
    close_fd(&c.writing[1]);
    if (status == KILN_OK) {
        c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
        watch_child(&c);
        status = give_result(&c, out_result, request->argv[0], diag);
    }
    close_fd(&c.pidfd);
    close_fd(&c.reading[0]);
    close_fd(&c.reading[1]);
    kn_strbuf_deinit(&c.output[0]);
    kn_strbuf_deinit(&c.output[1]);
    return status;
}

void kn_process_result_deinit(kn_process_result *result)
{
    free(result->out);
    free(result->err);
    *result = (kn_process_result){.exit_code = -1};
}

void kn_process_rights(char *text, size_t size)
{
    enum { GROUPS = 256 };
    gid_t groups[GROUPS];
    size_t used = 0;
    const int count = getgroups(GROUPS, groups);
    kn_text_putf(text, size, "%lu:%lu:", (unsigned long)geteuid(), (unsigned long)getegid());
    for (int i = 0; i < count; i++) {
        used = strlen(text);
        kn_text_putf(text + used, size - used, "%s%lu", i > 0 ? "," : "", (unsigned long)groups[i]);
    }
}

uint32_t kn_process_id(void)
{
    return (uint32_t)getpid();
}

const char *kn_process_signal_name(int signal)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGABRT, "SIGABRT"}, {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
        {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"},
        {SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"}, {SIGSYS, "SIGSYS"},
        {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].number == signal) {
            return names[i].name;
        }
    }
    return "an unknown signal";
}
