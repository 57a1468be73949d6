/* A program that compiles HIP C++ with hipRTC and loads it by itself, with one change: where it
 * called hiprtcCreateProgram, hiprtcCompileProgram and so on, it asks kiln. The second start finds
 * everything in the cache and does not even open hipRTC. It needs no GPU, as it stops before
 * loading. cc hiprtc_program.c $(pkg-config --cflags --libs kiln) && ./a.out gfx90a */
#include <stdio.h>

#include <kiln/hip.h>

static const char text[] = "template <class T> __global__ void scale(T *x)\n"
                           "{ x[blockIdx.x * blockDim.x + threadIdx.x] *= FACTOR; }\n";

int main(int argc, char **argv)
{
    char target[64] = "--offload-arch=gfx90a";
    if (argc > 1) {
        (void)snprintf(target, sizeof(target), "--offload-arch=%s", argv[1]);
    }
    const char *const options[] = {target, "-DFACTOR=3"};
    static const char *const expressions[] = {"scale<float>", "scale<double>"};
    const kiln_hiprtc_request request = {
        .struct_size = sizeof(request),
        .text = text,
        .name = "scale.hip",
        .options = options,
        .option_count = 2,
        .expressions = expressions,
        .expression_count = 2,
    };
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_hiprtc_result *result = NULL;
    kiln_status status = kiln_hiprtc_compile(NULL, &request, &result, &diag);
    if (status != KILN_OK) {
        (void)fprintf(stderr, "%s: %s\n%s", diag.what, diag.why, diag.log ? diag.log : "");
        kiln_diag_clear(&diag);
        return status == KILN_E_UNAVAILABLE ? 77 : 1;
    }
    (void)printf("%zu bytes for %s from %s\n", result->size, target,
                 kiln_origin_name(result->origin));
    for (size_t i = 0; i < result->lowered_count && i < request.expression_count; i++) {
        (void)printf("%s is %s\n", expressions[i], result->lowered[i]);
    }
    kiln_hiprtc_result_destroy(result);
    return 0;
}
