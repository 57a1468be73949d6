/* See client.h. POSIX. */
#include "ship/client.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/diag.h"

extern char **environ;

static const char tls[] = "oci://";
static const char plain[] = "oci+http://";

/* --- places ----------------------------------------------------------------------------------- */

bool client_means_place(const char *word)
{
    return strncmp(word, tls, sizeof(tls) - 1) == 0 || strncmp(word, plain, sizeof(plain) - 1) == 0;
}

kiln_status client_parse(const char *word, client_place *out_place, kiln_diag *diag)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-/:@[]";
    const bool is_plain = strncmp(word, plain, sizeof(plain) - 1) == 0;
    const char *name = word + (is_plain ? sizeof(plain) : sizeof(tls)) - 1;
    const char *slash = strchr(name, '/');
    const char *last = strrchr(name, '/');
    const char *tag = last != NULL ? strchr(last, ':') : NULL;
    *out_place = (client_place){name, is_plain};
    if (slash == NULL || slash == name || tag == NULL || tag[1] == '\0' || tag == last + 1 ||
        name[strspn(name, allowed)] != '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "write oci://registry/name:tag, or name@sha256:DIGEST", word,
                             "is not a place in a registry");
    }
    return KILN_OK;
}

/* --- the program ------------------------------------------------------------------------------ */

/* The last line that was said: all of a log's line, or its text: time="..." level=fatal msg="..."
 */
static void find_reason(char *said)
{
    size_t length = strlen(said);
    while (length > 0 && (said[length - 1] == '\n' || said[length - 1] == '\r')) {
        said[--length] = '\0';
    }
    char *line = strrchr(said, '\n');
    line = line != NULL ? line + 1 : said;
    char *text = strstr(line, "msg=\"");
    char *to = said;
    if (text == NULL) {
        memmove(said, line, strlen(line) + 1);
        return;
    }
    for (text += 5; *text != '\0' && *text != '"'; text++) {
        text += *text == '\\' && text[1] != '\0';
        *to++ = *text;
    }
    *to = '\0';
}

/* Reads all that comes; keeps the end of it. */
static void read_said(int from, char *said, size_t size)
{
    size_t used = 0;
    for (;;) {
        if (used + 1 == size) {
            memmove(said, said + size / 2, used - size / 2);
            used -= size / 2;
        }
        const ssize_t got = read(from, said + used, size - 1 - used);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    said[used] = '\0';
}

static kiln_status start_client(char *const *argv, int end[2], pid_t *out_child, kiln_diag *diag)
{
    posix_spawn_file_actions_t actions;
    if (pipe(end) != 0) {
        return kiln_diag_set(diag, KILN_E_IO, NULL, "skopeo", "%s", strerror(errno));
    }
    (void)fcntl(end[0], F_SETFD, FD_CLOEXEC);
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, end[1], STDERR_FILENO);
        error = error != 0 ? error
                           : posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                                              O_WRONLY, 0);
        error = error != 0 ? error : posix_spawn_file_actions_addclose(&actions, end[1]);
        error =
            error != 0 ? error : posix_spawnp(out_child, argv[0], &actions, NULL, argv, environ);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    (void)close(end[1]);
    if (error == 0) {
        return KILN_OK;
    }
    (void)close(end[0]);
    return error == ENOENT
               ? kiln_diag_set(diag, KILN_E_UNSUPPORTED, "install it: apt-get install skopeo",
                               "skopeo", "is not installed; kiln talks to registries through it")
               : kiln_diag_set(diag, KILN_E_IO, NULL, "skopeo", "cannot be started: %s",
                               strerror(error));
}

static kiln_status run_client(const char *from, const char *to, const char *option,
                              const client_place *place, kiln_diag *diag)
{
    const char *words[] = {"skopeo", "copy", "--quiet", "--preserve-digests",
                           option,   from,   to,        NULL};
    char *argv[sizeof(words) / sizeof(words[0])];
    char said[8192];
    int end[2];
    int code = 0;
    pid_t child;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        argv[i] = (char *)(uintptr_t)words[i];
    }
    kiln_status status = start_client(argv, end, &child, diag);
    if (status != KILN_OK) {
        return status;
    }
    read_said(end[0], said, sizeof(said));
    (void)close(end[0]);
    while (waitpid(child, &code, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(code) && WEXITSTATUS(code) == 0) {
        return KILN_OK;
    }
    find_reason(said);
    if (strstr(said, "Digest did not match") != NULL) {
        return kiln_diag_set(diag, KILN_E_CORRUPT, "push it again", place->name,
                             "the registry has damaged data: %.400s", said);
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                         "check the name and the tag, log in with skopeo login or docker login",
                         place->name, "%.600s",
                         said[0] != '\0' ? said : "skopeo failed and gave no reason");
}

static const char *layout_name(cli_pool *pool, const char *layout)
{
    return pool_format(pool, "oci:%s:kiln", layout);
}

kiln_status client_upload(const char *layout, const client_place *place, cli_pool *pool,
                          kiln_diag *diag)
{
    const char *from = layout_name(pool, layout);
    const char *to = pool_format(pool, "docker://%s", place->name);
    return from == NULL || to == NULL
               ? diag_no_memory(diag, "skopeo")
               : run_client(from, to,
                            place->plain ? "--dest-tls-verify=false" : "--dest-tls-verify=true",
                            place, diag);
}

kiln_status client_download(const client_place *place, const char *layout, cli_pool *pool,
                            kiln_diag *diag)
{
    const char *from = pool_format(pool, "docker://%s", place->name);
    const char *to = layout_name(pool, layout);
    return from == NULL || to == NULL
               ? diag_no_memory(diag, "skopeo")
               : run_client(from, to,
                            place->plain ? "--src-tls-verify=false" : "--src-tls-verify=true",
                            place, diag);
}
