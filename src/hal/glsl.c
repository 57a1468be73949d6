/* See glsl.h. */
#include "hal/glsl.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "hal/glsl_prelude.h"
#include "sys/file.h"

#define PRELUDE "kiln.glsl"

const char *kn_glsl_system_include_dir(void *instance, const kiln_target *target, size_t index)
{
    (void)instance, (void)target, (void)index;
    return NULL; /* GLSL has no system headers */
}

bool kn_glsl_ships_header(void *instance, const kiln_target *target, const char *name)
{
    (void)instance, (void)target;
    return strcmp(name, PRELUDE) == 0;
}

const char *kn_glsl_uncacheable_option(void *instance, const kiln_source *source)
{
    (void)instance, (void)source;
    return NULL; /* no option names a file: Vulkan's are a closed list, OpenGL has none */
}

/* --- includes --------------------------------------------------------------------------------- */

static bool take_memory(const char *name, const char *text, size_t length, kn_glsl_file *out)
{
    *out = (kn_glsl_file){kn_text_copy(name), NULL, text != NULL ? text : "", length, true};
    return out->name != NULL;
}

static bool take_file(const char *dir, const char *name, kn_glsl_file *out)
{
    *out = (kn_glsl_file){.name = dir != NULL ? kn_path_join(dir, name) : kn_text_copy(name)};
    if (out->name == NULL || kn_file_read(out->name, KN_GLSL_FILE_LIMIT, false, &out->owned,
                                          &out->length, NULL, NULL) != KILN_OK) {
        free(out->name);
        return false;
    }
    out->text = (const char *)out->owned;
    return true;
}

bool kn_glsl_find(const kiln_source *source, const char *includer, const char *name,
                  kn_glsl_file *out_file)
{
    for (size_t i = 0; i < source->header_count; i++) {
        if (strcmp(source->headers[i].name, name) == 0) {
            return take_memory(name, source->headers[i].text, source->headers[i].length, out_file);
        }
    }
    if (strcmp(name, PRELUDE) == 0) {
        return take_memory(name, kn_glsl_prelude, strlen(kn_glsl_prelude), out_file);
    }
    if (kn_path_is_absolute(name)) {
        return take_file(NULL, name, out_file);
    }
    char *dir = includer != NULL ? kn_path_dir(includer) : NULL;
    bool found = dir != NULL && take_file(dir, name, out_file);
    free(dir);
    for (size_t i = 0; !found && i < source->include_dir_count; i++) {
        found = take_file(source->include_dirs[i], name, out_file);
    }
    return found;
}

void kn_glsl_file_deinit(kn_glsl_file *file)
{
    free(file->name);
    free(file->owned);
}

/* --- text ------------------------------------------------------------------------------------- */

static bool is_there(const char *text, size_t length, size_t at, const char *word)
{
    const size_t size = strlen(word);
    return length - at >= size && memcmp(text + at, word, size) == 0;
}

size_t kn_glsl_skip_comment(const char *text, size_t length, size_t at)
{
    if (is_there(text, length, at, "/*")) {
        for (at += 2; at < length && !is_there(text, length, at, "*/"); at++) {
        }
        return at < length ? at + 2 : at;
    }
    if (!is_there(text, length, at, "//")) {
        return at;
    }
    while (at < length && text[at] != '\n' && text[at] != '\r') {
        const bool joins = is_there(text, length, at, "\\\n");
        at += is_there(text, length, at, "\\\r\n") ? 3 : 1 + (size_t)joins;
    }
    return at;
}

/* --- launches --------------------------------------------------------------------------------- */

/* As many items of a dimension as fit: a power of two that divides the range. */
static uint32_t fill_dimension(uint64_t budget, uint64_t global, uint32_t most)
{
    uint32_t size = 1;
    while ((uint64_t)size * 2 <= budget && global % (2 * (uint64_t)size) == 0 && 2 * size <= most) {
        size *= 2;
    }
    return size;
}

/* Items that a group has room for beside what the shader fixes. */
static uint64_t find_budget(const kn_glsl_groups *most, const bool open[3], const uint32_t *fixed)
{
    uint64_t budget = most->size < 256 ? most->size : 256;
    for (size_t i = 0; fixed != NULL && i < 3; i++) {
        budget /= !open[i] && fixed[i] > 0 ? fixed[i] : 1;
    }
    return budget;
}

static kiln_status check_fixed(const uint32_t *fixed, size_t i, uint64_t wanted, const char *name,
                               kiln_diag *diag)
{
    return fixed == NULL || wanted == 0 || wanted == fixed[i]
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID,
                               "launch with that size, or declare local_size_*_id", name,
                               "the shader fixes dimension %zu of its work-group at %u; the "
                               "launch asks for %llu",
                               i, fixed[i], (unsigned long long)wanted);
}

kiln_status kn_glsl_choose_local(const kn_glsl_groups *most, const bool open[3],
                                 const uint32_t *fixed, const uint64_t asked[3],
                                 const uint64_t global[3], const char *name, uint32_t out_local[3],
                                 kiln_diag *diag)
{
    uint64_t budget = find_budget(most, open, fixed);
    uint64_t items = 1;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < 3 && status == KILN_OK; i++) {
        const uint64_t wanted = asked[0] != 0 ? asked[i] : 0;
        if (!open[i]) {
            out_local[i] = fixed != NULL ? fixed[i] : 0;
            items *= fixed != NULL ? fixed[i] : 1;
            status = check_fixed(fixed, i, wanted, name, diag);
            continue;
        }
        out_local[i] = wanted <= most->dim[i] ? (uint32_t)wanted : 0;
        if (wanted == 0) {
            out_local[i] = fill_dimension(budget, global[i], most->dim[i]);
        }
        items *= out_local[i];
        budget /= out_local[i] > 0 ? out_local[i] : 1;
    }
    if (status == KILN_OK && (items == 0 || items > most->size)) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "use smaller work-groups", name,
                               "this device allows %u work-items in a group", most->size);
    }
    return status;
}

kiln_status kn_glsl_count_groups(const kn_glsl_groups *most, const kiln_sys_launch *launch,
                                 const uint32_t local[3], uint32_t out_groups[3], kiln_diag *diag)
{
    for (size_t i = 0; i < 3; i++) {
        const uint64_t count = launch->global[i] / local[i];
        if (launch->offset[i] != 0) {
            return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add the offset inside the shader",
                                 launch->entry, "compute shaders have no global offset");
        }
        if (launch->global[i] % local[i] != 0 || count > most->count[i]) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                                 "dimension %zu: %llu items in groups of %u cannot be launched", i,
                                 (unsigned long long)launch->global[i], local[i]);
        }
        out_groups[i] = (uint32_t)count;
    }
    return KILN_OK;
}

kiln_status kn_glsl_check_offset(const kiln_sys_launch *launch, size_t index, uint64_t alignment,
                                 kiln_diag *diag)
{
    return alignment == 0 || launch->args[index].offset % alignment == 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "align the offset, or pass it as a value",
                               launch->entry,
                               "argument %zu: buffer offset %zu is not a multiple of %llu", index,
                               launch->args[index].offset, (unsigned long long)alignment);
}

kiln_status kn_glsl_check_value(const kiln_sys_launch *launch, size_t index, const char *type,
                                const char *name, size_t size, kiln_diag *diag)
{
    return size == launch->args[index].size
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "pass the type that the shader declares",
                               launch->entry,
                               "argument %zu (%s %s) takes %zu bytes, %zu were given", index, type,
                               name, size, launch->args[index].size);
}
