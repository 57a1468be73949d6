/* Bytes that claim to be a code object of an AMD GPU: read within their bounds, and the same when
 * asked again. */
#include "apis/hip/backend/code_object.h"
#include "fuzz/fuzz.h"

static void count_param(void *user, kn_metadata_arg arg)
{
    size_t *count = (size_t *)user;
    (*count)++;
    if (arg.kind.data != NULL && arg.kind.length > 0 && arg.kind.data[arg.kind.length - 1] == 1) {
        (*count)++; /* its last byte is read, for a sanitizer */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const kn_hip_target target = {"gfx90a", "gfx90a", '\0', '\0'};
    char why[KN_CODE_OBJECT_WHY];
    size_t first = 0;
    size_t second = 0;
    if (!kn_code_object_check(data, size, &target, why)) {
        return 0;
    }
    const bool known = kn_code_object_params(data, size, "run", count_param, &first);
    if (kn_code_object_params(data, size, "run", count_param, &second) != known ||
        first != second || first > 2 * size || (known && !kn_code_object_has(data, size, "run"))) {
        abort();
    }
    return 0;
}
