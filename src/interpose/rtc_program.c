/* See rtc_program.h and rtc_library.h. */
#include "interpose/rtc_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/label.h"
#include "base/text.h"
#include "interpose/handles.h"
#include "interpose/parts.h"

static kn_handles programs;

kiln_status kn_rtc_library_identify(kn_rtc_library *library, kn_rtc_identity *out, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_mutex_lock(&library->lock);
    if (!library->known) {
        status = library->kind->find_identity(library, &library->identity, diag);
        library->known = status == KILN_OK;
    }
    *out = library->identity;
    kn_mutex_unlock(&library->lock);
    return status;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
    }
    free((void *)texts);
}

static bool copy_headers(kn_rtc_program *program, int count, const char *const *headers,
                         const char *const *names)
{
    program->headers = (kiln_header *)calloc((size_t)count + 1, sizeof(*program->headers));
    for (int i = 0; program->headers != NULL && i < count; i++) {
        kiln_header *header = &program->headers[i];
        header->text = kn_text_copy(headers[i]);
        header->name = kn_text_copy(names[i]);
        program->header_count++;
        if (header->text == NULL || header->name == NULL) {
            return false;
        }
        header->length = strlen((const char *)header->text);
    }
    return program->headers != NULL;
}

/* All but the real program. */
static void free_program(kn_rtc_program *program)
{
    kn_rtc_program_forget(program);
    free_texts(program->options, program->option_count);
    free_texts(program->earlier, program->earlier_count);
    free_texts(program->expressions, program->expression_count);
    for (size_t i = 0; i < program->header_count; i++) {
        free((void *)(uintptr_t)program->headers[i].text);
        free((void *)(uintptr_t)program->headers[i].name);
    }
    free(program->headers);
    free(program->name);
    free(program->text);
    kn_mutex_deinit(&program->lock);
    free(program);
}

kn_rtc_program *kn_rtc_program_create(kn_rtc_library *library, const char *text, const char *name,
                                      int header_count, const char *const *headers,
                                      const char *const *header_names)
{
    kn_rtc_program *program = (kn_rtc_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        return NULL;
    }
    kn_mutex_init(&program->lock);
    program->library = library;
    program->text = kn_text_copy(text);
    program->name = name != NULL ? kn_text_copy(name) : NULL;
    if (program->text == NULL || (name != NULL && program->name == NULL) ||
        !copy_headers(program, header_count, headers, header_names) ||
        !kn_handles_add(&programs, program)) {
        free_program(program);
        return NULL;
    }
    return program;
}

bool kn_rtc_program_destroy(void *handle)
{
    if (!kn_handles_remove(&programs, handle)) {
        return false;
    }
    kn_rtc_program *program = (kn_rtc_program *)handle;
    const kn_rtc_calls *real = program->real != NULL ? program->library->open() : NULL;
    if (real != NULL) {
        (void)real->destroy(&program->real);
    }
    free_program(program);
    return true;
}

const char *kn_rtc_program_name(const kn_rtc_program *program)
{
    return program->name != NULL ? program->name : program->library->kind->unnamed;
}

kn_rtc_program *kn_rtc_program_of(void *handle)
{
    return kn_handles_have(&programs, handle) ? (kn_rtc_program *)handle : NULL;
}

bool kn_rtc_program_add_expression(kn_rtc_program *program, const char *expression)
{
    char **grown = (char **)realloc((void *)program->expressions,
                                    (program->expression_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    program->expressions = grown;
    grown[program->expression_count] = kn_text_copy(expression);
    return grown[program->expression_count] != NULL && ++program->expression_count > 0;
}

bool kn_rtc_program_set_options(kn_rtc_program *program, int count, const char *const *options)
{
    char **copies = (char **)calloc((size_t)count + 1, sizeof(*copies));
    bool copied = copies != NULL;
    for (int i = 0; copied && i < count; i++) {
        copies[i] = kn_text_copy(options[i]);
        copied = copies[i] != NULL;
    }
    if (!copied) {
        free_texts(copies, copies != NULL ? (size_t)count : 0);
        return false;
    }
    free_texts(program->earlier, program->earlier_count);
    program->earlier = NULL;
    program->earlier_count = 0;
    if (program->blob != NULL && !program->real_compiled) {
        program->earlier = program->options;
        program->earlier_count = program->option_count;
    } else {
        free_texts(program->options, program->option_count);
    }
    program->options = copies;
    program->option_count = (size_t)count;
    return true;
}

void kn_rtc_program_forget(kn_rtc_program *program)
{
    kn_rtc_answer_deinit(&program->result);
    kiln_blob_release(program->blob);
    program->blob = NULL;
    free(program->log);
    program->log = NULL;
    program->real_compiled = false;
}

/* The log names the source, and entries are shared by sources of all names. */
static bool take_log(kn_rtc_program *program)
{
    const kn_span log = program->result.parts[KN_RTC_LOG].bytes;
    const kn_span from = program->result.parts[KN_RTC_NAME].bytes;
    const char *to = kn_rtc_program_name(program);
    if (log.length <= 1 || kn_span_equal(from, kn_span_of_text(to))) {
        return true;
    }
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    if (!program->library->kind->rename_log(log, from, to, &text)) {
        kn_strbuf_deinit(&text);
        return false;
    }
    size_t length = 0;
    program->log = kn_strbuf_detach(&text, &length);
    program->result.parts[KN_RTC_LOG].bytes = kn_span_of(program->log, length);
    return program->log != NULL;
}

bool kn_rtc_program_take(kn_rtc_program *program, kiln_blob *blob)
{
    kn_rtc_answer_deinit(&program->result);
    free(program->log);
    program->log = NULL;
    kiln_blob_release(program->blob);
    program->blob = blob;
    const bool taken = kn_rtc_answer_parse(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)),
                                           &program->result) == KILN_OK &&
                       program->result.lowered_count == program->expression_count &&
                       take_log(program);
    if (!taken) {
        kn_rtc_answer_deinit(&program->result);
        kiln_blob_release(program->blob);
        program->blob = NULL;
    }
    return taken;
}

/* --- the real program ------------------------------------------------------------------------- */

int kn_rtc_program_make_real(kn_rtc_program *program)
{
    const kn_rtc_calls *real = program->library->open();
    if (program->real != NULL) {
        return 0;
    }
    if (real == NULL) {
        return KN_RTC_INTERNAL_ERROR;
    }
    const size_t count = program->header_count;
    const char **arrays = (const char **)calloc(2 * count + 1, sizeof(*arrays));
    if (arrays == NULL) {
        return KN_RTC_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        arrays[i] = (const char *)program->headers[i].text;
        arrays[count + i] = program->headers[i].name;
    }
    int code = real->create(&program->real, program->text, program->name, (int)count,
                            count > 0 ? arrays : NULL, count > 0 ? arrays + count : NULL);
    for (size_t i = 0; code == 0 && i < program->expression_count; i++) {
        code = real->add_expression(program->real, program->expressions[i]);
    }
    if (code == 0 && program->callback != NULL && real->set_callback != NULL) {
        code = real->set_callback(program->real, program->callback, program->callback_payload);
    }
    free((void *)arrays);
    return code;
}

/* `first`, unless it is NULL, and the options. */
static int compile_with(const kn_rtc_program *program, const char *first, char **options,
                        size_t count)
{
    const kn_rtc_calls *real = program->library->open();
    const char **all = first != NULL ? (const char **)calloc(count + 1, sizeof(*all)) : NULL;
    if (all == NULL) {
        return real->compile(program->real, (int)count, (const char *const *)options);
    }
    all[0] = first;
    for (size_t i = 0; i < count; i++) {
        all[i + 1] = options[i];
    }
    const int code = real->compile(program->real, (int)count + 1, all);
    free((void *)all);
    return code;
}

int kn_rtc_program_compile_real(kn_rtc_program *program, bool uncached)
{
    const kn_rtc_library *library = program->library;
    const char *first = uncached && library->kind->uncached_option != NULL
                            ? library->kind->uncached_option(library->open())
                            : NULL;
    const int code = compile_with(program, first, program->options, program->option_count);
    if (code == 0 || program->earlier == NULL) {
        return code;
    }
    (void)program->library->open()->destroy(&program->real);
    program->real = NULL;
    const int made = kn_rtc_program_make_real(program);
    if (made != 0) {
        return made;
    }
    (void)compile_with(program, first, program->earlier, program->earlier_count);
    return compile_with(program, first, program->options, program->option_count);
}

int kn_rtc_program_catch_up(kn_rtc_program *program)
{
    int code = kn_rtc_program_make_real(program);
    if (code == 0 && program->blob != NULL && !program->real_compiled) {
        code = kn_rtc_program_compile_real(program, false);
        program->real_compiled = true;
    }
    return code;
}

/* --- what it gave ----------------------------------------------------------------------------- */

/* False when out of memory. A size that is an error is an answer, too, and is kept. */
static bool gather_output(const kn_rtc_program *program, unsigned part, const kn_rtc_calls *real,
                          kn_strbuf *out)
{
    size_t size = 0;
    kn_rtc_size_fn *get_size = real->outputs[part].size;
    kn_rtc_bytes_fn *get_bytes = real->outputs[part].bytes;
    if (get_size == NULL || get_bytes == NULL) {
        return true;
    }
    const int code = get_size(program->real, &size);
    char *bytes = (char *)calloc(1, size + 1);
    if (bytes == NULL || (code == 0 && size > 0 && get_bytes(program->real, bytes) != 0)) {
        free(bytes);
        return false;
    }
    kn_parts_append(out, part, (uint32_t)code, kn_span_of(bytes, code == 0 ? size : 0));
    free(bytes);
    return true;
}

static bool gather_lowered(const kn_rtc_program *program, const kn_rtc_calls *real, kn_strbuf *out)
{
    for (size_t i = 0; i < program->expression_count; i++) {
        const char *lowered = NULL;
        if (real->get_lowered(program->real, program->expressions[i], &lowered) != 0 ||
            lowered == NULL) {
            return false;
        }
        kn_parts_append(out, KN_RTC_LOWERED, 0, kn_span_of(lowered, strlen(lowered) + 1));
    }
    return true;
}

kiln_status kn_rtc_program_gather(kn_rtc_program *program, kiln_blob **out_blob, kiln_diag *diag)
{
    const kn_rtc_calls *real = program->library->open();
    const char *name = kn_rtc_program_name(program);
    char label[KN_LABEL_SIZE];
    kn_strbuf payload, facts;
    kn_strbuf_init(&payload, 0);
    kn_strbuf_init(&facts, 0);
    kn_label_make(label, program->name, kn_span_of_text(program->text));
    kn_label_append(&facts, label);
    bool whole = true;
    for (unsigned part = KN_RTC_LOG; part < KN_RTC_PARTS; part++) {
        whole = whole && gather_output(program, part, real, &payload);
    }
    whole = whole && gather_lowered(program, real, &payload);
    if (real->pch_status != NULL) {
        kn_parts_append(&payload, KN_RTC_PCH, (uint32_t)real->pch_status(program->real),
                        kn_span_of(NULL, 0));
    }
    kn_parts_append(&payload, KN_RTC_NAME, 0, kn_span_of_text(name));
    whole = whole && kn_strbuf_ok(&payload);
    kiln_status status = whole
                             ? kiln_blob_create(payload.data, payload.length, facts.data,
                                                facts.length, out_blob, diag)
                             : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, name,
                                             "%s compiled it but does not return all of the result",
                                             program->library->kind->name);
    kn_strbuf_deinit(&facts);
    kn_strbuf_deinit(&payload);
    return status;
}
