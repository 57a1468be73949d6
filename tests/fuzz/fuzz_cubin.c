/* Bytes that claim to be a CUBIN: read beyond doubt or not at all, and the same when asked again.
 */
#include "apis/cuda/backend/cubin.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t count = kn_cubin_param_count(data, size, "run");
    if (count != SIZE_MAX &&
        (count * 16 > size || kn_cubin_param_count(data, size, "run") != count)) {
        abort();
    }
    return 0;
}
