/* Any bytes as a file of a recording: refused, or a program whose bytes are the same when it is
 * written again. With an odd first byte the header is made right, so that what is behind it is
 * reached too. */
#include "fuzz/fuzz.h"
#include "record/file_frame.h"
#include "record/request.h"

static void read_program(kn_span bytes)
{
    kn_recorded program, again;
    if (kn_recorded_decode(bytes, &program, NULL) != KILN_OK) {
        return;
    }
    kn_strbuf back;
    kn_strbuf_init(&back, 0);
    if (kn_recorded_encode(&program, &back) && kn_strbuf_ok(&back)) {
        /* A flag of a file is any number but 0: the same length, and what is read again is equal.
         */
        const kn_span second = kn_span_of(kn_strbuf_text(&back), back.length);
        if (back.length > bytes.length || kn_recorded_decode(second, &again, NULL) != KILN_OK ||
            again.file_count != program.file_count || again.text_count != program.text_count) {
            abort();
        }
        kn_recorded_deinit(&again);
    }
    kn_strbuf_deinit(&back);
    kn_recorded_deinit(&program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_recorded_use use;
    if (size == 0) {
        return 0;
    }
    const size_t length = size - 1;
    char *bytes = malloc(length > 0 ? length : 1);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data + 1, length);
    if ((data[0] & 1) != 0 && length >= KN_FRAME_HEADER) {
        kn_frame_seal(bytes, length, (data[0] & 2) != 0 ? KN_FRAME_USE : KN_FRAME_PROGRAM);
    }
    read_program(kn_span_of(bytes, length));
    volatile size_t used = 0;
    if (kn_recorded_use_decode(kn_span_of(bytes, length), &use, NULL) == KILN_OK) {
        used = strlen(use.target);
    }
    (void)used;
    free(bytes);
    return 0;
}
