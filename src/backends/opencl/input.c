/* Making a request ready for clBuildProgram: see input.h. Knows files and text, no driver call. */
#include "backends/opencl/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/options.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/link.h"
#include "sys/paths.h"
#include "sys/random.h"

#define HEADER_FOLDER "h"

static kiln_status out_of_memory(kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "preparing an OpenCL compile", NULL);
}

static kiln_status refuse(kiln_diag *diag, const char *what, const char *text, const char *why)
{
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "'%s' %s", text, why);
}

static bool needs_folder(const kiln_source *source)
{
    for (size_t i = 0; i < source->include_dir_count; i++) {
        if (!kn_opencl_text_is_plain(source->include_dirs[i])) {
            return true;
        }
    }
    return source->header_count > 0;
}

/* The folder's name goes into options, so it must be plain; the temporary folder may not be. */
static kiln_status name_folder(kn_opencl_input *input, const char *folder, kiln_diag *diag)
{
    kn_strbuf path;
    char *temporary = folder == NULL ? kn_paths_temporary() : NULL;
    kn_strbuf_init(&path, 0);
    if (folder != NULL) {
        kn_strbuf_append_text(&path, folder);
    } else {
        bool plain = temporary != NULL && kn_opencl_text_is_plain(temporary);
        kn_strbuf_printf(&path, "%s/kiln-opencl-%016llx", plain ? temporary : "/tmp",
                         (unsigned long long)kn_random_u64());
    }
    input->folder = kn_strbuf_ok(&path) ? kn_text_copy(kn_strbuf_text(&path)) : NULL;
    kn_strbuf_deinit(&path);
    free(temporary);
    return input->folder != NULL ? KILN_OK : out_of_memory(diag);
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

static kiln_status copy_headers(kn_opencl_input *input, const kiln_source *source, kiln_diag *diag)
{
    if (source->header_count == 0) {
        return KILN_OK;
    }
    input->headers = calloc(source->header_count, sizeof(*input->headers));
    if (input->headers == NULL) {
        return out_of_memory(diag);
    }
    for (size_t i = 0; i < source->header_count; i++) {
        const kiln_header *header = &source->headers[i];
        if (!header_name_is_good(header->name)) {
            return refuse(diag, "taking a header in memory", header->name,
                          "is no relative path below the header's folder");
        }
        input->headers[i].name = kn_text_copy(header->name);
        input->headers[i].text = kn_text_copy_n(header->text, header->length);
        input->headers[i].length = header->length;
        input->header_count = i + 1;
        if (input->headers[i].name == NULL || input->headers[i].text == NULL) {
            return out_of_memory(diag);
        }
    }
    return KILN_OK;
}

static kiln_status add_include_dirs(kn_opencl_input *input, const kiln_source *source,
                                    kn_strbuf *options, kiln_diag *diag)
{
    if (input->header_count > 0) {
        kn_strbuf_printf(options, "-I %s/" HEADER_FOLDER " ", input->folder);
    }
    input->links = calloc(source->include_dir_count + 1, sizeof(*input->links));
    if (input->links == NULL) {
        return out_of_memory(diag);
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
            return out_of_memory(diag);
        }
        kn_strbuf_printf(options, "-I %s/i%zu ", input->folder, input->link_count);
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
            return refuse(diag, "taking a definition", name != NULL ? name : "",
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
    if (prologue->length > 0) {
        kn_strbuf_append_text(prologue, "#line 1\n");
    }
    return KILN_OK;
}

static kiln_status add_options(const kiln_source *source, kn_strbuf *options, kiln_diag *diag)
{
    for (size_t i = 0; i < source->option_count; i++) {
        if (strpbrk(source->options[i], "\r\n") != NULL) {
            return refuse(diag, "taking an option", source->options[i], "has a line break");
        }
        kn_strbuf_printf(options, "%s ", source->options[i]);
    }
    return KILN_OK;
}

static kiln_status make(kn_opencl_input *input, const kiln_source *source, kn_strbuf *options,
                        kn_strbuf *text, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (source->language == KILN_LANG_OPENCL_C) {
        status = copy_headers(input, source, diag);
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
        kn_strbuf_append_text(options, "-cl-kernel-arg-info");
    }
    kn_strbuf_append(text, source->text, source->length);
    return status;
}

kiln_status kn_opencl_input_init(kn_opencl_input *input, const kiln_source *source,
                                 const char *folder, kiln_diag *diag)
{
    *input = (kn_opencl_input){0};
    kn_strbuf options, text;
    kn_strbuf_init(&options, (size_t)1 << 20);
    kn_strbuf_init(&text, 0);
    kiln_status status = KILN_OK;
    if (source->language == KILN_LANG_OPENCL_C && needs_folder(source)) {
        status = name_folder(input, folder, diag);
    }
    if (status == KILN_OK) {
        status = make(input, source, &options, &text, diag);
    }
    if (status == KILN_OK) {
        /* detach gives NULL for an empty buffer, too. */
        input->options = kn_text_copy(kn_strbuf_text(&options));
        input->text = kn_text_copy_n(kn_strbuf_text(&text), text.length);
        input->length = text.length;
        if (!kn_strbuf_ok(&options) || !kn_strbuf_ok(&text) || input->options == NULL ||
            input->text == NULL) {
            status = out_of_memory(diag);
        }
    }
    kn_strbuf_deinit(&text);
    kn_strbuf_deinit(&options);
    if (status != KILN_OK) {
        kn_opencl_input_deinit(input);
    }
    return status;
}

/* folder/h/name, malloc'ed. */
static char *header_path(const kn_opencl_input *input, const char *name)
{
    char *folder = kn_path_join(input->folder, HEADER_FOLDER);
    char *path = folder != NULL ? kn_path_join(folder, name) : NULL;
    free(folder);
    return path;
}

static char *link_path(const kn_opencl_input *input, size_t index)
{
    char name[32];
    kn_text_putf(name, sizeof(name), "i%zu", index);
    return kn_path_join(input->folder, name);
}

static kiln_status write_header(const kn_opencl_input *input, size_t index, kiln_diag *diag)
{
    const struct kn_opencl_header *header = &input->headers[index];
    char *path = header_path(input, header->name);
    char *folder = path != NULL ? kn_path_folder(path) : NULL;
    kn_file *file = NULL;
    kiln_status status = folder != NULL ? kn_file_make_folder(folder, diag) : out_of_memory(diag);
    if (status == KILN_OK) {
        status = kn_file_open(path, true, &file, diag);
    }
    if (status == KILN_OK && header->length > 0) {
        status = kn_file_write_at(file, 0, header->text, header->length);
        if (status != KILN_OK) {
            status = kiln_diag_set(diag, KILN_E_IO, "free some space in the temporary folder",
                                   "writing a header for the compiler", "%s", path);
        }
    }
    kn_file_close(file);
    free(folder);
    free(path);
    return status;
}

kiln_status kn_opencl_input_enter(kn_opencl_input *input, kiln_diag *diag)
{
    if (input->folder == NULL) {
        return KILN_OK;
    }
    input->entered = true;
    kiln_status status = kn_file_make_folder(input->folder, diag);
    for (size_t i = 0; i < input->link_count && status == KILN_OK; i++) {
        char *path = link_path(input, i);
        status = path != NULL ? kn_link_create(input->links[i], path, diag) : out_of_memory(diag);
        free(path);
    }
    for (size_t i = 0; i < input->header_count && status == KILN_OK; i++) {
        status = write_header(input, i, diag);
    }
    if (status != KILN_OK) {
        kn_opencl_input_leave(input);
    }
    return status;
}

/* Removes a header and every folder above it, up to the private one, that is empty then. */
static void remove_header(const kn_opencl_input *input, const char *name)
{
    char *path = header_path(input, name);
    if (path != NULL) {
        (void)kn_file_remove(path, NULL);
    }
    while (path != NULL && strlen(path) > strlen(input->folder)) {
        char *folder = kn_path_folder(path);
        free(path);
        path = folder;
        if (path != NULL && kn_file_remove_folder(path) != KILN_OK) {
            break;
        }
    }
    free(path);
}

void kn_opencl_input_leave(kn_opencl_input *input)
{
    if (!input->entered) {
        return;
    }
    input->entered = false;
    for (size_t i = 0; i < input->link_count; i++) {
        char *path = link_path(input, i);
        if (path != NULL) {
            (void)kn_file_remove(path, NULL);
        }
        free(path);
    }
    for (size_t i = 0; i < input->header_count; i++) {
        remove_header(input, input->headers[i].name);
    }
    (void)kn_file_remove_folder(input->folder); /* gone already with the last header */
}

void kn_opencl_input_deinit(kn_opencl_input *input)
{
    kn_opencl_input_leave(input);
    for (size_t i = 0; i < input->link_count; i++) {
        free(input->links[i]);
    }
    for (size_t i = 0; i < input->header_count; i++) {
        free(input->headers[i].name);
        free(input->headers[i].text);
    }
    free(input->links);
    free(input->headers);
    free(input->folder);
    free(input->options);
    free(input->text);
    *input = (kn_opencl_input){0};
}
