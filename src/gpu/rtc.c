/* See rtc.h. */
#include "gpu/rtc.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/strbuf.h"
#include "base/text.h"

/* Larger ones are not believed. */
#define LOG_LIMIT ((size_t)64 << 20)
#define OUTPUT_LIMIT ((size_t)1 << 30)

/* --- options ---------------------------------------------------------------------------------- */

void kn_gpu_options_add(kn_gpu_options *list, const char *text)
{
    if (list->count == list->room) {
        const size_t room = 2 * list->room + 32;
        const char **items = (const char **)realloc((void *)list->items, room * sizeof(*items));
        char **owned = (char **)realloc((void *)list->owned, room * sizeof(*owned));
        if (items != NULL) {
            list->items = items;
        }
        if (owned != NULL) {
            list->owned = owned;
        }
        list->room = items != NULL && owned != NULL ? room : list->room;
    }
    list->failed = list->failed || text == NULL || list->count == list->room;
    if (!list->failed) {
        list->items[list->count++] = text;
    }
}

void kn_gpu_options_join(kn_gpu_options *list, const char *a, const char *b, const char *c,
                         const char *d)
{
    kn_strbuf made;
    kn_strbuf_init(&made, 0);
    kn_strbuf_append_text(&made, a);
    kn_strbuf_append_text(&made, b);
    kn_strbuf_append_text(&made, c);
    kn_strbuf_append_text(&made, d);
    char *text = kn_strbuf_detach(&made, NULL);
    kn_gpu_options_add(list, text);
    if (list->failed) {
        free(text);
    } else {
        list->owned[list->owned_count++] = text;
    }
}

void kn_gpu_options_deinit(kn_gpu_options *list)
{
    for (size_t i = 0; i < list->owned_count; i++) {
        free(list->owned[i]);
    }
    free((void *)list->owned);
    free((void *)list->items);
}

/* --- compiling -------------------------------------------------------------------------------- */

/* Copies log, output and lowered names out of a program: answer->bytes holds log and output. */
static kiln_status read_answer(const kn_gpu_rtc *rtc, void *program, const kn_gpu_unit *unit,
                               kn_gpu_output output, kn_gpu_answer *answer)
{
    size_t log_size = 0;
    size_t output_size = 0;
    if (rtc->log_size(program, &log_size) != 0 || log_size > LOG_LIMIT) {
        log_size = 0;
    }
    if (answer->result == 0) {
        answer->result = output.size == NULL || output.bytes == NULL
                             ? KN_GPU_RTC_INVALID_OPTION
                             : output.size(program, &output_size);
    }
    if (output_size > OUTPUT_LIMIT) {
        answer->result = KN_GPU_RTC_OUT_OF_MEMORY; /* as large as this, it would be */
        output_size = 0;
    }
    answer->bytes = (char *)calloc(1, log_size + output_size + 2);
    if (answer->bytes == NULL) {
        return KILN_E_NOMEM;
    }
    if (log_size > 0 && rtc->get_log(program, answer->bytes) != 0) {
        answer->bytes[0] = '\0';
    }
    answer->log = answer->bytes;
    answer->log_length = strlen(answer->bytes);
    if (answer->result == 0) {
        answer->output = answer->bytes + log_size + 1;
        answer->output_size = output_size;
        answer->result = output.bytes(program, answer->bytes + log_size + 1);
    }
    for (size_t i = 0; answer->result == 0 && i < unit->expression_count; i++) {
        const char **name = &answer->lowered[answer->lowered_count++];
        answer->result = rtc->get_lowered(program, unit->expressions[i], name);
        if (answer->result == 0 && *name == NULL) {
            answer->result = KN_GPU_RTC_NAME_NOT_VALID;
        }
    }
    return KILN_OK;
}

static int compile_program(const kn_gpu_rtc *rtc, const kn_gpu_unit *unit, void *program)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < unit->expression_count; i++) {
        result = rtc->add_expression(program, unit->expressions[i]);
    }
    if (result != 0) {
        return result;
    }
    if (unit->turn != NULL) {
        kn_mutex_lock(unit->turn);
    }
    result = rtc->compile(program, (int)unit->options.count, unit->options.items);
    if (unit->turn != NULL) {
        kn_mutex_unlock(unit->turn);
    }
    return result;
}

kiln_status kn_gpu_rtc_compile(const kn_gpu_rtc *rtc, const kn_gpu_unit *unit,
                               const kiln_source *source, kn_gpu_output output, void **out_program,
                               kn_gpu_answer *answer)
{
    const size_t headers = source->header_count;
    memset(answer, 0, sizeof(*answer));
    answer->lowered = (const char **)calloc(unit->expression_count + 1, sizeof(*answer->lowered));
    const char **arrays = (const char **)calloc(headers * 2 + 1, sizeof(*arrays));
    char **texts = (char **)calloc(headers + 1, sizeof(*texts));
    kiln_status status = KILN_E_NOMEM;
    if (answer->lowered == NULL || arrays == NULL || texts == NULL) {
        goto cleanup;
    }
    for (size_t i = 0; i < headers; i++) {
        /* It reads to a NUL: without a copy, past the header's end, which is all the key has. */
        const kiln_header *header = &source->headers[i];
        texts[i] = kn_text_copy_n((const char *)header->text, header->length);
        if (texts[i] == NULL) {
            goto cleanup;
        }
        arrays[i] = texts[i];
        arrays[headers + i] = header->name;
    }
    answer->result =
        rtc->create(out_program, unit->text, unit->name, (int)headers, arrays, arrays + headers);
    if (answer->result == 0) {
        answer->result = compile_program(rtc, unit, *out_program);
    }
    status = *out_program != NULL ? read_answer(rtc, *out_program, unit, output, answer) : KILN_OK;
cleanup:
    for (size_t i = 0; texts != NULL && i < headers; i++) {
        free(texts[i]);
    }
    free((void *)texts);
    free((void *)arrays);
    return status;
}

void kn_gpu_answer_deinit(kn_gpu_answer *answer)
{
    free((void *)answer->lowered);
    free(answer->bytes);
    memset(answer, 0, sizeof(*answer));
}

/* --- what came of it -------------------------------------------------------------------------- */

kiln_status kn_gpu_rtc_fail(const kn_gpu_unit *unit, const kn_gpu_answer *answer,
                            const char *compiler, const char *text, const char *fix,
                            kiln_diag *diag)
{
    const int result = answer->result;
    kiln_status status = KILN_E_UNAVAILABLE;
    if (result == KN_GPU_RTC_COMPILATION || result == KN_GPU_RTC_INVALID_OPTION ||
        result == KN_GPU_RTC_NAME_NOT_VALID) {
        status = KILN_E_COMPILE;
        fix = "see the compiler's log";
    } else if (result == KN_GPU_RTC_OUT_OF_MEMORY) {
        status = KILN_E_NOMEM;
    }
    (void)kiln_diag_set(diag, status, fix, unit->shown, "%s reports %s", compiler, text);
    kiln_diag_set_vendor_code(diag, result);
    kiln_diag_set_log(diag, answer->log != NULL ? answer->log : "", answer->log_length);
    return status;
}

kiln_status kn_gpu_rtc_keep(const kn_gpu_unit *unit, const kn_gpu_answer *answer,
                            const kiln_host *host, kiln_artifact *artifact, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < unit->expression_count; i++) {
        char fact[32];
        kn_text_put_number(fact, sizeof(fact), KN_GPU_LOWERED_FACT, i);
        status = host->artifact_set_fact(artifact, fact, answer->lowered[i],
                                         strlen(answer->lowered[i]) + 1);
    }
    if (status == KILN_OK && answer->log_length > 0) {
        status = host->artifact_set_log(artifact, answer->log, answer->log_length);
    }
    return status == KILN_OK ? KILN_OK : kn_no_memory(diag, unit->shown);
}
