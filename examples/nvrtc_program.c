/* A program that compiles CUDA C++ with NVRTC and loads it by itself, with one change: where it
 * called nvrtcCreateProgram, nvrtcCompileProgram and so on, it asks kiln. The second start finds
 * everything in the cache and does not even open NVRTC. It needs no GPU, as it stops before
 * loading. cc nvrtc_program.c $(pkg-config --cflags --libs kiln) && ./a.out */
#include <stdio.h>

#include <kiln/cuda.h>

static const char text[] = "#include \"factor.h\"\n"
                           "template <class T> __global__ void scale(T *x)\n"
                           "{ x[blockIdx.x * blockDim.x + threadIdx.x] *= FACTOR; }\n";

int main(void)
{
    static const char *const options[] = {"--gpu-architecture=sm_90", "-DUNUSED=1"};
    static const char *const expressions[] = {"scale<float>", "scale<int>"};
    static const char header[] = "#define FACTOR 3\n";
    const kiln_header headers[] = {{"factor.h", header, sizeof(header) - 1}};
    const kiln_nvrtc_request request = {
        .struct_size = sizeof(request),
        .text = text,
        .name = "scale.cu",
        .options = options,
        .option_count = 2,
        .headers = headers,
        .header_count = 1,
        .expressions = expressions,
        .expression_count = 2,
    };
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_nvrtc_result *result = NULL;
    kiln_status status = kiln_nvrtc_compile(NULL, &request, &result, &diag);
    if (status != KILN_OK) {
        (void)fprintf(stderr, "%s: %s\n%s", diag.what, diag.why, diag.log ? diag.log : "");
        kiln_diag_clear(&diag);
        return status == KILN_E_UNAVAILABLE ? 77 : 1;
    }
    (void)printf("%zu bytes of %s from %s\n", result->size, result->is_ptx ? "PTX" : "CUBIN",
                 kiln_origin_name(result->origin));
    for (size_t i = 0; i < result->lowered_count && i < request.expression_count; i++) {
        (void)printf("%s is %s\n", expressions[i], result->lowered[i]);
    }
    kiln_nvrtc_result_destroy(result);
    return 0;
}
