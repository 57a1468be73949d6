/* What the libraries are, remembered for the next process: a text of lines, with the facts of every
 * file that was mapped. Where one of them is another file than it was, nothing is believed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/backend/locate.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

static const char first_line[] = "kiln hip 1";
/* The loader finds the libraries that hipRTC needs by these, too. False without memory. */
static bool name_memo(const kn_hip *hip, kn_strbuf *name)
{
    const char *const *variables = kn_hip_names.loader_variables;
    kn_strbuf_init(name, 0);
    kn_strbuf_printf(name, "%s:%s", hip->compilers_only ? "hiprtc" : "hip", hip->library);
    for (size_t i = 0; variables[i] != NULL; i++) {
        const char *value = kn_env_get(variables[i]);
        kn_strbuf_printf(name, "|%s", value != NULL ? value : "");
    }
    return kn_strbuf_ok(name);
}

static void describe_file(const kn_file_facts *facts, char *line, size_t size)
{
    kn_text_putf(line, size, "%" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64,
                 facts->size, facts->mtime_ns, facts->ctime_ns, facts->inode, facts->device);
}

static bool add_file(kn_strbuf *text, const char *path)
{
    kn_file_facts facts;
    char line[160];
    if (kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return false;
    }
    describe_file(&facts, line, sizeof(line));
    kn_strbuf_printf(text, "file %s %s\n", line, path);
    return true;
}

/* Each line of `lines`, with a word before it; false if a file is not there. */
static bool add_lines(kn_strbuf *text, const char *word, const char *lines)
{
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        char line[KN_HIP_PATH];
        if (length >= sizeof(line)) {
            return false;
        }
        memcpy(line, lines, length);
        line[length] = '\0';
        if (word == NULL) {
            if (!add_file(text, line)) {
                return false;
            }
        } else {
            kn_strbuf_printf(text, "%s %s\n", word, line);
        }
        lines += length + (lines[length] == '\n');
    }
    return true;
}

void kn_hip_memo_keep(const kn_hip *hip, const kn_hip_facts *facts, const char *paths)
{
    kn_strbuf name;
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    if (!name_memo(hip, &name) || hip->host->memo_put == NULL) {
        kn_strbuf_deinit(&name);
        return;
    }
    kn_strbuf_printf(&text, "%s\nversion %s\n", first_line, facts->version);
    if (add_lines(&text, "module", facts->modules) &&
        add_lines(&text, "processor", facts->processors) && add_lines(&text, NULL, paths) &&
        add_lines(&text, NULL, kn_hip_names.loader_cache)) {
        kn_strbuf_append_text(&text, "end\n");
        if (kn_strbuf_ok(&text)) {
            hip->host->memo_put(hip->host->memo, kn_strbuf_text(&name), text.data, text.length);
        }
    }
    kn_strbuf_deinit(&text);
    kn_strbuf_deinit(&name);
}

/* "SIZE MTIME CTIME INODE DEVICE PATH": whether that file still is the one. */
static bool is_same_file(const char *line)
{
    char now[160];
    kn_file_facts facts;
    const char *path = line;
    for (int numbers = 0; path != NULL && numbers < 5; numbers++) {
        path = strchr(path, ' ');
        path = path != NULL ? path + 1 : NULL;
    }
    if (path == NULL || kn_file_stat(path, true, &facts, NULL) != KILN_OK) {
        return false;
    }
    describe_file(&facts, now, sizeof(now));
    const size_t length = strlen(now);
    return strncmp(line, now, length) == 0 && line[length] == ' ' && line + length + 1 == path;
}

typedef struct decoded {
    kn_strbuf modules, processors;
    char version[32];
    size_t files;
} decoded;

static bool take_line(decoded *out, char *line)
{
    char *rest = strchr(line, ' ');
    if (rest == NULL) {
        return false;
    }
    *rest++ = '\0';
    if (strcmp(line, "file") == 0) {
        out->files++;
        return is_same_file(rest);
    }
    if (strcmp(line, "version") == 0) {
        kn_text_put(out->version, sizeof(out->version), rest);
        return true;
    }
    const bool module = strcmp(line, "module") == 0;
    if (!module && strcmp(line, "processor") != 0) {
        return false;
    }
    kn_strbuf_printf(module ? &out->modules : &out->processors, "%s\n", rest);
    return true;
}

/* Takes `text` to pieces. */
static bool decode_memo(decoded *out, char *text)
{
    char *line = text;
    for (size_t i = 0; *line != '\0'; i++) {
        char *end = strchr(line, '\n');
        if (end == NULL) {
            return false;
        }
        *end = '\0';
        if (strcmp(line, "end") == 0) {
            return out->files > 0 && kn_strbuf_ok(&out->modules) && kn_strbuf_ok(&out->processors);
        }
        if (i == 0 ? strcmp(line, first_line) != 0 : !take_line(out, line)) {
            return false;
        }
        line = end + 1;
    }
    return false;
}

bool kn_hip_memo_recall(const kn_hip *hip, kn_hip_facts *out_facts)
{
    kn_strbuf name;
    void *data = NULL;
    size_t size = 0;
    char *text = NULL;
    kn_hip_facts facts = {0};
    decoded made = {.files = 0};
    kn_strbuf_init(&made.modules, 0);
    kn_strbuf_init(&made.processors, 0);
    if (name_memo(hip, &name) && hip->host->memo_get != NULL &&
        hip->host->memo_get(hip->host->memo, kn_strbuf_text(&name), &data, &size) == KILN_OK) {
        text = kn_text_copy_n((const char *)data, size);
    }
    if (text != NULL && decode_memo(&made, text)) {
        kn_text_put(facts.version, sizeof(facts.version), made.version);
        facts.modules = kn_text_copy(kn_strbuf_text(&made.modules));
        facts.processors = kn_text_copy(kn_strbuf_text(&made.processors));
    }
    const bool known = facts.modules != NULL && facts.processors != NULL;
    if (known) {
        *out_facts = facts;
    } else {
        kn_hip_facts_deinit(&facts);
    }
    kn_strbuf_deinit(&made.processors);
    kn_strbuf_deinit(&made.modules);
    kn_strbuf_deinit(&name);
    free(text);
    free(data);
    return known;
}
