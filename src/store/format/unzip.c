/* Unpacks frames. This file must not know what is in them. */
#include "store/format/unzip.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "sys/clock.h"

/* Some milliseconds' work, at most: between two of them the caller looks at the clock. */
#define PIECE ((size_t)1 << 20)

static kiln_status judge_result(size_t result, size_t got, size_t size)
{
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation) {
        return KILN_E_NOMEM;
    }
    return ZSTD_isError(result) || got != size ? KILN_E_CORRUPT : KILN_OK;
}

static kiln_status unzip_in_pieces(ZSTD_DCtx *context, kn_span frame, kn_span dictionary,
                                   uint64_t until, void *out, size_t size)
{
    ZSTD_inBuffer in = {frame.data, frame.length, 0};
    ZSTD_outBuffer to = {out, 0, 0};
    size_t left = ZSTD_DCtx_loadDictionary(context, dictionary.data, dictionary.length);
    bool moves = true;
    while (!ZSTD_isError(left) && moves) {
        if (kn_clock_now() >= until) {
            return KILN_E_TIMEOUT;
        }
        const size_t in_before = in.pos, out_before = to.pos;
        to.size = size - to.pos < PIECE ? size : to.pos + PIECE;
        left = ZSTD_decompressStream(context, &to, &in);
        moves = left != 0 && (in.pos > in_before || to.pos > out_before);
    }
    const bool ended = left == 0 && in.pos == in.size;
    return judge_result(left, ended ? to.pos : SIZE_MAX, size);
}

kiln_status kn_unzip(kn_span frame, kn_span dictionary, uint64_t until, void *out, size_t size)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL) {
        return KILN_E_NOMEM;
    }
    kiln_status status;
    if (until == 0 || size <= PIECE) {
        const size_t got = ZSTD_decompress_usingDict(context, out, size, frame.data, frame.length,
                                                     dictionary.data, dictionary.length);
        status = judge_result(got, got, size);
    } else {
        status = unzip_in_pieces(context, frame, dictionary, until, out, size);
    }
    (void)ZSTD_freeDCtx(context);
    return status;
}
