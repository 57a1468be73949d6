/* The one list of the kernels compiled into the program: X(name). Each has a reference, too. */
#ifndef KERNELS_LIST_H
#define KERNELS_LIST_H

#define KERNELS(X)                                                                                 \
    X(saxpy)                                                                                       \
    X(ternary_matvec)                                                                              \
    X(ternary_matmul)                                                                              \
    X(quantise_absmax)                                                                             \
    X(rms_norm)                                                                                    \
    X(softmax)                                                                                     \
    X(rotary)                                                                                      \
    X(silu_gate)                                                                                   \
    X(conv2d_3x3)                                                                                  \
    X(conv2d_5x5)                                                                                  \
    X(gemm)

#endif
