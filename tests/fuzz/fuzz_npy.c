/* Bytes that claim to be a .npy file: refused, or an array whose data lies within them. */
#include "fuzz/fuzz.h"
#include "kernel/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npy_array array;
    if (npy_parse(data, size, "fuzz", &array, NULL) == KILN_OK) {
        const uint8_t *begin = array.data;
        size_t count = 0;
        if (begin < data || begin + array.size != data + size || array.type >= DATA_TYPE_COUNT ||
            !npy_count(array.shape, array.rank, data_type_size(array.type), &count) ||
            count != array.count) {
            abort();
        }
    }
    return 0;
}
