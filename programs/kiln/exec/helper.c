/* Starts workers, and speaks with them (interpose/replay.h). POSIX. */
#include "exec/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/diag.h"
#include "exec/environment.h"
#include "ship/scratch.h"

extern char **environ;

/* Workers that have nothing to do, of all targets: each holds a compiler or driver in memory. */
enum { HELPERS_MAX = 1024, IDLE_MAX = 8, LOG_MAX = 16 << 20 };

typedef struct helper {
    pid_t process;
    FILE *answers;      /* its socket, which takes the questions, too */
    const char *target; /* of its runtime; NULL: it makes calls */
    int back;           /* its compilers: how many newer ones there are */
    uint64_t turn;      /* of its last program */
    bool busy;
} helper;

struct exec_helpers {
    cli_pool *pool;
    host_mutex *mutex;
    const char *program; /* NULL: not found */
    const char *recording;
    const char *scratch;   /* the workers' directory; removes what a killed one leaves */
    char **plain, **under; /* variables: without, and with kiln's libraries under compilers */
    uint64_t put_failures, turns;
    kiln_diag trouble; /* why there is none */
    helper helpers[HELPERS_MAX];
    size_t count;
};

/* --- the environment -------------------------------------------------------------------------- */

static bool is_set_by(const exec_environment *environment, const char *variable)
{
    const size_t length = strcspn(variable, "=");
    for (size_t i = 0; i < environment->count; i++) {
        const char *name = environment->settings[i].name;
        if (strlen(name) == length && memcmp(name, variable, length) == 0) {
            return true;
        }
    }
    return false;
}

/* This process's variables under the settings. A replayed compile is neither recorded again, with
 * this machine's paths, nor reported. NULL: no memory. */
static char **list_variables(cli_pool *pool, exec_environment *environment, const char *cache_root)
{
    size_t count = 0, made = 0;
    exec_environment_add(environment, "KILN_CACHE_DIR", cache_root);
    exec_environment_add(environment, "KILN_RECORD", "");
    exec_environment_add(environment, "KILN_KEEP_SOURCES", "0");
    exec_environment_add(environment, "KILN_EXEC_REPORT", "");
    if (environment->failed) {
        return NULL;
    }
    while (environ[count] != NULL) {
        count++;
    }
    char **variables = pool_array(pool, count + environment->count + 1, sizeof(*variables));
    for (size_t i = 0; variables != NULL && i < count; i++) {
        if (!is_set_by(environment, environ[i])) {
            variables[made++] = environ[i];
        }
    }
    for (size_t i = 0; variables != NULL && i < environment->count; i++) {
        variables[made] = pool_format(pool, "%s=%s", environment->settings[i].name,
                                      environment->settings[i].value);
        if (variables[made++] == NULL) {
            return NULL;
        }
    }
    return variables;
}

kiln_status exec_helpers_create(cli_pool *pool, host_mutex *mutex, const char *cache_root,
                                const char *recording, exec_helpers **out_helpers, kiln_diag *diag)
{
    exec_environment environment, plain = {.pool = pool};
    exec_helpers *helpers = pool_alloc(pool, sizeof(*helpers));
    *out_helpers = helpers;
    if (helpers == NULL) {
        return diag_no_memory(diag, "starting a helper");
    }
    *helpers =
        (exec_helpers){.pool = pool, .mutex = mutex, .recording = host_absolute(pool, recording)};
    (void)signal(SIGPIPE, SIG_IGN); /* a helper that has gone is an error of the write */
    if (exec_environment_make(pool, NULL, &environment, &helpers->trouble) != KILN_OK ||
        scratch_make(pool, &helpers->scratch, &helpers->trouble) != KILN_OK) {
        return KILN_OK; /* the first one says so */
    }
    helpers->program = pool_format(pool, "%s/kiln-replay", environment.libraries);
    helpers->plain = list_variables(pool, &plain, cache_root);
    helpers->under = list_variables(pool, &environment, cache_root);
    const bool good = helpers->program != NULL && helpers->recording != NULL &&
                      helpers->plain != NULL && helpers->under != NULL;
    return good ? KILN_OK : diag_no_memory(diag, "starting a helper");
}

/* --- processes -------------------------------------------------------------------------------- */

/* Its status, as waitpid(2) gives it. */
static int end_helper(helper *one)
{
    int status = 0;
    if (one->answers != NULL) {
        (void)fclose(one->answers); /* the end of its input */
    }
    while (one->process > 0 && waitpid(one->process, &status, 0) < 0 && errno == EINTR) {
    }
    *one = (helper){.target = one->target, .back = one->back, .turn = one->turn, .busy = one->busy};
    return status;
}

void exec_helpers_destroy(exec_helpers *helpers)
{
    for (size_t i = 0; helpers != NULL && i < helpers->count; i++) {
        (void)end_helper(&helpers->helpers[i]);
    }
    if (helpers != NULL) {
        scratch_remove(helpers->scratch);
        kiln_diag_clear(&helpers->trouble);
    }
}

/* It leads a group, as compilers do: the command passes signals on to it, and it to its compilers.
 */
static int spawn_leader(const char *program, char *const *argv, char *const *variables, int end,
                        pid_t *out_process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, end, STDIN_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, end, STDOUT_FILENO);
        error = posix_spawn(out_process, program, &actions, &attributes, argv, variables);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

static kiln_status spawn_helper(const exec_helpers *helpers, helper *one, int end, kiln_diag *diag)
{
    char back[16];
    char *argv[] = {(char *)(uintptr_t)helpers->program, (char *)(uintptr_t)helpers->recording,
                    back, (char *)(uintptr_t)helpers->scratch, NULL};
    (void)snprintf(back, sizeof(back), "%d", one->back);
    const int error =
        spawn_leader(helpers->program, argv, one->target != NULL ? helpers->plain : helpers->under,
                     end, &one->process);
    return error == 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the whole package kiln",
                               helpers->program, "it cannot be started: %s", strerror(error));
}

/* Under the mutex: a socket that another worker inherits would not end with its own. */
static kiln_status start_helper(exec_helpers *helpers, helper *one, kiln_diag *diag)
{
    int ends[2] = {-1, -1};
    kiln_status status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
        fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0 ||
        (one->answers = fdopen(ends[0], "r")) == NULL) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "starting a helper", "%s",
                               strerror(errno));
    } else {
        status = spawn_helper(helpers, one, ends[1], diag);
    }
    if (one->answers == NULL && ends[0] >= 0) {
        (void)close(ends[0]);
    }
    if (ends[1] >= 0) {
        (void)close(ends[1]);
    }
    return status;
}

static bool is_for(const helper *one, const char *target, int back)
{
    return one->back == back &&
           (one->target == NULL || target == NULL ? one->target == target
                                                  : strcmp(one->target, target) == 0);
}

/* Under the mutex: one that has nothing to do, of that target or version; else, where many have
 * nothing to do, the one that was used the longest time ago. */
static helper *find_idle(exec_helpers *helpers, const char *target, int back)
{
    helper *oldest = NULL;
    size_t idle = 0;
    for (size_t i = 0; i < helpers->count; i++) {
        helper *one = &helpers->helpers[i];
        if (one->busy) {
            continue;
        }
        if (is_for(one, target, back)) {
            return one;
        }
        if (one->process > 0) {
            idle++;
            oldest = oldest == NULL || one->turn < oldest->turn ? one : oldest;
        }
    }
    return idle >= IDLE_MAX ? oldest : NULL;
}

/* NULL: all are busy. */
static helper *take_helper(exec_helpers *helpers, const char *target, int back)
{
    host_mutex_lock(helpers->mutex);
    helper *found = find_idle(helpers, target, back);
    if (found == NULL && helpers->count < HELPERS_MAX) {
        found = &helpers->helpers[helpers->count++];
        *found = (helper){.target = target, .back = back};
    }
    if (found != NULL) {
        found->busy = true;
        found->turn = ++helpers->turns;
    }
    host_mutex_unlock(helpers->mutex);
    if (found != NULL && !is_for(found, target, back)) {
        (void)end_helper(found);
        found->target = target;
        found->back = back;
    }
    return found;
}

static void give_helper_back(exec_helpers *helpers, helper *one, const kn_replay_answer *answer)
{
    host_mutex_lock(helpers->mutex);
    one->busy = false;
    helpers->put_failures += answer->put_failures;
    host_mutex_unlock(helpers->mutex);
}

/* --- a program -------------------------------------------------------------------------------- */

/* False where the worker has gone. */
static bool ask_helper(const helper *one, const kn_replay_question *question, kn_replay_answer *out,
                       kiln_diag *diag)
{
    const size_t size = sizeof(*question);
    if (write(fileno(one->answers), question, size) != (ssize_t)size ||
        fread(out, sizeof(*out), 1, one->answers) != 1 || out->diag.log_length > LOG_MAX) {
        return false;
    }
    const size_t length = out->diag.log_length;
    out->diag.log = length > 0 ? malloc(length) : NULL;
    if (length > 0 &&
        (out->diag.log == NULL || fread(out->diag.log, length, 1, one->answers) != 1)) {
        free(out->diag.log);
        return false;
    }
    if (out->diag.status != KILN_OK) {
        (void)kiln_diag_set(diag, out->diag.status, out->diag.fix, out->diag.what, "%s",
                            out->diag.why);
        kiln_diag_set_log(diag, out->diag.log, length);
        kiln_diag_set_vendor_code(diag, out->diag.vendor_code);
    }
    free(out->diag.log);
    out->diag.log = NULL;
    return true;
}

/* Its worker has gone; it has cost this program alone. */
static kiln_status judge_end(const char *name, int status, bool *out_tried, kiln_diag *diag)
{
    enum { NO_CORE = 2 };
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CORE) {
        *out_tried = false;
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", name,
                             "kiln's libraries do not stand under the worker's compiler");
    }
    return kiln_diag_set(diag, KILN_E_INTERNAL, NULL, name,
                         "the compiler's process ended without an answer: %s",
                         host_signal_name(WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

/* `*out_tried` false: no worker could try it. */
static kiln_status use_helper(exec_helpers *helpers, const char *target, int back, const char *name,
                              const kn_replay_question *question, kn_replay_answer *out,
                              bool *out_tried, kiln_diag *diag)
{
    helper *one = take_helper(helpers, target, back);
    *out_tried = one != NULL;
    if (one == NULL) {
        return kiln_diag_set(diag, KILN_E_BUSY, "give a smaller --jobs", name,
                             "%d helpers are busy", HELPERS_MAX);
    }
    host_mutex_lock(helpers->mutex);
    kiln_status status = one->process > 0 ? KILN_OK : start_helper(helpers, one, diag);
    host_mutex_unlock(helpers->mutex);
    if (status != KILN_OK) {
        *out_tried = false;
        (void)end_helper(one);
    } else if (ask_helper(one, question, out, diag)) {
        *out_tried = !out->lacks_runtime;
        status = out->diag.status;
    } else {
        memset(out, 0, sizeof(*out));
        status = judge_end(name, end_helper(one), out_tried, diag); /* the next gets another */
    }
    give_helper_back(helpers, one, out);
    return status;
}

kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, size_t index,
                              const kiln_key *wanted, const char *target, kn_replay_answer *out,
                              kiln_diag *diag)
{
    bool tried = true;
    kn_replay_question question = {.index = index, .is_bound = wanted != NULL};
    (void)snprintf(question.target, sizeof(question.target), "%s", target);
    memset(out, 0, sizeof(*out));
    if (helpers->program == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, helpers->trouble.fix, name, "%s",
                             helpers->trouble.why);
    }
    for (int back = 0; wanted != NULL && !out->oldest; back++) {
        question.wanted = *wanted;
        const kiln_status status =
            use_helper(helpers, NULL, back, name, &question, out, &tried, diag);
        if (status != KILN_OK || !out->other) {
            return status;
        }
    }
    question.is_bound = false;
    return use_helper(helpers, NULL, 0, name, &question, out, &tried, diag);
}

bool exec_helpers_compile(exec_helpers *helpers, const char *name, size_t index, const char *target,
                          kn_replay_answer *out, kiln_status *out_status, kiln_diag *diag)
{
    bool tried = false;
    kn_replay_question question = {.index = index};
    (void)snprintf(question.target, sizeof(question.target), "%s", target);
    memset(out, 0, sizeof(*out));
    if (helpers->program != NULL) {
        *out_status = use_helper(helpers, target, 0, name, &question, out, &tried, diag);
    }
    if (!tried) {
        kiln_diag_clear(diag);
    }
    return tried;
}

uint64_t exec_helpers_put_failures(const exec_helpers *helpers)
{
    return helpers != NULL ? helpers->put_failures : 0;
}
