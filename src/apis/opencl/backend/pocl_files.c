/* PoCL's own files. Its compiler reads headers of PoCL's (include/_kernel.h, ...) in front of each
 * program and links it with a library of built-in functions (kernel-TRIPLE-VARIANT.bc). Neither is
 * part of a library that the process has mapped, so that no build id covers them.
 *
 * What they hold is read once and remembered by what the system says of them: later keys cost a
 * stat for each file. This file must not know what a key is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kiln/unstable/probe.h"

#include "apis/opencl/backend/opencl.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/processor.h"

enum { FILES_MAX = 256, FILE_LIMIT = 256 << 20 };

typedef struct pocl_files {
    const char *dir;
    const char *under; /* the part of it that is listed now: "" or "include/" */
    char *names[FILES_MAX];
    size_t count;
    bool failed;
} pocl_files;

static kiln_status take_name(void *user, const char *name)
{
    pocl_files *files = (pocl_files *)user;
    kn_strbuf path;
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "%s%s", files->under, name);
    char *copy = kn_strbuf_ok(&path) ? kn_text_copy(kn_strbuf_text(&path)) : NULL;
    kn_strbuf_deinit(&path);
    files->failed = files->failed || copy == NULL || files->count == FILES_MAX;
    if (files->failed) {
        free(copy);
        return KILN_E_NOMEM;
    }
    files->names[files->count++] = copy;
    return KILN_OK;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* False: they cannot be listed. */
static bool list_files(const char *dir, pocl_files *files)
{
    char *include = kn_path_join(dir, "include");
    *files = (pocl_files){.dir = dir, .under = ""};
    kiln_status status = include != NULL ? kn_file_list(dir, take_name, files, NULL) : KILN_MISS;
    files->under = "include/";
    if (status == KILN_OK) {
        status = kn_file_list(include, take_name, files, NULL);
    }
    free(include);
    if (files->count > 1) {
        qsort(files->names, files->count, sizeof(files->names[0]), compare_names);
    }
    return (status == KILN_OK || status == KILN_MISS) && !files->failed;
}

static void pocl_files_deinit(pocl_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->names[i]);
    }
}

static bool takes_avx512(void)
{
#if defined(__x86_64__)
    return kn_processor_vectors() == KN_VECTORS_512;
#else
    return false;
#endif
}

/* The libraries of built-in functions among which PoCL takes the last that the processor can run.
 * They have 9 MB each, and a first start reads no more of them than it must: where the last one is
 * there and can be run, those before it are not used. */
static bool is_never_linked(const pocl_files *files, const char *name)
{
    static const char *const lesser[] = {"-GENERIC.bc", "-sse2.bc",     "-ssse3.bc",    "-sse41.bc",
                                         "-avx.bc",     "-avx_f16c.bc", "-avx_fma4.bc", "-avx2.bc"};
    bool is_lesser = false, has_last = false;
    for (size_t i = 0; i < sizeof(lesser) / sizeof(lesser[0]); i++) {
        is_lesser = is_lesser || kn_text_ends(name, lesser[i]);
    }
    for (size_t i = 0; i < files->count && is_lesser; i++) {
        has_last = has_last || kn_text_ends(files->names[i], "-avx512.bc");
    }
    return is_lesser && has_last && takes_avx512() && kn_env_get("POCL_KERNELLIB_NAME") == NULL;
}

/* What the digest is remembered by. */
static bool describe_files(const pocl_files *files, kn_strbuf *text)
{
    kn_strbuf_printf(text, "opencl.pocl-files 1 %d %s\n", takes_avx512() ? 1 : 0,
                     kn_env_get("POCL_KERNELLIB_NAME") != NULL ? "named" : "best");
    for (size_t i = 0; i < files->count; i++) {
        kn_file_facts facts;
        char *path = kn_path_join(files->dir, files->names[i]);
        if (path != NULL && kn_file_stat(path, true, &facts, NULL) == KILN_OK &&
            facts.kind == KN_FILE_REGULAR) {
            kn_strbuf_printf(
                text, "%s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 "\n", path,
                facts.size, facts.mtime_ns, facts.ctime_ns, facts.inode, facts.device);
        } else {
            kn_strbuf_printf(text, "%s -\n", files->names[i]);
        }
        free(path);
    }
    return kn_strbuf_ok(text);
}

static bool digest_file(XXH3_state_t *state, const pocl_files *files, const char *name)
{
    void *data = NULL;
    size_t size = 0;
    kn_file_facts facts;
    char *path = kn_path_join(files->dir, name);
    bool ok = path != NULL;
    if (ok && kn_file_stat(path, true, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_REGULAR) {
        ok = kn_file_read(path, FILE_LIMIT, false, &data, &size, NULL, NULL) == KILN_OK;
    }
    const uint64_t length = size;
    ok = ok && XXH3_128bits_update(state, name, strlen(name) + 1) == XXH_OK &&
         XXH3_128bits_update(state, &length, sizeof(length)) == XXH_OK &&
         XXH3_128bits_update(state, data != NULL ? data : "", size) == XXH_OK;
    free(data);
    free(path);
    return ok;
}

static bool read_files(const pocl_files *files, char digest[KN_POCL_DIGEST])
{
    XXH3_state_t *state = XXH3_createState();
    bool ok = state != NULL && XXH3_128bits_reset(state) == XXH_OK;
    for (size_t i = 0; ok && i < files->count; i++) {
        ok = is_never_linked(files, files->names[i]) || digest_file(state, files, files->names[i]);
    }
    if (ok) {
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state));
        kn_hex_encode(bytes.digest, sizeof(bytes.digest), digest);
    }
    (void)XXH3_freeState(state);
    return ok;
}

static bool recall_digest(const kiln_host *host, const char *question, char digest[KN_POCL_DIGEST])
{
    void *data = NULL;
    size_t size = 0;
    bool found = host->memo_get != NULL &&
                 host->memo_get(host->memo, question, &data, &size) == KILN_OK &&
                 size == KN_POCL_DIGEST - 1;
    if (found) {
        memcpy(digest, data, size);
        digest[size] = '\0';
    }
    free(data);
    return found;
}

bool kn_pocl_files_digest(const char *dir, const kiln_host *host, char digest[KN_POCL_DIGEST])
{
    pocl_files files;
    kn_strbuf question, after;
    kn_strbuf_init(&question, 0);
    kn_strbuf_init(&after, 0);
    bool ok = list_files(dir, &files) && describe_files(&files, &question);
    if (ok && !recall_digest(host, kn_strbuf_text(&question), digest)) {
        ok = read_files(&files, digest);
        /* What changed while it was read is read again next time. */
        if (ok && host->memo_put != NULL && describe_files(&files, &after) &&
            strcmp(kn_strbuf_text(&question), kn_strbuf_text(&after)) == 0) {
            host->memo_put(host->memo, kn_strbuf_text(&question), digest, KN_POCL_DIGEST - 1);
        }
    }
    pocl_files_deinit(&files);
    kn_strbuf_deinit(&after);
    kn_strbuf_deinit(&question);
    return ok;
}

/* --- where they are --------------------------------------------------------------------------- */

typedef int find_dir(char *path);

enum { DIR_SIZE = 1 << 16 }; /* PoCL writes at most 4 KiB, unasked */

/* PoCL's own answer, which all versions export for its device modules. */
static char *ask_library(const char *library)
{
    const char *const names[] = {library, NULL};
    kn_dylib *lib = NULL;
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    char *path = NULL;
    if (kn_dylib_open(names, &lib, &outcome, NULL) != KILN_OK) {
        return NULL;
    }
    void *symbol = kn_dylib_symbol(lib, "pocl_get_private_datadir");
    char *answer = symbol != NULL ? (char *)calloc(1, DIR_SIZE) : NULL;
    if (answer != NULL) {
        find_dir *find = NULL;
        memcpy(&find, &symbol, sizeof(find));
        (void)find(answer); /* old versions return nothing */
        path = answer[0] != '\0' ? kn_text_copy(answer) : NULL;
    }
    free(answer);
    kn_dylib_close(lib); /* the driver has it, too */
    return path;
}

/* Where PoCL is installed: PREFIX/lib/libpocl.so or PREFIX/lib/ARCH/libpocl.so. */
static char *look_beside(const char *library)
{
    static const char *const places[] = {"../share/pocl", "../../share/pocl"};
    char *dir = kn_path_dir(library);
    char *found = NULL;
    for (size_t i = 0; dir != NULL && found == NULL && i < sizeof(places) / sizeof(places[0]);
         i++) {
        kn_file_facts facts;
        found = kn_path_join(dir, places[i]);
        if (found != NULL && kn_file_stat(found, true, &facts, NULL) != KILN_OK) {
            free(found);
            found = NULL;
        }
    }
    free(dir);
    return found;
}

char *kn_pocl_files_dir(const char *library)
{
    char *dir = ask_library(library);
    return dir != NULL ? dir : look_beside(library);
}

const char *kn_pocl_files_reason(void)
{
    const char *value = kn_env_get("POCL_BUILDING");
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0
               ? "POCL_BUILDING leads PoCL to the files of its source"
               : NULL;
}
