/* The text form of a toolchain, as the memo keeps it: one fact a line, fields apart by tabs. What
 * does not parse is not a toolchain, and the compiler is asked again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"

#define FIRST_LINE "kiln cpu toolchain 2"

enum { FIELD_LIMIT = 12 };

static bool is_plain_text(const char *text)
{
    return text != NULL && strpbrk(text, "\t\n") == NULL;
}

static bool encode_list(kn_strbuf *text, const char *word, char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_plain_text(list[i])) {
            return false;
        }
        kn_strbuf_printf(text, "%s\t%s\n", word, list[i]);
    }
    return true;
}

bool kn_cpu_toolchain_encode(const cpu_toolchain *toolchain, kn_strbuf *text)
{
    if (!is_plain_text(toolchain->version) || !is_plain_text(toolchain->machine)) {
        return false;
    }
    kn_strbuf_printf(text, FIRST_LINE "\nversion\t%s\nmachine\t%s\nindirect\t%d\n",
                     toolchain->version, toolchain->machine, toolchain->indirect ? 1 : 0);
    for (size_t i = 0; i < toolchain->tool_count; i++) {
        const cpu_tool *tool = &toolchain->tools[i];
        const kn_file_facts *facts = &tool->facts;
        if (!is_plain_text(tool->name) || !is_plain_text(tool->path)) {
            return false;
        }
        kn_strbuf_printf(text,
                         "tool\t%s\t%s\t%s\t%d\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                         "\t%" PRIu64 "\n",
                         tool->name, tool->path, tool->id, tool->on_path ? 1 : 0, facts->size,
                         (uint64_t)facts->mtime_ns, (uint64_t)facts->ctime_ns, facts->inode,
                         facts->device);
    }
    if (!encode_list(text, "folder", toolchain->dirs, toolchain->dir_count) ||
        !encode_list(text, "absent", toolchain->absent, toolchain->absent_count)) {
        return false;
    }
    kn_strbuf_append_text(text, "end\n");
    return kn_strbuf_ok(text);
}

static bool take_text(char **field, const char *value)
{
    if (*field != NULL) {
        return false;
    }
    *field = kn_text_copy(value);
    return *field != NULL;
}

static bool take_list(char **list, size_t *count, size_t limit, const char *value)
{
    return kn_path_is_absolute(value) && kn_cpu_list_add(list, count, limit, value);
}

static bool take_tool(cpu_toolchain *toolchain, char *const *fields)
{
    uint64_t numbers[6];
    if (toolchain->tool_count == CPU_TOOL_LIMIT || !kn_path_is_absolute(fields[2])) {
        return false;
    }
    for (size_t i = 0; i < 6; i++) {
        if (!kn_text_to_u64(fields[4 + i], &numbers[i])) {
            return false;
        }
    }
    cpu_tool *tool = &toolchain->tools[toolchain->tool_count];
    *tool = (cpu_tool){.on_path = numbers[0] == 1};
    tool->facts = (kn_file_facts){.size = numbers[1],
                                  .mtime_ns = (int64_t)numbers[2],
                                  .ctime_ns = (int64_t)numbers[3],
                                  .inode = numbers[4],
                                  .device = numbers[5]};
    kn_text_put(tool->id, sizeof(tool->id), fields[3]);
    tool->name = kn_text_copy(fields[1]);
    tool->path = kn_text_copy(fields[2]);
    if (tool->name == NULL || tool->path == NULL) {
        free(tool->name);
        free(tool->path);
        return false;
    }
    toolchain->tool_count++;
    return true;
}

/* Splits in place; the number of fields. */
static size_t split_row(char *line, char **fields)
{
    size_t count = 0;
    while (count < FIELD_LIMIT) {
        fields[count++] = line;
        line = strchr(line, '\t');
        if (line == NULL) {
            break;
        }
        *line++ = '\0';
    }
    return count;
}

static bool take_line(cpu_toolchain *toolchain, char *line)
{
    char *fields[FIELD_LIMIT];
    const size_t count = split_row(line, fields);
    const char *word = fields[0];
    if (count == 10 && strcmp(word, "tool") == 0) {
        return take_tool(toolchain, fields);
    }
    if (count != 2) {
        return false;
    }
    if (strcmp(word, "version") == 0) {
        return take_text(&toolchain->version, fields[1]);
    }
    if (strcmp(word, "machine") == 0) {
        return take_text(&toolchain->machine, fields[1]);
    }
    if (strcmp(word, "folder") == 0) {
        return take_list(toolchain->dirs, &toolchain->dir_count, CPU_DIR_LIMIT, fields[1]);
    }
    if (strcmp(word, "indirect") == 0) {
        toolchain->indirect = strcmp(fields[1], "0") != 0;
        return true;
    }
    return strcmp(word, "absent") == 0 &&
           take_list(toolchain->absent, &toolchain->absent_count, CPU_ABSENT_LIMIT, fields[1]);
}

cpu_toolchain *kn_cpu_toolchain_decode(const char *question, const char *text, size_t size)
{
    cpu_toolchain *made = kn_cpu_toolchain_create(question);
    char *copy = kn_text_copy_n(text, size);
    bool whole = false;
    bool first = true;
    for (char *line = copy; made != NULL && line != NULL && *line != '\0' && !whole;) {
        char *next = strchr(line, '\n');
        if (next == NULL) {
            break;
        }
        *next = '\0';
        if (strcmp(line, "end") == 0) {
            whole = true;
        } else if (first ? strcmp(line, FIRST_LINE) != 0 : !take_line(made, line)) {
            break;
        }
        first = false;
        line = next + 1;
    }
    free(copy);
    if (made == NULL || !whole || made->tool_count == 0 || made->version == NULL ||
        made->machine == NULL) {
        kn_cpu_toolchain_destroy(made);
        return NULL;
    }
    return made;
}
