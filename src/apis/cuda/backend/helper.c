/* Compiles through the program kiln-nvrtc, which keeps precompiled headers; the frames are
 * described in programs/kiln-nvrtc/request.h. Any failure is a KILN_MISS, and the caller compiles
 * here: what the helper can do, this process can do slower. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/helper.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "sys/elf.h"
#include "sys/env.h"
#include "sys/paths.h"
#include "sys/process.h"

/* Less than this is compiled as fast as a helper starts. */
enum { HEAVY_HEADERS = 50, HEAVY_BYTES = 1 << 20 };

#define ANSWER_MAX ((size_t)512 << 20)
#define REQUEST_MAX ((size_t)60 << 20)

bool kn_cuda_helper_wanted(const kn_cuda *cuda, const kiln_compile_request *request)
{
    const kiln_precompile *precompile = request->precompile;
    bool allowed = true;
    if (precompile == NULL || cuda->toolkit.major * 100 + cuda->toolkit.minor < 1208 ||
        cuda->toolkit.builtins.path[0] == '\0' ||
        kn_env_bool("KILN_CUDA_PCH", &allowed, NULL) != KILN_OK || !allowed) {
        return false;
    }
    return precompile->header_count > HEAVY_HEADERS || precompile->header_bytes > HEAVY_BYTES;
}

/* --- request ---------------------------------------------------------------------------------- */

static void put_frame(kn_strbuf *out, char letter, const void *data, size_t size)
{
    char head[5] = {letter, 0, 0, 0, 0};
    for (int i = 0; i < 4; i++) {
        head[i + 1] = (char)(size >> (8 * i) & 0xff);
    }
    kn_strbuf_append(out, head, sizeof(head));
    kn_strbuf_append(out, data, size);
    kn_strbuf_append_char(out, '\0');
}

static void put_text(kn_strbuf *out, char letter, const char *text)
{
    put_frame(out, letter, text, strlen(text));
}

static void put_file(kn_strbuf *out, kn_strbuf *scratch, const kiln_precompile_file *file)
{
    const uint64_t facts[4] = {file->size, (uint64_t)file->mtime_ns, (uint64_t)file->ctime_ns,
                               file->inode};
    kn_strbuf_clear(scratch);
    kn_strbuf_append(scratch, facts, sizeof(facts));
    kn_strbuf_append_text(scratch, file->path);
    if (kn_strbuf_ok(scratch)) {
        put_frame(out, 'F', scratch->data, scratch->length);
    }
}

static void put_request(kn_strbuf *out, const kn_gpu_unit *unit, const kiln_precompile *precompile)
{
    kn_strbuf scratch;
    char number[32];
    kn_strbuf_init(&scratch, 0);
    put_text(out, 'V', "1");
    put_text(out, 'S', unit->text);
    put_text(out, 'N', unit->name);
    put_frame(out, 'K', &unit->kind, 1);
    for (size_t i = 0; i < unit->options.count; i++) {
        put_text(out, 'O', unit->options.items[i]);
    }
    for (size_t i = 0; i < unit->expression_count; i++) {
        put_text(out, 'E', unit->expressions[i]);
    }
    put_text(out, 'P', precompile->path);
    kn_text_putf(number, sizeof(number), "%zu", precompile->leading);
    put_text(out, 'T', number);
    for (size_t i = 0; i < precompile->file_count; i++) {
        put_file(out, &scratch, &precompile->files[i]);
    }
    kn_strbuf_deinit(&scratch);
}

/* --- answer ----------------------------------------------------------------------------------- */

static bool take_frame(kn_gpu_answer *answer, char letter, char *body, size_t size)
{
    switch (letter) {
    case 'R':
        answer->result = (nvrtcResult)strtol(body, NULL, 10);
        answer->log = NULL;
        return true;
    case 'G':
        answer->log = body;
        answer->log_length = size;
        return true;
    case 'B':
        answer->output = body;
        answer->output_size = size;
        return true;
    case 'Q':
        answer->header = body[0];
        return true;
    case 'W':
        if (answer->lowered_count == answer->lowered_room) {
            return false;
        }
        answer->lowered[answer->lowered_count++] = body;
        return true;
    default:
        return false;
    }
}

static bool parse_answer(kn_gpu_answer *answer, const kn_gpu_unit *unit)
{
    char *bytes = answer->bytes;
    size_t at = 0;
    while (at < answer->size) {
        if (answer->size - at < 6) {
            return false;
        }
        size_t length = 0;
        for (size_t i = 0; i < 4; i++) {
            length |= (size_t)(unsigned char)bytes[at + 1 + i] << (8 * i);
        }
        if (answer->size - at - 6 < length || bytes[at + 5 + length] != '\0' ||
            !take_frame(answer, bytes[at], bytes + at + 5, length)) {
            return false;
        }
        at += length + 6;
    }
    return answer->log != NULL &&
           (answer->result != NVRTC_SUCCESS ||
            (answer->output != NULL && answer->lowered_count == unit->expression_count));
}

/* False if the library was replaced since its build id went into the key. */
static bool same_library(const kn_cuda_file *file)
{
    kn_elf_facts facts;
    return kn_elf_inspect(file->path, &facts, NULL) == KILN_OK &&
           (facts.build_id[0] == '\0' || strcmp(facts.build_id, file->build_id) == 0);
}

kiln_status kn_cuda_helper_compile(const kn_cuda *cuda, const kn_gpu_unit *unit,
                                   const kiln_precompile *precompile, kn_gpu_answer *out_answer)
{
    const kn_cuda_toolkit *toolkit = &cuda->toolkit;
    kn_process_result result;
    kn_strbuf input;
    memset(out_answer, 0, sizeof(*out_answer));
    memset(&result, 0, sizeof(result));
    kn_strbuf_init(&input, REQUEST_MAX);
    kiln_status status = KILN_MISS;
    char *helper = kn_paths_helper("kiln-nvrtc");
    out_answer->lowered_room = unit->expression_count;
    out_answer->lowered =
        (const char **)calloc(unit->expression_count + 1, sizeof(*out_answer->lowered));
    put_request(&input, unit, precompile);
    if (helper == NULL || out_answer->lowered == NULL || !kn_strbuf_ok(&input)) {
        goto cleanup;
    }
    const char *argv[] = {helper, toolkit->nvrtc.path, toolkit->builtins.path, NULL};
    const kn_process_request request = {
        .argv = argv, .input = input.data, .input_size = input.length, .output_limit = ANSWER_MAX};
    if (kn_process_run(&request, &result, NULL) != KILN_OK || result.exit_code != 0 ||
        result.out == NULL) {
        goto cleanup;
    }
    out_answer->bytes = result.out;
    out_answer->size = result.out_size;
    result.out = NULL;
    if (parse_answer(out_answer, unit) && out_answer->header != 'r' &&
        same_library(&toolkit->nvrtc) && same_library(&toolkit->builtins)) {
        status = KILN_OK;
    }
cleanup:
    if (status != KILN_OK) {
        kn_gpu_answer_deinit(out_answer);
    }
    kn_process_result_deinit(&result);
    kn_strbuf_deinit(&input);
    free(helper);
    return status;
}
