/* Starts workers, and speaks with them (interpose/replay.h). POSIX. */
#include "exec/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/diag.h"
#include "exec/environment.h"
#include "ship/scratch.h"

extern char **environ;

enum { HELPERS_MAX = 256, TEXTS_MAX = 16 << 20, VERSIONS_MAX = 8 };

typedef struct helper {
    pid_t process;
    FILE *to, *from;
    int back; /* its compilers: how many newer ones there are */
    bool busy;
} helper;

struct exec_helpers {
    cli_pool *pool;
    host_mutex *mutex;
    const char *program; /* NULL: not found */
    const char *recording;
    const char *scratch; /* for what workers leave when they are killed */
    char **variables;
    size_t variable_count;
    kiln_diag trouble; /* why there is none */
    helper helpers[HELPERS_MAX];
    size_t count;
};

/* --- the environment -------------------------------------------------------------------------- */

/* What is compiled again is not recorded again, at the paths that it has here, and is nobody's
 * report. */
static bool is_left_out(const char *variable)
{
    return strncmp(variable, "KILN_RECORD=", 12) == 0 ||
           strncmp(variable, "KILN_KEEP_SOURCES=", 18) == 0 ||
           strncmp(variable, "KILN_EXEC_REPORT=", 17) == 0;
}

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

/* This process's variables under those of `kiln exec`. */
static bool list_variables(exec_helpers *helpers, const exec_environment *environment)
{
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    helpers->variables =
        pool_array(helpers->pool, count + environment->count + 2, sizeof(*helpers->variables));
    if (helpers->variables == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_set_by(environment, environ[i]) && !is_left_out(environ[i])) {
            helpers->variables[helpers->variable_count++] = environ[i];
        }
    }
    for (size_t i = 0; i < environment->count; i++) {
        char *row = pool_format(helpers->pool, "%s=%s", environment->settings[i].name,
                                environment->settings[i].value);
        if (row == NULL) {
            return false;
        }
        helpers->variables[helpers->variable_count++] = row;
    }
    return true;
}

kiln_status exec_helpers_create(cli_pool *pool, host_mutex *mutex, const char *cache_root,
                                const char *recording, exec_helpers **out_helpers, kiln_diag *diag)
{
    exec_environment environment;
    exec_helpers *helpers = pool_alloc(pool, sizeof(*helpers));
    *out_helpers = helpers;
    if (helpers == NULL) {
        return diag_no_memory(diag, "starting a helper");
    }
    *helpers =
        (exec_helpers){.pool = pool, .mutex = mutex, .recording = host_absolute(pool, recording)};
    (void)signal(SIGPIPE, SIG_IGN); /* a helper that has gone is an error of the write */
    if (exec_environment_make(pool, NULL, &environment, &helpers->trouble) != KILN_OK) {
        return KILN_OK; /* the first one says so */
    }
    helpers->program = pool_format(pool, "%s/kiln-replay", environment.libraries);
    const bool good = helpers->program != NULL && helpers->recording != NULL &&
                      exec_environment_add(&environment, "KILN_CACHE_DIR", cache_root) &&
                      list_variables(helpers, &environment);
    return good ? KILN_OK : diag_no_memory(diag, "starting a helper");
}

/* --- processes -------------------------------------------------------------------------------- */

static void close_handle(int handle)
{
    if (handle >= 0) {
        (void)close(handle);
    }
}

static void close_stream(FILE *stream)
{
    if (stream != NULL) {
        (void)fclose(stream); /* what cannot be written is seen in the answer that does not come */
    }
}

/* Its status, as waitpid(2) gives it. */
static int end_helper(helper *one)
{
    int status = 0;
    close_stream(one->to);
    close_stream(one->from);
    while (one->process > 0 && waitpid(one->process, &status, 0) < 0 && errno == EINTR) {
    }
    *one = (helper){.back = one->back, .busy = one->busy};
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

static bool make_pipe(int ends[2])
{
    ends[0] = ends[1] = -1;
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static kiln_status spawn_helper(const exec_helpers *helpers, helper *one, const int asks[2],
                                const int answers[2], kiln_diag *diag)
{
    char back[16];
    char *argv[] = {(char *)(uintptr_t)helpers->program, (char *)(uintptr_t)helpers->recording,
                    back, NULL};
    posix_spawn_file_actions_t actions;
    (void)snprintf(back, sizeof(back), "%d", one->back);
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, asks[0], STDIN_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
        error =
            posix_spawn(&one->process, helpers->program, &actions, NULL, argv, helpers->variables);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    return error == 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the whole package kiln",
                               helpers->program, "it cannot be started: %s", strerror(error));
}

/* The headers that a worker writes out, and what its compilers leave, go into one directory. */
static kiln_status make_scratch(exec_helpers *helpers, kiln_diag *diag)
{
    if (helpers->scratch != NULL) {
        return KILN_OK;
    }
    kiln_status status = scratch_make(helpers->pool, &helpers->scratch, diag);
    char *row =
        status == KILN_OK ? pool_format(helpers->pool, "TMPDIR=%s", helpers->scratch) : NULL;
    if (status == KILN_OK && row == NULL) {
        return diag_no_memory(diag, "starting a helper");
    }
    for (size_t i = 0; status == KILN_OK && i <= helpers->variable_count; i++) {
        if (helpers->variables[i] == NULL || strncmp(helpers->variables[i], "TMPDIR=", 7) == 0) {
            helpers->variables[i] = row; /* there is room for it, and a NULL after it */
            break;
        }
    }
    return status;
}

/* Under the mutex: a pipe that another worker inherits would not end with its own. */
static kiln_status start_helper(exec_helpers *helpers, helper *one, kiln_diag *diag)
{
    int asks[2] = {-1, -1};
    int answers[2] = {-1, -1};
    kiln_status status = make_scratch(helpers, diag);
    if (status == KILN_OK) {
        status = make_pipe(asks) && make_pipe(answers)
                     ? spawn_helper(helpers, one, asks, answers, diag)
                     : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "starting a helper", "%s",
                                     strerror(errno));
    }
    close_handle(asks[0]);
    close_handle(answers[1]);
    one->to = asks[1] >= 0 ? fdopen(asks[1], "w") : NULL;
    one->from = answers[0] >= 0 ? fdopen(answers[0], "r") : NULL;
    if (one->to == NULL) {
        close_handle(asks[1]);
    }
    if (one->from == NULL) {
        close_handle(answers[0]);
    }
    return status;
}

/* One that has nothing to do, of that version; an empty place; or the place of another version's.
 * NULL: all are busy. */
static helper *take_helper(exec_helpers *helpers, int back)
{
    helper *found = NULL;
    host_mutex_lock(helpers->mutex);
    for (size_t i = 0; i < helpers->count; i++) {
        helper *one = &helpers->helpers[i];
        const bool fits = one->back == back && !one->busy;
        found = fits || (found == NULL && !one->busy) ? one : found;
        if (fits) {
            break;
        }
    }
    if ((found == NULL || found->back != back) && helpers->count < HELPERS_MAX) {
        found = &helpers->helpers[helpers->count++];
        *found = (helper){.back = back};
    }
    if (found != NULL && found->back != back) {
        (void)end_helper(found);
        found->back = back;
    }
    if (found != NULL) {
        found->busy = true;
    }
    host_mutex_unlock(helpers->mutex);
    return found;
}

static void give_helper_back(exec_helpers *helpers, helper *one)
{
    host_mutex_lock(helpers->mutex);
    one->busy = false;
    host_mutex_unlock(helpers->mutex);
}

/* --- a program -------------------------------------------------------------------------------- */

typedef struct question {
    const char *name, *target;
    size_t index;
    const kiln_key *wanted; /* NULL: any */
    bool other;             /* the answer: it has another key with this version */
} question;

/* The texts after an answer's line: what, why, fix, log. */
static kiln_status read_texts(FILE *from, size_t length, kiln_status status, kiln_diag *diag)
{
    enum { TEXTS = 4 };
    const char *texts[TEXTS] = {"", "", "", ""};
    char *bytes = length <= TEXTS_MAX ? calloc(1, length + 1) : NULL;
    if (bytes == NULL || fread(bytes, 1, length, from) != length) {
        free(bytes);
        return KILN_E_INTERNAL;
    }
    const char *at = bytes;
    for (size_t i = 0; i < TEXTS && at < bytes + length; i++) {
        texts[i] = at;
        at += strlen(at) + 1;
    }
    if (status != KILN_OK) {
        (void)kiln_diag_set(diag, status, texts[2][0] != '\0' ? texts[2] : NULL, texts[0], "%s",
                            texts[1]);
        if (texts[3][0] != '\0') {
            kiln_diag_set_log(diag, texts[3], strlen(texts[3]));
        }
    }
    free(bytes);
    return status;
}

/* False where the worker has gone. */
static bool ask_helper(const helper *one, question *asked, exec_answer *out,
                       kiln_status *out_status, kiln_diag *diag)
{
    char key[KILN_KEY_TEXT_SIZE] = "-";
    char line[256], origin[16];
    unsigned long long took = 0, saved = 0;
    size_t length = 0;
    int status = 0;
    if (asked->wanted != NULL) {
        kiln_key_format(asked->wanted, key);
    }
    if (one->to == NULL || one->from == NULL ||
        fprintf(one->to, "%zu %s %s\n", asked->index, key, asked->target) < 0 ||
        fflush(one->to) != 0 || fgets(line, sizeof(line), one->from) == NULL ||
        sscanf(line, "%d %15s %llu %llu %64s %zu", &status, origin, // NOLINT(cert-err34-c)
               &took, &saved, key, &length) != 6) {
        return false;
    }
    asked->other = strcmp(origin, "other") == 0;
    *out = (exec_answer){
        .compiled = strcmp(origin, "compiled") == 0, .took_ns = took, .saved_ns = saved};
    *out_status = read_texts(one->from, length, (kiln_status)status, diag);
    if (*out_status == KILN_OK) {
        *out_status = kiln_key_parse(key, &out->key, diag);
    }
    return true;
}

/* Its worker has gone; it has cost this program alone. */
static kiln_status judge_end(const char *name, int status, kiln_diag *diag)
{
    enum { NO_CORE = 2 };
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_CORE) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", name,
                             "kiln's libraries do not stand under the worker's compiler");
    }
    return kiln_diag_set(diag, KILN_E_INTERNAL, NULL, name,
                         "the compiler's process ended without an answer: %s",
                         host_signal_name(WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

static kiln_status ask_version(exec_helpers *helpers, int back, question *asked, exec_answer *out,
                               kiln_diag *diag)
{
    helper *one = take_helper(helpers, back);
    if (one == NULL) {
        return kiln_diag_set(diag, KILN_E_BUSY, "give a smaller --jobs", asked->name,
                             "%d helpers are busy", HELPERS_MAX);
    }
    host_mutex_lock(helpers->mutex);
    kiln_status status = one->process > 0 ? KILN_OK : start_helper(helpers, one, diag);
    host_mutex_unlock(helpers->mutex);
    if (status != KILN_OK) {
        (void)end_helper(one);
    } else if (!ask_helper(one, asked, out, &status, diag)) {
        status = judge_end(asked->name, end_helper(one), diag); /* the next one gets another */
    }
    give_helper_back(helpers, one);
    return status;
}

kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, size_t index,
                              const kiln_key *wanted, const char *target, exec_answer *out_answer,
                              kiln_diag *diag)
{
    question asked = {.name = name, .target = target, .index = index, .wanted = wanted};
    memset(out_answer, 0, sizeof(*out_answer));
    if (helpers->program == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, helpers->trouble.fix, name, "%s",
                             helpers->trouble.why);
    }
    for (int back = 0; wanted != NULL && back < VERSIONS_MAX; back++) {
        const kiln_status status = ask_version(helpers, back, &asked, out_answer, diag);
        if (status == KILN_E_UNAVAILABLE && back > 0) {
            break; /* there is no older one */
        }
        if (status != KILN_OK || !asked.other) {
            return status;
        }
    }
    kiln_diag_clear(diag);
    asked.wanted = NULL;
    return ask_version(helpers, 0, &asked, out_answer, diag);
}
