/* Making a request ready for clBuildProgram: see input.h. Knows files and text, no driver call. */
#include "apis/opencl/backend/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/options.h"
#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"

static const char preparing[] = "preparing an OpenCL compile"; /* what fails without memory */

#define HEADERS "h/"
#define SOURCE "m/"
#define ALWAYS "-cl-kernel-arg-info" /* of text: what its kernels take */

static kiln_status refuse_text(kiln_diag *diag, const char *what, const char *text, const char *why)
{
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "'%s' %s", text, why);
}

/* Whether there can be an #include in the text: any "include" will do, however it is spelt around.
 */
static bool has_includes(const kiln_source *source)
{
    static const char word[] = "include";
    const char *at = (const char *)source->text;
    const char *end = at + source->length;
    while ((size_t)(end - at) >= sizeof(word) - 1 &&
           (at = memchr(at, 'i', (size_t)(end - at) - (sizeof(word) - 2))) != NULL) {
        if (memcmp(at, word, sizeof(word) - 1) == 0) {
            return true;
        }
        at++;
    }
    return false;
}

static bool needs_dir(const kiln_source *source)
{
    for (size_t i = 0; i < source->include_dir_count; i++) {
        if (!kn_opencl_text_is_plain(source->include_dirs[i])) {
            return true;
        }
    }
    return source->header_count > 0 || has_includes(source);
}

/* The directory's name goes into options, so it must be plain; the temporary directory may not
 * be. */
static kiln_status name_dir(kn_opencl_input *input, const char *dir, kiln_diag *diag)
{
    kn_strbuf path;
    char *temporary = dir == NULL ? kn_paths_temporary() : NULL;
    kn_strbuf_init(&path, 0);
    if (dir != NULL) {
        kn_strbuf_append_text(&path, dir);
    } else {
        bool plain = temporary != NULL && kn_opencl_text_is_plain(temporary);
        kn_strbuf_printf(&path, "%s/kiln-opencl-%016llx", plain ? temporary : "/tmp",
                         (unsigned long long)kn_random_u64());
    }
    input->dir = kn_strbuf_ok(&path) ? kn_text_copy(kn_strbuf_text(&path)) : NULL;
    kn_strbuf_deinit(&path);
    free(temporary);
    return input->dir != NULL ? KILN_OK : kn_no_memory(diag, preparing);
}

static bool header_name_is_good(const char *name)
{
    if (name[0] == '\0' || name[0] == '/' || strchr(name, '\n') != NULL) {
        return false;
    }
    for (const char *at = name; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (kn_text_starts(at, "..") && (at[2] == '/' || at[2] == '\0')) {
            return false;
        }
    }
    return true;
}

static kiln_status add_file(kn_opencl_input *input, const char *dir, const char *name,
                            const char *text, size_t length, kiln_diag *diag)
{
    struct kn_opencl_file *file = &input->files[input->file_count++];
    kn_strbuf path;
    kn_strbuf_init(&path, 0);
    kn_strbuf_printf(&path, "%s%s", dir, name);
    file->name = kn_strbuf_detach(&path, NULL);
    file->text = kn_text_copy_n(text, length);
    file->length = length;
    return file->name != NULL && file->text != NULL ? KILN_OK : kn_no_memory(diag, preparing);
}

static kiln_status add_files(kn_opencl_input *input, const kiln_source *source, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (input->dir == NULL) {
        return KILN_OK;
    }
    input->files = calloc(source->header_count + 1, sizeof(*input->files));
    if (input->files == NULL) {
        return kn_no_memory(diag, preparing);
    }
    for (size_t i = 0; i < source->header_count && status == KILN_OK; i++) {
        const kiln_header *header = &source->headers[i];
        status = header_name_is_good(header->name)
                     ? add_file(input, HEADERS, header->name, header->text, header->length, diag)
                     : refuse_text(diag, "taking a header in memory", header->name,
                                   "is not a relative path below the header's directory");
    }
    if (status == KILN_OK && has_includes(source)) {
        const char *name = source->name != NULL ? kn_path_name(source->name) : "";
        bool plain = name[0] != '\0' && name[0] != '.' && kn_opencl_text_is_plain(name);
        status = add_file(input, SOURCE, plain ? name : "kernel.cl", (const char *)source->text,
                          source->length, diag);
    }
    return status;
}

static kiln_status add_include_dirs(kn_opencl_input *input, const kiln_source *source,
                                    kn_strbuf *options, kiln_diag *diag)
{
    if (source->header_count > 0) {
        kn_strbuf_printf(options, "-I %s/" HEADERS " ", input->dir);
    }
    input->links = calloc(source->include_dir_count + 1, sizeof(*input->links));
    if (input->links == NULL) {
        return kn_no_memory(diag, preparing);
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        const char *dir = source->include_dirs[i];
        if (dir[0] == '\0') {
            continue;
        }
        if (kn_opencl_text_is_plain(dir)) {
            kn_strbuf_printf(options, "-I %s ", dir);
            continue;
        }
        input->links[input->link_count] = kn_text_copy(dir);
        if (input->links[input->link_count] == NULL) {
            return kn_no_memory(diag, preparing);
        }
        kn_strbuf_printf(options, "-I %s/i%zu ", input->dir, input->link_count);
        input->link_count++;
    }
    return KILN_OK;
}

/* A plain definition goes where every driver shows it in its logs; another one before the text. */
static kiln_status add_defines(const kiln_source *source, kn_strbuf *options, kn_strbuf *prologue,
                               kiln_diag *diag)
{
    for (size_t i = 0; i < source->define_count; i++) {
        const char *name = source->defines[i].name;
        const char *value = source->defines[i].value;
        if (name == NULL || name[0] == '\0' || strpbrk(name, "\r\n") != NULL ||
            (value != NULL && strpbrk(value, "\r\n") != NULL)) {
            return refuse_text(diag, "taking a definition", name != NULL ? name : "",
                               "is empty or has a line break");
        }
        bool plain = strpbrk(name, "()=") == NULL && kn_opencl_text_is_plain(name) &&
                     (value == NULL || kn_opencl_text_is_plain(value));
        if (!plain) {
            kn_strbuf_printf(prologue, "#define %s %s\n", name, value != NULL ? value : "1");
        } else if (value == NULL) {
            kn_strbuf_printf(options, "-D%s ", name);
        } else {
            kn_strbuf_printf(options, "-D%s=%s ", name, value);
        }
    }
    return KILN_OK;
}

/* The text that the driver gets: the source itself, or an include of the file it became. */
static void add_text(const kn_opencl_input *input, const kiln_source *source, kn_strbuf *text)
{
    const struct kn_opencl_file *last =
        input->file_count > 0 ? &input->files[input->file_count - 1] : NULL;
    if (last != NULL && kn_text_starts(last->name, SOURCE)) {
        kn_strbuf_printf(text, "#include \"%s/%s\"\n", input->dir, last->name);
        return;
    }
    if (text->length > 0) {
        kn_strbuf_append_text(text, "#line 1\n");
    }
    kn_strbuf_append(text, source->text, source->length);
}

static kiln_status add_options(const kiln_source *source, kn_strbuf *options, kiln_diag *diag)
{
    for (size_t i = 0; i < source->option_count; i++) {
        if (strpbrk(source->options[i], "\r\n") != NULL) {
            return refuse_text(diag, "taking an option", source->options[i], "has a line break");
        }
        kn_strbuf_printf(options, "%s ", source->options[i]);
    }
    return KILN_OK;
}

char *kn_opencl_input_load_options(const kiln_source *source)
{
    const bool is_text = source->language == KILN_LANG_OPENCL_C;
    kn_strbuf options, prologue;
    kn_strbuf_init(&options, (size_t)1 << 20);
    kn_strbuf_init(&prologue, 0);
    kiln_status status = is_text ? add_defines(source, &options, &prologue, NULL) : KILN_OK;
    if (status == KILN_OK) {
        status = add_options(source, &options, NULL);
    }
    kn_strbuf_append_text(&options, is_text ? ALWAYS : "");
    char *text =
        status == KILN_OK && kn_strbuf_ok(&options) ? kn_text_copy(kn_strbuf_text(&options)) : NULL;
    kn_strbuf_deinit(&prologue);
    kn_strbuf_deinit(&options);
    return text;
}

static kiln_status make_input(kn_opencl_input *input, const kiln_source *source, kn_strbuf *options,
                              kn_strbuf *text, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (source->language == KILN_LANG_OPENCL_C) {
        status = add_files(input, source, diag);
        if (status == KILN_OK) {
            status = add_include_dirs(input, source, options, diag);
        }
        if (status == KILN_OK) {
            status = add_defines(source, options, text, diag);
        }
    }
    if (status == KILN_OK) {
        status = add_options(source, options, diag);
    }
    if (status == KILN_OK && source->language == KILN_LANG_OPENCL_C) {
        kn_strbuf_append_text(options, ALWAYS);
    }
    if (status == KILN_OK) {
        add_text(input, source, text);
    }
    return status;
}

kiln_status kn_opencl_input_init(kn_opencl_input *input, const kiln_source *source, const char *dir,
                                 kiln_diag *diag)
{
    *input = (kn_opencl_input){0};
    kn_strbuf options, text;
    kn_strbuf_init(&options, (size_t)1 << 20);
    kn_strbuf_init(&text, 0);
    kiln_status status = KILN_OK;
    if (source->language == KILN_LANG_OPENCL_C && needs_dir(source)) {
        status = name_dir(input, dir, diag);
    }
    if (status == KILN_OK) {
        status = make_input(input, source, &options, &text, diag);
    }
    if (status == KILN_OK) {
        /* detach gives NULL for an empty buffer, too. */
        input->options = kn_text_copy(kn_strbuf_text(&options));
        input->text = kn_text_copy_n(kn_strbuf_text(&text), text.length);
        input->length = text.length;
        if (!kn_strbuf_ok(&options) || !kn_strbuf_ok(&text) || input->options == NULL ||
            input->text == NULL) {
            status = kn_no_memory(diag, preparing);
        }
    }
    kn_strbuf_deinit(&text);
    kn_strbuf_deinit(&options);
    if (status != KILN_OK) {
        kn_opencl_input_deinit(input);
    }
    return status;
}

static char *link_path(const kn_opencl_input *input, size_t index)
{
    char name[32];
    kn_text_putf(name, sizeof(name), "i%zu", index);
    return kn_path_join(input->dir, name);
}

static kiln_status write_file(const kn_opencl_input *input, const struct kn_opencl_file *source,
                              kiln_diag *diag)
{
    char *path = kn_path_join(input->dir, source->name);
    char *dir = path != NULL ? kn_path_dir(path) : NULL;
    kn_file *file = NULL;
    kiln_status status = dir != NULL ? kn_file_make_dir(dir, diag) : kn_no_memory(diag, preparing);
    if (status == KILN_OK) {
        status = kn_file_open(path, true, &file, diag);
    }
    if (status == KILN_OK && source->length > 0 &&
        kn_file_write_at(file, 0, source->text, source->length) != KILN_OK) {
        status = kiln_diag_set(diag, KILN_E_IO, "free some space in the temporary directory",
                               "writing a file for the compiler", "%s", path);
    }
    kn_file_close(file);
    free(dir);
    free(path);
    return status;
}

kiln_status kn_opencl_input_enter(kn_opencl_input *input, kiln_diag *diag)
{
    if (input->dir == NULL) {
        return KILN_OK;
    }
    input->entered = true;
    kiln_status status = kn_file_make_new_dir(input->dir, diag);
    if (status != KILN_OK) {
        input->entered = false; /* whatever is there is not this program's to remove */
        return status == KILN_E_BUSY ? KILN_E_IO : status;
    }
    for (size_t i = 0; i < input->link_count && status == KILN_OK; i++) {
        char *path = link_path(input, i);
        status = path != NULL ? kn_link_create(input->links[i], path, diag)
                              : kn_no_memory(diag, preparing);
        free(path);
    }
    for (size_t i = 0; i < input->file_count && status == KILN_OK; i++) {
        status = write_file(input, &input->files[i], diag);
    }
    if (status != KILN_OK) {
        kn_opencl_input_leave(input);
    }
    return status;
}

#define PATH_LIMIT 4096

/* Removes directory/name and every directory above it, up to the private one, that is empty then.
 * Asks for no memory: that it ran out may be why this is called. */
static void remove_below(const kn_opencl_input *input, const char *name)
{
    char path[PATH_LIMIT];
    size_t root = strlen(input->dir);
    kn_text_putf(path, sizeof(path), "%s/%s", input->dir, name);
    (void)kn_file_remove(path, NULL);
    for (char *slash = strrchr(path, '/'); slash != NULL && (size_t)(slash - path) > root;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        if (kn_file_remove_dir(path) != KILN_OK) {
            break;
        }
    }
}

void kn_opencl_input_leave(kn_opencl_input *input)
{
    char name[32];
    if (!input->entered) {
        return;
    }
    input->entered = false;
    for (size_t i = 0; i < input->link_count; i++) {
        kn_text_putf(name, sizeof(name), "i%zu", i);
        remove_below(input, name);
    }
    for (size_t i = 0; i < input->file_count; i++) {
        remove_below(input, input->files[i].name);
    }
    (void)kn_file_remove_dir(input->dir);
}

/* A log names the private directory as DIR/m/, DIR/h/ or DIR/i0/. Returns the user's name for the
 * one at `at`, and the length of the private name. */
static const char *user_name(const kn_opencl_input *input, const char *at, size_t *out_length)
{
    size_t length = strlen(input->dir);
    if (strncmp(at, input->dir, length) != 0 || at[length] != '/') {
        return NULL;
    }
    const char *rest = at + length + 1;
    *out_length = length + 1 + strlen(SOURCE);
    if (kn_text_starts(rest, SOURCE) || kn_text_starts(rest, HEADERS)) {
        return "";
    }
    size_t digits = strspn(rest + 1, "0123456789");
    uint64_t index = 0;
    char number[24];
    kn_text_putf(number, sizeof(number), "%.*s", (int)(digits < 20 ? digits : 20), rest + 1);
    if (rest[0] != 'i' || !kn_text_to_u64(number, &index) || index >= input->link_count) {
        return NULL;
    }
    *out_length = length + 2 + digits;
    return input->links[index];
}

char *kn_opencl_input_clean_log(const kn_opencl_input *input, const char *log)
{
    kn_strbuf clean;
    if (input->dir == NULL || log == NULL || strstr(log, input->dir) == NULL) {
        return NULL;
    }
    kn_strbuf_init(&clean, 0);
    for (const char *at = log; *at != '\0';) {
        size_t length = 0;
        const char *name = user_name(input, at, &length);
        if (name != NULL) {
            kn_strbuf_append_text(&clean, name);
            at += length;
        } else {
            kn_strbuf_append_char(&clean, *at++);
        }
    }
    char *text = kn_strbuf_detach(&clean, NULL);
    kn_strbuf_deinit(&clean);
    return text;
}

void kn_opencl_input_deinit(kn_opencl_input *input)
{
    kn_opencl_input_leave(input);
    for (size_t i = 0; i < input->link_count; i++) {
        free(input->links[i]);
    }
    for (size_t i = 0; i < input->file_count; i++) {
        free(input->files[i].name);
        free(input->files[i].text);
    }
    free(input->links);
    free(input->files);
    free(input->dir);
    free(input->options);
    free(input->text);
    *input = (kn_opencl_input){0};
}
