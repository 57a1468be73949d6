/* Starts helpers, and speaks with them. POSIX. */
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
#include "compilers/libraries.h"
#include "exec/environment.h"

extern char **environ;

enum { HELPERS_MAX = 256, ANSWER_MAX = 16 << 20, NO_COMPILER = 1000 };

typedef struct helper {
    pid_t process;
    int to, from;
    FILE *report; /* what the libraries below it say of each compile */
    char *report_path;
    bool busy;
} helper;

struct exec_helpers {
    cli_pool *pool;
    host_mutex *mutex;
    const char *program; /* NULL: not found */
    char **variables;    /* of a helper, with room for one more */
    size_t variable_count;
    kiln_diag trouble; /* why there is none */
    helper helpers[HELPERS_MAX];
    size_t count;
};

/* --- the environment -------------------------------------------------------------------------- */

/* What is compiled again is not recorded again, at the paths that it has here. */
static bool is_for_recording(const char *variable)
{
    return strncmp(variable, "KILN_RECORD=", 12) == 0 ||
           strncmp(variable, "KILN_KEEP_SOURCES=", 18) == 0;
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
        if (!is_set_by(environment, environ[i]) && !is_for_recording(environ[i])) {
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
                                exec_helpers **out_helpers, kiln_diag *diag)
{
    exec_environment environment;
    exec_helpers *helpers = pool_alloc(pool, sizeof(*helpers));
    *out_helpers = helpers;
    if (helpers == NULL) {
        return diag_no_memory(diag, "starting a helper");
    }
    *helpers = (exec_helpers){.pool = pool, .mutex = mutex};
    (void)signal(SIGPIPE, SIG_IGN); /* a helper that has gone is an error of the write */
    if (exec_environment_make(pool, NULL, &environment, &helpers->trouble) != KILN_OK) {
        return KILN_OK; /* the first call says so */
    }
    helpers->program = pool_format(pool, "%s/kiln-replay", environment.libraries);
    const bool good = helpers->program != NULL &&
                      exec_environment_add(&environment, "KILN_CACHE_DIR", cache_root) &&
                      exec_environment_add(&environment, "KILN_EXEC_REPORT", "") &&
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

static void end_helper(helper *one)
{
    int status = 0;
    close_handle(one->to);
    close_handle(one->from);
    while (one->process > 0 && waitpid(one->process, &status, 0) < 0 && errno == EINTR) {
    }
    if (one->report != NULL) {
        (void)fclose(one->report);
    }
    if (one->report_path != NULL) {
        (void)remove(one->report_path);
    }
    free(one->report_path);
    *one = (helper){.to = -1, .from = -1, .busy = one->busy};
}

void exec_helpers_destroy(exec_helpers *helpers)
{
    for (size_t i = 0; helpers != NULL && i < helpers->count; i++) {
        end_helper(&helpers->helpers[i]);
    }
    if (helpers != NULL) {
        kiln_diag_clear(&helpers->trouble);
    }
}

static bool make_pipe(int ends[2])
{
    ends[0] = ends[1] = -1;
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static kiln_status spawn_helper(const exec_helpers *helpers, helper *one, const char *report,
                                const int asks[2], const int answers[2], kiln_diag *diag)
{
    char variable[4200];
    char **variables = pool_array(helpers->pool, helpers->variable_count + 2, sizeof(*variables));
    char *argv[] = {(char *)(uintptr_t)helpers->program, NULL};
    posix_spawn_file_actions_t actions;
    (void)snprintf(variable, sizeof(variable), "KILN_EXEC_REPORT=%s", report);
    size_t count = 0;
    if (variables == NULL) {
        return diag_no_memory(diag, "starting a helper");
    }
    for (size_t i = 0; i < helpers->variable_count; i++) {
        if (strncmp(helpers->variables[i], "KILN_EXEC_REPORT=", 17) != 0) {
            variables[count++] = helpers->variables[i];
        }
    }
    variables[count++] = variable;
    variables[count] = NULL;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        (void)posix_spawn_file_actions_adddup2(&actions, asks[0], STDIN_FILENO);
        (void)posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
        error = posix_spawn(&one->process, helpers->program, &actions, NULL, argv, variables);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    return error == 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the whole package kiln",
                               helpers->program, "it cannot be started: %s", strerror(error));
}

/* Under the mutex: a pipe that another helper inherits would not end with its own. */
static kiln_status start_helper(const exec_helpers *helpers, helper *one, kiln_diag *diag)
{
    const char *directory = getenv("TMPDIR");
    int asks[2] = {-1, -1};
    int answers[2] = {-1, -1};
    char *report = pool_format(helpers->pool, "%s/kiln-replay-XXXXXX",
                               directory != NULL && directory[0] == '/' ? directory : "/tmp");
    const int handle = report != NULL ? mkstemp(report) : -1;
    one->report = handle >= 0 ? fdopen(handle, "r") : NULL;
    if (handle >= 0 && one->report == NULL) {
        close_handle(handle);
    }
    one->report_path = report != NULL ? strdup(report) : NULL;
    const bool piped = one->report != NULL && make_pipe(asks) && make_pipe(answers);
    kiln_status status = piped ? spawn_helper(helpers, one, report, asks, answers, diag)
                               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "set TMPDIR",
                                               "starting a helper", "%s", strerror(errno));
    close_handle(asks[0]);
    close_handle(answers[1]);
    one->to = asks[1];
    one->from = answers[0];
    return status;
}

/* One that has nothing to do, or an empty place; NULL: all are busy. */
static helper *take_helper(exec_helpers *helpers)
{
    helper *found = NULL;
    host_mutex_lock(helpers->mutex);
    for (size_t i = 0; found == NULL && i < helpers->count; i++) {
        found = helpers->helpers[i].busy ? NULL : &helpers->helpers[i];
    }
    if (found == NULL && helpers->count < HELPERS_MAX) {
        found = &helpers->helpers[helpers->count++];
        *found = (helper){.to = -1, .from = -1};
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

/* --- a call ----------------------------------------------------------------------------------- */

static bool write_call_bytes(int handle, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        const ssize_t written = write(handle, at, size);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool read_answer_bytes(int handle, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        const ssize_t got = read(handle, at, size);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* "CODE", NUL, log. NULL where the helper has gone. */
static char *ask_helper(const helper *one, const char *bytes, size_t size, size_t *out_size)
{
    const unsigned char head[4] = {(unsigned char)size, (unsigned char)(size >> 8),
                                   (unsigned char)(size >> 16), (unsigned char)(size >> 24)};
    unsigned char back[4];
    if (!write_call_bytes(one->to, head, sizeof(head)) || !write_call_bytes(one->to, bytes, size) ||
        !read_answer_bytes(one->from, back, sizeof(back))) {
        return NULL;
    }
    *out_size =
        (size_t)back[0] | (size_t)back[1] << 8 | (size_t)back[2] << 16 | (size_t)back[3] << 24;
    char *answer = *out_size <= ANSWER_MAX ? calloc(1, *out_size + 1) : NULL;
    if (answer != NULL && !read_answer_bytes(one->from, answer, *out_size)) {
        free(answer);
        answer = NULL;
    }
    return answer;
}

enum { FIELDS = 7 };
enum { FIELD_ORIGIN = 1, FIELD_TOOK, FIELD_SAVED, FIELD_NAME, FIELD_REASON, FIELD_KEY };

/* The next line of the report: one compile, one line. False where there is none. */
static bool read_report(FILE *report, char *line, size_t size, char *fields[FIELDS])
{
    size_t count = 0;
    clearerr(report);
    if (fgets(line, (int)size, report) == NULL) {
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at != NULL && count < FIELDS; count++) {
        fields[count] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    while (count < FIELDS) {
        fields[count++] = line + strlen(line);
    }
    return true;
}

static kiln_status read_outcome(const helper *one, const char *name, exec_answer *out,
                                kiln_diag *diag)
{
    char line[4200];
    char *fields[FIELDS];
    if (one->report == NULL || !read_report(one->report, line, sizeof(line), fields)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "run kiln doctor for details", name,
                             "kiln's libraries do not stand under the helper's compiler");
    }
    if (strcmp(fields[FIELD_ORIGIN], "bypassed") == 0) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, name, "it bypasses the cache: %s",
                             fields[FIELD_REASON]);
    }
    out->compiled = strcmp(fields[FIELD_ORIGIN], "compiled") == 0;
    (void)opt_parse_count(fields[FIELD_TOOK], &out->took_ns);
    (void)opt_parse_count(fields[FIELD_SAVED], &out->saved_ns);
    return kiln_key_parse(fields[FIELD_KEY], &out->key, diag);
}

/* `compiler` is a call's first string. */
static kiln_status judge_answer(const helper *one, const char *compiler, const char *name,
                                const char *answer, size_t size, exec_answer *out, kiln_diag *diag)
{
    uint64_t code = 0;
    const size_t digits = strlen(answer);
    const char *log = digits < size ? answer + digits + 1 : "";
    if (!opt_parse_count(answer, &code)) {
        return kiln_diag_set(diag, KILN_E_INTERNAL, NULL, name, "the helper's answer is malformed");
    }
    if (code == NO_COMPILER) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install it", name, "%s", log);
    }
    if (code != 0) {
        exec_answer dropped;
        const kn_library *library = kn_library_find(compiler);
        (void)read_outcome(one, name, &dropped, NULL); /* its line */
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, name, "%s returned %llu",
                            library != NULL ? kn_library_find(library->api)->name : compiler,
                            (unsigned long long)code);
        kiln_diag_set_log(diag, log, strlen(log));
        return KILN_E_COMPILE;
    }
    return read_outcome(one, name, out, diag);
}

kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, const char *bytes,
                              size_t size, exec_answer *out_answer, kiln_diag *diag)
{
    memset(out_answer, 0, sizeof(*out_answer));
    if (helpers->program == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, helpers->trouble.fix, name, "%s",
                             helpers->trouble.why);
    }
    helper *one = take_helper(helpers);
    if (one == NULL) {
        return kiln_diag_set(diag, KILN_E_BUSY, "give a smaller --jobs", name,
                             "%d helpers are busy", HELPERS_MAX);
    }
    host_mutex_lock(helpers->mutex);
    kiln_status status = one->process > 0 ? KILN_OK : start_helper(helpers, one, diag);
    host_mutex_unlock(helpers->mutex);
    size_t answer_size = 0;
    char *answer = status == KILN_OK ? ask_helper(one, bytes, size, &answer_size) : NULL;
    if (answer == NULL) {
        end_helper(one); /* the next call gets another */
    }
    if (status == KILN_OK && answer == NULL) {
        status = kiln_diag_set(diag, KILN_E_INTERNAL, NULL, name,
                               "the compiler's process ended without an answer");
    } else if (status == KILN_OK) {
        status = judge_answer(one, bytes, name, answer, answer_size, out_answer, diag);
    }
    free(answer);
    give_helper_back(helpers, one);
    return status;
}
