/* See tool.h: naming and running. */
#include "interpose/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/stages.h"
#include "base/text.h"
#include "key/digest.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "sys/elf.h"
#include "sys/file.h"

enum { TOOL_LIMIT = 1 << 30, EXIT_NOT_EXECUTABLE = 126 };

/* --- naming ----------------------------------------------------------------------------------- */

static kiln_status make_digest_recipe(const char *path, const kn_file_facts *facts,
                                      kiln_recipe **out_recipe)
{
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_tool), out_recipe, NULL);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(*out_recipe, "portable");
    kn_recipe_add_string(*out_recipe, "path", path);
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {{"device", facts->device},
                  {"inode", facts->inode},
                  {"size", facts->size},
                  {"changed", (uint64_t)facts->ctime_ns},
                  {"written", (uint64_t)facts->mtime_ns}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        kiln_recipe_add_u64(*out_recipe, fields[i].name, fields[i].value);
    }
    return kn_recipe_end(out_recipe, NULL);
}

static bool compute_digest(const char *path, char text[2 * KN_DIGEST_SIZE + 1])
{
    void *data = NULL;
    size_t size = 0;
    uint8_t digest[KN_DIGEST_SIZE];
    const bool computed =
        kn_file_read(path, TOOL_LIMIT, false, &data, &size, NULL, NULL) == KILN_OK &&
        kn_digest_of(data, size, digest);
    if (computed) {
        kn_hex_encode(digest, sizeof(digest), text);
    }
    free(data);
    return computed;
}

static void keep_digest(kiln_cache *cache, const kiln_recipe *recipe, const char *text)
{
    kiln_blob *blob = NULL;
    if (kiln_blob_create(text, strlen(text), NULL, 0, &blob, NULL) == KILN_OK) {
        kn_ignore(kiln_cache_put(cache, recipe, blob, 0, NULL)); /* it is read again next time */
        kiln_blob_release(blob);
    }
}

static bool find_digest(kiln_cache *cache, const char *path, const kn_file_facts *facts,
                        char text[2 * KN_DIGEST_SIZE + 1])
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    if (make_digest_recipe(path, facts, &recipe) != KILN_OK) {
        return false;
    }
    const kiln_key key = kiln_recipe_key(recipe);
    bool found = kn_cache_get_note(cache, &key, "portable", &blob) == KILN_OK;
    if (found) {
        found = kiln_blob_size(blob) == (size_t)2 * KN_DIGEST_SIZE;
        if (found) {
            memcpy(text, kiln_blob_data(blob), (size_t)2 * KN_DIGEST_SIZE);
            text[2 * KN_DIGEST_SIZE] = '\0';
        }
        kiln_blob_release(blob);
    }
    if (!found) {
        found = compute_digest(path, text);
        if (found) {
            keep_digest(cache, recipe, text);
        }
    }
    kiln_recipe_destroy(recipe);
    return found;
}

bool kn_tool_identify(kiln_cache *cache, const char *path, char *out, size_t size)
{
    char text[2 * KN_DIGEST_SIZE + 1];
    kn_file_facts facts;
    kn_elf_facts elf;
    if (kn_elf_inspect(path, &elf, NULL) != KILN_OK) {
        return false;
    }
    if (elf.build_id[0] != '\0') {
        kn_text_putf(out, size, "build-id:%s", elf.build_id);
        return true;
    }
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK ||
        !find_digest(cache, path, &facts, text)) {
        return false;
    }
    kn_text_putf(out, size, "sha256:%s", text);
    return true;
}

/* --- files in memory -------------------------------------------------------------------------- */

int kn_tool_memory_file(kn_span content)
{
    const int file = memfd_create("kiln", 0); /* the tool inherits it */
    size_t written = 0;
    while (file >= 0 && written < content.length) {
        const ssize_t part = write(file, content.data + written, content.length - written);
        if (part == 0 || (part < 0 && errno != EINTR)) { /* errno is of a failure alone */
            (void)close(file);
            return -1;
        }
        written += part > 0 ? (size_t)part : 0;
    }
    return file;
}

void kn_tool_memory_name(int file, char out[32])
{
    (void)snprintf(out, 32, "/proc/self/fd/%d", file);
}

char *kn_tool_memory_read(int file, size_t *out_length)
{
    struct stat facts;
    if (fstat(file, &facts) != 0 || facts.st_size < 0 || facts.st_size > TOOL_LIMIT) {
        return NULL;
    }
    const size_t length = (size_t)facts.st_size;
    char *bytes = (char *)malloc(length + 1);
    size_t have = 0;
    while (bytes != NULL && have < length) {
        const ssize_t part = pread(file, bytes + have, length - have, (off_t)have);
        if (part == 0 || (part < 0 && errno != EINTR)) { /* 0: it was cut meanwhile */
            free(bytes);
            return NULL;
        }
        have += part > 0 ? (size_t)part : 0;
    }
    if (bytes != NULL) {
        bytes[length] = '\0';
        *out_length = length;
    }
    return bytes;
}

/* --- running ---------------------------------------------------------------------------------- */

static void become_child(const char *path, char *const *argv, pid_t parent, int out_file,
                         int error_file)
{
    /* A kill of kiln's ptxas is meant for the compile. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(out_file, STDOUT_FILENO) >= 0 &&
        dup2(error_file, STDERR_FILENO) >= 0) {
        (void)execv(path, argv);
    }
    _exit(EXIT_NOT_EXECUTABLE);
}

bool kn_tool_run(const char *path, char *const *argv, int out_file, int error_file, int *out_code)
{
    const pid_t parent = getpid();
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        become_child(path, argv, parent, out_file, error_file);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    *out_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return child > 0 && WIFEXITED(status) && *out_code != EXIT_NOT_EXECUTABLE;
}

void kn_tool_become(const char *path, char *const *argv)
{
    (void)fflush(NULL);
    (void)execv(path, argv);
}
