/* Lists of directories in environment variables; see ask.h. */
#include "apis/cpu/backend/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

static const char *const names[CPU_SEARCH_LISTS] = {"CPATH", "C_INCLUDE_PATH"};

bool kn_cpu_next_dir(const char **at, const char **out_dir, size_t *out_length, bool *out_absolute)
{
    if (*at == NULL) {
        return false;
    }
    *out_dir = *at;
    *out_length = strcspn(*at, KN_PATH_LIST_SEPARATOR);
    *at = (*at)[*out_length] != '\0' ? *at + *out_length + 1 : NULL;
    char *path = kn_text_copy_n(*out_dir, *out_length);
    *out_absolute = path != NULL && kn_path_is_absolute(path);
    free(path);
    return true;
}

static bool has_relative(const char *list)
{
    const char *dir = NULL;
    size_t length = 0;
    bool absolute = true;
    while (absolute && kn_cpu_next_dir(&list, &dir, &length, &absolute)) {
    }
    return !absolute;
}

static kiln_status make_list(const char *name, const char *list, const char *current,
                             char **out_text)
{
    const char *dir = NULL;
    size_t length = 0;
    bool absolute = false;
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    kn_strbuf_append_text(&text, name);
    const char *before = "=";
    while (kn_cpu_next_dir(&list, &dir, &length, &absolute)) {
        kn_strbuf_append_text(&text, before);
        before = KN_PATH_LIST_SEPARATOR;
        if (!absolute) {
            kn_strbuf_append_text(&text, current);
            kn_strbuf_append_text(&text, length > 0 ? "/" : "");
        }
        kn_strbuf_append(&text, dir, length);
    }
    *out_text = kn_strbuf_ok(&text) ? kn_text_copy(kn_strbuf_text(&text)) : NULL;
    kn_strbuf_deinit(&text);
    return *out_text != NULL ? KILN_OK : KILN_E_NOMEM;
}

kiln_status kn_cpu_search_lists(char *out_lists[CPU_SEARCH_LISTS])
{
    char *current = NULL;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < CPU_SEARCH_LISTS; i++) {
        const char *list = kn_env_get(names[i]);
        out_lists[i] = NULL;
        if (status != KILN_OK || list == NULL || list[0] == '\0' || !has_relative(list)) {
            continue;
        }
        current = current != NULL ? current : kn_path_resolve(".");
        status = current != NULL ? make_list(names[i], list, current, &out_lists[i]) : KILN_E_IO;
    }
    free(current);
    return status;
}

void kn_cpu_search_lists_free(char *lists[CPU_SEARCH_LISTS])
{
    for (size_t i = 0; i < CPU_SEARCH_LISTS; i++) {
        free(lists[i]);
        lists[i] = NULL;
    }
}
