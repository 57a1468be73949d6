#include "conformance/options.h"

#include <stddef.h>
#include <string.h>

/* Options of each language that change code, its queries, or how a driver finishes it. What a
 * compiler does not know is passed over: that is its answer to a hit as well. */
static const char *const of_opencl[] = {"",
                                        "-cl-denorms-are-zero",
                                        "-cl-mad-enable",
                                        "-cl-fast-relaxed-math",
                                        "-cl-finite-math-only",
                                        "-cl-unsafe-math-optimizations",
                                        "-cl-no-signed-zeros",
                                        "-cl-opt-disable",
                                        "-cl-fp32-correctly-rounded-divide-sqrt",
                                        "-cl-single-precision-constant",
                                        "-cl-strict-aliasing",
                                        "-cl-uniform-work-group-size",
                                        "-cl-std=CL1.2",
                                        "-cl-std=CL3.0",
                                        "-g",
                                        "-cl-kernel-arg-info",
                                        "-cl-kernel-arg-info -cl-denorms-are-zero",
                                        "-w",
                                        "-DVALUE=7",
                                        "-cl-denorms-are-zero -cl-fast-relaxed-math -DVALUE=8 -w",
                                        "-cl-nv-verbose",
                                        "-cl-nv-maxrregcount=16",
                                        "-cl-nv-opt-level=0",
                                        NULL};
static const char *const of_c[] = {"",
                                   "-O0",
                                   "-Os",
                                   "-O3",
                                   "-ffast-math",
                                   "-ffinite-math-only",
                                   "-fno-signed-zeros",
                                   "-funsafe-math-optimizations",
                                   "-ffp-contract=off",
                                   "-ffp-contract=fast",
                                   "-fsingle-precision-constant",
                                   "-frounding-math",
                                   "-funsigned-char",
                                   "-fshort-enums",
                                   "-std=c99",
                                   "-g",
                                   "-w",
                                   "-DVALUE=7",
                                   NULL};
static const char *const of_cuda[] = {"",
                                      "--use_fast_math",
                                      "--ftz=true",
                                      "--prec-div=false",
                                      "--prec-sqrt=false",
                                      "--fmad=false",
                                      "--maxrregcount=16",
                                      "--generate-line-info",
                                      "--device-debug",
                                      "--std=c++14",
                                      "--ptxas-options=-O1",
                                      "-w",
                                      "-DVALUE=7",
                                      NULL};
static const char *const of_hip[] = {"",
                                     "-O0",
                                     "-ffast-math",
                                     "-ffp-contract=off",
                                     "-fgpu-flush-denormals-to-zero",
                                     "-munsafe-fp-atomics",
                                     "-std=c++14",
                                     "-g",
                                     "-w",
                                     "-DVALUE=7",
                                     NULL};
static const char *const of_glsl[] = {
    "", "-O0", "-O", "-Os", "-g", "-w", "--target-env=vulkan1.1", "--target-env=vulkan1.3", NULL};
static const char *const of_none[] = {"", NULL};

const char *const *conformance_options(const char *backend)
{
    static const struct {
        const char *backend;
        const char *const *options;
    } rows[] = {{"opencl", of_opencl},
                {"cpu", of_c},
                {"cuda", of_cuda},
                {"hip", of_hip},
                {"vulkan", of_glsl}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].backend, backend) == 0) {
            return rows[i].options;
        }
    }
    return of_none;
}
