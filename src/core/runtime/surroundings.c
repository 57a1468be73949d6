/* The surroundings of a backend as text, with a sum where the system has no order. Stats, no reads,
 * but for the small files of /proc and /sys, whose times say nothing. */
#include "core/runtime/surroundings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "store/format/checksum.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/process.h"

#define PATH_MAX_BYTES 4096
#define CONTENT_MAX ((size_t)4096)

static const char *const common_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW",
                                               NULL};

/* Where drivers keep what they compiled, and how much of it: no probe finds anything else for it,
 * and some programs have another directory in every process. What turns such a cache off is not
 * among them (without Mesa's OpenGL gives no program binaries), nor is PoCL's directory (without it
 * there is no device). */
static const char *const ignored_variables[] = {"CUDA_CACHE_MAXSIZE",
                                                "CUDA_CACHE_PATH",
                                                "MESA_GLSL_CACHE_DIR",
                                                "MESA_GLSL_CACHE_MAX_SIZE",
                                                "MESA_SHADER_CACHE_DIR",
                                                "MESA_SHADER_CACHE_MAX_SIZE",
                                                "MESA_SHADER_CACHE_SHOW_STATS",
                                                "__GL_SHADER_DISK_CACHE_PATH",
                                                "__GL_SHADER_DISK_CACHE_SIZE",
                                                "__GL_SHADER_DISK_CACHE_SKIP_CLEANUP",
                                                NULL};

/* Where libraries come and go: a new one moves its directory's time. */
static const char *const common_places[] = {"/etc/ld.so.cache",
                                            "/lib",
                                            "/usr/lib",
                                            "/usr/lib64",
                                            "/usr/local/lib",
                                            "/usr/lib/x86_64-linux-gnu",
                                            "/usr/lib/aarch64-linux-gnu",
                                            "$LD_LIBRARY_PATH",
                                            "/proc/sys/kernel/random/boot_id",
                                            NULL};

/* --- files ------------------------------------------------------------------------------------ */

static bool has_no_times(const char *path)
{
    return kn_text_starts(path, "/proc/") || kn_text_starts(path, "/sys/");
}

static void add_content(kn_strbuf *out, const char *path)
{
    void *data = NULL;
    size_t size = 0;
    if (kn_file_read(path, CONTENT_MAX, false, &data, &size, NULL, NULL) == KILN_OK) {
        kn_strbuf_append(out, data, size);
    }
    free(data);
}

/* Appends the file's line; true for a small regular file. */
static bool add_facts(kn_strbuf *out, const char *path)
{
    kn_file_facts facts;
    bool small = false;
    kn_strbuf_printf(out, "%s ", path);
    if (has_no_times(path)) {
        add_content(out, path);
    } else if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        kn_strbuf_append_text(out, "-");
    } else if (facts.kind == KN_FILE_OTHER) {
        kn_strbuf_printf(out, "%" PRIu64 " %o %u", facts.inode, (unsigned)facts.mode,
                         (unsigned)facts.owner);
    } else {
        kn_strbuf_printf(out, "%d %" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu64 " %o %u",
                         (int)facts.kind, facts.kind == KN_FILE_REGULAR ? facts.size : 0,
                         facts.mtime_ns, facts.ctime_ns, facts.inode, (unsigned)facts.mode,
                         (unsigned)facts.owner);
        small = facts.kind == KN_FILE_REGULAR && facts.size <= CONTENT_MAX;
    }
    kn_strbuf_append_char(out, '\n');
    return small;
}

/* A driver's configuration names its library, often by an absolute path, which need not be there
 * yet. */
static void add_named_files(kn_strbuf *out, const char *path)
{
    static const char *const ends = "\" \t\r\n";
    char text[CONTENT_MAX + 1];
    void *data = NULL;
    size_t size = 0;
    if (kn_file_read(path, CONTENT_MAX, false, &data, &size, NULL, NULL) != KILN_OK) {
        return;
    }
    kn_text_putf(text, sizeof(text), "%.*s", (int)size, (const char *)data);
    free(data);
    for (char *word = text; *word != '\0';) {
        const size_t length = strcspn(word, ends);
        char *next = word + length + (word[length] != '\0');
        word[length] = '\0';
        if (word[0] == '/' && length > 1) {
            (void)add_facts(out, word);
        }
        word = next;
    }
}

void kn_surroundings_add_file(kn_strbuf *out, const char *path)
{
    const bool small = add_facts(out, path);
    if (small && (kn_text_ends(path, ".icd") || kn_text_ends(path, ".json"))) {
        add_named_files(out, path);
    }
}

/* Lines in an order that the system does not fix: the sum of their checksums. */
typedef struct line_sum {
    kn_strbuf line; /* the last one */
    uint64_t sums[2];
    const char *dir, *prefix; /* of a listing */
    const char *const *names; /* of variables */
    bool failed;
} line_sum;

static void sum_line(line_sum *sum)
{
    unsigned char checksum[KN_CHECKSUM_SIZE];
    uint64_t parts[2];
    const kn_span line = kn_span_of(kn_strbuf_text(&sum->line), sum->line.length);
    kn_checksum(&line, 1, checksum);
    memcpy(parts, checksum, sizeof(parts));
    sum->sums[0] += parts[0];
    sum->sums[1] += parts[1];
    sum->failed = sum->failed || !kn_strbuf_ok(&sum->line);
    kn_strbuf_clear(&sum->line);
}

static void add_sum(kn_strbuf *out, line_sum *sum)
{
    kn_strbuf_printf(out, "%" PRIx64 " %" PRIx64 "\n", sum->sums[0], sum->sums[1]);
    out->failed = out->failed || sum->failed;
    kn_strbuf_deinit(&sum->line);
}

static kiln_status take_name(void *user, const char *name)
{
    line_sum *sum = (line_sum *)user;
    if (kn_text_starts(name, sum->prefix)) {
        char path[PATH_MAX_BYTES];
        kn_text_putf(path, sizeof(path), "%s/%s", sum->dir, name);
        kn_surroundings_add_file(&sum->line, path);
        sum_line(sum);
    }
    return KILN_OK;
}

/* Everything in `dir` whose name begins with `prefix`. */
static void add_listing(kn_strbuf *out, const char *dir, const char *prefix)
{
    line_sum sum = {.dir = dir, .prefix = prefix};
    kn_strbuf_init(&sum.line, 0);
    (void)kn_file_list(dir, take_name, &sum, NULL); /* none there: an empty list */
    add_sum(out, &sum);
}

/* A place without a variable in it: a file, a directory and what is in it ("/dir/"), or what is in
 * it by the beginning of its name ("/dir/name*"). */
static void add_path(kn_strbuf *out, const char *place)
{
    char path[PATH_MAX_BYTES];
    const size_t length = strlen(place);
    if (length == 0 || length >= sizeof(path)) {
        return;
    }
    memcpy(path, place, length + 1);
    char *slash = strrchr(path, '/');
    if (path[length - 1] == '*') {
        path[length - 1] = '\0';
        if (slash != NULL) {
            *slash = '\0';
            add_listing(out, path, slash + 1);
        }
        return;
    }
    const bool inside = length > 1 && slash == path + length - 1;
    if (inside) {
        *slash = '\0';
    }
    kn_surroundings_add_file(out, path);
    if (inside) {
        add_listing(out, path, "");
    }
}

/* "$NAME/rest": once for each path that the variable lists. */
static void add_place(kn_strbuf *out, const char *place)
{
    char name[64];
    if (place[0] != '$') {
        add_path(out, place);
        return;
    }
    const char *rest = place + 1 + strcspn(place + 1, "/");
    kn_text_putf(name, sizeof(name), "%.*s", (int)(rest - place - 1), place + 1);
    const char *list = kn_env_get(name);
    while (list != NULL && *list != '\0') {
        char path[PATH_MAX_BYTES];
        const size_t length = strcspn(list, ":");
        if (length > 0) {
            kn_text_putf(path, sizeof(path), "%.*s%s", (int)length, list, rest);
            add_path(out, path);
        }
        list += length + (list[length] == ':');
    }
}

/* --- variables -------------------------------------------------------------------------------- */

static bool is_named(const char *variable, const char *const *names)
{
    const size_t length = strcspn(variable, "=");
    for (; *names != NULL; names++) {
        const size_t size = strlen(*names);
        const bool prefix = (*names)[size - 1] == '*';
        if (prefix ? strncmp(variable, *names, size - 1) == 0
                   : size == length && memcmp(variable, *names, size) == 0) {
            return true;
        }
    }
    return false;
}

static void take_variable(void *user, const char *variable)
{
    line_sum *sum = (line_sum *)user;
    if (is_named(variable, common_variables) ||
        (is_named(variable, sum->names) && !is_named(variable, ignored_variables))) {
        kn_strbuf_append_text(&sum->line, variable);
        sum_line(sum);
    }
}

static void add_variables(kn_strbuf *out, const char *const *names)
{
    line_sum sum = {.names = names};
    kn_strbuf_init(&sum.line, 0);
    kn_env_each(take_variable, &sum);
    add_sum(out, &sum);
}

void kn_surroundings_describe(kn_strbuf *out, const kiln_probe_basis *basis)
{
    char rights[2048];
    kn_process_rights(rights, sizeof(rights));
    kn_strbuf_printf(out, "%s\n", rights);
    add_variables(out, basis->variables);
    for (size_t i = 0; common_places[i] != NULL; i++) {
        add_place(out, common_places[i]);
    }
    for (size_t i = 0; basis->places[i] != NULL; i++) {
        add_place(out, basis->places[i]);
    }
    char *module = kn_paths_module("libkiln-shaderc.so");
    if (module != NULL) {
        kn_surroundings_add_file(out, module);
    }
    free(module);
}
