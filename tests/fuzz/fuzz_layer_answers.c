/* Any bytes as what a driver said of an OpenCL program: an end, in bounds. */
#include "apis/opencl/dropin/answers.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kn_span answers = kn_span_of(data, size);
    if (!kn_answers_are_sound(answers)) {
        return 0;
    }
    uint32_t kernel = 0;
    (void)kn_answers_kernel(answers, "add", &kernel);
    for (int kind = KN_ANSWER_BUILD; kind <= KN_ANSWER_GROUP; kind++) {
        const kn_answer_query query = {(kn_answer_kind)kind, kernel, 0, CL_KERNEL_ATTRIBUTES};
        char value[16];
        cl_int code = CL_SUCCESS;
        size_t length = 0;
        kn_span answer;
        if (kn_answers_find(answers, &query, &code, &answer)) {
            if (answer.length > size) {
                abort();
            }
            (void)kn_answers_reply(code, answer, sizeof(value), value, &length);
        }
    }
    return 0;
}
