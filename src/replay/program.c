/* Reading a recorded program, and giving it paths that are there. */
#include "replay/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "sys/file.h"

static const char reading[] = "reading a recorded program";

static kiln_status read_headers(const char *root, const kn_recorded_text *text,
                                kiln_header **out_headers, kiln_diag *diag)
{
    kiln_header *headers = (kiln_header *)calloc(text->header_count + 1, sizeof(*headers));
    kiln_status status = headers != NULL ? KILN_OK : kn_no_memory(diag, reading);
    *out_headers = headers;
    for (size_t i = 0; status == KILN_OK && i < text->header_count; i++) {
        char *bytes = NULL;
        status = kn_object_get(root, &text->headers[i].text, &bytes, diag);
        headers[i] =
            (kiln_header){text->headers[i].name, bytes, (size_t)text->headers[i].text.size};
    }
    return status;
}

static kiln_status read_texts(kn_replay_program *program, const char *root, kiln_diag *diag)
{
    const kn_recorded *recorded = &program->recorded;
    program->texts = (char **)calloc(recorded->text_count, sizeof(char *));
    program->headers = (kiln_header **)calloc(recorded->text_count, sizeof(kiln_header *));
    kiln_status status =
        program->texts != NULL && program->headers != NULL ? KILN_OK : kn_no_memory(diag, reading);
    for (size_t i = 0; status == KILN_OK && i < recorded->text_count; i++) {
        const kn_recorded_text *text = &recorded->texts[i];
        status = kn_object_get(root, &text->text, &program->texts[i], diag);
        if (status == KILN_OK) {
            status = read_headers(root, text, &program->headers[i], diag);
        }
    }
    return status;
}

/* The name stays as it was where nothing is found by it: code may hold it. */
static kiln_status place_name(kn_replay_program *program, kiln_diag *diag)
{
    const kn_recorded *recorded = &program->recorded;
    if (recorded->name == NULL) {
        return KILN_OK;
    }
    char *placed = NULL, *dir = NULL;
    if (strchr(recorded->name, '/') != NULL) {
        placed = kn_scratch_path(program->tree, recorded->dir, recorded->name);
        dir = placed != NULL ? kn_path_dir(placed) : NULL;
        if (dir == NULL) {
            free(placed);
            return kn_no_memory(diag, reading);
        }
    }
    const bool needed = dir != NULL && kn_scratch_has_below(recorded, program->tree, dir);
    program->name = needed ? placed : kn_text_copy(recorded->name);
    free(needed ? NULL : placed);
    free(dir);
    return program->name != NULL ? KILN_OK : kn_no_memory(diag, reading);
}

static kiln_status place_dirs(kn_replay_program *program, kiln_diag *diag)
{
    const kn_recorded *recorded = &program->recorded;
    program->include_dirs = (char **)calloc(recorded->include_dir_count + 1, sizeof(char *));
    bool good = program->include_dirs != NULL;
    for (size_t i = 0; good && i < recorded->include_dir_count; i++) {
        program->include_dirs[i] =
            kn_scratch_path(program->tree, recorded->dir, recorded->include_dirs[i]);
        good = program->include_dirs[i] != NULL;
    }
    return good ? place_name(program, diag) : kn_no_memory(diag, reading);
}

kiln_status kn_replay_program_init(kn_replay_program *program, const kn_recording *recording,
                                   kn_scratch *scratch, const uint8_t digest[KN_DIGEST_SIZE],
                                   kiln_diag *diag)
{
    memset(program, 0, sizeof(*program));
    kiln_status status =
        kn_recording_program(recording, digest, &program->bytes, &program->recorded, diag);
    if (status == KILN_OK) {
        status = read_texts(program, recording->root, diag);
    }
    if (status == KILN_OK) {
        status =
            kn_scratch_fill(scratch, recording->root, &program->recorded, &program->tree, diag);
    }
    if (status == KILN_OK) {
        status = place_dirs(program, diag);
    }
    if (status != KILN_OK) {
        kn_replay_program_deinit(program);
    }
    return status;
}

void kn_replay_program_deinit(kn_replay_program *program)
{
    const kn_recorded *recorded = &program->recorded;
    for (size_t i = 0; i < recorded->text_count; i++) {
        kiln_header *headers = program->headers != NULL ? program->headers[i] : NULL;
        for (size_t k = 0; headers != NULL && k < recorded->texts[i].header_count; k++) {
            free((void *)(uintptr_t)headers[k].text);
        }
        free(headers);
        if (program->texts != NULL) {
            free(program->texts[i]);
        }
    }
    for (size_t i = 0; program->include_dirs != NULL && i < recorded->include_dir_count; i++) {
        free(program->include_dirs[i]);
    }
    free(program->headers);
    free(program->texts);
    free(program->include_dirs);
    free(program->name);
    free(program->tree);
    kn_recorded_deinit(&program->recorded);
    free(program->bytes);
    memset(program, 0, sizeof(*program));
}

kiln_source kn_replay_program_source(const kn_replay_program *program)
{
    const kn_recorded *recorded = &program->recorded;
    kiln_source source = KILN_SOURCE_INIT;
    source.language = recorded->language;
    source.name = program->name;
    source.text = program->texts[0];
    source.length = (size_t)recorded->texts[0].text.size;
    source.defines = recorded->defines;
    source.define_count = recorded->define_count;
    source.options = recorded->options;
    source.option_count = recorded->option_count;
    source.include_dirs = (const char *const *)program->include_dirs;
    source.include_dir_count = recorded->include_dir_count;
    source.headers = program->headers[0];
    source.header_count = recorded->texts[0].header_count;
    source.entries = recorded->entries;
    source.entry_count = recorded->entry_count;
    return source;
}
